/// Products of many rows of floats, as the driver multiplies them by instructions for bfloat16
/// (split_kernels.h): panels first. Rows of A are split when a thread enters a slice; each panel is
/// split while the one before it is multiplied, so that memory is read all the time.
#pragma once

#include <executorch/cpu/gemm/float_blocks.h>

#include <cstring>
#include <optional>

namespace executorch::cpu::gemm {

template <class T>
class SplitBlocks : public Blocks<T> {
  using Base = Blocks<T>;
  using Base::a_in_place_, Base::b_at, Base::by_columns_, Base::by_rows_, Base::columns_finished,
      Base::division_, Base::finish_in_tile, Base::g_, Base::is_last, Base::kSize, Base::lda_,
      Base::pack_panel, Base::row_, Base::rows_of_a, Base::width_;

 public:
  /// Whether there are such instructions, and splitting costs less than they save. A single part
  /// holds no more than a number of type T.
  static bool pays(const Gemm<T>& g) {
    if (kParts<T> == 1 && !(g.a_source.in_type && g.b_source.in_type)) return false;
    const SplitKernels& split = kernels().split[kParts<T>];
    const bool by_columns = g.b.row_stride == 1 && g.b.col_stride != 1;
    const int64_t least_rows = by_columns ? split.least_rows_by_columns : split.least_rows;
    constexpr int64_t kLeastColumns = 64, kLeastDepth = 64, kLeastPanels = 4;
    return split.multiply != nullptr && g.m >= least_rows && g.n >= kLeastColumns &&
           g.k >= kLeastDepth && g.batch * ceil_div(g.n, kMostPanelColumns) >= kLeastPanels;
  }

  explicit SplitBlocks(const Gemm<T>& g)
      : Base(g),
        split_(kernels().split[kParts<T>]),
        a_is_stored_(g.a.col_stride == 1 && g.a_source.produce == nullptr) {
    divide();
  }

  [[nodiscard]] bool run(Scratch& scratch) const { return Driver(*this).run(scratch); }

  // ---- what the driver asks for ----

  struct ThreadState : Base::ThreadState {
    std::optional<KSlice> split;  // the slice whose rows of A are split, in Buffers::rows
    std::optional<KSlice> after;  // the slice that the thread multiplies next
    PanelSplit next;  // the panel that is split meanwhile, and by which rows are multiplied next
    bool second = false;  // whether the panel after `next` is split to the second of two buffers
  };

  /// The panels are: the parts of two panels, and two panels of floats, one to split and one to
  /// compute results from that are not finite.
  Memory memory() const {
    const Size columns = division_.columns(), depth = division_.depth;
    const Size padded_rows = padded(division_.rows);
    return {2 * (part_bytes() + panel_bytes()),
            padded_rows * depth * kSplitBytes + (Size(a_in_place_ ? 0 : kBlockWidth) * lda_ +
                                                 Size(by_columns_ ? kBlockWidth : 0) * depth) *
                                                    kSize,
            (kGroupRows * width_ + (division_.n_slices == 1 ? Size(0) : padded_rows * columns)) *
                kSize};
  }

  int64_t enter(const KSlice& t, const KSlice* after, const Buffers& buffers,
                ThreadState& state) const {
    const bool are_split =
        state.split && state.split->s == t.s && state.split->i0 == t.i0 && state.split->p0 == t.p0;
    if (!are_split) split_rows(t, buffers, state);
    state.split = t;
    state.after = after == nullptr ? std::nullopt : std::optional(*after);
    state.tile.ahead = &state.ahead;
    if (state.next.from == nullptr) {
      begin_panel(t, 0, buffers, state);
      split_.split_rest(state.next);
    }
    return tiles(t.ni);
  }

  int64_t panel_width(const KSlice& t, int64_t j) const {
    return std::min(round_up(t.nj - j, kBlockWidth), width_);
  }

  static bool panels_first() { return true; }
  static bool looks_ahead() { return true; }

  void multiply_panel(const KSlice& t, int64_t j, const Buffers& buffers,
                      ThreadState& state) const {
    const int64_t width = panel_width(t, j), n_tiles = tiles(t.ni),
                  height = ceil_div(t.ni, n_tiles);
    PanelSplit& next = state.next;
    SplitTile tile{buffers.rows,
                   0,
                   height,
                   next.to,
                   width / kBlockWidth,
                   blocks(t),
                   reinterpret_cast<float*>(buffers.sums),
                   &next};
    if (j + width < t.nj) {
      begin_panel(t, j + width, buffers, state);
    } else if (state.after) {
      begin_panel(*state.after, 0, buffers, state);
    } else {
      next = {};
    }
    next.rate = ceil_div(next.lines(), steps(tile, n_tiles));
    for (int64_t i = 0; i < n_tiles; i += kMostSplitTiles) {
      tile.tiles = std::min(kMostSplitTiles, n_tiles - i);
      (by_columns_ ? split_.multiply_columns : split_.multiply)(tile);
      tile.a += kMostSplitTiles * blocks(t) * kParts<T> * kPartBytes;
      state.i = i * height;
      state.height = std::min(tile.tiles * height, t.ni - state.i);
      finish_group(t, j, buffers, state);
    }
    split_.split_rest(next);
  }

