/// The Product of the driver (driver.h) for products of many rows of the types that Gemm
/// multiplies.
///
/// B is packed, and converted on the way, by rows or by columns, whichever are contiguous. A B with
/// a MatrixSource is produced panel by panel. If A has few rows, B may be read where it lies.
#pragma once

#include <executorch/cpu/gemm/driver.h>
#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/prefetch.h>

namespace executorch::cpu::gemm {

/// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 17;
/// The most elements of a K-slice. It is a constant, so that sums have the same order on every
/// machine. With this depth the rows of A of one tile, 6 to 12, fit an L1 cache of 32 or 48 KiB,
/// and a block still has columns enough to repay reading, or converting, those rows.
constexpr int64_t kDepth = 768;
/// Up to kReadOnceRows rows of A, reading a B with contiguous rows from memory takes longer than
/// multiplying by it. Then, if B has more than kShallow rows, K-slices are short: a block then has
/// long pieces of few rows of B, which are sequential reads.
constexpr int64_t kReadOnceRows = 48, kShallow = 256;
/// The elements of such a slice: kInPlaceDepth, or kPackedDepth where rows of B are a multiple of
/// kSetStride bytes apart. Up to kFewTiles tiles of rows, packing costs more than it saves, and B
/// is read in place. It is packed where its rows are a multiple of kSetStride bytes apart, because
/// these map to the same set of the L1 cache and would evict one another.
constexpr int64_t kInPlaceDepth = 64, kPackedDepth = 256, kFewTiles = 4, kSetStride = 4096;

template <class T>
class Blocks {
  using Acc = Accumulator<T>;

 public:
  /// `panels` are those of all of B if it is packed already, or null.
  explicit Blocks(const Gemm<T>& g, const Acc* panels = nullptr)
      : g_(g), row_(row<T>()), panels_(panels) {
    width_ = row_.columns;
    a_in_place_ = std::is_same_v<T, Acc> && g.a.col_stride == 1 && g.a_source.produce == nullptr;
    const bool in_memory = kIsStoredFloat<T> && g.b_source.produce == nullptr;
    by_rows_ = in_memory && g.b.col_stride == 1;
    by_columns_ = in_memory && !by_rows_ && g.b.row_stride == 1;
    const bool read_once = std::is_same_v<T, float> && by_rows_ && g.m <= kReadOnceRows;
    const bool share_sets = g.b.row_stride * kSize % kSetStride == 0;
    b_in_place_ = read_once && !share_sets && g.m <= kFewTiles * row_.rows;
    divide(!read_once || g.k <= kShallow ? kDepth : share_sets ? kPackedDepth : kInPlaceDepth);
    lda_ = a_in_place_ ? g.a.row_stride : round_up(division_.depth, kMostLanes);
    adds_ = g.addend.data != nullptr && g.beta != Acc(0);
    tiles_finish_ =
        std::is_same_v<T, Acc> && g.c.col_stride == 1 && g.alpha == Acc(1) &&
        (std::is_same_v<T, float> ? can_finish_in_tiles(g) : !adds_ && g.residual.data == nullptr);
  }

  [[nodiscard]] bool run(Scratch& scratch) const { return Driver(*this).run(scratch); }

  // ---- what the driver asks for ----

  /// What a thread remembers between calls. Every call of multiply() reads it, so it lies together
  /// in memory: the multiply-adds between two calls evict it from L1.
  struct ThreadState {
    Tile<Acc> tile = {};    // the arguments of the next microkernel call
    Ahead<Acc> ahead = {};  // what microkernels prefetch and copy for the next slice
    void (*run)(const Tile<Acc>&) = nullptr;
    int64_t whole = 0;              // columns in panels of full width, which `run` multiplies by
    int64_t width = 0, b_step = 0;  // columns of such a panel; elements from one to the next
    int64_t finished = 0;           // columns whose results the microkernels finish
    int64_t i = 0, height = 0;      // the first row of the tile in the slice, and its rows
    int64_t sums_row = 0;           // the first row of its sums in Buffers::sums
  };

