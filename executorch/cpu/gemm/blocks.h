/// Products of many rows.
///
/// A thread takes one block of C after the other. It multiplies B's packed panels by one tile's
/// height of A after the other: those rows stay in the first-level cache, the panels in the second.
/// Meanwhile it packs the panels of the next block into a second buffer, a slice after each height
/// of a tile, and fetches the lines of a slice while that height is multiplied. So memory is read
/// all the time, and few lines wait in the cache until they are packed, at whatever distance they
/// lie.
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/workspace.h>

#include <atomic>

namespace executorch::cpu::gemm {

/// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 17;

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
    plain_ = std::is_same_v<T, Acc> && division_.n_parts == 1 && g.c.col_stride == 1 &&
             g.alpha == Acc(1) && (g.addend.data == nullptr || g.beta == Acc(0)) &&
             g.residual.data == nullptr && g.act.kind == Activation::Kind::None;
  }

  void run() const {
    const int64_t work = division_.rows * division_.columns * std::max<int64_t>(g_.k, 1);
    const int64_t workers =
        std::min<int64_t>({static_cast<int64_t>(loop_threads()), division_.n_blocks(),
                           std::max<int64_t>(division_.n_blocks() * work / kGrainWork, 1)});
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t, int64_t) { run_blocks(next); });
  }

 private:
  struct Buffers {
    Acc *panels, *other_panels, *sums, *rows;
  };

  /// Blocks from `next` on until none is left. The one after the present is taken beforehand.
  void run_blocks(std::atomic<int64_t>& next) const {
    const int64_t n_blocks = division_.n_blocks();
    int64_t block = next++, number = 0;
    if (block >= n_blocks) return;
    Buffers buffers = memory();
    Part part = division_.part(block, number);
    if (packs_ahead_) pack(part, buffers.panels);
    while (true) {
      if (++number == division_.n_parts) block = next++, number = 0;
      if (block >= n_blocks) return run_part(part, buffers, nullptr);
      const Part after = division_.part(block, number);
      run_part(part, buffers, &after);
      part = after;
      if (packs_ahead_) std::swap(buffers.panels, buffers.other_panels);
    }
  }

  Buffers memory() const {
    static thread_local Workspace workspace;
    const Division<T>& d = division_;
    const int64_t n_panels = round_up(d.depth * d.columns, kMostLanes);
    const int64_t n_sums = (d.n_parts == 1 ? kernels_.rows : d.rows) * d.columns;
    const int64_t n_rows = a_in_place_ ? 0 : kernels_.rows * lda_;
    const int64_t n = (packs_ahead_ ? 2 : 1) * n_panels + n_sums + n_rows;
    Acc* const at = reinterpret_cast<Acc*>(
        workspace.floats(static_cast<size_t>(n) * sizeof(Acc) / sizeof(float)));
    Acc* const sums = at + n - n_rows - n_sums;
    return {at, at + (packs_ahead_ ? n_panels : 0), sums, sums + n_sums};
  }

  /// What remains of a block's columns from j on is one vector wide or two.
  int64_t panel_width(const Part& t, int64_t j) const {
    return t.nj - j > kernels_.lanes ? width_ : kernels_.lanes;
  }

  /// Whole panels' worth of columns, if B is used where it lies; the rest is packed.
  int64_t columns_in_place(const Part& t) const {
    return division_.b_in_place ? t.nj / width_ * width_ : 0;
  }

  const T* b_at(const Part& t) const { return element(g_.b, t.p0, t.j0) + t.s * g_.b_batch; }

  /// The lines of B that rows [p, p_end) of the part's panels lie in, to be fetched in `steps`
  /// steps, somewhat faster than evenly, so that the last have time to arrive.
  Prefetch lines_of(const Part& t, int64_t p, int64_t p_end, int64_t steps) const {
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

  /// Multiplies one part and, if there is another, fetches and packs that.
  void run_part(const Part& t, const Buffers& buffers, const Part* after) const {
    if (!packs_ahead_) pack(t, buffers.panels);
    // Tiles of nearly equal height: a low one would wait for its operands.
    const int64_t n_tiles = ceil_div(t.ni, kernels_.rows);
    const int64_t steps = ceil_div(t.nj, width_) * (t.np / kPrefetchSteps);
    int64_t i = 0, packed = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      const int64_t height = (t.ni - i) / (n_tiles - tile);
      Prefetch lines;
      int64_t end = 0;
      if (after != nullptr) {
        end = std::min(round_up(after->np * (tile + 1) / n_tiles, kMostLanes), after->np);
        lines = lines_of(*after, packed, end, steps);
      }
      run_rows(t, i, height, buffers, lines);
      if (packs_ahead_ && packed < end) pack_slice(*after, packed, end, buffers.other_panels);
      packed = end;
      i += height;
    }
  }

  void pack(const Part& t, Acc* panels) const {
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

  /// Rows [p, end) of the panels of a part, as far as B is not used where it lies.
  void pack_slice(const Part& t, int64_t p, int64_t end, Acc* panels) const {
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

  /// Rows i to i + height of the part, as kernels take them.
  const Acc* rows_of_a(const Part& t, int64_t i, int64_t height, Acc* to) const {
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

  /// Asks for the lines of C that rows i to i + height of the part will be stored to.
  void fetch_result(const Part& t, int64_t i, int64_t height) const {
    if (g_.c.col_stride != 1) return;
    const T* row = g_.c.data + t.s * g_.c_batch + (t.i0 + i) * g_.c.row_stride + t.j0;
    constexpr int64_t kLineElements = Prefetch::kLine / static_cast<int64_t>(sizeof(T));
    for (int64_t r = 0; r < height; ++r, row += g_.c.row_stride) {
      for (int64_t j = 0; j < t.nj; j += kLineElements) __builtin_prefetch(row + j, 1, 3);
    }
  }

  void run_rows(const Part& t, int64_t i, int64_t height, const Buffers& buffers,
                Prefetch& prefetch) const {
    const bool last = t.p0 + t.np >= g_.k;
    if (last) fetch_result(t, i, height);
    Tile<Acc> tile;
    tile.a = rows_of_a(t, i, height, buffers.rows);
    tile.lda = lda_;
    tile.k = t.np;
    tile.accumulate = t.p0 > 0;
    tile.prefetch = &prefetch;
    const Acc* panel = buffers.panels;
    const int64_t in_place = columns_in_place(t), columns = division_.columns;
    Acc* const sums = buffers.sums + (division_.n_parts == 1 ? 0 : i * columns);
    int64_t finished = 0;
    for (int64_t j = 0; j < t.nj;) {
      const int64_t width = panel_width(t, j);
      tile.sums = sums + j;
      tile.ld_sums = columns;
      if constexpr (std::is_same_v<T, Acc>) {
        if (plain_ && j + width <= t.nj) {  // these sums are the result
          tile.sums = g_.c.data + t.s * g_.c_batch + (t.i0 + i) * g_.c.row_stride + t.j0 + j;
          tile.ld_sums = g_.c.row_stride;
          finished = j + width;
        }
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

  const Gemm<T>& g_;
  const TileKernels<Acc>& kernels_;
  const Division<T> division_;
  const int64_t width_;  // of a panel: two vectors
  bool a_in_place_;      // rows of A are used where they lie
  bool by_lines_;        // rows or columns of B are contiguous
  bool packs_ahead_;     // a part of B while another is multiplied
  int64_t lda_;
  bool plain_;  // the sums are the result
};

}  // namespace executorch::cpu::gemm
