/// Internal: the Product of the driver (driver.h) for int8 products of many rows.
///
/// Rows of A come in lines, such as the rows of an image. The `line_rows` rows of a line are at
/// equal distances, and all rows of a tile are of one line. There are no K-slices: each sum is
/// finished in one pass over k.
#pragma once

#include <executorch/cpu/gemm/driver.h>
#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <new>

namespace executorch::cpu::int8 {

using gemm::ceil_div;
using gemm::round_up;

/// The segments of a row of A: n pieces of `bytes` bytes each, piece i at offsets[i] from the row.
struct Segments {
  const int64_t* offsets;
  int64_t n, bytes;

  int64_t quads() const { return ceil_div(bytes, 4); }
};

/// The microkernels that the weights of a product need.
struct Kind {
  explicit Kind(const Int8Weights& w, int64_t k)
      : form(w.group_scales != nullptr ? kGroups
             : w.nibbles               ? kNibbles
                                       : kBytes),
        groups(w.group_scales != nullptr ? ceil_div(k, w.group_size) : 0),
        may_be_fixed(groups > 0 && kernels().fix_scales != nullptr && k <= kMostFixed) {}

  /// The most rows of a tile. High tiles pay off where panels come from L2. If a panel fits L1
  /// beside the rows of a lower tile, tiles are that low.
  int64_t tile_rows(const Segments& s) const {
    const Row& row = kernels().rows[form];
    const Size panel = Size(s.n) * s.quads() * row.columns * (may_be_fixed ? 8 : 4);
    const Size rows = Size(s.n) * s.bytes * row.operand.tile_element * kernels().rows_in_l1;
    return (panel + rows).within(machine().l1) ? kernels().rows_in_l1 : row.rows;
  }

  Form form;
  int64_t groups;
  bool may_be_fixed;  // a panel has memory for two planes

