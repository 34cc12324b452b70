/// Products by instructions that multiply bfloat16: those of matrix registers (x86's AMX), or of
/// vectors (AVX-512 BF16, ARM's BF16) where elements are bfloat16.
///
/// A float is the sum of three bfloat16 numbers: the float rounded to bfloat16, what is left of it
/// rounded, and the rest; their significands of 8 bits hold all 24 of the float's. F16 is the sum
/// of two. Of the nine products of two floats' parts the six largest are added up, in float. The
/// others are below 2^-26 of the product, a quarter of the error that rounding it to float would
/// make: sums have the accuracy of those of multiply-adds, at twice their speed or more. Parts
/// below 2^-126 are zero. Infinities and NaNs have no parts: a result that is not finite is
/// computed by multiply-adds.
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/float_kernels.h>

#include <cstdint>
#include <type_traits>

namespace executorch::cpu::gemm {

/// The number of parts of an element.
template <class T>
constexpr int kParts = std::is_same_v<T, float> ? 3
                       : std::is_same_v<T, F16> ? 2
                                                : 1;
constexpr int kMostParts = 3;

/// How often a product of one block splits lines of the next panel.
template <class T>
constexpr int kSplitsOfBlock = kParts<T> == 3 ? 2 : 1;

/// Parts lie in blocks: kBlockDepth elements along k of up to kBlockWidth rows of A, or of
/// kBlockWidth columns of B. A block has 16 lines of 64 bytes for each part, one part after the
/// other. Line r of a block of A holds row r, with its elements in the order 0, 16, 1, 17, ...;
/// line r of a block of B holds elements r and r + 16 of each column. If elements have a single
/// part, the elements of A stay in order, and line r of B holds elements 2 r and 2 r + 1. Where
/// columns of B are contiguous, the two layouts are exchanged: then B, the larger operand, need not
/// be transposed.
constexpr int64_t kBlockDepth = 32, kBlockWidth = 16, kPairBytes = 4, kPartBytes = 1024;
/// The most tiles of rows of A that SplitBlocks multiplies in one call.
constexpr int64_t kMostSplitTiles = 4;

/// The next panel of B, which is split while the current one is multiplied.
struct PanelSplit {
  const void* from = nullptr;  // [k, vectors * kBlockWidth], rows `ld` apart
  bool is_stored = false;      // elements are as B has them, else floats
  int64_t ld = 0, k = 0, vectors = 0;
  uint8_t* to = nullptr;  // the blocks of the first vector of columns, then those of the next one
  /// If not 0, `from` has so many columns of k contiguous elements, `ld` apart; the others are zero.
  int64_t columns = 0;
  int64_t done = 0;  // how many of the lines() are split
  int64_t rate = 0;  // lines to split in each step of a product

  /// The blocks along k, and the lines of one part of these blocks. A line has all vectors if rows
  /// are contiguous, one column if columns are.
  int64_t blocks() const { return ceil_div(k, kBlockDepth); }
  int64_t lines() const { return blocks() * kBlockWidth * (columns > 0 ? vectors : 1); }
};

/// Tiles of rows of A times a panel of B.
struct SplitTile {
  const uint8_t* a;       // the blocks of the first tile along k, then those of the next one
  int64_t tiles, height;  // at most kMostSplitTiles; rows of each, at most kBlockWidth
  const uint8_t* b;
  int64_t vectors;  // of kBlockWidth columns
  int64_t blocks;   // along k
  float* sums;      // [tiles * height, vectors * kBlockWidth]
  PanelSplit* next;

  /// How often the product splits lines of `next`: `for_each_block` times for each block along k of
  /// each group of tiles and vectors whose sums fill the matrix registers. Products of vectors
  /// split as many lines in fewer steps.
  int64_t steps(int64_t for_each_block) const {
    return for_each_block * blocks *
           (vectors / 2 * ceil_div(tiles, 2) + vectors % 2 * ceil_div(tiles, 4));
  }
};

/// The kernels for elements that have a certain number of parts. All are null if the machine has no
/// such instructions.
struct SplitKernels {
  /// The fewest rows of A for which these kernels are faster than dot products or tiles of
  /// multiply-adds, where rows of B are contiguous, and where columns are.
  int64_t least_rows = 0, least_rows_by_columns = 0;
  /// The number of tiles is a multiple of this.
  int64_t tile_step = 1;
  /// Splits `rows` rows of A, of k elements each, into the blocks of a tile of `height` rows, whose
  /// other rows become zero. Elements have the stored type if `is_stored`; otherwise they are
  /// floats.
  void (*split_rows)(const void* a, bool is_stored, int64_t lda, int64_t rows, int64_t k,
                     int64_t height, uint8_t* to) = nullptr;
  /// Splits the lines of a panel that are not split yet.
  void (*split_rest)(PanelSplit&) = nullptr;
  void (*multiply)(const SplitTile&) = nullptr;
  /// The same for a B whose columns are contiguous. Writes kBlockWidth rows for the last tile of
  /// each call, too.
  void (*multiply_columns)(const SplitTile&) = nullptr;
  /// The same for a panel of floats, which have more parts than the rows may have. Null for elements
  /// with a single part, as these lie in another order.
  void (*multiply_by_floats)(const SplitTile&) = nullptr;
  /// Whether the first `rows` rows of the sums are finite.
  bool (*are_finite)(const float* sums, int64_t rows, int64_t width) = nullptr;
  /// Finishes sums[rows, width] and stores them, as a tile does with its own sums. Does not read
  /// what `t` says of k, A and B.
  void (*store)(const Tile<float>& t, const float* sums, int64_t rows, int64_t width) = nullptr;
};

}  // namespace executorch::cpu::gemm