  const Division& division() const { return division_; }

  Memory memory() const {
    const Size columns = division_.columns();
    return {panels_ != nullptr ? 0 : columns * division_.depth * kSize,
            Size(a_in_place_ ? 0 : row_.rows) * lda_ * kSize,
            columns * (division_.n_slices == 1 ? row_.rows : division_.rows) * kSize};
  }

  int64_t enter(const KSlice& t, const KSlice* after, const Buffers& buffers,
                ThreadState& state) const {
    const int64_t n_tiles = count_tiles(t);
    state.ahead = {};
    state.tile.ahead = &state.ahead;
    if (after != nullptr && tiles_pack(*after)) {
      look_ahead(*after, buffers.next_panels, state.ahead);
      const int64_t steps = n_tiles * ceil_div(t.nj, width_) * (t.np / Ahead<Acc>::kSteps);
      const bool copied = state.ahead.rows_to_copy > 0;
      state.ahead.fetch.spread_over(steps, copied ? Ahead<Acc>::kRowsBehind : 0);
    }
    return n_tiles;
  }

  void prepare(const KSlice& t, int64_t tile, int64_t n_tiles, const Buffers& buffers,
               ThreadState& state) const {
    set_tile(t, tile, n_tiles, state);
    state.sums_row = division_.n_slices == 1 ? 0 : state.i;
    prepare_tile(t, buffers, state);
  }

  /// The width of the panel that begins at column j of the block.
  int64_t panel_width(const KSlice& t, int64_t j) const { return row_.panel_width(t.nj - j); }

  void multiply(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    if (add_panel(t, j, buffers, state) >= t.nj && state.finished < t.nj) {
      const Acc* const sums = sums_of(state, buffers);
      finish(g_, t.s, sums + state.finished, division_.columns(), t.i0 + state.i, state.height,
             t.j0 + state.finished, t.nj - state.finished);
    }
  }

  /// The number of steps that packing takes. A step packs a row of B if rows are contiguous,
  /// kMostLanes rows of a panel if columns are, and otherwise a whole panel. There are none if B is
  /// packed already.
  int64_t pack_steps(const KSlice& t) const {
    if (panels_ != nullptr) return 0;
    return by_rows_ ? t.np : ceil_div(t.nj, width_) * (by_columns_ ? pieces(t) : 1);
  }

  bool tiles_pack(const KSlice& t) const {
    return panels_ != nullptr || (std::is_same_v<T, Acc> && by_rows_ && t.nj % width_ == 0);
  }
  void pack_rest(const KSlice& t, uint8_t* to, const ThreadState& state) const {
    if (state.ahead.rows_to_copy > 0) pack(t, t.np - state.ahead.rows_to_copy, t.np, to);
  }

  int64_t fetch(const KSlice& t, int64_t begin, int64_t end, ThreadState& state) const {
    if (begin >= end) return 0;
    RowPrefetch& b = state.ahead.fetch;
    const int64_t j = begin / pieces(t) * width_, first = begin % pieces(t);
    const int64_t p = first * kMostLanes;
    if (by_columns_) end = std::min(end, begin - first + pieces(t));  // of one panel
    if (by_rows_) {
      fetch_rows(t, begin, end - begin, b);
    } else if (by_columns_) {
      b = {reinterpret_cast<const char*>(b_at(t, p, j)), std::min(width_, t.nj - j)};
      b.stride = g_.b.col_stride * kStored;
      b.lines = lines(std::min((first + end - begin) * kMostLanes, t.np) - p, b);
    }
    b.spread_over(state.tile.k / Ahead<Acc>::kSteps);
    return end - begin;
  }