 private:
  // The most products of a signed and an unsigned byte whose sum fits 32 bits.
  static constexpr int64_t kMostFixed = 65'000;
};

/// The size in bytes of a packed panel, including the bytes behind it that pack_columns() may
/// overwrite.
inline Size panel_bytes(const Kernels& kernels, const Segments& s) {
  return (Size(s.n) * s.quads() + kernels.vector_bytes) * int64_t{kernels.rows[kBytes].columns} * 4;
}

/// Packs columns [j0, j0 + n) of the weights (rows of `w`) as one panel.
inline void pack_panel(const Row& row, const Int8Weights& w, const Segments& s, int64_t j0,
                       int64_t n, uint8_t* to) {
  const int64_t bytes = w.nibbles ? ceil_div(s.bytes, 2) : s.bytes;
  for (int64_t i = 0; i < s.n; ++i, to += s.quads() * row.columns * 4) {
    row.pack_columns(w.data + j0 * w.row_bytes + i * bytes, w.row_bytes, bytes, n, to, row.columns);
  }
}

/// The destination of byte results from row i0 and column j0 on.
inline ByteResults byte_results(const Int8Gemm& g, const ByteFormat& format,
                                const ColumnRequantization& columns, int64_t i0, int64_t j0,
                                int64_t n) {
  return {format, &columns, static_cast<uint8_t*>(g.c) + i0 * g.ldc + j0, g.ldc, n};
}

/// Prepacked weights: panels as pack_panel() writes them, one after the other, and if results are
/// bytes, the ColumnRequantization of each panel. Null pointers if weights are not prepacked.
struct Packed {
  const uint8_t* panels = nullptr;
  const ColumnRequantization* columns = nullptr;
};

/// Some lines of A. `first` is the index of their first line among all lines of A.
struct Lines {
  const int8_t* a;
  int64_t line_stride, row_stride;  // bytes
  int64_t first;
};

/// A Source of rows of A has
///   images, image_lines    the number of images, and of lines in each; a block is in one image
///   line_rows              rows of a line; the very last line may have fewer
///   least_lines, most_lines   the least and the most lines of a block
///   segments               the Segments of a row
///   prepared               whether rows are prepared for tiles (Operand::prepare_tile)
///   panels_first           whether each panel is multiplied by all tiles of a block before the
///                          next panel; the rows then stay in L2. Otherwise a line is a tile, and
///                          each tile is multiplied by all panels
///   bytes(n)               the memory that lines() and tile() need for a block of n lines
///   lines(image, first, n, to)   returns the Lines of a block. If panels_first, they are copied to
///                          `to`, unless they can be read in place
///   tile(a, lda, n, to)    returns the n rows of a tile as microkernels read them. Unless
///                          panels_first, they may be copied to `to`; lda then changes
template <class Source>
class Blocks {
 public:
  /// Rows must have a single segment unless weights are prepacked.
  Blocks(const Int8Gemm& gemm, const Source& source, const Packed& packed = {})
      : g_(gemm),
        source_(source),
        kernels_(kernels()),
        kind_(gemm.b, gemm.k),
        row_(kernels_.rows[kind_.form]),
        packed_(packed),
        format_(gemm),
        offset_(row_.operand.tile_offset - (gemm.unsigned_a ? 128 : 0)),
        stored_bytes_(gemm.b.nibbles ? ceil_div(gemm.k, 2) : gemm.k),
        pieces_(std::max<int64_t>(ceil_div(stored_bytes_, kPiece), 1)),
        line_tiles_(ceil_div(source.line_rows, kind_.tile_rows(source.segments))),
        low_(source.line_rows / line_tiles_),
        high_tiles_(source.line_rows % line_tiles_),
        panel_bytes_(panel_bytes(kernels_, source.segments).value() * (kind_.may_be_fixed ? 2 : 1)),
        column_bytes_(panel_bytes_ / row_.columns + round_up(kind_.groups, 2) * 4 +
                      (kind_.may_be_fixed ? 4 : 0)),
        column_params_bytes_(static_cast<int64_t>(gives_bytes(g_) ? sizeof(ColumnRequantization)
                                                                  : sizeof(ColumnDequantization)) /
                             row_.columns),
        sums_bytes_(int64_t{row_.rows} * row_.columns * 4) {
    divide();
  }

  [[nodiscard]] bool run(Scratch& scratch) const { return gemm::Driver(*this).run(scratch); }

  // ---- what the driver asks for ----

  struct ThreadState {
    int64_t image = -1, line = -1;  // the image and the first line of the block in `lines`
    Lines lines = {};
    Tile tile = {};
    MatrixRegisters registers;
    int64_t first = 0, height = 0;  // the tile's first row and number of rows
  };

  const gemm::Division& division() const { return division_; }

  gemm::Memory memory() const {
    const Size columns = division_.columns();
    const Size packed = is_packed()      ? Size(0)
                        : panels_first() ? Size(division_.panel_columns)
                                         : columns;
    return {packed * column_bytes_, source_.bytes(division_.rows),
            columns * column_params_bytes_ + sums_bytes_};
  }

  int64_t enter(const gemm::KSlice& t, const gemm::KSlice*, const gemm::Buffers& buffers,
                ThreadState& state) const {
    if (state.image != t.s || state.line != t.i0) {
      state.lines = source_.lines(t.s, t.i0, t.ni, reinterpret_cast<int8_t*>(buffers.rows));
      state.image = t.s;
      state.line = t.i0;
    }
    state.tile.segments = source_.segments.offsets;
    state.tile.n_segments = source_.segments.n;
    state.tile.quads = source_.segments.quads();
    state.tile.group_quads = g_.b.group_size / 4;
    state.tile.sums = buffers.sums;
    state.tile.registers = &state.registers;
    state.tile.prepared = source_.prepared;
    for (int64_t j = 0; j < t.nj && packed_.columns == nullptr; j += row_.columns) {
      const int64_t n = std::min<int64_t>(row_.columns, t.nj - j);
      uint8_t* const to = buffers.sums + sums_bytes_ + j * column_params_bytes_;
      if (gives_bytes(g_)) {
        new (to) ColumnRequantization(g_, offset_, t.j0 + j, n);
      } else {
        new (to) ColumnDequantization(g_, t.j0 + j, n, row_.columns);
      }
    }
    return t.ni;
  }

