/// The addresses of up to 12 rows of a matrix, kept in few registers, for microkernels.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

/// One pointer for every three rows: the address of a row is one of these pointers plus 0, ld or
/// 2 ld, which the addressing modes of load instructions add.
template <class T, int kHeight>
struct RowPointers {
  static_assert(kHeight <= 12);
  const T *first, *second, *third, *fourth;
  int64_t ld, two_ld;

  RowPointers(const T* rows, int64_t stride)
      : first(rows),
        second(rows + 3 * stride),
        third(rows + 6 * stride),
        fourth(rows + 9 * stride),
        ld(stride),
        two_ld(2 * stride) {
    asm("" : "+r"(two_ld));
  }
  // Hides from the compiler that all addresses follow from one pointer and one stride. Otherwise it
  // would compute all of them ahead of the loop and keep them on the stack, as it would with an
  // array of pointers.
  void Hide() {
    asm("" : "+r"(first));
    if constexpr (kHeight > 3) asm("" : "+r"(second));
    if constexpr (kHeight > 6) asm("" : "+r"(third));
    if constexpr (kHeight > 9) asm("" : "+r"(fourth));
  }
  const T* operator[](int i) const {
    return (i < 3   ? first
            : i < 6 ? second
            : i < 9 ? third
                    : fourth) +
           (i % 3 == 0   ? 0
            : i % 3 == 1 ? ld
                         : two_ld);
  }
  void Advance(int64_t n) { first += n, second += n, third += n, fourth += n; }
};

}  // namespace executorch::cpu::gemm
