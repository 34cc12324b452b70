/// Products of many rows by a B whose columns are contiguous, such as the weights of a linear
/// layer, computed as their transpose: C^T = B^T A^T. Rows of B^T are read where they lie. A, which
/// has fewer rows, is packed once, for all threads. Sums are transposed back while they are in a
/// cache.
///
/// Columns of C^T are padded to whole vectors. Where much of the last vector would be padding
/// (count_dots()), its columns are dot products with the rows of B^T that are in the L1 cache.
#pragma once

#include <executorch/cpu/gemm/float_blocks.h>

namespace executorch::cpu::gemm {

template <class T>
class TransposedBlocks : public Blocks<T> {
  using Base = Blocks<T>;
  using Base::a_in_place_, Base::add_panel, Base::count_tiles, Base::division_, Base::g_,
      Base::is_last, Base::kSize, Base::kStored, Base::lda_, Base::lines, Base::row_, Base::width_;

 public:
  static bool pays(const Gemm<T>& g) {
    return g.b.row_stride == 1 && g.b.col_stride != 1 && g.b_source.produce == nullptr &&
           takes_rows_of(g);
  }
  /// Whether B may be anything of which a MatrixSource produces columns.
  static bool takes_rows_of(const Gemm<T>& g) {
    return g.batch == 1 && g.a.col_stride == 1 && g.a_source.produce == nullptr && g.m < g.n &&
           g.k > 0;
  }
  /// Computes a product of more rows than dot products take. `columns`, if set, produces columns of
  /// B, as rows of A. Returns false, before anything is written, if memory is refused.
  [[nodiscard]] static bool run(const Gemm<T>& g, Scratch& scratch,
                                const MatrixSource<float>& columns = {}) {
    const Scratch::Frame frame(scratch);
    Gemm<T> product = transposed(g);
    product.a_source = columns;
    product.n -= count_dots(g.m);
    const Size width = round_up(Size(product.n), row<T>().width_step);
    float* const panels = scratch.array<float>(width * g.k);
    if (panels == nullptr) return false;
    pack_a(g, product.n, panels);
    return Driver(TransposedBlocks(g, product, panels)).run(scratch);
  }

  // ---- what the driver asks for ----

  struct ThreadState : Base::ThreadState {
    const KSlice* after = nullptr;  // the slice that the thread multiplies next
    int64_t group = 0;              // the first row of the tiles whose sums are finished together
  };

  /// Behind the sums of tiles lie those of dot products: [n_dots_, sums_rows()].
  Memory memory() const {
    Memory memory = Base::memory();
    memory.sums = Size(division_.columns() + n_dots_) * sums_rows() * kSize;
    return memory;
  }

  int64_t enter(const KSlice& t, const KSlice* after, const Buffers&, ThreadState& state) const {
    state.tile.ahead = &state.ahead;
    state.after = after;
    state.group = 0;
    return count_tiles(t);
  }

  void prepare(const KSlice& t, int64_t tile, int64_t n_tiles, const Buffers& buffers,
               ThreadState& state) const {
    Base::set_tile(t, tile, n_tiles, state);
    if (state.i + state.height - state.group > group_rows()) state.group = state.i;
    state.sums_row = division_.n_slices == 1 ? state.i - state.group : state.i;
    Base::prepare_tile(t, buffers, state);
    state.ahead = {};
    if (g_.a_source.produce != nullptr) return;
    if (tile + 1 < n_tiles) {
      fetch_rows(t, state.i + state.height, state);
    } else if (state.after != nullptr) {
      fetch_rows(*state.after, 0, state);
    }
  }

  void multiply(const KSlice& t, int64_t j, const Buffers& buffers, ThreadState& state) const {
    if (add_panel(t, j, buffers, state) < t.nj) return;
    if (has_dots(t)) add_dots(t, buffers, state);
    const int64_t end = state.i + state.height;
    const bool fills = end == t.ni || end + row_.rows - state.group > group_rows();
    if (is_last(t) && fills) finish_group(t, end - state.group, buffers, state);
  }

 private:
  /// Rows of C^T that are finished together. They are several cache lines of each row of C, because
  /// rows of C often compete for the same sets of a cache.
  static constexpr int64_t kGroupRows = 64, kMostGroupRows = kGroupRows + kMostLanes;
  /// The most columns of C^T that are dot products.
  static constexpr int64_t kMostDots = kMostLanes / 2;
  /// The least rows of C^T in a block.
  static constexpr int64_t kLeastRows = 32;

  TransposedBlocks(const Gemm<T>& g, const Gemm<T>& transposed_product, const float* panels)
      : Base(transposed_product, panels), product_(g), n_dots_(g.m - transposed_product.n) {
    // Packing copies a row of B^T, but it then no longer competes with the others.
    if (Base::rows_compete(division_.depth)) {
      a_in_place_ = false;
      lda_ = round_up(division_.depth, kMostLanes);
    }
    // Each block of columns reads all rows, and each block of rows all panels of its columns. So
    // columns are divided only to keep the panels of a K-slice in half of the L2 cache, and rows
    // only to occupy the threads, all of them to the end: so blocks of rows are as even as whole
    // tiles and whole cache lines of C let them be.
    Division& d = division_;
    const int64_t panel_bytes = kSize * d.depth * width_;
    const int64_t most = std::max<int64_t>(machine().l2 / 2 / panel_bytes, 1);
    d.n_column_blocks = ceil_div(ceil_div(d.n, width_), most);
    d.divide_rows(round_up(kMostLanes, row_.rows), round_up(kLeastRows, row_.rows),
                  2 * Division::n_threads(), Base::kMostBlockRows);
  }

