/// Products of many rows.
///
/// A thread computes one block of C after the other. It multiplies the rows of A of one tile by all
/// packed panels of B, then those of the next tile: the rows stay in the L1 cache, the panels in
/// L2. Meanwhile it packs the panels of the next block into a second buffer, in one of two ways:
/// row by row inside of the tiles, or in pieces between two rows of tiles, whose cache lines are
/// prefetched during the first of them. Memory is read all the time so, and prefetched lines are
/// packed soon after they arrive, whatever the stride.
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/prefetch.h>
#include <executorch/cpu/scratch.h>

#include <atomic>

namespace executorch::cpu::gemm {

/// Multiply-adds from which on another thread pays.
constexpr int64_t kGrainWork = 1 << 17;

/// Addresses this many bytes apart share a set of the L1 cache (64 sets of 64 bytes).
constexpr int64_t kSetStride = 4096;
/// Up to so many rows of tiles, rows of B are packed inside of the tiles. With more, copies are so
/// far apart that each finds its page and lines evicted again: then B is packed in pieces between
/// rows of tiles.
constexpr int64_t kCopyingTiles = 22;

template <class T>
class Blocks {
  using Acc = Accumulator<T>;

 public:
  explicit Blocks(const Gemm<T>& g)
      : g_(g), kernels_(tile_kernels<Acc>()), division_(g, kernels_), width_(2 * kernels_.lanes) {
    a_in_place_ = std::is_same_v<T, Acc> && g.a.col_stride == 1 && g.a_source.produce == nullptr;
    by_lines_ = kHasStorageKernels<T> && g.b_source.produce == nullptr &&
                (g.b.col_stride == 1 || g.b.row_stride == 1);
    packs_ahead_ = by_lines_ && !division_.b_in_place;
    lda_ = a_in_place_ ? g.a.row_stride : round_up(division_.depth, kMostLanes);
    adds_ = g.addend.data != nullptr && g.beta != Acc(0);
    tiles_finish_ =
        std::is_same_v<T, Acc> && g.c.col_stride == 1 && g.alpha == Acc(1) &&
        (std::is_same_v<T, float> ? can_finish_in_tiles(g) : !adds_ && g.residual.data == nullptr);
  }

