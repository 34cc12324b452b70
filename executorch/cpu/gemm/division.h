/// Divides a product into blocks of C, each computed by one thread, and the sum into K-slices. The
/// division depends on sizes, strides, the machine and the number of threads; K-slices whose sums
/// are rounded depend on sizes and strides only, so that results are equal everywhere.
#pragma once

#include <executorch/cpu/machine.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cstdint>

namespace executorch::cpu::gemm {

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t unit) {
  return ceil_div(a, unit) * unit;
}

/// How many elements ahead of the one in use rows of B are prefetched, `least` at the least, where
/// they are contiguous, `row` elements long and `ldb` apart, and `n_together` are read side by side.
/// One after the other, any distance will do where they follow one another in memory, else it is a
/// whole number of rows. Side by side it is a whole number of such groups: each row follows the same
/// one of its group.
constexpr int64_t prefetch_distance(int64_t least, int64_t n_together, int64_t row, int64_t ldb) {
  const int64_t unit = n_together > 1 ? n_together * ldb : ldb == row ? 1 : ldb;
  return unit > 0 ? round_up(least, unit) : least;
}

/// Elements [p0, p0 + np) along k of the block of C at (i0, j0), ni x nj, of batch entry s.
struct KSlice {
  int64_t s, i0, ni, j0, nj, p0, np;
};

struct Division {
  /// Units of columns of a block: with one, rows of A would be read again for each panel.
  static constexpr int64_t kLeastUnits = 2;

  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t unit = 1;  // blocks are whole numbers of units of columns wide
  int64_t n_slices = 1, depth = 1;
  int64_t rows = 1;  // of a block, at most
  int64_t n_row_blocks = 1, n_column_blocks = 1;
  /// Threads that the product is worth.
  int64_t most_workers = 1;

  /// Blocks of columns of at most `most` units, equally wide to within a unit. There are enough of them
  /// for threads to end alike, so that each packs its part of B and rows need not be divided; but a
  /// block keeps kLeastUnits, unless a worker would have none with `row_blocks` blocks of rows.
  void divide_columns(int64_t most, int64_t row_blocks) {
    const int64_t threads = n_threads(), units = ceil_div(n, unit);
    const int64_t busy = ceil_div(std::min(threads, most_workers), batch * row_blocks);
    const int64_t even = most_workers == 1 ? 1 : ceil_div(even_blocks(), batch * n_row_blocks);
    n_column_blocks = std::max({ceil_div(units, std::max<int64_t>(most, 1)), std::min(busy, units),
                                std::min(even, units / kLeastUnits)});
    if (n_column_blocks > 1 && n_column_blocks < 4 * threads) {
      n_column_blocks = std::min(round_up(n_column_blocks, threads), units);
    }
  }
  /// Rows are divided only until there are `wanted` blocks: each block of rows packs B again. A
  /// block has `least` to `most` rows where there are so many, whole tiles.
  void divide_rows(int64_t tile_rows, int64_t least, int64_t wanted, int64_t most) {
    const int64_t blocks =
        std::clamp<int64_t>(ceil_div(wanted, batch * n_column_blocks), 1, most_row_blocks(least));
    rows = round_up(ceil_div(m, std::max(blocks, ceil_div(m, most))), tile_rows);
    n_row_blocks = ceil_div(m, rows);
  }
  int64_t most_row_blocks(int64_t least) const { return std::max<int64_t>(m / least, 1); }
  /// Blocks so that threads end alike.
  static int64_t even_blocks() { return n_threads() == 1 ? 1 : 4 * n_threads(); }
  /// How many of n columns a range has so that threads end alike: `least` to `most`, whole units.
  static int64_t even_columns(int64_t n, int64_t unit, int64_t least, int64_t most) {
    return std::clamp(round_up(ceil_div(n, even_blocks()), unit), least, most / unit * unit);
  }
  static int64_t n_threads() { return static_cast<int64_t>(loop_threads()); }

  int64_t columns() const { return ceil_div(ceil_div(n, unit), n_column_blocks) * unit; }
  int64_t n_blocks() const { return batch * n_column_blocks * n_row_blocks; }
  int64_t workers() const { return std::min({n_threads(), n_blocks(), most_workers}); }

  /// Neighbouring blocks have the same columns.
  KSlice slice(int64_t block, int64_t number) const {
    const int64_t row = block % n_row_blocks, column = block / n_row_blocks % n_column_blocks;
    KSlice t;
    t.s = block / (n_row_blocks * n_column_blocks);
    t.i0 = row * rows;
    t.ni = std::min(rows, m - t.i0);
    t.j0 = first_column(column);
    t.nj = std::min(first_column(column + 1), n) - t.j0;
    t.p0 = number * depth;
    t.np = std::min(depth, k - t.p0);
    return t;
  }

 private:
  int64_t first_column(int64_t block) const {
    return block * ceil_div(n, unit) / n_column_blocks * unit;
  }
};

}  // namespace executorch::cpu::gemm
