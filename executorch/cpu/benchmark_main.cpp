// Runs the engine's benchmarks. A first argument --target=NAME selects the kernels of an
// instruction set, such as AVX2.
#include <benchmark/benchmark.h>
#include <executorch/cpu/instruction_sets.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  constexpr char kTarget[] = "--target=";
  if (argc > 1 && std::strncmp(argv[1], kTarget, std::strlen(kTarget)) == 0) {
    const char* const name = argv[1] + std::strlen(kTarget);
    if (!executorch::cpu::use_instruction_set_argument("cpu_benchmark", name)) return 1;
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const executorch::cpu::MachineLimits& limits = executorch::cpu::machine_limits();
  std::printf("This machine, %zu threads: %.0f GFLOP/s, %.1f GB/s\n",
              executorch::cpu::default_pool().thread_count(), limits.flops * 1e-9,
              limits.bytes_per_second * 1e-9);
  benchmark::RunSpecifiedBenchmarks();
}
