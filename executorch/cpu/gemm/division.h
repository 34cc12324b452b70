/// Divides a product into blocks of C, each computed by one thread, and the sum into K-slices. The
/// division depends on sizes, strides and the number of threads; K-slices, and with them the order
/// of the sums, do not depend on the threads.
#pragma once

#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/threadpool.h>

namespace executorch::cpu::gemm {

/// Bytes of a block's panels: a quarter of an L2 cache of 1 MiB, which also holds the panels packed
/// ahead and the rows of A. They still fit a cache of half that size.
constexpr int64_t kPanelBytes = 256 * 1024;
/// Most elements of a K-slice. The rows of A of one tile then fit an L1 cache of 48 KiB, and a
/// block of kPanelBytes is still wide enough to repay reading, or converting, those rows.
constexpr int64_t kDepth = 768;
/// Up to so many rows of A, packing a B with contiguous rows costs more than it saves.
constexpr int64_t kUnpackedRows = 48;
/// Where B is read in place and has more than kShallow rows, a block has few rows of B and long
/// pieces of them: longer sequential reads, and rows whose stride is a power of two do not evict
/// one another from the cache.
constexpr int64_t kShallow = 256, kUnpackedDepth = 64, kUnpackedBytes = 128 * 1024;
/// Rows of a block whose sums are kept between K-slices.
constexpr int64_t kBlockRows = 1024;

/// Elements [p0, p0 + np) along k of the block of C at (i0, j0), ni x nj, of batch entry s.
struct KSlice {
  int64_t s, i0, ni, j0, nj, p0, np;
};

template <class T>
struct Division {
  Division(const Gemm<T>& g, const TileKernels<Accumulator<T>>& kernels)
      : m(g.m), n(g.n), k(g.k), batch(g.batch), lanes(kernels.lanes) {
    b_in_place = std::is_same_v<T, float> && g.b.col_stride == 1 && g.b_source.produce == nullptr &&
                 m <= kUnpackedRows;
    const bool in_pieces = b_in_place && k > kShallow;
    n_slices = std::max<int64_t>(ceil_div(k, in_pieces ? kUnpackedDepth : kDepth), 1);
    depth = std::max<int64_t>(ceil_div(k, n_slices), 1);
    choose_columns(in_pieces ? kUnpackedBytes : kPanelBytes);
    choose_rows(kernels.rows, g.b_source.produce != nullptr);
  }

  int64_t n_blocks() const { return batch * n_column_blocks * n_row_blocks; }

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

  int64_t m, n, k, batch;
  int64_t lanes;            // of a vector; a panel is two wide
  bool b_in_place;          // rows of B are read in place
  int64_t n_slices, depth;  // of the sum
  int64_t rows, columns;    // of a block, at most
  int64_t n_row_blocks, n_column_blocks;

 private:
  /// As few blocks of columns as the cache allows, equally wide to within a vector; where they are
  /// few, a multiple of the threads.
  void choose_columns(int64_t bytes) {
    n_vectors_ = ceil_div(n, lanes);
    const auto size = static_cast<int64_t>(sizeof(Accumulator<T>));
    const int64_t most = std::max<int64_t>(bytes / size / (depth * 2 * lanes) * 2, 2);
    const auto threads = static_cast<int64_t>(loop_threads());
    n_column_blocks = ceil_div(n_vectors_, most);
    if (n_column_blocks > 1 && n_column_blocks < 4 * threads) {
      n_column_blocks = std::min(round_up(n_column_blocks, threads), n_vectors_);
    }
    columns = ceil_div(n_vectors_, n_column_blocks) * lanes;
  }
  int64_t first_column(int64_t block) const { return block * n_vectors_ / n_column_blocks * lanes; }

  /// Rows are divided only until every thread has work: each block of rows packs B again.
  void choose_rows(int64_t tile_rows, bool b_is_produced) {
    const auto threads = static_cast<int64_t>(loop_threads());
    // Computing B again for each block of rows would cost more than uneven work.
    const int64_t wanted = threads == 1 || b_is_produced ? threads : 4 * threads;
    const int64_t most = std::max<int64_t>(m / (4 * tile_rows), 1);
    int64_t blocks = std::clamp<int64_t>(ceil_div(wanted, batch * n_column_blocks), 1, most);
    blocks = std::max(blocks, ceil_div(m, kBlockRows));
    rows = round_up(ceil_div(m, blocks), tile_rows);
    n_row_blocks = ceil_div(m, rows);
  }

  int64_t n_vectors_;
};

}  // namespace executorch::cpu::gemm
