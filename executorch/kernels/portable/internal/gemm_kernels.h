// The inner loops of gemm.cpp on packed operands, one set per instruction set, chosen at run time.
#pragma once

#include <cstdint>

namespace torch::executor::native::internal {

/// Rows of A per block, columns of C per block and depth per block; multiples of every tile below.
/// One block of A (48 x 192) stays in the second-level cache, one panel of B in the first.
constexpr int64_t kGemmRows = 48;
constexpr int64_t kGemmColumns = 128;
constexpr int64_t kGemmDepth = 192;
/// Upper bound of GemmKernels::columns.
constexpr int64_t kMaxTileColumns = 32;

template <class Acc>
struct GemmKernels {
  /// Height and width of the tile of C that lives in registers.
  int64_t rows;
  int64_t columns;
  /// c[i * ldc + j] += sum_p a[p * rows + i] * b[p * columns + j] for one tile.
  void (*tile)(const Acc* a, const Acc* b, int64_t depth, Acc* c, int64_t ldc);
  /// y[j] += sum_{r < 4} a[r] * b[r][j], j < n
  void (*add_rows)(const Acc* a, const Acc* const* b, int64_t n, Acc* y);
  /// y[r] += sum_p x[p] * w[r][p], p < n, r < 4
  void (*dot_rows)(const Acc* x, const Acc* const* w, int64_t n, Acc* y);
};

/// The fastest set this processor can run. Acc: float, double, uint32_t, uint64_t.
template <class Acc>
const GemmKernels<Acc>& gemm_kernels();

}  // namespace torch::executor::native::internal
