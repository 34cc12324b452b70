/// A row of the table of microkernels (kernels.h): those that multiply by a B of one type.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

constexpr int kMostRows = 32;

/// `Types` says what the functions take:
///   Stored, Packed       what B, and what its panels, consist of
///   Operand              how rows of A become what tiles and products of few rows read
///   Tile, Few, Results   arguments
///   kWidths              most units of columns that a panel has
/// A function that a row has no use for is null.
template <class Types>
struct Microkernels {
  using Stored = typename Types::Stored;
  using Packed = typename Types::Packed;

  int rows, columns;  // of the largest tile: MR and NR
  int unit;           // columns of the narrowest panel; others are whole numbers of units wide
  typename Types::Operand operand;
  /// Packs one panel of n columns of B that are contiguous, ldb elements apart, with k elements
  /// each; what is beyond column n is zero or unused.
  void (*pack_columns)(const Stored* b, int64_t ldb, int64_t k, int64_t n, Packed* panel,
                       int64_t width);
  /// Packs k rows of B that are contiguous as rows [p0, p0 + k) of the panels of n columns and
  /// `depth` rows, which follow one another. The last panel is as wide as it must be.
  void (*pack_rows)(const Stored* b, int64_t ldb, int64_t k, int64_t n, Packed* panels, int64_t p0,
                    int64_t depth);
  /// Multiplies 1 to `rows` rows by a panel: tile[w][height] by one of w + 1 units.
  void (*tile[Types::kWidths][kMostRows + 1])(const typename Types::Tile&);
  /// Few rows of A by a B that is read where it lies, whose columns, or rows, are contiguous.
  void (*few_dots)(const typename Types::Few&);
  void (*few_rows)(const typename Types::Few&);
  /// From sums to a block of C.
  void (*finish)(const typename Types::Results&);

  /// Of a panel where n > 0 columns are left.
  int64_t panel_width(int64_t n) const {
    return n < columns ? (n + unit - 1) / unit * unit : columns;
  }
  auto* tile_of(int64_t width, int64_t height) const { return tile[width / unit - 1][height]; }
};

}  // namespace executorch::cpu::gemm
