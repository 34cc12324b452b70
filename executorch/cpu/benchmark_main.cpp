#include <benchmark/benchmark.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>

#include <cstdio>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const executorch::cpu::MachineLimits& limits = executorch::cpu::machine_limits();
  std::printf("This machine, %zu threads: %.0f GFLOP/s, %.1f GB/s\n",
              executorch::cpu::default_pool().thread_count(), limits.flops * 1e-9,
              limits.bytes_per_second * 1e-9);
  benchmark::RunSpecifiedBenchmarks();
}