  [[nodiscard]] bool run(Scratch& scratch) const {
    const int64_t work = division_.rows * division_.columns * std::max<int64_t>(g_.k, 1);
    const int64_t workers =
        std::min<int64_t>({static_cast<int64_t>(loop_threads()), division_.n_blocks(),
                           std::max<int64_t>(division_.n_blocks() * work / kGrainWork, 1)});
    const Scratch::Frame frame(scratch);
    const BufferLayout layout(*this);
    Acc* const buffers = scratch.array<Acc>(Size(workers) * layout.size);
    if (buffers == nullptr) return false;
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      run_blocks(next, layout.at(buffers + worker * layout.size));
    });
    return true;
  }

 private:
  struct Buffers {
    Acc *panels, *other_panels, *sums, *rows;
  };
  /// Where the buffers of one thread begin in its `size` elements of scratch memory, a multiple of
  /// a cache line.
  struct BufferLayout {
    explicit BufferLayout(const Blocks& b) {
      const Division<T>& d = b.division_;
      const int64_t n_panels = round_up(d.depth * d.columns, kMostLanes);
      const int64_t n_sums = (d.n_slices == 1 ? b.kernels_.rows : d.rows) * d.columns;
      const int64_t n_rows = b.a_in_place_ ? 0 : b.kernels_.rows * b.lda_;
      other_panels = b.packs_ahead_ ? n_panels : 0;
      sums = other_panels + n_panels;
      rows = sums + n_sums;
      size = round_up(rows + n_rows, kMostLanes);
    }
    Buffers at(Acc* begin) const {
      return {begin, begin + other_panels, begin + sums, begin + rows};
    }

    int64_t other_panels, sums, rows, size;
  };

  /// Computes blocks, taken from the counter `next`, until none is left. The following block is
  /// taken before the current one is computed, so that its panels can be packed ahead.
  void run_blocks(std::atomic<int64_t>& next, Buffers buffers) const {
    const int64_t n_blocks = division_.n_blocks();
    int64_t block = next++, number = 0;
    if (block >= n_blocks) return;
    KSlice slice = division_.slice(block, number);
    if (packs_ahead_) pack(slice, buffers.panels);
    while (true) {
      if (++number == division_.n_slices) block = next++, number = 0;
      if (block >= n_blocks) return run_slice(slice, buffers, nullptr);
      const KSlice after = division_.slice(block, number);
      run_slice(slice, buffers, &after);
      slice = after;
      if (packs_ahead_) std::swap(buffers.panels, buffers.other_panels);
    }
  }

  /// Of the panel that begins at column j of the block: one vector or two.
  int64_t panel_width(const KSlice& t, int64_t j) const {
    return t.nj - j > kernels_.lanes ? width_ : kernels_.lanes;
  }

  /// The columns of B that are read in place, a multiple of a panel's width; the rest is packed.
  int64_t columns_in_place(const KSlice& t) const {
    return division_.b_in_place ? t.nj / width_ * width_ : 0;
  }

  const T* b_at(const KSlice& t) const { return element(g_.b, t.p0, t.j0) + t.s * g_.b_batch; }

  /// The cache lines of B that rows [p, p_end) of the slice's panels are packed from, to be
  /// prefetched in `steps` steps: 5/4 as fast as evenly, so that the last lines arrive in time.
  Prefetch lines_of(const KSlice& t, int64_t p, int64_t p_end, int64_t steps) const {
    Prefetch lines;
    if (!by_lines_ || p == p_end) return lines;
    const bool by_rows = g_.b.col_stride == 1;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    lines.row_bytes = (by_rows ? t.nj : p_end - p) * kSize;
    lines.stride_bytes = (by_rows ? g_.b.row_stride : g_.b.col_stride) * kSize;
    lines.rows_left = (by_rows ? p_end - p : t.nj) - 1;
    const auto* begin = reinterpret_cast<const char*>(b_at(t) + p * g_.b.row_stride);
    lines.at = Prefetch::line_of(begin);
    lines.row_end = begin + lines.row_bytes;
    const int64_t n = (lines.rows_left + 1) * (lines.row_bytes / Prefetch::kLine + 1);
    constexpr int64_t kMost = 8;
    lines.rate = static_cast<uint32_t>(
        std::min(kMost * Prefetch::kUnit, n * (Prefetch::kUnit * 5 / 4) / (steps + 1) + 1));
    return lines;
  }

  /// The height of tiles. Where rows of A are a multiple of kSetStride apart, they share sets of
  /// the L1 cache, whose 8 to 12 ways must also hold B: then tiles are lower.
  int64_t tile_rows() const {
    const bool compete = a_in_place_ && lda_ * static_cast<int64_t>(sizeof(Acc)) % kSetStride == 0;
    return compete ? ceil_div(kernels_.rows * 2, 3) : kernels_.rows;
  }

  /// Whether tiles can finish the result: at most a bias, a residual and bounds, in this order.
  bool can_finish_in_tiles(const Gemm<T>& g) const {
    const bool bounded = g.act.kind == Activation::Kind::Clamp;
    return (bounded || g.act.kind == Activation::Kind::None) &&
           (!adds_ || (g.beta == Acc(1) && g.addend.row_stride == 0 && g.addend.col_stride == 1)) &&
           (g.residual.data == nullptr || (g.residual.col_stride == 1 && (g.act_last || !bounded)));
  }

  /// Whether B is packed by copying rows: no conversion, and a whole number of vectors in each row.
  bool can_copy(const KSlice& t) const {
    return packs_ahead_ && std::is_same_v<T, Acc> && g_.b.col_stride == 1 &&
           t.nj % kernels_.lanes == 0;
  }

  /// The rows of such a slice, to be copied in `steps` steps.
  RowCopy<Acc> copy_of(const KSlice& t, int64_t steps, Acc* panels) const {
    RowCopy<Acc> rows;
    if constexpr (std::is_same_v<T, Acc>) {
      rows.fetched = rows.from = b_at(t);
      rows.ld = g_.b.row_stride;
      rows.rows_to_fetch = rows.rows_left = t.np;
      rows.to = panels;
      rows.n_panels = t.nj / width_;
      rows.panel_size = t.np * width_;
      if (t.nj % width_ != 0) rows.narrow = panels + rows.n_panels * rows.panel_size;
      rows.rate = (t.np + rows.kRowsAhead) * Prefetch::kUnit / (steps + 1) + 1;
    }
    return rows;
  }

  /// Multiplies one slice; prefetches and packs `after`, the following one, unless null.
  void run_slice(const KSlice& t, const Buffers& buffers, const KSlice* after) const {
    if (!packs_ahead_) pack(t, buffers.panels);
    // Tiles of nearly equal height: a low one has too few sums to hide the latency of its loads.
    const int64_t n_tiles = ceil_div(t.ni, tile_rows());
    const int64_t steps = ceil_div(t.nj, width_) * (t.np / kPrefetchSteps);
    const bool copies = after != nullptr && n_tiles <= kCopyingTiles && can_copy(*after);
    Ahead<Acc> ahead;
    if (copies) ahead.rows = copy_of(*after, n_tiles * steps, buffers.other_panels);
    int64_t i = 0, packed = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      const int64_t height = (t.ni - i) / (n_tiles - tile);
      int64_t end = 0;
      if (after != nullptr && !copies) {
        end = std::min(round_up(after->np * (tile + 1) / n_tiles, kMostLanes), after->np);
        ahead.lines = lines_of(*after, packed, end, steps);
      }
      run_rows(t, i, height, buffers, ahead);
      if (packs_ahead_ && packed < end) pack_slice(*after, packed, end, buffers.other_panels);
      packed = end;
      i += height;
    }
    if (copies) kernels_.copy_rows(ahead.rows);
  }

  void pack(const KSlice& t, Acc* panels) const {
    if (can_copy(t)) {
      RowCopy<Acc> rows = copy_of(t, 1, panels);
      return kernels_.copy_rows(rows);
    }
    if (by_lines_) return pack_slice(t, 0, t.np, panels);
    for (int64_t j = 0; j < t.nj;) {
      const int64_t width = panel_width(t, j), nj = std::min(width, t.nj - j);
      if (g_.b_source.produce != nullptr) {
        g_.b_source.produce(g_.b_source.matrix, t.s, t.j0 + j, nj, t.p0, t.np, panels, width);
      } else {
        Matrix<const T> b = g_.b;
        b.data = b_at(t) + j * b.col_stride;
        gather_panel(b, t.np, nj, panels, width);
      }
      panels += t.np * width;
      j += width;
    }
  }

  /// Packs rows [p, end) of the panels of a slice, except the columns that are read in place.
  void pack_slice(const KSlice& t, int64_t p, int64_t end, Acc* panels) const {
    if constexpr (kHasStorageKernels<T>) {
      const T* const b = b_at(t) + p * g_.b.row_stride;
      if (g_.b.col_stride == 1) {
        const int64_t j = columns_in_place(t);
        return storage_kernels<T>().pack_rows(b + j, g_.b.row_stride, end - p, t.nj - j, panels, p,
                                              t.np);
      }
      for (int64_t j = 0; j < t.nj;) {
        const int64_t width = panel_width(t, j), nj = std::min(width, t.nj - j);
        storage_kernels<T>().pack_columns(b + j * g_.b.col_stride, g_.b.col_stride, end - p, nj,
                                          panels + p * width, width);
        panels += t.np * width;
        j += width;
      }
    }
  }

  /// Rows [i, i + height) of the slice as the microkernels read them: in place, or in `to`.
  const Acc* rows_of_a(const KSlice& t, int64_t i, int64_t height, Acc* to) const {
    const int64_t at = t.i0 + i;
    if (g_.a_source.produce != nullptr) {
      g_.a_source.produce(g_.a_source.matrix, t.s, at, height, t.p0, t.np, to, lda_);
      return to;
    }
    Matrix<const T> a = g_.a;
    a.data = element(a, at, t.p0) + t.s * g_.a_batch;
    if constexpr (std::is_same_v<T, Acc>) {
      if (a_in_place_) return a.data;
    }
    convert_rows(a, height, t.np, to, lda_);
    return to;
  }

  /// Prefetches the lines of C that rows [i, i + height) of the slice will be stored to.
  void fetch_result(const KSlice& t, int64_t i, int64_t height) const {
    if (g_.c.col_stride != 1) return;
    const T* row = g_.c.data + t.s * g_.c_batch + (t.i0 + i) * g_.c.row_stride + t.j0;
    constexpr int64_t kLineElements = Prefetch::kLine / static_cast<int64_t>(sizeof(T));
    for (int64_t r = 0; r < height; ++r, row += g_.c.row_stride) {
      for (int64_t j = 0; j < t.nj; j += kLineElements) __builtin_prefetch(row + j, 1, 3);
    }
    keep_prefetches();
  }

  void run_rows(const KSlice& t, int64_t i, int64_t height, const Buffers& buffers,
                Ahead<Acc>& ahead) const {
    const bool last = t.p0 + t.np >= g_.k;
    if (last) fetch_result(t, i, height);
    const Acc* const a = rows_of_a(t, i, height, buffers.rows);
    const Acc* panel = buffers.panels;
    const int64_t in_place = columns_in_place(t), columns = division_.columns;
    Acc* const sums = buffers.sums + (division_.n_slices == 1 ? 0 : i * columns);
    int64_t finished = 0;
    for (int64_t j = 0; j < t.nj;) {
      const int64_t width = panel_width(t, j);
      Tile<Acc> tile;
      tile.a = a;
      tile.lda = lda_;
      tile.k = t.np;
      tile.ahead = &ahead;
      tile.to = sums + j;
      tile.ld_to = columns;
      tile.partial = t.p0 > 0 ? tile.to : nullptr;
      tile.ld_partial = columns;
      if (last && tiles_finish_ && j + width <= t.nj) {
        finish_in_tile(t, i, j, tile);
        finished = j + width;
      }
      tile.b = panel;
      tile.ldb = width;
      if (j >= in_place) panel += t.np * width;
      if constexpr (std::is_same_v<T, Acc>) {
        if (j < in_place) {
          tile.b = b_at(t) + j;
          tile.ldb = g_.b.row_stride;
        }
      }
      kernels_.tile[width / kernels_.lanes - 1][height](tile);
      j += width;
    }
    if (!last || finished >= t.nj) return;
    finish(g_, t.s, sums + finished, columns, t.i0 + i, height, t.j0 + finished, t.nj - finished);
  }

  /// Lets the tile at row i and column j of the slice store the finished result in C.
  void finish_in_tile(const KSlice& t, int64_t i, int64_t j, Tile<Acc>& tile) const {
    if constexpr (std::is_same_v<T, Acc>) {
      i += t.i0, j += t.j0;
      tile.to = g_.c.data + t.s * g_.c_batch + i * g_.c.row_stride + j;
      tile.ld_to = g_.c.row_stride;
      if (adds_) tile.bias = g_.addend.data + t.s * g_.addend_batch + j;
      if (g_.residual.data != nullptr) {
        tile.residual = element(g_.residual, i, j) + t.s * g_.residual_batch;
        tile.ld_residual = g_.residual.row_stride;
      }
      tile.bounded = g_.act.kind == Activation::Kind::Clamp;
      tile.low = static_cast<Acc>(g_.act.low);
      tile.high = static_cast<Acc>(g_.act.high);
    }
  }

  const Gemm<T>& g_;
  const TileKernels<Acc>& kernels_;
  const Division<T> division_;
  const int64_t width_;  // of a panel: two vectors
  bool a_in_place_;      // rows of A are read in place
  bool by_lines_;        // rows or columns of B are contiguous
  bool packs_ahead_;     // the next block's panels, while this block is multiplied
  int64_t lda_;
  bool adds_;          // there is an addend
  bool tiles_finish_;  // tiles store the result
};

}  // namespace executorch::cpu::gemm