  /// Prepares a tile, which is a whole line. Not called if panels_first().
  void prepare(const gemm::KSlice&, int64_t tile, int64_t, const gemm::Buffers& buffers,
               ThreadState& state) const {
    state.first = (state.lines.first + tile) * source_.line_rows;
    state.height = std::min(source_.line_rows, g_.m - state.first);
    state.tile.lda = state.lines.row_stride;
    state.tile.a = source_.tile(state.lines.a + tile * state.lines.line_stride, state.tile.lda,
                                state.height, reinterpret_cast<int8_t*>(buffers.rows));
  }

  bool panels_first() const { return source_.panels_first; }
  static bool looks_ahead() { return false; }
  int64_t panel_width(const gemm::KSlice&, int64_t) const { return row_.columns; }

  void multiply(const gemm::KSlice& t, int64_t j, const gemm::Buffers& buffers,
                ThreadState& state) const {
    const Panel panel(*this, t, j, buffers, buffers.panels + j * column_bytes_, state.tile);
    run_tile(state.tile, panel, state.first, state.height);
  }

  void multiply_panel(const gemm::KSlice& t, int64_t j, const gemm::Buffers& buffers,
                      ThreadState& state) const {
    Tile& tile = state.tile;
    const Panel panel(*this, t, j, buffers, buffers.panels, tile);
    if (!is_packed()) {
      pack_scales(panel.j0, panel.n, buffers.panels);
      pack_columns(panel.j0, panel.n, 0, stored_bytes_, buffers.panels);
    }
    tile.lda = state.lines.row_stride;
    const NextPanel next(*this, panel.j0 + row_.columns, t.ni * line_tiles_);
    // The tiles of a line have nearly equal heights, because a low tile has too few sums to hide
    // the latency of its multiply-adds.
    for (int64_t line = 0; line < t.ni; ++line) {
      const int64_t first = (state.lines.first + line) * source_.line_rows;
      const int64_t n = std::min(source_.line_rows, g_.m - first);
      tile.a = state.lines.a + line * state.lines.line_stride;
      for (int64_t i = 0, part = 0; i < n; ++part) {
        const int64_t height = std::min(low_ + (part < high_tiles_ ? 1 : 0), n - i);
        next.prefetch_share(line * line_tiles_ + part);
        run_tile(tile, panel, first + i, height);
        tile.a += height * tile.lda;
        i += height;
      }
    }
  }

  /// The number of steps that packing takes. A step packs kPiece bytes of each row of B in a panel.
  /// There are none if B is prepacked.
  int64_t pack_steps(const gemm::KSlice& t) const {
    return is_packed() ? 0 : ceil_div(t.nj, row_.columns) * pieces_;
  }

  int64_t fetch(const gemm::KSlice& t, int64_t begin, int64_t end, ThreadState&) const {
#if defined(__GNUC__)
    for (int64_t index = begin; index < end; ++index) {
      const PackStep step(*this, t, index);
      const uint8_t* row = g_.b.data + step.j * g_.b.row_bytes + step.from;
      for (int64_t i = 0; i < step.n; ++i, row += g_.b.row_bytes) __builtin_prefetch(row, 0, 2);
      if (kind_.groups == 0 || step.from > 0) continue;
      prefetch(g_.b.group_scales + step.j * kind_.groups, step.n * kind_.groups * 2);
    }
    keep_prefetches();
#endif
    return std::max<int64_t>(end - begin, 0);
  }

