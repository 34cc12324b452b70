// Products of the sizes that models have, beside what the machine can do at most, all in one run:
//   cpu_benchmark --benchmark_filter=Gemm
// Weights are those of 12 layers, read in turn, so that they come from memory as in a model.
#include <benchmark/benchmark.h>
#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/machine_limits.h>

#include <cstdio>
#include <string>
#include <vector>

namespace executorch::cpu {
namespace {

constexpr int kLayers = 12;

template <class T>
T number(int64_t i) {
  if constexpr (std::is_class_v<T>) {
    return {static_cast<uint16_t>(0x3400 + i % 97)};
  } else {
    return static_cast<T>(i % 97) / 97;
  }
}

template <class T>
void run_gemm(benchmark::State& state, int64_t m, int64_t k, int64_t n, bool by_columns) {
  std::vector<T> a(static_cast<size_t>(m * k)), c(static_cast<size_t>(m * n));
  std::vector<T> w(static_cast<size_t>(kLayers * k * n)), bias(static_cast<size_t>(n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = number<T>(static_cast<int64_t>(i));
  for (size_t i = 0; i < w.size(); ++i) w[i] = number<T>(static_cast<int64_t>(i));
  Gemm<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = {a.data(), k, 1};
  g.c = {c.data(), n, 1};
  g.addend = {bias.data(), 0, 1};
  g.act = relu();
  int64_t layer = 0;
  HeapScratch scratch;
  for (auto _ : state) {
    const T* weight = w.data() + layer++ % kLayers * k * n;
    g.b = by_columns ? Matrix<const T>{weight, 1, k} : Matrix<const T>{weight, n, 1};
    if (!g.run(scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const double flops = 2.0 * static_cast<double>(m * n * k) * runs;
  const double bytes = static_cast<double>(n * k) * sizeof(T) * runs;
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
  const MachineLimits& limits = machine_limits();
  // The time the machine needs at least, for arithmetic or for reading the weights.
  const double least = std::max(flops / limits.flops, bytes / limits.bytes_per_second);
  state.counters["of_limit"] = benchmark::Counter(least, benchmark::Counter::kIsRate);
}

template <class T>
void add(const char* type, int64_t m, int64_t k, int64_t n) {
  for (const bool by_columns : {false, true}) {
    const std::string name = std::string("Gemm/") + type + "/" + std::to_string(m) + "x" +
                             std::to_string(k) + "x" + std::to_string(n) +
                             (by_columns ? "/[n,k]" : "/[k,n]");
    benchmark::RegisterBenchmark(
        name.c_str(), [=](benchmark::State& state) { run_gemm<T>(state, m, k, n, by_columns); })
        ->UseRealTime()
        ->MinTime(0.15);
  }
}

const bool kRegistered = [] {
  for (const int64_t m : {1, 2, 4, 8, 16, 128, 512, 1000}) {
    add<float>("f32", m, 768, 2304);
    add<float>("f32", m, 768, 768);
    add<float>("f32", m, 768, 3072);
    add<float>("f32", m, 3072, 768);
  }
  for (const int64_t m : {1, 4, 16, 128, 512}) {
    add<F16>("f16", m, 768, 3072);
    add<BF16>("bf16", m, 768, 3072);
    add<F16>("f16", m, 3072, 768);
  }
  return true;
}();

}  // namespace
}  // namespace executorch::cpu
