/// Division of a product into blocks for caches and threads.
///
/// A block of C has some of B's packed panels as columns and, where threads would idle otherwise,
/// some of the rows. A thread packs the panels of its block, then multiplies them by one tile's
/// height of A after the other: those rows stay in the first-level cache, the panels in the second,
/// and the next block of B is fetched from memory meanwhile.
#pragma once

#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>

namespace executorch::cpu::gemm {

/// Panels of a block: a quarter of a second-level cache of 1 MiB, so that they, the block that is
/// being fetched and the rows of A fit. What has half of that cache loses little.
constexpr int64_t kPanelBytes = 256 * 1024;
/// A deeper product is summed in parts. A tile's height of A at this depth fits a first-level cache
/// of 48 KiB, and a block is wide enough to repay reading those rows, or converting them.
constexpr int64_t kDepth = 768;
/// Rows of A up to which packing B costs more than it saves where its rows are contiguous.
constexpr int64_t kUnpackedRows = 48;
/// A B that is used where it lies and too deep for the caches to hold a block of all its rows is
/// read in blocks of few long pieces of rows, as memory likes it and so that rows a power of two
/// apart do not drive one another out.
constexpr int64_t kShallow = 256, kUnpackedDepth = 64, kUnpackedBytes = 128 * 1024;
/// Rows of a block whose sums are kept between such parts.
constexpr int64_t kBlockRows = 1024;
/// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 17;

template <class T>
class Blocks {
  using Acc = Accumulator<T>;

 public:
  explicit Blocks(const Gemm<T>& g) : g_(g), kernels_(tile_kernels<Acc>()) {
    width_ = 2 * kernels_.lanes;
    a_in_place_ = std::is_same_v<T, Acc> && g.a.col_stride == 1 && g.a_source.produce == nullptr;
    b_in_place_ = std::is_same_v<T, float> && g.b.col_stride == 1 &&
                  g.b_source.produce == nullptr && g.m <= kUnpackedRows;
    n_parts_ = std::max<int64_t>(ceil_div(g.k, in_pieces() ? kUnpackedDepth : kDepth), 1);
    depth_ = std::max<int64_t>(ceil_div(g.k, n_parts_), 1);
    lda_ = a_in_place_ ? g.a.row_stride : round_up(depth_, kMostLanes);
    choose_columns();
    choose_rows();
    plain_ = std::is_same_v<T, Acc> && n_parts_ == 1 && g.c.col_stride == 1 && g.alpha == Acc(1) &&
             (g.addend.data == nullptr || g.beta == Acc(0)) && g.residual.data == nullptr &&
             g.act.kind == Activation::Kind::None;
  }

  void run() const {
    const int64_t work = rows_ * columns_ * std::max<int64_t>(g_.k, 1);
    parallel_for(g_.batch * n_column_blocks_ * n_row_blocks_, ceil_div(kGrainWork, work),
                 [&](int64_t begin, int64_t end) {
                   const Buffers buffers = memory();
                   for (int64_t i = begin * n_parts_; i < end * n_parts_; ++i) run_part(i, buffers);
                 });
  }

 private:
  /// Columns p0 to p0 + np of the sums of the block at (i0, j0) of batch entry s.
  struct Part {
    int64_t s, i0, ni, j0, nj, p0, np;
  };
  struct Buffers {
    Acc *panels, *sums, *rows;
  };

  bool in_pieces() const { return b_in_place_ && g_.k > kShallow; }

  /// As few blocks as the cache allows, of equal width to within a vector, a multiple of the
  /// threads where there are few.
  void choose_columns() {
    n_vectors_ = ceil_div(g_.n, kernels_.lanes);
    const int64_t most =
        std::max<int64_t>((in_pieces() ? kUnpackedBytes : kPanelBytes) /
                              static_cast<int64_t>(sizeof(Acc)) / (depth_ * width_) * 2,
                          2);
    const auto threads = static_cast<int64_t>(loop_threads());
    n_column_blocks_ = ceil_div(n_vectors_, most);
    if (n_column_blocks_ > 1 && n_column_blocks_ < 4 * threads) {
      n_column_blocks_ = std::min(round_up(n_column_blocks_, threads), n_vectors_);
    }
    columns_ = ceil_div(n_vectors_, n_column_blocks_) * kernels_.lanes;
  }

