/// The inner loops of Int8Gemm, one set per instruction set, chosen at run time.
///
/// Machines multiply four neighbouring bytes of k at a time, quads, and add them up in 32 bits, or
/// two 16-bit numbers, pairs. Two ways to use that:
///   tiles  rows of A times a panel, `columns` columns of B with their quads (pairs) side by side,
///          so that a vector of sums is one of columns. B has to be transposed for it.
///   dots   few rows of A times rows of B where they lie, a vector of k at a time, whose lanes are
///          summed at the end.
/// Either takes rows of A as `prepare` of its operand writes them: with `offset` added where the
/// machine multiplies unsigned with signed bytes, in the order of the elements in B, zeros behind.
#pragma once

#include <executorch/cpu/gemm/int8.h>

#include <cstdint>

namespace executorch::cpu::int8 {

constexpr int64_t kUnit = 32;  // elements of k that tiles take at a time; divides every group
constexpr int kMostRows = 12, kMostColumns = 32, kDotRows = 4, kDotColumns = 4;

/// How rows of A are prepared.
struct Operand {
  int offset;     // that prepare() adds
  int64_t block;  // elements of k: rows are padded to a multiple
  int64_t bytes;  // of a prepared block
  /// `flip` is applied to every byte of `a` by exclusive or.
  void (*prepare)(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to);

  int64_t row_bytes(int64_t k) const { return (k + block - 1) / block * bytes; }
};

/// sums[i * columns + j], int32; of groups float, scaled.
struct Tile {
  const uint8_t* a;
  int64_t lda;  // bytes
  const uint8_t* panel;
  int64_t units;
  const float* scales;  // [group, column]
  int64_t group_units;
  void* sums;
};

/// Up to kDotRows rows times n of B: sums[i * ld_sums + j], int32; of groups float, scaled.
struct Dots {
  const uint8_t* a;
  int64_t lda;  // bytes
  int64_t m, n, k;
  const uint8_t* b;
  int64_t ldb;         // bytes
  const BF16* scales;  // [column, group]
  int64_t groups, group_units;
  void* sums;
  int64_t ld_sums;
};

/// Rows [i0, i0 + ni) and columns [j0, j0 + nj) of C from their sums, nj <= kMostColumns.
struct Results {
  const Int8Gemm* gemm;
  int offset;  // of the operand
  int64_t i0, ni, j0, nj;
  const int32_t* sums;  // of groups float
  int64_t ld;
};

enum Form { kBytes, kNibbles, kGroups };

struct Kernels {
  int rows, columns;                  // of the tallest tile
  int64_t panel_unit[2];              // bytes of a panel for kUnit of k; of bytes and of nibbles
  Operand tile_rows[2], dot_rows[2];  // of bytes and of nibbles
  /// Columns [0, n) of `bytes` each, n <= columns; what is beyond has any value.
  void (*pack[2])(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, uint8_t* panel);
  /// scales[group, column]
  void (*pack_scales)(const BF16* from, int64_t groups, int64_t n, float* to);
  void (*tile[3][kMostRows + 1])(const Tile&);  // by Form and height
  void (*dots[3])(const Dots&);
  void (*finish)(const Results&);
  void (*depthwise)(const DepthwiseSums&);
  RowQuantization (*quantize_row)(const float* x, int64_t n, int8_t* q);
};

const Kernels& kernels();
/// For tests: all that this machine can run, best first, null behind the last; and which of them
/// kernels() gives from now on.
const Kernels* const* all_kernels();
void use_kernels(const Kernels& kernels);

}  // namespace executorch::cpu::int8
