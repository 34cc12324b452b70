// Prints what this machine can do with a number of threads, as one line of JSON.
// Arguments: threads, and the instruction set, if not the best.

#include <executorch/cpu/instruction_sets.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  executorch::cpu::default_pool().resize(threads > 0 ? static_cast<size_t>(threads) : 1);
  if (argc > 2 && !executorch::cpu::use_instruction_set_argument("machine_limits", argv[2]))
    return 1;
  const executorch::cpu::MachineLimits& limits = executorch::cpu::machine_limits();
  std::printf("{\"read\": %.4g, \"median_read\": %.4g, \"peak\": %.4g, \"int8\": %.4g}\n",
              limits.bytes_per_second, limits.median_read, limits.flops, limits.int8);
}