  static bool tiles_pack(const gemm::KSlice&) {
    return false;
  }
  static void pack_rest(const gemm::KSlice&, uint8_t*, const ThreadState&) {}

  void pack(const gemm::KSlice& t, int64_t begin, int64_t end, uint8_t* panels) const {
    for (int64_t index = begin; index < end; ++index) {
      const PackStep step(*this, t, index);
      uint8_t* const panel = panels + (step.j - t.j0) * column_bytes_;
      if (step.from == 0) pack_scales(step.j, step.n, panel);
      pack_columns(step.j, step.n, step.from, std::min(kPiece, stored_bytes_ - step.from), panel);
    }
  }

 private:
  // kGrainWork: multiply-adds that are worth another thread. kPiece: bytes, a multiple of the
  // vector size of every instruction set.
  static constexpr int64_t kGrainWork = 1 << 18, kPiece = 64;

  /// The bytes that a step packs: those from byte `from` on of columns [j, j + n), which are rows
  /// of the weights.
  struct PackStep {
    PackStep(const Blocks& b, const gemm::KSlice& t, int64_t step) {
      const int64_t first = step / b.pieces_ * b.row_.columns;
      j = t.j0 + first;
      n = std::min<int64_t>(b.row_.columns, t.nj - first);
      from = step % b.pieces_ * kPiece;
    }
    int64_t j, n, from;
  };

  void divide() {
    gemm::Division& d = division_;
    d.m = source_.image_lines, d.n = g_.n, d.k = g_.k, d.batch = source_.images;
    d.panel_columns = row_.columns;
    d.depth = std::max<int64_t>(d.k, 1);
    d.most_workers = std::max<int64_t>(g_.m * g_.n * std::max<int64_t>(g_.k, 1) / kGrainWork, 1);
    const int64_t blocks = gemm::Division::even_blocks();
    if (panels_first()) {
      // Rows are divided first, so that a thread copies its rows once and writes to cache lines
      // that no other thread writes to.
      d.divide_rows(1, source_.least_lines, gemm::Division::n_threads(), source_.most_lines);
      d.divide_columns(ceil_div(ceil_div(d.n, d.panel_columns), ceil_div(blocks, d.n_blocks())),
                       d.n_row_blocks);
    } else {
      // The panels of a block and those packed ahead together take half of the L2 cache.
      d.divide_columns(machine().l2 / 4 / (column_bytes_ * d.panel_columns),
                       d.most_row_blocks(source_.least_lines));
    }
    d.divide_rows(1, source_.least_lines, blocks, source_.most_lines);
  }

  /// Prefetches the panel at column j0, which this thread probably multiplies by next, or the
  /// weights that it is packed from. Each of `tiles` tiles prefetches an equal share, but no more
  /// than what its own loads need not wait for.
  struct NextPanel {
    NextPanel(const Blocks& b, int64_t j0, int64_t tiles) {
      const int64_t n = std::min<int64_t>(b.row_.columns, b.g_.n - j0);
      if (n <= 0) return;
      from = b.is_packed() ? b.packed_.panels + j0 * b.column_bytes_
                           : b.g_.b.data + j0 * b.g_.b.row_bytes;
      bytes = b.is_packed() ? b.panel_bytes_ : n * b.g_.b.row_bytes;
      share = std::min(round_up(ceil_div(bytes, tiles), kLine), b.row_.rows * kMostRowShare);
    }
    void prefetch_share(int64_t tile) const {
      const int64_t begin = tile * share, end = std::min(begin + share, bytes);
      if (begin < end) prefetch<2>(from + begin, end - begin);
    }
    static constexpr int64_t kMostRowShare = 2 * kLine;  // for each row of a tile
    const uint8_t* from = nullptr;
    int64_t bytes = 0, share = 0;
  };