  int64_t group_rows() const { return round_up(kGroupRows, row_.rows); }
  int64_t sums_rows() const { return division_.n_slices == 1 ? group_rows() : division_.rows; }

  /// Of `m` columns of C^T those that are dot products. Elements have to be floats for that.
  /// Vectors of 16 lanes leave registers for as many sums of dot products as a tile has; with
  /// shorter ones dot products wait for their loads.
  static int64_t count_dots(int64_t m) {
    const int64_t lanes = row<T>().width_step, rest = m % lanes;
    const int64_t most = lanes == kMostLanes ? kMostDots : lanes / 4;
    return std::is_same_v<T, float> && rest <= most ? rest : 0;
  }

  /// Packs rows [0, m) of A as panels. A panel is packed in pieces, so that threads can share few
  /// panels.
  static void pack_a(const Gemm<T>& g, int64_t m, float* panels) {
    constexpr int64_t kPiece = 256;
    const auto& kernels = row<T>();
    const int64_t pieces = ceil_div(g.k, kPiece);
    parallel_for(ceil_div(m, kernels.columns) * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t j = i / pieces * kernels.columns, p = i % pieces * kPiece;
        const int64_t width = kernels.panel_width(m - j);
        kernels.pack_columns(element(g.a, j, p), g.a.row_stride, std::min(kPiece, g.k - p),
                             std::min(width, m - j), panels + j * g.k + p * width, width);
      }
    });
  }

  /// Prefetches the rows of the tile at row i of slice t.
  void fetch_rows(const KSlice& t, int64_t i, ThreadState& state) const {
    RowPrefetch& b = state.ahead.fetch;
    b = {reinterpret_cast<const char*>(element(g_.a, t.i0 + i, t.p0)),
         std::min<int64_t>(row_.rows, t.ni - i)};
    b.stride = g_.a.row_stride * kStored;
    b.lines = lines(t.np, b);
    b.spread_over(ceil_div(t.nj, width_) * (t.np / Ahead<float>::kSteps));
  }

  /// Whether the last columns of C^T are computed with slice t.
  bool has_dots(const KSlice& t) const { return n_dots_ > 0 && t.j0 + t.nj == g_.n; }
  float* dots(const Buffers& buffers, int64_t row) const {
    return reinterpret_cast<float*>(buffers.sums) + division_.columns() * sums_rows() + row;
  }

  /// Adds the products of the rows of the tile with the last rows of A.
  void add_dots(const KSlice& t, const Buffers& buffers, const ThreadState& state) const {
    if constexpr (std::is_same_v<T, float>) {
      float found[kMostDots * kMostRows];
      FewRows<float> f = {};
      f.a = element(product_.a, g_.n, t.p0);
      f.lda = product_.a.row_stride;
      f.m = n_dots_;
      f.k = t.np;
      f.b = state.tile.a;
      f.ldb = lda_;
      f.n = state.height;
      f.sums = found;
      f.ld_sums = kMostRows;
      f.is_cached = true;
      row_.few_rows_dot(f);
      float* sums = dots(buffers, state.sums_row);
      for (int64_t i = 0; i < n_dots_; ++i, sums += sums_rows()) {
        for (int64_t j = 0; j < state.height; ++j) {
          sums[j] = found[i * kMostRows + j] + (t.p0 > 0 ? sums[j] : 0.0f);
        }
      }
    }
  }

  /// Finishes `n` rows of C^T, the columns of C from column `group` of the slice on.
  void finish_group(const KSlice& t, int64_t n, const Buffers& buffers,
                    const ThreadState& state) const {
    constexpr int64_t kPiece = kMostLanes;
    alignas(64) float piece[kPiece * kMostGroupRows];
    const int64_t columns = division_.columns(), column = t.i0 + state.group;
    const int64_t first = state.sums_row - (state.i - state.group);
    const float* const sums = reinterpret_cast<const float*>(buffers.sums) + first * columns;
    for (int64_t i = 0; i < t.nj; i += kPiece) {
      const int64_t ni = std::min(kPiece, t.nj - i);
      row<float>().pack_columns(sums + i, columns, ni, n, piece, kMostGroupRows);
      row_.finish({&product_, 0, piece, kMostGroupRows, t.j0 + i, ni, column, n});
    }
    if (has_dots(t)) {
      row_.finish({&product_, 0, dots(buffers, first), sums_rows(), g_.n, n_dots_, column, n});
    }
  }

  const Gemm<T>& product_;
  int64_t n_dots_;  // the last columns of C^T, which are dot products
};

}  // namespace executorch::cpu::gemm