  /// Where column block `block` begins.
  int64_t first_column(int64_t block) const {
    return block * n_vectors_ / n_column_blocks_ * kernels_.lanes;
  }

  /// Rows are divided only as far as threads have work: each block of rows packs B again.
  void choose_rows() {
    const auto threads = static_cast<int64_t>(loop_threads());
    // Producing an operand costs more than its share of an idle thread.
    const int64_t wanted = threads == 1 || g_.b_source.produce != nullptr ? threads : 4 * threads;
    const int64_t most = std::max<int64_t>(g_.m / (4 * kernels_.rows), 1);
    int64_t n = std::clamp<int64_t>(ceil_div(wanted, g_.batch * n_column_blocks_), 1, most);
    n = std::max(n, ceil_div(g_.m, kBlockRows));
    rows_ = round_up(ceil_div(g_.m, n), kernels_.rows);
    n_row_blocks_ = ceil_div(g_.m, rows_);
  }

  Buffers memory() const {
    static thread_local Workspace workspace;
    const int64_t n_panels = round_up(depth_ * columns_, kMostLanes);
    const int64_t n_sums = (n_parts_ == 1 ? kernels_.rows : rows_) * columns_;
    const int64_t n_rows = a_in_place_ ? 0 : kernels_.rows * lda_;
    const int64_t bytes = (n_panels + n_sums + n_rows) * static_cast<int64_t>(sizeof(Acc));
    Acc* const at =
        reinterpret_cast<Acc*>(workspace.floats(static_cast<size_t>(bytes) / sizeof(float)));
    return {at, at + n_panels, at + n_panels + n_sums};
  }

  Part part(int64_t index) const {
    const int64_t block = index / n_parts_;
    const int64_t row = block % n_row_blocks_, column = block / n_row_blocks_ % n_column_blocks_;
    Part t;
    t.s = block / (n_row_blocks_ * n_column_blocks_);
    t.i0 = row * rows_;
    t.ni = std::min(rows_, g_.m - t.i0);
    t.j0 = first_column(column);
    t.nj = std::min(first_column(column + 1), g_.n) - t.j0;
    t.p0 = index % n_parts_ * depth_;
    t.np = std::min(depth_, g_.k - t.p0);
    return t;
  }

  /// What remains of a block's columns from j on is one vector wide or two.
  int64_t panel_width(const Part& t, int64_t j) const {
    return t.nj - j > kernels_.lanes ? width_ : kernels_.lanes;
  }

  /// Whole panels' worth of columns, if B is used where it lies; the rest is packed.
  int64_t columns_in_place(const Part& t) const { return b_in_place_ ? t.nj / width_ * width_ : 0; }

  const T* b_at(const Part& t) const { return element(g_.b, t.p0, t.j0) + t.s * g_.b_batch; }

  /// The lines of B that part `index` reads; nothing for the last or where they are scattered.
  Prefetch lines_of(int64_t index) const {
    Prefetch lines;
    if (index >= g_.batch * n_column_blocks_ * n_row_blocks_ * n_parts_) return lines;
    if (g_.b_source.produce != nullptr) return lines;
    const Part t = part(index);
    const bool by_rows = g_.b.col_stride == 1;
    if (!by_rows && g_.b.row_stride != 1) return lines;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    lines.row_bytes = (by_rows ? t.nj : t.np) * kSize;
    lines.stride_bytes = (by_rows ? g_.b.row_stride : g_.b.col_stride) * kSize;
    lines.rows_left = (by_rows ? t.np : t.nj) - 1;
    const auto* begin = reinterpret_cast<const char*>(b_at(t));
    lines.at = Prefetch::line_of(begin);
    lines.row_end = begin + lines.row_bytes;
    return lines;
  }

