/// The instruction sets that Int8Gemm has kernels for.
#pragma once

#include <executorch/cpu/gemm/int8_kernels.h>

namespace executorch::cpu::int8 {

/// Those that this machine has, best first, null behind the last.
struct Sets {
  const Kernels* list[8] = {};
  /// Highway's that have what they need; a better one is a lower number.
  int64_t targets[8] = {};
  int n = 0;

  void add(const Kernels& kernels, int64_t target) {
    list[n] = &kernels;
    targets[n++] = target;
  }
};

/// Adds those of one of Highway's targets; none if the build does not contain it.
template <int64_t kTarget>
void add_sets(Sets&) {}

}  // namespace executorch::cpu::int8