  void pack(const KSlice& t, int64_t begin, int64_t end, uint8_t* to) const {
    Acc* const panels = reinterpret_cast<Acc*>(to);
    const int64_t in_place = columns_in_place(t);
    if constexpr (kIsStoredFloat<T>) {
      if (by_rows_) {
        if (in_place == t.nj) return;
        return row_.pack_rows(b_at(t, begin, in_place), g_.b.row_stride, end - begin,
                              t.nj - in_place, panels, begin, t.np);
      }
    }
    const int64_t each = by_columns_ ? pieces(t) : 1;
    for (int64_t next; begin < end; begin = next) {
      const int64_t j = begin / each * width_, first = begin % each;
      next = std::min(end, begin - first + each);
      const int64_t p = first * kMostLanes,
                    p_end = std::min((first + next - begin) * kMostLanes, t.np);
      pack_panel(t, j, panel_width(t, j), p, p_end, panels + j * t.np);
    }
  }

 protected:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(Acc));
  static constexpr auto kStored = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kMostBlockRows = 1024;

  void divide(int64_t depth) {
    Division& d = division_;
    d.m = g_.m, d.n = g_.n, d.k = g_.k, d.batch = g_.batch;
    d.panel_columns = width_;
    d.n_slices = std::max<int64_t>(ceil_div(d.k, depth), 1);
    d.depth = std::max<int64_t>(ceil_div(d.k, d.n_slices), 1);
    d.most_workers =
        std::max<int64_t>(d.batch * d.m * d.n * std::max<int64_t>(d.k, 1) / kGrainWork, 1);
    // The panels of a block and those packed ahead together take half of the L2 cache, because rows
    // of A and of C pass through it as well. A B read in place in short slices gets half of that,
    // because its pieces lie in fewer cache sets.
    const int64_t bytes = machine().l2 / (b_in_place_ && depth < kDepth ? 8 : 4);
    const int64_t least_rows = 4 * row_.rows;
    d.divide_columns(bytes / (kSize * d.depth * width_), d.most_row_blocks(least_rows));
    // If B is produced by a MatrixSource, producing it again for each further block of rows would
    // cost more than uneven work. kMostBlockRows bounds the memory for the sums that are kept
    // between K-slices.
    const bool produced = g_.b_source.produce != nullptr;
    d.divide_rows(row_.rows, least_rows, produced ? Division::n_threads() : Division::even_blocks(),
                  kMostBlockRows);
  }

  /// The number of tiles of a slice. They have nearly equal heights, because a low tile has too few
  /// sums to hide the latency of its loads. Where rows of A compete for the L1 cache, tiles are
  /// lower.
  int64_t count_tiles(const KSlice& t) const {
    return ceil_div(t.ni, rows_compete(t.np) ? ceil_div(row_.rows * 2, 3) : row_.rows);
  }
  /// Whether rows of A are a multiple of the L1 set stride apart. Then those of a tile compete with
  /// one another, and with a panel of np rows, for the ways of one cache set.
  bool rows_compete(int64_t np) const {
    const int64_t set_stride = machine().l1_set_stride, ways = machine().l1 / set_stride;
    return a_in_place_ && lda_ * kSize % set_stride == 0 &&
           row_.rows + ceil_div(np * width_ * kSize, set_stride) > ways;
  }

  /// Sets which rows of the slice are those of a tile.
  static void set_tile(const KSlice& t, int64_t tile, int64_t n_tiles, ThreadState& state) {
    state.i = t.ni * tile / n_tiles;
    state.height = t.ni * (tile + 1) / n_tiles - state.i;
  }
  /// Makes these rows ready. `state.sums_row` is set.
  void prepare_tile(const KSlice& t, const Buffers& buffers, ThreadState& state) const {
    state.tile.a = rows_of_a(t, state, reinterpret_cast<Acc*>(buffers.rows));
    state.tile.lda = lda_;
    state.tile.k = t.np;
    state.whole = t.nj / width_ * width_;
    state.finished = is_last(t) ? columns_finished(t) : t.nj;
    state.run = row_.tile_of(width_, state.height);
    place(t, 0, buffers, state);
    if (is_last(t) && state.finished < t.nj) fetch_result(t, state);
  }

