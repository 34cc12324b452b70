/// Arguments of the microkernels of floats, doubles and integers that Gemm multiplies.
///
/// A block of C is computed from rows of A, unpacked (or converted, row by row), and panels of B
/// packed as panel[p * width + j], where the width is one vector to ET_TILE_VECTORS. The sums of a
/// tile, `rows` times so many vectors, fill the registers. Each step along k takes a load for each
/// vector of B, and for each row one broadcast of A and as many multiply-adds as there are vectors, so
/// that multiply-adds limit it, not loads: 8 x 3 of them take 11 loads, 12 x 2 take 14, and processors
/// load at most as many vectors of 64 bytes in a cycle as they multiply. The panels come from the L2
/// cache, far below its bandwidth.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/gemm/microkernels.h>

#include <algorithm>
#include <cstdint>

/// The largest tile of the instruction set that a file is being compiled for: rows, and vectors of
/// columns. 32 vector registers hold 8 x 3 or 12 x 2 sums, 16 hold 6 x 2, beside the vectors of B and
/// one of A.
#define ET_TILE_ROWS (HWY_MAX_BYTES == 64 ? 8 : ET_VECTOR_REGISTERS == 32 ? 12 : 6)
#define ET_TILE_VECTORS (HWY_MAX_BYTES == 64 ? 3 : 2)

namespace executorch::cpu::gemm {

/// Rows of `lines` cache lines, `stride` bytes apart, that tiles prefetch into L2 between their
/// multiply-adds; `line` is the next one of the first row. A line is prefetched when it is due, for
/// loads of the tile would wait behind many in a row.
struct RowPrefetch {
  static constexpr int64_t kLineUnit = 1 << 20;

  const char* from = nullptr;
  int64_t rows = 0, lines = 1, stride = 0, line = 0;
  int64_t rate = 0, due = 0;  // lines for each step, and of all steps until now, in kLineUnit

  /// All of them are due after `steps` steps, and `more_rows` that need not be prefetched.
  void spread_over(int64_t steps, int64_t more_rows = 0) {
    rate = (rows + more_rows) * lines * kLineUnit / std::max<int64_t>(steps, 1) + 1;
  }
};

/// What tiles do for the next slice, for multiply-adds leave loads and stores idle: they prefetch rows
/// of B, and copy these to panels `kRowsBehind` rows later, when they have arrived and are still in L2.
/// They do what is due of it after each `steps_at_once` of their k / kSteps steps.
template <class Acc>
struct Ahead {
  static constexpr int64_t kSteps = 4, kMostStepsAtOnce = 8, kLinesAtOnce = 4, kRowsBehind = 16;

  RowPrefetch fetch;
  /// Rows of pieces of a panel's width: piece q of row i is from[i * ld + q * width], and becomes
  /// to[i * width + q * step].
  const Acc* from = nullptr;
  Acc* to = nullptr;
  int64_t rows_to_copy = 0, pieces = 0, ld = 0, step = 0;

  int64_t steps_at_once() const {
    const int64_t rate = std::max<int64_t>(fetch.rate, 1);
    return std::clamp<int64_t>(kLinesAtOnce * RowPrefetch::kLineUnit / rate, 1, kMostStepsAtOnce);
  }
};

/// One tile: to[i, j] = min(max(sums[i, j] + partial[i, j] + bias[j] + residual[i, j], low), high)
/// where sums[i, j] = sum_p a[i * lda + p] * b[p * ldb + j]. Terms without data are absent, and
/// bounds without `bounded`. The last three are for floats only.
template <class Acc>
struct Tile {
  const Acc* a;
  int64_t lda;
  const Acc* b;
  int64_t ldb;  // the width of a packed panel; or of B itself where its rows are contiguous
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
  Ahead<Acc>* ahead = nullptr;  // scalar kernels may have none
};

constexpr int kMostLanes = 16;
/// Units, which are vectors, and columns of the widest panel of any instruction set.
constexpr int kMostUnits = 3, kMostPanelColumns = kMostUnits * kMostLanes;

/// Rows of A (converted to float, contiguous) against a B read where it lies.
template <class T>
struct FewRows {
  const float* a;
  int64_t lda;
  int64_t m;
  int64_t k;
  const T* b;
  int64_t ldb;  // elements
  int64_t n;
  int64_t rows_behind = 0;  // of B after those, which this thread probably reads next
  float* sums;              // [m, n]
  int64_t ld_sums;
};
/// Most rows of A for which that is faster than blocks: where columns of B are contiguous (packing
/// would transpose them), and where rows are.
constexpr int64_t kFewDots = 16, kFewRows = 8;

/// How rows of A become what microkernels read.
template <class T>
struct Operand {
  /// to[j] = from[j], j < n
  void (*convert)(const T* from, int64_t n, float* to);
};

/// Sums of the block at (i0, j0) of batch entry s, sums[i * ld + j], which become its results.
template <class T>
struct Results {
  const Gemm<T>* gemm;
  int64_t s;
  const float* sums;
  int64_t ld, i0, ni, j0, nj;
};

/// What the functions of a row take (microkernels.h). A panel is panel[p * width + j], with zeros
/// where B has no column.
template <class T>
struct Types {
  using Stored = T;
  using Packed = Accumulator<T>;
  using Operand = gemm::Operand<T>;
  using Tile = gemm::Tile<Accumulator<T>>;
  using Few = FewRows<T>;
  using Results = gemm::Results<T>;
  static constexpr int kWidths = kMostUnits;
};

}  // namespace executorch::cpu::gemm
