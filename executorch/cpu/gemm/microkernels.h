/// A row of the table of microkernels (kernels.h): the microkernels that multiply by a matrix B of
/// one element type.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

constexpr int kMostRows = 32;

/// `Types` defines the types of the functions' arguments:
///   Stored, Packed       the elements of B, and those of its packed panels
///   Operand              functions that convert rows of A to the form that microkernels read
///   Tile, Few, Results   the arguments of tile, of the few_rows_ functions, and of finish
///   kWidths              the number of different widths that a panel can have
/// A function that a row does not need is null.
template <class Types>
struct Microkernels {
  using Stored = typename Types::Stored;
  using Packed = typename Types::Packed;

  int rows, columns;  // of the largest tile: MR and NR
  int width_step;     // columns of the narrowest panel; every width is a multiple of it
  int most_dot_rows;  // the most rows of A for which few_rows_dot is faster than tiles
  typename Types::Operand operand;
  /// Packs one panel from n columns of B; each column has k contiguous elements, and columns are
  /// ldb elements apart. The panel's columns from n on are zero or unused.
  void (*pack_columns)(const Stored* b, int64_t ldb, int64_t k, int64_t n, Packed* panel,
                       int64_t width);
  /// Packs k rows of B, with n contiguous elements each, as rows [p0, p0 + k) of panels of `depth`
  /// rows, which follow one another in memory. The last panel is as narrow as its columns
  /// allow.
  void (*pack_rows)(const Stored* b, int64_t ldb, int64_t k, int64_t n, Packed* panels, int64_t p0,
                    int64_t depth);
  /// tile[w][height] multiplies `height` rows of A (1 to `rows`) by a panel of
  /// (w + 1) * width_step columns.
  void (*tile[Types::kWidths][kMostRows + 1])(const typename Types::Tile&);
  /// Both multiply few rows of A by a B that is read where it lies. few_rows_dot computes dot
  /// products with columns of B, which must be contiguous. few_rows_axpy scales rows of B, which
  /// must be contiguous, and adds them to rows of sums (BLAS: axpy).
  void (*few_rows_dot)(const typename Types::Few&);
  void (*few_rows_axpy)(const typename Types::Few&);
  /// Computes a block of C from its sums.
  void (*finish)(const typename Types::Results&);

  /// The width of the next panel where n > 0 columns are left.
  int64_t panel_width(int64_t n) const {
    return n < columns ? (n + width_step - 1) / width_step * width_step : columns;
  }
  auto* tile_of(int64_t width, int64_t height) const {
    return tile[width / width_step - 1][height];
  }
};

}  // namespace executorch::cpu::gemm
