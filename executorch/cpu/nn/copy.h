/// Moves elements between two layouts of equal shape: slices, permutations, broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::cpu {

/// dst[i0 * dst0 + i1 * dst1 + ...] = src[i0 * src0 + i1 * src1 + ...]
/// Elements are of 1, 2, 4, 8 or 16 bytes; strides are in elements, those of src of any sign or 0.
/// Give dims in the order of falling dst strides and merged where they are one on both sides: runs
/// are as long as the last dim. src and dst must not overlap, unless they are the same elements.
/// Cost: memory's, also where the last dim changes (blocks are transposed in registers). Threads
/// share the work. Sizes >= 0; any stride where there are no neighbours.
struct Copy {
  struct Dim {
    int64_t size, src, dst;
  };
  const Dim* dims = nullptr;
  int n_dims = 0;
  size_t element_size = 4;
  const void* src = nullptr;
  void* dst = nullptr;

  void run() const;
};

}  // namespace executorch::cpu