  /// The panel that a tile is multiplied by, and the scales and sums of its columns.
  struct Panel {
    Panel(const Blocks& b, const gemm::KSlice& t, int64_t j, const gemm::Buffers& buffers,
          const uint8_t* packed, Tile& tile)
        : j0(t.j0 + j), n(std::min<int64_t>(b.row_.columns, t.nj - j)) {
      tile.panel = b.is_packed() ? b.packed_.panels + j0 * b.column_bytes_ : packed;
      tile.scales = reinterpret_cast<const float*>(tile.panel + b.panel_bytes_);
      tile.column_scales = b.kind_.may_be_fixed ? b.column_scales(tile.scales) : nullptr;
      columns =
          b.packed_.columns == nullptr
              ? buffers.sums + b.sums_bytes_ + j * b.column_params_bytes_
              : reinterpret_cast<const uint8_t*>(b.packed_.columns) + j0 * b.column_params_bytes_;
    }
    int64_t j0, n;
    const uint8_t* columns;  // ColumnRequantization or ColumnDequantization
  };

  void run_tile(const Tile& tile, const Panel& panel, int64_t first, int64_t height) const {
    if (gives_bytes(g_)) {
      const auto& columns = *reinterpret_cast<const ColumnRequantization*>(panel.columns);
      kernels_.byte_tile[height](tile,
                                 byte_results(g_, format_, columns, first, panel.j0, panel.n));
      return;
    }
    row_.tile[0][height](tile);
    row_.finish({&g_, reinterpret_cast<const ColumnDequantization*>(panel.columns), offset_, first,
                 height, panel.j0, panel.n, static_cast<const int32_t*>(tile.sums), row_.columns});
  }

  /// Packs bytes [from, from + bytes) of columns [j, j + n) of B. pack_scales() must have been
  /// called for the panel before.
  void pack_columns(int64_t j, int64_t n, int64_t from, int64_t bytes, uint8_t* panel) const {
    const uint8_t* const b = g_.b.data + j * g_.b.row_bytes + from;
    const auto* const scales = reinterpret_cast<const float*>(panel + panel_bytes_);
    const int64_t quad = from / 4 * (g_.b.nibbles ? 2 : 1);
    if (kind_.may_be_fixed && *column_scales(scales) != 0) {
      return kernels_.pack_fixed(b, g_.b.row_bytes, bytes, n, source_.segments.quads(), quad,
                                 g_.b.group_size / 4, scales, panel);
    }
    row_.pack_columns(b, g_.b.row_bytes, bytes, n, panel + quad * row_.columns * 4, row_.columns);
  }

  void pack_scales(int64_t j, int64_t n, uint8_t* panel) const {
    if (kind_.groups == 0) return;
    auto* const scales = reinterpret_cast<float*>(panel + panel_bytes_);
    kernels_.pack_scales(g_.b.group_scales + j * kind_.groups, kind_.groups, n, scales);
    if (kind_.may_be_fixed) kernels_.fix_scales(scales, kind_.groups, column_scales(scales));
  }
  /// The column scales of fixed-point weights, which lie behind the scales of a panel.
  template <class Float>
  Float* column_scales(Float* scales) const {
    return scales + round_up(kind_.groups, 2) * row_.columns;
  }

  bool is_packed() const {
    return packed_.panels != nullptr;
  }

  const Int8Gemm& g_;
  const Source& source_;
  const Kernels& kernels_;
  const Kind kind_;
  const Row& row_;
  const Packed packed_;
  const ByteFormat format_;
  const int offset_;
  const int64_t stored_bytes_, pieces_;          // of a row of B: its bytes, and steps to pack it
  const int64_t line_tiles_, low_, high_tiles_;  // tiles of a line have low_ rows, some low_ + 1
  const int64_t panel_bytes_;
  /// Bytes of memory per column: of a panel with its scales, and of the column's requantization or
  /// dequantization.
  const int64_t column_bytes_, column_params_bytes_;
  const int64_t sums_bytes_;
  gemm::Division division_;
};

}  // namespace executorch::cpu::int8
