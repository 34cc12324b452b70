/// The instruction sets that Int8Gemm has kernels for.
#pragma once

#include <executorch/cpu/gemm/int8_kernels.h>

namespace executorch::cpu::int8 {

/// Those that this machine has, best first, null behind the last.
struct Sets {
  const Kernels* list[8] = {};
  int n = 0;

  void add(const Kernels& kernels) { list[n++] = &kernels; }
};

/// Add nothing on another architecture.
void add_x86(Sets& sets);
void add_arm(Sets& sets);

}  // namespace executorch::cpu::int8
