/// Arguments of the microkernels for the types that Gemm multiplies: floats, doubles and integers.
///
/// A block of C is computed from rows of A, which are not packed (but may be converted), and from
/// panels of B packed as panel[p * width + j]. A panel is 1 to ET_TILE_VECTORS vectors wide. The
/// sums of a tile, `rows` rows of as many vectors, fill the registers. Each step along k loads
/// every vector of the panel's row once; for each row of A it broadcasts one element and does one
/// multiply-add for each vector. So multiply-adds are the bottleneck, not loads: 8 x 3
/// multiply-adds take 11 loads and 12 x 2 take 14, and processors do as many loads of 64 bytes in a
/// cycle as multiply-adds. Panels come from the L2 cache, far below its bandwidth.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/gemm/microkernels.h>

#include <algorithm>
#include <cstdint>

/// The rows, and the vectors of columns, of the largest tile of the instruction set that a file is
/// being compiled for. 32 vector registers hold 8 x 3 or 12 x 2 vectors of sums and 16 registers
/// hold 6 x 2, beside the vectors of B and one vector of A.
#define ET_TILE_ROWS (HWY_MAX_BYTES == 64 ? 8 : ET_VECTOR_REGISTERS == 32 ? 12 : 6)
#define ET_TILE_VECTORS (HWY_MAX_BYTES == 64 ? 3 : 2)

namespace executorch::cpu::gemm {

/// Memory that microkernels prefetch into L2 between their multiply-adds: `rows` rows of `lines`
/// cache lines each, `stride` bytes apart, of which `line` lines of the first row are already
/// prefetched. The prefetches are spread over the steps of the microkernel, because its loads would
/// have to wait behind many prefetches in a row.
struct RowPrefetch {
  static constexpr int64_t kOneLine = 1 << 20;  // one line as a fixed-point number

  const char* from = nullptr;
  int64_t rows = 0, lines = 1, stride = 0, line = 0;
  int64_t rate = 0, due = 0;  // lines per step, and lines due by now; both times kOneLine

  /// Sets the rate so that all rows, and `more_rows` further rows that are not prefetched, are due
  /// after `steps` steps.
  void spread_over(int64_t steps, int64_t more_rows = 0) {
    rate = (rows + more_rows) * lines * kOneLine / std::max<int64_t>(steps, 1) + 1;
  }
};

/// Work for the next K-slice that microkernels do between their multiply-adds, which leave load and
/// store units idle. They prefetch rows of B and copy each row to the panels `kRowsBehind` rows
/// later, when it has arrived in L2 and is still there. A microkernel has k / kSteps steps; after
/// every `steps_at_once` of them it does the part of this work that is due.
template <class Acc>
struct Ahead {
  static constexpr int64_t kSteps = 4, kMostStepsAtOnce = 8, kLinesAtOnce = 4, kRowsBehind = 16;

  RowPrefetch fetch;
  /// Rows are copied in pieces of a panel's width: piece q of row i is copied from
  /// from + i * ld + q * width to to + i * width + q * step.
  const Acc* from = nullptr;
  Acc* to = nullptr;
  int64_t rows_to_copy = 0, pieces = 0, ld = 0, step = 0;

  int64_t steps_at_once() const {
    const int64_t rate = std::max<int64_t>(fetch.rate, 1);
    return std::clamp<int64_t>(kLinesAtOnce * RowPrefetch::kOneLine / rate, 1, kMostStepsAtOnce);
  }
};

/// One tile: to[i, j] = min(max(sums[i, j] + partial[i, j] + bias[j] + residual[i, j], low), high)
/// where sums[i, j] = sum_p a[i * lda + p] * b[p * ldb + j]. A term whose pointer is null is left
/// out; without `bounded` so are the bounds. Bias, residual and bounds are for floats only.
template <class Acc>
struct Tile {
  const Acc* a;
  int64_t lda;
  const Acc* b;
  int64_t ldb;  // the width of a packed panel, or the row stride of a B that is read in place
  int64_t k;
  Acc* to;
  int64_t ld_to;
  const Acc* partial = nullptr;
  int64_t ld_partial = 0;
  const Acc* bias = nullptr;
  const Acc* residual = nullptr;
  int64_t ld_residual = 0;
  bool bounded = false;
  Acc low = 0, high = 0;
  Ahead<Acc>* ahead = nullptr;  // may be null for scalar kernels only
};

constexpr int kMostLanes = 16;
/// The width of the widest panel of any instruction set, in vectors and in columns.
constexpr int kMostPanelVectors = 3, kMostPanelColumns = kMostPanelVectors * kMostLanes;

/// Multiplies few rows of A, contiguous and converted to float, by a B that is read where it lies.
template <class T>
struct FewRows {
  const float* a;
  int64_t lda;
  int64_t m;
  int64_t k;
  const T* b;
  int64_t ldb;  // elements
  int64_t n;
  float* sums;  // [m, n]
  int64_t ld_sums;
  bool is_cached = false;  // several rows of A find B in a cache, so that nothing is prefetched
};
/// The most rows of A for which few_rows_axpy is faster than the driver, and the largest
/// Microkernels::most_dot_rows of any instruction set.
constexpr int64_t kMostAxpyRows = 8, kMostDotRows = 30;

/// How rows of A become what microkernels read.
template <class T>
struct Operand {
  /// to[j] = from[j], j < n
  void (*convert)(const T* from, int64_t n, float* to);
};

/// The sums of the ni x nj block of C at row i0 and column j0 of batch entry s, at sums[i * ld +
/// j]. finish() computes the block's results from them.
template <class T>
struct Results {
  const Gemm<T>* gemm;
  int64_t s;
  const float* sums;
  int64_t ld, i0, ni, j0, nj;
};

/// The types of the arguments of a row's functions (microkernels.h). Element (p, j) of a panel is
/// panel[p * width + j]; columns beyond the last one of B are zero.
template <class T>
struct Types {
  using Stored = T;
  using Packed = Accumulator<T>;
  using Operand = gemm::Operand<T>;
  using Tile = gemm::Tile<Accumulator<T>>;
  using Few = FewRows<T>;
  using Results = gemm::Results<T>;
  static constexpr int kWidths = kMostPanelVectors;
};

}  // namespace executorch::cpu::gemm