 private:
  static constexpr int64_t kGroupRows = kMostSplitTiles * kBlockWidth;
  static constexpr int64_t kSplitBytes = kParts<T> * 2;  // of the parts of an element
  /// Most elements of a K-slice: the parts of two panels and of some tiles of A fit an L2 cache.
  static constexpr int64_t kSplitDepth = 1024;

  /// The number of tiles of so many rows. The tiles have nearly equal heights.
  int64_t tiles(int64_t rows) const {
    return round_up(ceil_div(rows, kBlockWidth), split_.tile_step);
  }
  /// The most rows that all these tiles have together.
  int64_t padded(int64_t rows) const { return tiles(rows) * kBlockWidth; }
  static int64_t blocks(const KSlice& t) { return ceil_div(t.np, kBlockDepth); }
  static int64_t steps(SplitTile tile, int64_t n_tiles) {
    int64_t n = 0;
    for (int64_t i = 0; i < n_tiles; i += kMostSplitTiles) {
      tile.tiles = std::min(kMostSplitTiles, n_tiles - i);
      n += tile.steps(kSplitsOfBlock<T>);
    }
    return std::max<int64_t>(n, 1);
  }
  Size part_bytes() const { return Size(width_) * division_.depth * kSplitBytes; }
  Size panel_bytes() const { return Size(width_) * division_.depth * kSize; }

  /// Rows of A are split anew for each slice, which a block of few columns would not repay; even
  /// less where they are transposed, because columns of B are contiguous.
  void divide() {
    Division& d = division_;
    d.panel_columns = width_ = kMostPanelColumns;
    d.n_slices = ceil_div(d.k, kSplitDepth);
    d.depth = round_up(ceil_div(d.k, d.n_slices), kBlockDepth);
    if (!a_in_place_) lda_ = d.depth;
    const int64_t l2 = machine().l2, part_row = d.depth * kSplitBytes;
    const int64_t most_rows =
        std::max(l2 * 7 / 16 / part_row / kGroupRows * kGroupRows, kGroupRows);
    d.n_row_blocks = ceil_div(d.m, most_rows);
    const int64_t panels = ceil_div(d.n, width_), threads = Division::n_threads();
    const int64_t least_panels = d.n_slices == 1 ? 2 : by_columns_ ? 16 : 8;
    const int64_t wanted =
        ceil_div(d.most_workers == 1 ? 1 : Division::even_blocks(), d.batch * d.n_row_blocks);
    const int64_t busy = ceil_div(std::min(threads, d.most_workers), d.batch * d.n_row_blocks);
    d.n_column_blocks = std::max(std::min(wanted, panels / least_panels), std::min(busy, panels));
    if (d.n_slices > 1) {  // sums are kept between slices
      const int64_t most =
          std::max<int64_t>(l2 / 4 / (std::min(most_rows, padded(d.m)) * width_ * kSize), 1);
      d.n_column_blocks = std::max(d.n_column_blocks, ceil_div(panels, most));
    }
    d.divide_rows(2 * kBlockWidth, kGroupRows, threads, most_rows);
  }

  /// Rows of A that are not read in place lie behind the parts, one tile at a time.
  float* produced_rows(const Buffers& buffers) const {
    const int64_t depth = division_.depth;
    return reinterpret_cast<float*>(buffers.rows + padded(division_.rows) * depth * kSplitBytes);
  }

  void split_rows(const KSlice& t, const Buffers& buffers, ThreadState& state) const {
    const int64_t height = ceil_div(t.ni, tiles(t.ni));
    uint8_t* to = buffers.rows;
    for (int64_t i = 0; i < tiles(t.ni); ++i, to += blocks(t) * kParts<T> * kPartBytes) {
      state.i = i * height;
      state.height = std::max<int64_t>(std::min(height, t.ni - state.i), 0);
      if (a_is_stored_) {
        const T* const a = element(g_.a, t.i0 + state.i, t.p0) + t.s * g_.a_batch;
        split_tile(t, buffers, row_, a, g_.a.row_stride, state.height, height, to);
      } else {
        const float* const a = rows_of_a(t, state, produced_rows(buffers));
        split_tile(t, buffers, row<float>(), a, lda_, state.height, height, to);
      }
    }
  }

