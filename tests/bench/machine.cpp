// Prints what this machine can do with a number of threads (the argument), as one line of JSON.

#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  executorch::cpu::default_pool().resize(threads > 0 ? static_cast<size_t>(threads) : 1);
  const executorch::cpu::MachineLimits& limits = executorch::cpu::machine_limits();
  std::printf("{\"read\": %.4g, \"peak\": %.4g, \"int8\": %.4g}\n", limits.bytes_per_second,
              limits.flops, limits.int8);
}
