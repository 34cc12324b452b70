/// Attention beside the machine's limits: multiply-adds over what is visible, bytes of keys and
/// values for one query.
#include <benchmark/benchmark.h>
#include <executorch/cpu/nn/attention.h>
#include <executorch/cpu/threadpool.h>

#include <vector>

namespace executorch::cpu {
namespace {

/// 12 heads of 64: side by side in one matrix [T, 3 * 768], or `dense`, each [T, 64]. Keys and
/// values are of type `kept`.
void attend(benchmark::State& state, int64_t queries, int64_t keys, bool causal, bool dense = false,
            Type kept = Type::F32) {
  constexpr int64_t kHeads = 12, kDim = 64, kRow = 3 * kHeads * kDim;
  std::vector<float> qkv(static_cast<size_t>(keys * kRow));
  std::vector<float> out(static_cast<size_t>(queries * kHeads * kDim));
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  Attention a;
  a.heads = a.kv_heads = kHeads;
  a.queries = queries, a.keys = keys, a.dim = a.value_dim = kDim;
  a.q = {qkv.data(), 0, kDim, kRow};
  a.k = {qkv.data() + kHeads * kDim, 0, kDim, kRow};
  a.v = {qkv.data() + 2 * kHeads * kDim, 0, kDim, kRow};
  if (dense) {
    a.k = {qkv.data() + kHeads * kDim, 0, keys * kDim, kDim};
    a.v = {qkv.data() + (keys + 1) * kHeads * kDim, 0, keys * kDim, kDim};
  }
  a.out = out.data();
  a.out_head_stride = kDim, a.out_row_stride = kHeads * kDim;
  a.scale = 0.125f;
  a.causal = causal;
  a.kept = kept;
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  const UsePool use(&pool);
  HeapScratch scratch;
  for (auto _ : state) (void)a.run(scratch);
  const double pairs = causal
                           ? 0.5 * static_cast<double>(queries) * static_cast<double>(queries + 1)
                           : static_cast<double>(queries) * static_cast<double>(keys);
  const double runs = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(runs * pairs * 4e-9 * kHeads * kDim, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(
      runs * static_cast<double>(keys) * 8e-9 * kHeads * kDim, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(attend, full_128, 128, 128, false)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, full_512, 512, 512, false)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, full_1000, 1000, 1000, false)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, causal_512, 512, 512, true)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, causal_1000, 1000, 1000, true)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, f16_causal_1000, 1000, 1000, true, true, Type::F16)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime();
BENCHMARK_CAPTURE(attend, decode_1000, 1, 1000, false)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, dense_1000, 1, 1000, false, true)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, dense_16000, 1, 16000, false, true)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(attend, decode_16000, 1, 16000, false)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace executorch::cpu
