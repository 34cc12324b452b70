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
constexpr int64_t round_up(int64_t a, int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

/// The distance in elements, at least `least`, from an element of B that is read to the one that is
/// prefetched meanwhile. Rows of B are contiguous, `row` elements long and `ldb` elements apart;
/// `n_together` rows are read side by side. Where rows are read one after another, any distance
/// serves if they also follow one another in memory (ldb == row); otherwise the distance is a whole
/// number of rows. Where rows are read side by side, it is a whole number of groups of n_together
/// rows, so that each row prefetches the row at its own place in a later group.
constexpr int64_t prefetch_distance(int64_t least, int64_t n_together, int64_t row, int64_t ldb) {
  const int64_t multiple = n_together > 1 ? n_together * ldb : ldb == row ? 1 : ldb;
  return multiple > 0 ? round_up(least, multiple) : least;
}

/// One K-slice of one block of C: the terms [p0, p0 + np) of the sums of the ni x nj block at row
/// i0 and column j0 of batch entry s.
struct KSlice {
  int64_t s, i0, ni, j0, nj, p0, np;
};

struct Division {
  /// The least number of panels of columns in a block. In blocks of a single panel, rows of A would
  /// be read again for each panel.
  static constexpr int64_t kLeastPanels = 2;

  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t panel_columns = 1;  // of a panel; blocks, except the last one, have whole panels
  int64_t n_slices = 1, depth = 1;
  int64_t rows = 1;  // the most rows of a block
  int64_t n_row_blocks = 1, n_column_blocks = 1;
  /// The most threads that the product has enough work for.
  int64_t most_workers = 1;

  /// Divides the columns into blocks of at most `most` panels, which differ by at most a panel in
  /// width. There are enough blocks for the threads to finish at about the same time, so that each
  /// thread packs its own part of B and rows need not be divided. But a block keeps kLeastPanels
  /// panels, unless some thread would otherwise get no block even with `row_blocks` blocks of rows.
  void divide_columns(int64_t most, int64_t row_blocks) {
    const int64_t threads = n_threads(), panels = ceil_div(n, panel_columns);
    const int64_t busy = ceil_div(std::min(threads, most_workers), batch * row_blocks);
    const int64_t even = most_workers == 1 ? 1 : ceil_div(even_blocks(), batch * n_row_blocks);
    n_column_blocks = std::max({ceil_div(panels, std::max<int64_t>(most, 1)),
                                std::min(busy, panels), std::min(even, panels / kLeastPanels)});
    if (n_column_blocks > 1 && n_column_blocks < 4 * threads) {
      n_column_blocks = std::min(round_up(n_column_blocks, threads), panels);
    }
  }
  /// Divides the rows into no more blocks than it takes to have `wanted` blocks of C, because each
  /// block of rows packs B again. A block has about `least` to `most` rows, if m is that large, and
  /// a whole number of tiles of `tile_rows` rows.
  void divide_rows(int64_t tile_rows, int64_t least, int64_t wanted, int64_t most) {
    const int64_t blocks =
        std::clamp<int64_t>(ceil_div(wanted, batch * n_column_blocks), 1, most_row_blocks(least));
    rows = round_up(ceil_div(m, std::max(blocks, ceil_div(m, most))), tile_rows);
    n_row_blocks = ceil_div(m, rows);
  }
  int64_t most_row_blocks(int64_t least) const { return std::max<int64_t>(m / least, 1); }
  /// The number of blocks with which threads finish at about the same time.
  static int64_t even_blocks() { return n_threads() == 1 ? 1 : 4 * n_threads(); }
  /// How many of n columns a range of a parallel loop has so that threads finish at about the same
  /// time: `least` to `most`, in general a multiple of `multiple`.
  static int64_t even_columns(int64_t n, int64_t multiple, int64_t least, int64_t most) {
    return std::clamp(round_up(ceil_div(n, even_blocks()), multiple), least,
                      most / multiple * multiple);
  }
  static int64_t n_threads() { return static_cast<int64_t>(loop_threads()); }

  int64_t columns() const {
    return ceil_div(ceil_div(n, panel_columns), n_column_blocks) * panel_columns;
  }
  int64_t n_blocks() const { return batch * n_column_blocks * n_row_blocks; }
  int64_t workers() const { return std::min({n_threads(), n_blocks(), most_workers}); }

  /// K-slice `number` of block `block`. Consecutive blocks have the same columns and successive
  /// rows.
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
    return block * ceil_div(n, panel_columns) / n_column_blocks * panel_columns;
  }
};

}  // namespace executorch::cpu::gemm
