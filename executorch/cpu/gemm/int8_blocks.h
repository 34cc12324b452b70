/// Internal: int8 products of many rows, as packed panels of B times blocks of rows of A.
///
/// Rows of A come in lines of `line_rows` rows at one stride, and are read in place, or from a copy
/// that their source makes of a block of lines. One panel times one block is a task. The tasks of
/// one block are neighbours, so that a thread prepares the block's rows once; they stay in the L2
/// cache while the panel stays in L1.
#pragma once

#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <new>

namespace executorch::cpu::int8 {

inline int64_t ceil_div(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit;
}
inline int64_t round_up(int64_t n, int64_t unit) {
  return ceil_div(n, unit) * unit;
}

/// Which microkernels a set of weights needs.
struct Kind {
  explicit Kind(const Int8Weights& w, int64_t k)
      : form(w.group_scales != nullptr ? kGroups
             : w.nibbles               ? kNibbles
                                       : kBytes),
        bits_row(w.nibbles ? 1 : 0),
        groups(w.group_scales != nullptr ? ceil_div(k, w.group_size) : 0) {}

  Form form;
  int bits_row;  // index into the kernels' tables: 0 for 8 bits, 1 for 4 bits
  int64_t groups;
};

/// A row of A: n segments of `bytes` each, segment i at offsets[i].
struct Segments {
  const int64_t* offsets;
  int64_t n, bytes;

  int64_t quads() const { return ceil_div(bytes, 4); }
};

/// Bytes of a packed panel, with those behind it that pack() may overwrite.
inline int64_t panel_bytes(const Kernels& kernels, const Segments& s) {
  return (s.n * s.quads() + kernels.vector_bytes) * kernels.columns * 4;
}

/// Packs columns [j0, j0 + n) of the weights.
inline void pack_panel(const Kernels& kernels, const Int8Weights& w, const Segments& s, int64_t j0,
                       int64_t n, uint8_t* to) {
  const int64_t bytes = w.nibbles ? ceil_div(s.bytes, 2) : s.bytes;
  for (int64_t i = 0; i < s.n; ++i, to += s.quads() * kernels.columns * 4) {
    kernels.pack[w.nibbles ? 1 : 0](w.data + j0 * w.row_bytes + i * bytes, w.row_bytes, n, bytes,
                                    to);
  }
}

/// The destination of byte results from row i0 and column j0 on.
inline ByteResults byte_results(const Int8Gemm& g, const ByteColumns& columns, int64_t i0,
                                int64_t j0, int64_t n) {
  return {ByteFormat(g), &columns, static_cast<uint8_t*>(g.c) + i0 * g.ldc + j0, g.ldc, n};
}

/// Weights packed ahead of time: panels as pack_panel() writes them, one after the other, and where
/// results are bytes, the ByteColumns of each panel.
struct Packed {
  const uint8_t* panels = nullptr;
  const ByteColumns* columns = nullptr;
};

/// A block of n lines of A. `first` is the index of its first line among all.
struct Lines {
  const int8_t* a;
  int64_t line_stride, row_stride;  // bytes
  int64_t n, first;
};

/// A Source of rows of A has
///   n_blocks()             how many blocks of lines there are
///   bytes()                the memory that a copy of a block needs; 0: blocks are read in place
///   line_rows              rows of a line; the last line of all may have fewer
///   segments               of a row
///   lines(block, scratch)  the Lines of a block, copied to `scratch` unless bytes() is 0
template <class Source>
class Blocks {
 public:
  /// Weights that are not packed ahead are packed again for each block.
  Blocks(const Int8Gemm& gemm, const Source& source, const Packed& packed = {})
      : g_(gemm),
        source_(source),
        kernels_(kernels()),
        kind_(gemm.b, gemm.k),
        packed_(packed),
        panel_bytes_(panel_bytes(kernels_, source.segments)),
        n_panels_(ceil_div(gemm.n, kernels_.columns)) {}

  /// False if memory is refused, before anything is written.
  [[nodiscard]] bool run(Scratch& scratch) const {
    const int64_t n_blocks = source_.n_blocks();
    const int64_t work = g_.m / n_blocks * kernels_.columns * std::max<int64_t>(g_.k, 1);
    const int64_t n = n_blocks * n_panels_, grain = kGrainWork / std::max<int64_t>(work, 1) + 1;
    const Scratch::Frame frame(scratch);
    const Layout layout(*this);
    const ThreadScratch<uint8_t> buffers(scratch, layout.bytes, n <= grain ? 1 : loop_threads());
    if (!buffers) return false;
    for (size_t i = 0; i < buffers.threads(); ++i) new (buffers.of_thread(i)) CurrentBlock;
    buffers.parallel_for(n, grain, [&](int64_t begin, int64_t end, uint8_t* buffer) {
      const Memory memory = layout.in(buffer);
      for (int64_t task = begin; task < end; ++task) {
        run_panel(lines_of(task / n_panels_, memory), task % n_panels_, memory);
      }
    });
    return true;
  }

