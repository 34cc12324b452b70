// Prints the machine's limits as one line of JSON: read and copy bandwidth in bytes/s, float32
// multiply-add peak in operations/s (two per multiply-add). Argument: the number of threads.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/machine.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<float> d;

// Independent chains: more than the latency of a multiply-add times the units a core has, at most
// the registers of AVX2.
constexpr size_t kChains = 12;

/// Multiply-adds per call: returns their number; `seed` is 1, unknown to the compiler.
HWY_ATTR size_t multiply_add(size_t steps, float seed, float* result) {
  const auto factor = hn::Set(d, seed);
  const auto x0 = hn::Set(d, seed);
  // Unlike values: the compiler would merge equal chains.
  auto a0 = x0, a1 = a0 + x0, a2 = a1 + x0, a3 = a2 + x0, a4 = a3 + x0, a5 = a4 + x0;
  auto a6 = a5 + x0, a7 = a6 + x0, a8 = a7 + x0, a9 = a8 + x0, a10 = a9 + x0, a11 = a10 + x0;
  for (size_t i = 0; i < steps; ++i) {
    a0 = hn::MulAdd(a0, factor, x0);
    a1 = hn::MulAdd(a1, factor, x0);
    a2 = hn::MulAdd(a2, factor, x0);
    a3 = hn::MulAdd(a3, factor, x0);
    a4 = hn::MulAdd(a4, factor, x0);
    a5 = hn::MulAdd(a5, factor, x0);
    a6 = hn::MulAdd(a6, factor, x0);
    a7 = hn::MulAdd(a7, factor, x0);
    a8 = hn::MulAdd(a8, factor, x0);
    a9 = hn::MulAdd(a9, factor, x0);
    a10 = hn::MulAdd(a10, factor, x0);
    a11 = hn::MulAdd(a11, factor, x0);
  }
  const auto sum = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)) + ((a8 + a9) + (a10 + a11));
  *result += hn::GetLane(hn::SumOfLanes(d, sum));
  return steps * kChains * hn::Lanes(d);
}

/// The sum of n floats, n a multiple of 8 vectors.
HWY_ATTR float read(const float* x, size_t n) {
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = s0 + hn::LoadU(d, x + i);
    s1 = s1 + hn::LoadU(d, x + i + lanes);
    s2 = s2 + hn::LoadU(d, x + i + 2 * lanes);
    s3 = s3 + hn::LoadU(d, x + i + 3 * lanes);
  }
  return hn::GetLane(hn::SumOfLanes(d, (s0 + s1) + (s2 + s3)));
}

}  // namespace bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bench {
HWY_EXPORT(multiply_add);
HWY_EXPORT(read);

volatile float sink;

/// Calls f(thread) on each thread at once, `rounds` times; returns the seconds of the fastest
/// round.
template <class F>
double fastest(size_t threads, int rounds, const F& f) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (size_t t = 1; t < threads; ++t) others.emplace_back(f, t);
    f(size_t{0});
    for (std::thread& other : others) other.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = seconds.count() < best ? seconds.count() : best;
  }
  return best;
}

double peak(size_t threads) {
  constexpr size_t kSteps = 10'000'000;
  size_t count = 0;
  const float seed = static_cast<float>(std::strtod("1", nullptr));
  const double seconds = fastest(threads, 5, [&](size_t t) {
    float result = 0;
    const size_t n = HWY_DYNAMIC_DISPATCH(multiply_add)(kSteps, seed, &result);
    sink = result;
    if (t == 0) count = n;
  });
  return 2.0 * static_cast<double>(count * threads) / seconds;
}

constexpr size_t kFloats = size_t{1} << 26;  // far beyond any cache

double read_bandwidth(size_t threads, const float* x) {
  const size_t part = kFloats / threads / 1024 * 1024;
  const double seconds = fastest(
      threads, 10, [&](size_t t) { sink = HWY_DYNAMIC_DISPATCH(read)(x + t * part, part); });
  return static_cast<double>(part * threads * sizeof(float)) / seconds;
}

/// Bytes read plus bytes written.
double copy_bandwidth(size_t threads, float* x) {
  const size_t part = kFloats / 2 / threads;
  const double seconds = fastest(threads, 10, [&](size_t t) {
    std::memcpy(x + kFloats / 2 + t * part, x + t * part, part * sizeof(float));
  });
  return 2.0 * static_cast<double>(part * threads * sizeof(float)) / seconds;
}

}  // namespace bench

int main(int argc, char** argv) {
  const auto threads = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  const std::unique_ptr<float[]> x(new float[bench::kFloats]);
  for (size_t i = 0; i < bench::kFloats; ++i) x[i] = 1.0f;
  const double read_1 = bench::read_bandwidth(1, x.get());
  const double read_n = bench::read_bandwidth(threads, x.get());
  const double copy_n = bench::copy_bandwidth(threads, x.get());
  std::printf(
      "{\"threads\": %zu, \"read_1\": %.4g, \"read\": %.4g, \"copy\": %.4g, \"peak_1\": %.4g, "
      "\"peak\": %.4g}\n",
      threads, read_1, read_n, copy_n, bench::peak(1), bench::peak(threads));
}
#endif
