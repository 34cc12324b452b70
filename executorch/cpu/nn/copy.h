/// Moves elements between two layouts of equal shape: slices, permutations, broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::cpu {

/// dst[i0 * dst0 + i1 * dst1 + ...] = src[i0 * src0 + i1 * src1 + ...]
/// Elements have 1, 2, 4, 8 or 16 bytes. Strides are in elements; those of src may be negative or
/// 0. For speed, pass dims in the order of falling dst strides, and merge two dims where one stride
/// walks both on both sides: elements are copied in runs of the last dim. src and dst must not
/// overlap, unless they are the same elements. Cost: limited by memory bandwidth, also where the
/// last dim of dst is not the last one of src, because blocks are transposed in registers. Threads
/// share the work. Sizes >= 0; the stride of a dim of size 1 may be anything.
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
