// Products of the sizes that models have, beside what the machine can do at most, all in one run:
//   cpu_benchmark --benchmark_filter=Gemm
// Weights are those of many layers, read in turn, so that they come from memory as in a model.
#include <benchmark/benchmark.h>
#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/quantized_weights.h>
#include <executorch/cpu/huge_pages.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/machine_limits.h>

#include <algorithm>
#include <string>
#include <vector>

namespace executorch::cpu {
namespace {

// As many as no cache holds.
int64_t layers(int64_t weight_bytes) {
  constexpr int64_t kLeast = 256 << 20, kMost = 1 << 30;
  const int64_t bytes = std::clamp(2 * machine().l3, kLeast, kMost);
  return std::max<int64_t>(bytes / weight_bytes, 2);
}

template <class T>
T number(int64_t i) {
  if constexpr (std::is_class_v<T>) {
    T x;
    x.bits = static_cast<decltype(x.bits)>(0x3400 + i % 97);
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(i % 97);
  } else {
    return static_cast<T>(i % 97) / 97;
  }
}

/// n weights, or more: made once for all products of their type.
template <class T>
const T* weights(int64_t n) {
  static HugeArray<T> array = huge_array<T>(0);
  static int64_t size = 0;
  if (size < n) {
    array = huge_array<T>(static_cast<size_t>(n));
    for (int64_t i = 0; i < n && array != nullptr; ++i)
      array[static_cast<size_t>(i)] = number<T>(i);
    size = array == nullptr ? 0 : n;
  }
  return array.get();
}

/// Multiply-adds and weights of a product, and the time that the machine needs at least, for
/// arithmetic or for reading the weights, over the time that passes.
void count(benchmark::State& state, int64_t steps, int64_t weight_bytes, double operations) {
  const double runs = static_cast<double>(state.iterations());
  const double flops = 2.0 * static_cast<double>(steps) * runs;
  const double bytes = static_cast<double>(weight_bytes) * runs;
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
  const double least = std::max(flops / operations, bytes / machine_limits().bytes_per_second);
  state.counters["of_limit"] = benchmark::Counter(least, benchmark::Counter::kIsRate);
}

/// How B lies in memory: rows of n, or columns of k.
enum class Weights { kRows, kColumns };

template <class T>
void run_gemm(benchmark::State& state, int64_t m, int64_t k, int64_t n, Weights form) {
  std::vector<T> a(static_cast<size_t>(m * k)), c(static_cast<size_t>(m * n));
  const int64_t n_layers = layers(k * n * static_cast<int64_t>(sizeof(T)));
  const T* const w = weights<T>(n_layers * k * n);
  if (w == nullptr) return state.SkipWithError("no memory");
  std::vector<T> bias(static_cast<size_t>(n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = number<T>(static_cast<int64_t>(i));
  Gemm<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = {a.data(), k, 1};
  g.c = {c.data(), n, 1};
  g.addend = {bias.data(), 0, 1};
  g.act = relu();
  int64_t layer = 0;
  HeapScratch scratch;
  for (auto _ : state) {
    const T* weight = w + layer++ % n_layers * k * n;
    g.b = form == Weights::kColumns ? Matrix<const T>{weight, 1, k} : Matrix<const T>{weight, n, 1};
    if (!g.run(scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  }
  count(state, m * n * k, n * k * static_cast<int64_t>(sizeof(T)), machine_limits().flops);
}

void run_quantized_weights(benchmark::State& state, int64_t group, int64_t m, int64_t k,
                           int64_t n) {
  const std::vector<float> a(static_cast<size_t>(m * k), 0.5f);
  const int64_t n_layers = layers(n * k);
  const auto* const w = reinterpret_cast<const int8_t*>(weights<uint8_t>(n_layers * n * k));
  if (w == nullptr) return state.SkipWithError("no memory");
  const int64_t length = group == 0 ? k : group;
  const std::vector<float> scales(static_cast<size_t>(n * k / length), 0.02f);
  std::vector<float> c(static_cast<size_t>(m * n));
  Gemm<float> g;
  g.m = m, g.n = n, g.k = k;
  g.a = {a.data(), k, 1}, g.c = {c.data(), n, 1};
  int64_t layer = 0;
  HeapScratch scratch;
  for (auto _ : state) {
    const QuantizedWeights b = {w + layer++ % n_layers * n * k, k, scales.data(), nullptr, length};
    if (!multiply(g, b, scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  }
  count(state, m * n * k, n * k, machine_limits().flops);
}

void run_int8(benchmark::State& state, const int8::WeightForm& form, int64_t m, int64_t k,
              int64_t n) {
  const int64_t row_bytes = form.nibbles ? (k + 1) / 2 : k;
  const std::vector<int8_t> a(static_cast<size_t>(m * k), 3);
  const int64_t n_layers = layers(n * row_bytes);
  const uint8_t* const w = weights<uint8_t>(n_layers * n * row_bytes);
  if (w == nullptr) return state.SkipWithError("no memory");
  const std::vector<RowQuantization> rows(static_cast<size_t>(m), {0.01f, 3});
  const std::vector<float> scales(static_cast<size_t>(n), 0.02f), c(static_cast<size_t>(m * n));
  const std::vector<int32_t> sums(static_cast<size_t>(n), 5);
  const std::vector<BF16> group_scales(static_cast<size_t>(n * k), {0x3C80});
  Int8Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.lda = k, g.rows = rows.data();
  g.b.row_bytes = row_bytes, g.b.nibbles = form.nibbles, g.b.group_size = form.group_size;
  (form.group_size == 0 ? g.b.scales : g.group_sums) = scales.data();
  if (form.group_size > 0) g.b.group_scales = group_scales.data();
  g.sums = sums.data();
  std::vector<float> out = c;
  g.c = out.data(), g.ldc = n;
  int64_t layer = 0;
  HeapScratch scratch;
  for (auto _ : state) {
    g.b.data = w + layer++ % n_layers * n * row_bytes;
    if (!g.run(scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count(state, m * n * k, n * row_bytes, machine_limits().int8);
}

/// `prefix` and the type begin the name.
template <class F>
auto* add(const std::string& prefix, const std::string& type, int64_t m, int64_t k, int64_t n,
          const F& run) {
  const std::string name = prefix + "/" + type + "/" + std::to_string(m) + "x" + std::to_string(k) +
                           "x" + std::to_string(n);
  return benchmark::RegisterBenchmark(name.c_str(),
                                      [=](benchmark::State& state) { run(state, m, k, n); })
      ->UseRealTime();
}
template <class F>
void add(const std::string& type, int64_t m, int64_t k, int64_t n, const F& run) {
  add("Gemm", type, m, k, n, run)->MinTime(0.15);
}

template <class T>
void add(const char* type, int64_t m, int64_t k, int64_t n) {
  const auto add_form = [&](const char* name, Weights form) {
    add(std::string(type) + name, m, k, n,
        [=](auto& state, auto... sizes) { run_gemm<T>(state, sizes..., form); });
  };
  add_form("[k,n]", Weights::kRows);
  add_form("[n,k]", Weights::kColumns);
}

const bool kRegistered = [] {
  // Of a vocabulary.
  add<float>("f32", 1, 768, 50257);
  for (const int8::WeightForm& form : int8::kWeightForms) {
    add(form.name, 1, 768, 50257,
        [&form](auto& state, auto... sizes) { run_int8(state, form, sizes...); });
  }
  for (const int64_t m : {1, 2, 4, 8, 16, 128, 512, 1000}) {
    add<float>("f32", m, 768, 2304);
    add<float>("f32", m, 768, 768);
    add<float>("f32", m, 768, 3072);
    add<float>("f32", m, 3072, 768);
  }
  for (const int64_t m : {1, 2, 4, 8, 16, 24, 32, 128, 512}) {
    for (const int64_t group : {0, 32}) {
      for (const auto& [k, n] : {std::pair{768, 3072}, {3072, 768}}) {
        add("f32 by int8 weights" + (group == 0 ? "" : " in groups of " + std::to_string(group)), m,
            k, n,
            [group](auto& state, auto... sizes) { run_quantized_weights(state, group, sizes...); });
      }
    }
  }
  for (const int64_t m : {1, 4, 16, 128, 512}) {
#define ET_ROW(T, name)        \
  add<T>(#name, m, 768, 3072); \
  add<T>(#name, m, 3072, 768);
    ET_NARROW_FLOATS(ET_ROW)
#undef ET_ROW
    for (const int8::WeightForm& form : int8::kWeightForms) {
      for (const auto& [k, n] : {std::pair{768, 3072}, {3072, 768}}) {
        add(form.name, m, k, n,
            [&form](auto& state, auto... sizes) { run_int8(state, form, sizes...); });
      }
    }
  }
  // `./dev bench sweep`: a row more, or a few columns, should not cost more than its share.
  for (const int64_t m :
       {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  12,  14,  16,  17,  20,  24,  25,  31,  33,
        40, 47, 49, 50, 63, 65, 80, 97, 129, 160, 200, 257, 300, 400, 513, 700, 900, 1100}) {
    for (const auto& [k, n] : {std::pair{640, 1920},
                               {769, 2305},
                               {1000, 3000},
                               {1536, 4096},
                               {2880, 960},
                               {4096, 1024}}) {
      add("Sweep", "f32", m, k, n,
          [](auto& state, auto... sizes) { run_gemm<float>(state, sizes..., Weights::kColumns); });
      for (const int8::WeightForm& form : {int8::kWeightForms[0], int8::kWeightForms[2]}) {
        add("Sweep", form.name, m, k, n,
            [form](auto& state, auto... sizes) { run_int8(state, form, sizes...); });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace executorch::cpu