  /// Multiplies the rows of the tile by the panel at column j. Returns the column behind it.
  int64_t add_panel(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    Tile<Acc>& tile = state.tile;
    if (j < state.whole) {
      state.run(tile);
      tile.b += state.b_step;
      tile.to += state.width;
      if (tile.partial != nullptr) tile.partial += state.width;
      if (tile.bias != nullptr) tile.bias += state.width;
      if (tile.residual != nullptr) tile.residual += state.width;
      return j + state.width;
    }
    place(t, j, buffers, state);
    const int64_t width = panel_width(t, j);
    row_.tile_of(width, state.height)(tile);
    return j + width;
  }

  bool is_last(const KSlice& t) const { return t.p0 + t.np >= g_.k; }
  int64_t pieces(const KSlice& t) const { return std::max<int64_t>(ceil_div(t.np, kMostLanes), 1); }

  /// The number of columns of B that are read in place, a multiple of the width of a panel. The
  /// other columns are packed.
  int64_t columns_in_place(const KSlice& t) const {
    return b_in_place_ ? t.nj / width_ * width_ : 0;
  }
  /// The address of row 0 of slice t in the panel, packed beforehand, that begins at column j of its
  /// block.
  const Acc* panel_at(const KSlice& t, int64_t j) const {
    return panels_ + (t.j0 + j) * g_.k + t.p0 * panel_width(t, j);
  }
  /// The address of row p and column j of the slice in B.
  const T* b_at(const KSlice& t, int64_t p, int64_t j) const {
    return element(g_.b, t.p0 + p, t.j0 + j) + t.s * g_.b_batch;
  }

  /// The most cache lines that n contiguous elements of one of the rows touch.
  static int64_t lines(int64_t n, const RowPrefetch& rows) {
    const bool aligned = (reinterpret_cast<uintptr_t>(rows.from) | rows.stride) % kLine == 0;
    return ceil_div(n * kStored, kLine) + (aligned ? 0 : 1);
  }
  /// Sets b to prefetch n rows of B, from row p of the slice on.
  void fetch_rows(const KSlice& t, int64_t p, int64_t n, RowPrefetch& b) const {
    b = {reinterpret_cast<const char*>(b_at(t, p, 0)), n};
    b.stride = g_.b.row_stride * kStored;
    b.lines = lines(t.nj, b);
  }
  /// Sets `ahead` to prefetch all of B that slice t reads, and to copy its rows to the panels `to`
  /// unless B is read in place.
  void look_ahead(const KSlice& t, uint8_t* to, Ahead<Acc>& ahead) const {
    fetch_rows(t, 0, t.np, ahead.fetch);
    if constexpr (std::is_same_v<T, Acc>) {
      if (b_in_place_) return;
      ahead.from = b_at(t, 0, 0);
      ahead.to = reinterpret_cast<Acc*>(to);
      ahead.rows_to_copy = t.np;
      ahead.pieces = t.nj / width_;
      ahead.ld = g_.b.row_stride;
      ahead.step = t.np * width_;
    }
  }

  Acc* sums_of(const ThreadState& state, const Buffers& buffers) const {
    return reinterpret_cast<Acc*>(buffers.sums) + state.sums_row * division_.columns();
  }
  /// The number of columns of the last slice whose results the microkernels finish.
  int64_t columns_finished(const KSlice& t) const {
    if (!tiles_finish_) return 0;
    return t.nj % row_.width_step == 0 ? t.nj : t.nj / width_ * width_;
  }
  /// Sets where microkernels from column j on read B and store their sums or results.
  void place(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    Tile<Acc>& tile = state.tile;
    const int64_t in_place = columns_in_place(t), width = panel_width(t, j);
    tile.to = sums_of(state, buffers) + j;
    tile.ld_to = division_.columns();
    tile.partial = t.p0 > 0 ? tile.to : nullptr;
    tile.ld_partial = tile.ld_to;
    tile.bias = tile.residual = nullptr;
    tile.bounded = false;
    if (is_last(t) && j < state.finished) finish_in_tile(t, state.i, j, tile);
    tile.b = reinterpret_cast<const Acc*>(buffers.panels) + (j - in_place) * t.np;
    tile.ldb = width;
    state.b_step = width_ * (panels_ != nullptr ? g_.k : t.np);
    state.width = width_;
    if (panels_ != nullptr) {
      tile.b = panel_at(t, j);
      return;
    }
    if constexpr (std::is_same_v<T, Acc>) {
      if (j < in_place) {
        tile.b = b_at(t, 0, j);
        tile.ldb = g_.b.row_stride;
        state.b_step = width_;
      }
    }
  }

