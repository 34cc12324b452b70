/// Kernels that memory bounds, on 64 MB: bytes read and written beside what the machine reads.
#include <benchmark/benchmark.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/norm.h>
#include <executorch/cpu/nn/reduce.h>
#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/threadpool.h>

#include <vector>

namespace executorch::cpu {
namespace {

constexpr int64_t kRows = 16384, kColumns = 1024;

struct Arrays {
  std::vector<float> x = std::vector<float>(kRows * kColumns, 0.5f);
  std::vector<float> y = std::vector<float>(kRows * kColumns);
  std::vector<float> w = std::vector<float>(kRows, 1.0f);
  HeapScratch scratch;
};

/// `times`: how often 64 MB are read or written.
template <class F>
void measure(benchmark::State& state, double times, const F& f) {
  static Arrays arrays;
  for (auto _ : state) f(arrays);
  const double bytes = times * kRows * kColumns * 4 * static_cast<double>(state.iterations());
  state.counters["B/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsRate);
  state.counters["limit"] = machine_limits().bytes_per_second;
}

void copy(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    const Copy::Dim dim = {kRows * kColumns, 1, 1};
    Copy{&dim, 1, 4, a.x.data(), a.y.data()}.run();
  });
}
void transpose(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    const Copy::Dim dims[] = {{kColumns, 1, kRows}, {kRows, kColumns, 1}};
    Copy{dims, 2, 4, a.x.data(), a.y.data()}.run();
  });
}
void heads_first(benchmark::State& state) {  // [16, 1024, 16, 64] to [16, 16, 1024, 64]
  measure(state, 2, [](Arrays& a) {
    constexpr int64_t kImage = 1 << 20;
    const Copy::Dim dims[] = {{16, kImage, kImage}, {16, 64, 65536}, {1024, 1024, 64}, {64, 1, 1}};
    Copy{dims, 4, 4, a.x.data(), a.y.data()}.run();
  });
}
void gelu(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    parallel_for(kRows * kColumns, 16384, [&](int64_t begin, int64_t end) {
      apply({Activation::Kind::Gelu}, a.x.data() + begin, a.y.data() + begin, end - begin);
    });
  });
}
void softmax(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    (void)Softmax{Type::F32, false, kRows, kColumns, 1, a.x.data(), a.y.data()}.run(a.scratch);
  });
}
void softmax_columns(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    (void)Softmax{Type::F32, false, 64, 256, kColumns, a.x.data(), a.y.data()}.run(a.scratch);
  });
}
void layer_norm(benchmark::State& state) {
  measure(state, 2, [](Arrays& a) {
    NormalizeRows n;
    n.rows = kRows, n.n = kColumns;
    n.eps = 1e-5;
    n.x = a.x.data(), n.y = a.y.data();
    n.weight = n.bias = a.w.data();
    n.run();
  });
}
void sum_rows(benchmark::State& state) {
  measure(state, 1, [](Arrays& a) {
    (void)Reduce{Type::F32, Reduce::Op::Sum, 1, kRows,      kColumns,
                 1,         kColumns,        1, a.x.data(), a.y.data()}
        .run(a.scratch);
  });
}
void sum_columns(benchmark::State& state) {
  measure(state, 1, [](Arrays& a) {
    (void)Reduce{Type::F32, Reduce::Op::Sum, 1,          1,         kRows, kColumns,
                 0,         kColumns,        a.x.data(), a.y.data()}
        .run(a.scratch);
  });
}

BENCHMARK(copy)->UseRealTime();
BENCHMARK(transpose)->UseRealTime();
BENCHMARK(heads_first)->UseRealTime();
BENCHMARK(gelu)->UseRealTime();
BENCHMARK(softmax)->UseRealTime();
BENCHMARK(softmax_columns)->UseRealTime();
BENCHMARK(layer_norm)->UseRealTime();
BENCHMARK(sum_rows)->UseRealTime();
BENCHMARK(sum_columns)->UseRealTime();

}  // namespace
}  // namespace executorch::cpu