  /// Fetching is spread evenly over packing, which takes a few cycles per vector (a transposition
  /// more), and multiplying, which takes half a cycle per row and vector.
  void set_rates(const Part& t, Prefetch& lines, uint32_t& multiply_rate) const {
    const double vectors = static_cast<double>(t.np * t.nj) / kernels_.lanes + 1;
    const double n_lines = static_cast<double>(lines.rows_left + 1) *
                           static_cast<double>(ceil_div(lines.row_bytes, Prefetch::kLine) + 1);
    const double pack_cycles = g_.b.col_stride == 1 ? 2 : 5;
    const double tile_rows = static_cast<double>(t.ni);
    const double packing = b_in_place_ ? 0 : pack_cycles / (pack_cycles + 0.5 * tile_rows);
    const double n_tiles = static_cast<double>(ceil_div(t.ni, kernels_.rows));
    const double steps = n_tiles * vectors / (2 * kPrefetchSteps);
    // A step of packing is two or four vectors.
    const double per_step = g_.b.col_stride == 1 ? 2 : 4;
    lines.rate =
        static_cast<uint32_t>(65536 * std::min(8.0, per_step * n_lines * packing / vectors));
    multiply_rate = static_cast<uint32_t>(65536 * std::min(8.0, n_lines * (1 - packing) / steps));
  }

  void run_part(int64_t index, const Buffers& buffers) const {
    const Part t = part(index);
    Prefetch prefetch = lines_of(index + 1);
    uint32_t multiply_rate = 0;
    if (prefetch.at != nullptr) set_rates(t, prefetch, multiply_rate);
    pack(t, buffers.panels, prefetch);
    prefetch.rate = multiply_rate;
    prefetch.credit = 0;
    // Tiles of nearly equal height: a low one would wait for its operands.
    const int64_t n_tiles = ceil_div(t.ni, kernels_.rows);
    int64_t i = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      const int64_t height = (t.ni - i) / (n_tiles - tile);
      run_rows(t, i, height, buffers, prefetch);
      i += height;
    }
  }

  void pack(const Part& t, Acc* panel, Prefetch& prefetch) const {
    Matrix<const T> b = g_.b;
    if (g_.b_source.produce == nullptr) b.data = b_at(t);
    if constexpr (kHasStorageKernels<T>) {
      if (g_.b_source.produce == nullptr && b.col_stride == 1) {
        const int64_t in_place = columns_in_place(t);
        return storage_kernels<T>().pack_rows(b.data + in_place, b.row_stride, t.np,
                                              t.nj - in_place, panel, prefetch);
      }
    }
    for (int64_t j = 0; j < t.nj;) {
      const int64_t width = panel_width(t, j), nj = std::min(width, t.nj - j);
      if (g_.b_source.produce != nullptr) {
        g_.b_source.produce(g_.b_source.matrix, t.s, t.j0 + j, nj, t.p0, t.np, panel, width);
      } else {
        pack_panel(b, t.np, nj, panel, width, prefetch);
        b.data += width * b.col_stride;
      }
      panel += t.np * width;
      j += width;
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
    const int64_t in_place = columns_in_place(t);
    Acc* const sums = buffers.sums + (n_parts_ == 1 ? 0 : i * columns_);
    int64_t finished = 0;
    for (int64_t j = 0; j < t.nj;) {
      const int64_t width = panel_width(t, j);
      tile.sums = sums + j;
      tile.ld_sums = columns_;
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
    finish(g_, t.s, sums + finished, columns_, t.i0 + i, height, t.j0 + finished, t.nj - finished);
  }

  const Gemm<T>& g_;
  const TileKernels<Acc>& kernels_;
  int64_t width_;            // of two vectors
  bool a_in_place_;          // rows of A are used where they lie
  bool b_in_place_;          // rows of B too, but for the last columns
  int64_t n_parts_, depth_;  // of the sum
  int64_t lda_;
  int64_t rows_, columns_;  // of a block
  int64_t n_row_blocks_, n_column_blocks_, n_vectors_;
  bool plain_;  // the sums are the result
};

}  // namespace executorch::cpu::gemm
