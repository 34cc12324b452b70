#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/huge_pages.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/machine_limits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
constexpr int kSums = 12;

/// `steps` times kSums independent multiply-adds; returns the number of operations.
double MultiplyAdds(int64_t steps, float* sink) {
  const Floats d;
  hn::Vec<Floats> sums[kSums];
  for (auto& sum : sums) sum = hn::Set(d, 1.0f);
  const volatile float factor = 0.999f, term = 0.001f;  // else the compiler knows the sums
  const auto x = hn::Set(d, factor), y = hn::Set(d, term);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = hn::MulAdd(sum, x, y);
  }
  for (auto& sum : sums) *sink += hn::GetLane(sum);
  return 2.0 * kSums * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

/// The plain sum of n floats, with prefetches 2 KiB ahead: memory delivers more than without them.
float Sum(const float* p, int64_t n) {
  const Floats d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d)), kVectors = 12;
  constexpr int64_t kAhead = 2048 / sizeof(float);
  hn::Vec<Floats> sums[2] = {hn::Zero(d), hn::Zero(d)};
  for (int64_t i = 0; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(p + i + v * kLanes + kAhead, 0, 2);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      sums[v % 2] = hn::Add(sums[v % 2], hn::LoadU(d, p + i + v * kLanes));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1])));
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {
HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Sum);
namespace {

constexpr int kRepetitions = 8;

/// The work per second of several runs of f, which returns its work, in ascending order.
template <class F>
std::array<double, kRepetitions> rates(const F& f) {
  std::array<double, kRepetitions> found;
  for (double& rate : found) {
    const auto start = std::chrono::steady_clock::now();
    const double work = f();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    rate = work / time.count();
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// `times` the tallest tile of integer products, over operands in the first-level cache; returns
/// the number of operations.
int64_t multiply_bytes(int64_t times) {
  constexpr int64_t kTerms = 256, kFirst = 0;
  const int8::Row& row = int8::kernels().rows[int8::kBytes];
  const int64_t lda = row.operand.tile_element * kTerms;  // bytes
  alignas(64) std::array<int8_t, int8::kMostRows * 2 * kTerms> a;
  alignas(64) std::array<uint8_t, kTerms * int8::kMostColumns> panel;
  alignas(64) std::array<int32_t, int8::kMostRows * int8::kMostColumns> sums;
  a.fill(1);
  panel.fill(1);
  int8::Tile tile{};
  tile.a = a.data();
  tile.lda = lda;
  tile.prepared = row.operand.prepare_tile != nullptr;
  tile.segments = &kFirst;
  tile.n_segments = 1;
  tile.quads = kTerms / 4;
  tile.panel = panel.data();
  tile.sums = sums.data();
  int8::MatrixRegisters registers;
  tile.registers = &registers;
  for (int64_t i = 0; i < times; ++i) row.tile[0][row.rows](tile);
  return 2 * times * row.rows * row.columns * kTerms;
}

/// Of twice as much as the last cache holds.
std::array<double, kRepetitions> read_rates() {
  constexpr int64_t kLeast = 256 << 20, kMost = 1 << 30;
  const int64_t floats = std::clamp(2 * machine().l3, kLeast, kMost) / 4;
  const HugeArray<float> memory = huge_array<float>(static_cast<size_t>(floats));
  if (memory == nullptr) return {};
  parallel_for(floats, 1 << 20, [&](int64_t begin, int64_t end) {
    std::fill_n(memory.get() + begin, end - begin, 1.0f);
  });
  return rates([&] {
    std::atomic<int64_t> bytes{0};
    parallel_for(floats, 4096, [&](int64_t begin, int64_t end) {
      const float sum = HWY_DYNAMIC_DISPATCH(Sum)(memory.get() + begin, end - begin);
      bytes += (end - begin) * 4 + (sum == 0.5f ? 1 : 0);
    });
    return static_cast<double>(bytes);
  });
}

MachineLimits measure() {
  const auto threads = static_cast<int64_t>(default_pool().thread_count());
  MachineLimits limits;
  limits.flops =
      rates([&] {
        std::atomic<int64_t> work{0};
        parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
          float sink = 0;
          for (int64_t t = begin; t < end; ++t) {
            work += static_cast<int64_t>(HWY_DYNAMIC_DISPATCH(MultiplyAdds)(2'000'000, &sink));
          }
          if (sink == 0.5f) ++work;
        });
        return static_cast<double>(work);
      }).back();
  limits.int8 = rates([&] {
                  std::atomic<int64_t> work{0};
                  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
                    for (int64_t t = begin; t < end; ++t) work += multiply_bytes(20'000);
                  });
                  return static_cast<double>(work);
                }).back();
  const auto reads = read_rates();
  limits.bytes_per_second = reads.back();
  limits.median_read = reads[kRepetitions / 2];
  return limits;
}

}  // namespace

const MachineLimits& machine_limits() {
  static const MachineLimits limits = measure();
  return limits;
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