  /// Packs rows [p, p_end) of the panel at column j, which is `width` columns wide. Packs all rows
  /// of the slice unless columns of B are contiguous.
  void pack_panel(const KSlice& t, int64_t j, int64_t width, int64_t p, int64_t p_end,
                  Acc* panel) const {
    const int64_t nj = std::min(width, t.nj - j);
    if (g_.b_source.produce != nullptr) {
      return g_.b_source.produce(g_.b_source.matrix, t.s, t.j0 + j, nj, t.p0, t.np, panel, width);
    }
    if constexpr (kIsStoredFloat<T>) {
      if (by_columns_) {
        return row_.pack_columns(b_at(t, p, j), g_.b.col_stride, p_end - p, nj, panel + p * width,
                                 width);
      }
    }
    Matrix<const T> b = g_.b;
    b.data = b_at(t, 0, j);
    gather_panel(b, t.np, nj, panel, width);
  }

  /// Returns the rows of a tile as the microkernels read them: in place, or converted to `to`.
  const Acc* rows_of_a(const KSlice& t, const ThreadState& state, Acc* to) const {
    const int64_t at = t.i0 + state.i;
    if (g_.a_source.produce != nullptr) {
      g_.a_source.produce(g_.a_source.matrix, t.s, at, state.height, t.p0, t.np, to, lda_);
      return to;
    }
    Matrix<const T> a = g_.a;
    a.data = element(a, at, t.p0) + t.s * g_.a_batch;
    if constexpr (std::is_same_v<T, Acc>) {
      if (a_in_place_) return a.data;
    }
    convert_rows(a, state.height, t.np, to, lda_);
    return to;
  }

  /// Prefetches the cache lines of C that the results of the tiles will be stored to.
  void fetch_result(const KSlice& t, const ThreadState& state) const {
    if (g_.c.col_stride != 1) return;
    const T* row = g_.c.data + t.s * g_.c_batch + (t.i0 + state.i) * g_.c.row_stride + t.j0;
    for (int64_t r = 0; r < state.height; ++r, row += g_.c.row_stride) {
      for (int64_t j = 0; j < t.nj; j += kLine / kStored) __builtin_prefetch(row + j, 1, 3);
    }
    keep_prefetches();
  }

  /// Whether microkernels can finish the results, that is, if at most a bias, a residual and bounds
  /// apply, in this order.
  bool can_finish_in_tiles(const Gemm<T>& g) const {
    const bool bounded = g.act.kind == Activation::Kind::Clamp;
    return (bounded || g.act.kind == Activation::Kind::None) &&
           (!adds_ || (g.beta == Acc(1) && g.addend.row_stride == 0 && g.addend.col_stride == 1)) &&
           (g.residual.data == nullptr || (g.residual.col_stride == 1 && (g.act_last || !bounded)));
  }

  /// Makes the microkernel of the tile at row i and column j of the slice store finished results in
  /// C.
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
  const Microkernels<Types<RowType<T>>>& row_;
  int64_t width_;                // columns of a panel of full width
  bool a_in_place_;              // rows of A are read in place
  bool by_rows_, by_columns_;    // rows or columns of B are contiguous, and packed as such
  bool b_in_place_;              // rows of B are read in place
  const Acc* panels_ = nullptr;  // of all of B, packed beforehand, or null
  int64_t lda_;
  bool adds_;          // there is an addend
  bool tiles_finish_;  // tiles store the result
  Division division_;
};

}  // namespace executorch::cpu::gemm