 private:
  // Multiply-adds from which on another thread pays.
  static constexpr int64_t kGrainWork = 1 << 18;

  /// The block of lines that a thread has prepared last.
  struct CurrentBlock {
    int64_t block = -1;
    Lines lines = {};
  };
  struct Memory {
    CurrentBlock* current;
    uint8_t *rows, *panel;
    float* scales;
    int32_t* sums;
  };
  /// The layout of Memory in a thread's scratch memory.
  struct Layout {
    explicit Layout(const Blocks& b) {
      const int64_t columns = b.kernels_.columns;
      rows = round_up(static_cast<int64_t>(sizeof(CurrentBlock)), 64);
      const Size panel_begin = Size(rows) + round_up(Size(b.source_.bytes()), 64);
      const Size scales_begin = panel_begin + (b.packed_.panels == nullptr ? b.panel_bytes_ : 0);
      const Size sums_begin = scales_begin + round_up(b.kind_.groups, 2) * columns * 4;
      bytes = sums_begin + b.kernels_.rows * columns * 4;
      panel = panel_begin.value();
      scales = scales_begin.value();
      sums = sums_begin.value();
    }
    Memory in(uint8_t* buffer) const {
      return {reinterpret_cast<CurrentBlock*>(buffer), buffer + rows, buffer + panel,
              reinterpret_cast<float*>(buffer + scales), reinterpret_cast<int32_t*>(buffer + sums)};
    }

    int64_t rows, panel, scales, sums;
    Size bytes;  // if it has not overflowed, the others have not
  };

  /// The lines of a block, prepared unless the thread has just done so.
  const Lines& lines_of(int64_t block, const Memory& memory) const {
    CurrentBlock& current = *memory.current;
    if (current.block != block) {
      current = {block, source_.lines(block, reinterpret_cast<int8_t*>(memory.rows))};
    }
    return current.lines;
  }

  void run_panel(const Lines& lines, int64_t panel, const Memory& memory) const {
    const int64_t j0 = panel * kernels_.columns;
    const int64_t n = std::min<int64_t>(kernels_.columns, g_.n - j0);
    Tile tile{};
    tile.lda = lines.row_stride;
    tile.segments = source_.segments.offsets;
    tile.n_segments = source_.segments.n;
    tile.quads = source_.segments.quads();
    tile.sums = memory.sums;
    tile.panel = packed_.panels == nullptr ? memory.panel : packed_.panels + panel * panel_bytes_;
    if (packed_.panels == nullptr) {
      pack_panel(kernels_, g_.b, source_.segments, j0, n, memory.panel);
    }
    if (kind_.form == kGroups) {
      kernels_.pack_scales(g_.b.group_scales + j0 * kind_.groups, kind_.groups, n, memory.scales);
      tile.scales = memory.scales;
      tile.group_quads = g_.b.group_size / 4;
    }
    const int offset = kernels_.tile_offset[kind_.bits_row] - (g_.unsigned_a ? 128 : 0);
    if (gives_bytes(g_)) {
      ByteColumns own;
      if (packed_.columns == nullptr) own = ByteColumns(g_, offset, j0, n);
      const ByteResults all =
          byte_results(g_, packed_.columns == nullptr ? own : packed_.columns[panel], 0, j0, n);
      run_lines(lines, tile, [&](int64_t first, int64_t rows) {
        ByteResults results = all;
        results.to += first * results.ld;
        kernels_.byte_tile[rows](tile, results);
      });
      return;
    }
    Columns columns(g_, j0, n);
    run_lines(lines, tile, [&](int64_t first, int64_t rows) {
      kernels_.tile[kind_.form][rows](tile);
      kernels_.finish({&g_, &columns, offset, first, rows, j0, n, memory.sums, kernels_.columns});
    });
  }

  /// Calls run(first, rows) for each tile. The tiles of a line have nearly equal heights: a low one
  /// has too few sums to hide the latency of its multiply-adds.
  template <class F>
  void run_lines(const Lines& lines, Tile& tile, const F& run) const {
    for (int64_t line = 0; line < lines.n; ++line) {
      const int64_t first = (lines.first + line) * source_.line_rows;
      const int64_t rows = std::min(source_.line_rows, g_.m - first);
      int64_t tiles = ceil_div(rows, kernels_.rows);
      tile.a = lines.a + line * lines.line_stride;
      for (int64_t i = 0, n = 0; i < rows; i += n, --tiles, tile.a += n * tile.lda) {
        n = ceil_div(rows - i, tiles);
        run(first + i, n);
      }
    }
  }

  const Int8Gemm& g_;
  const Source& source_;
  const Kernels& kernels_;
  const Kind kind_;
  const Packed packed_;
  const int64_t panel_bytes_, n_panels_;
};

}  // namespace executorch::cpu::int8