  /// Splits `rows` rows of A, of element type S, into the blocks of a tile of `height` rows.
  template <class S>
  void split_tile(const KSlice& t, const Buffers& buffers, const Microkernels<Types<S>>& kernels,
                  const S* a, int64_t lda, int64_t rows, int64_t height, uint8_t* to) const {
    if (!by_columns_) {
      return split_.split_rows(a, std::is_same_v<S, T>, lda, rows, t.np, height, to);
    }
    if (rows == 0) {
      std::memset(to, 0, static_cast<size_t>(blocks(t) * kParts<T> * kPartBytes));
      return;
    }
    float* const panel = produced_rows(buffers) + (a_in_place_ ? 0 : kBlockWidth * lda_);
    kernels.pack_columns(a, lda, t.np, rows, panel, kBlockWidth);
    PanelSplit split{panel, false, kBlockWidth, t.np, 1, to};
    split_.split_rest(split);
  }

  /// Makes the panel at column j of the slice the one that is split next.
  void begin_panel(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    const int64_t width = panel_width(t, j), half = state.second ? 1 : 0;
    PanelSplit& next = state.next;
    next = {nullptr,
            false,
            width,
            t.np,
            width / kBlockWidth,
            buffers.panels + half * part_bytes().value()};
    state.second = !state.second;
    if (by_rows_ && t.nj - j >= width) {
      next.from = b_at(t, 0, j);
      next.is_stored = true;
      next.ld = g_.b.row_stride;
    } else if (by_columns_) {
      next.from = b_at(t, 0, j);
      next.is_stored = true;
      next.ld = g_.b.col_stride;
      next.columns = std::min(width, t.nj - j);
    } else {
      next.from = floats(t, j, packed(buffers, 0));
    }
  }

  float* packed(const Buffers& buffers, int64_t number) const {
    return reinterpret_cast<float*>(buffers.panels + 2 * part_bytes().value() +
                                    number * panel_bytes().value());
  }
  /// Packs the panel at column j as floats to `to`, and returns it.
  const float* floats(const KSlice& t, int64_t j, float* to) const {
    pack_panel(t, j, panel_width(t, j), 0, t.np, to);
    return to;
  }

  /// Sets how the sums of a group of tiles are finished and where they are stored: in C, with the
  /// sums that are kept for the next slice, or nowhere.
  void place(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    Tile<float>& tile = state.tile;
    float* const sums = reinterpret_cast<float*>(buffers.sums);
    const bool keeps = division_.n_slices > 1;
    tile.to = keeps ? sums + kGroupRows * width_ + state.i * division_.columns() + j : sums;
    tile.ld_to = keeps ? division_.columns() : panel_width(t, j);
    tile.partial = t.p0 > 0 ? tile.to : nullptr;
    tile.ld_partial = tile.ld_to;
    tile.bias = tile.residual = nullptr;
    tile.bounded = false;
    if (is_last(t) && j < columns_finished(t)) finish_in_tile(t, state.i, j, tile);
  }

  void finish_group(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    const int64_t width = panel_width(t, j);
    const float* const sums = reinterpret_cast<const float*>(buffers.sums);
    place(t, j, buffers, state);
    if (kParts<T> != 1 && !split_.are_finite(sums, state.height, width)) {
      multiply_floats(t, j, buffers, state);
    } else if (state.tile.to != sums) {
      split_.store(state.tile, sums, state.height, width);
    }
    if (is_last(t) && j >= columns_finished(t)) {
      finish(g_, t.s, state.tile.to, state.tile.ld_to, t.i0 + state.i, state.height, t.j0 + j,
             std::min(width, t.nj - j));
    }
  }

  /// Computes a group again by tiles of multiply-adds, because infinities and NaNs have no parts.
  void multiply_floats(const KSlice& t, int64_t j, const Buffers& buffers,
                       const ThreadState& group) const {
    const int64_t width = panel_width(t, j);
    typename Base::ThreadState state = group;
    Tile<float>& tile = state.tile;
    tile.lda = lda_;
    tile.b = floats(t, j, packed(buffers, 1));
    tile.ldb = width;
    tile.k = t.np;
    tile.ahead = &state.ahead;
    const int64_t end = group.i + group.height;
    for (; state.i < end; state.i += row_.rows) {
      state.height = std::min<int64_t>(row_.rows, end - state.i);
      tile.a = rows_of_a(t, state, produced_rows(buffers));
      row_.tile_of(width, state.height)(tile);
      tile.to += row_.rows * tile.ld_to;
      if (tile.partial != nullptr) tile.partial += row_.rows * tile.ld_partial;
      if (tile.residual != nullptr) tile.residual += row_.rows * tile.ld_residual;
    }
  }

  const SplitKernels& split_;
  bool a_is_stored_;  // rows of A are contiguous
};

}  // namespace executorch::cpu::gemm
