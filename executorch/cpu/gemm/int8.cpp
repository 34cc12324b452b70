#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace executorch::cpu {
namespace {

using int8::Form;

// Prepared rows of A that a panel meets one tile after the other: they stay in the second-level
// cache, the panel in the first.
constexpr int64_t kRowsBytes = 384 * 1024;
// So that rows a power of two apart do not drive one another out of a cache.
constexpr int64_t kRowPadding = 64;
// Up to so many rows B is read where it lies.
constexpr int64_t kFewRows = 8;
// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 18;
constexpr int64_t kLine = 64;

int64_t ceil_div(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit;
}
int64_t round_up(int64_t n, int64_t unit) {
  return ceil_div(n, unit) * unit;
}

uint8_t* bytes_of(Workspace& workspace, int64_t n) {
  return reinterpret_cast<uint8_t*>(workspace.floats(static_cast<size_t>(ceil_div(n, 4))));
}

/// Which kernels a set of weights needs.
struct Kind {
  explicit Kind(const Int8Weights& w, int64_t k)
      : form(w.group_scales != nullptr ? int8::kGroups
             : w.nibbles               ? int8::kNibbles
                                       : int8::kBytes),
        of(w.nibbles ? 1 : 0),
        row_bytes(w.nibbles ? ceil_div(k, 2) : k),
        groups(w.group_scales != nullptr ? ceil_div(k, w.group_size) : 0) {}

  Form form;
  int of;
  int64_t row_bytes, groups;
};

/// Few rows, prepared, times columns [begin, end).
void run_dots(const Int8Weights& w, const Kind& kind, const uint8_t* a, int64_t lda, int64_t m,
              int64_t k, int64_t begin, int64_t end, int32_t* sums, int64_t ld) {
  int8::Dots dots{};
  dots.a = a;
  dots.lda = lda;
  dots.m = m;
  dots.n = end - begin;
  dots.k = k;
  dots.b = w.data + begin * w.row_bytes;
  dots.ldb = w.row_bytes;
  dots.groups = kind.groups;
  dots.group_units = w.group_size / int8::kUnit;
  if (kind.groups > 0) dots.scales = w.group_scales + begin * kind.groups;
  dots.sums = sums;
  dots.ld_sums = ld;
  int8::kernels().dots[kind.form](dots);
}

class Product {
 public:
  explicit Product(const Int8Gemm& gemm)
      : g_(gemm), kernels_(int8::kernels()), kind_(gemm.b, gemm.k) {}

  void run() const {
    if (g_.m <= kFewRows) {
      run_few();
    } else {
      Blocks(*this).run();
    }
  }

 private:
  uint8_t flip() const { return g_.unsigned_a ? 0x80 : 0; }

  void prepare(const int8::Operand& operand, int64_t i0, int64_t ni, int64_t lda,
               uint8_t* to) const {
    static thread_local Workspace produced;
    const int8_t* a = g_.a + i0 * g_.lda;
    int64_t step = g_.lda;
    if (g_.produce != nullptr) {
      auto* const rows = reinterpret_cast<int8_t*>(bytes_of(produced, ni * g_.k));
      g_.produce(g_.source, i0, ni, rows);
      a = rows;
      step = g_.k;
    }
    for (int64_t i = 0; i < ni; ++i) operand.prepare(a + i * step, flip(), g_.k, to + i * lda);
  }

  void run_few() const {
    static thread_local Workspace rows;
    const int8::Operand& operand = kernels_.dot_rows[kind_.of];
    const int64_t lda = round_up(operand.row_bytes(g_.k), kLine);
    uint8_t* const a = bytes_of(rows, g_.m * lda);
    prepare(operand, 0, g_.m, lda, a);
    constexpr int64_t kStep = int8::kMostColumns;
    const int64_t grain =
        g_.n * g_.k < kGrainWork ? g_.n : kStep;  // fine, so that threads end alike
    parallel_for(g_.n, grain, [&](int64_t begin, int64_t end) {
      int32_t sums[int8::kDotRows * kStep];
      for (int64_t j = begin; j < end; j += kStep) {
        const int64_t n = std::min(kStep, end - j);
        for (int64_t i = 0; i < g_.m; i += int8::kDotRows) {
          const int64_t m = std::min<int64_t>(int8::kDotRows, g_.m - i);
          run_dots(g_.b, kind_, a + i * lda, lda, m, g_.k, j, j + n, sums, kStep);
          kernels_.finish({&g_, operand.offset, i, m, j, n, sums, kStep});
        }
      }
    });
  }

  /// Many rows: each panel of columns times each block of rows is a task; those of one block
  /// follow one another, so that a thread prepares its rows once.
  class Blocks {
   public:
    explicit Blocks(const Product& product)
        : p_(product), g_(product.g_), kernels_(product.kernels_), kind_(product.kind_) {
      const int8::Operand& operand = kernels_.tile_rows[kind_.of];
      lda_ = round_up(operand.row_bytes(g_.k), kLine) + kRowPadding;
      units_ = ceil_div(g_.k, int8::kUnit);
      const int64_t tiles = ceil_div(g_.m, kernels_.rows);
      const int64_t most = std::max<int64_t>(kRowsBytes / (lda_ * kernels_.rows), 1);
      n_panels_ = ceil_div(g_.n, kernels_.columns);
      n_blocks_ = ceil_div(tiles, most);
      block_rows_ = ceil_div(tiles, n_blocks_) * kernels_.rows;
      n_blocks_ = ceil_div(g_.m, block_rows_);
    }

    void run() const {
      static std::atomic<uint64_t> runs{0};
      const uint64_t number = ++runs;
      const int64_t work = block_rows_ * kernels_.columns * std::max<int64_t>(g_.k, 1);
      parallel_for(n_blocks_ * n_panels_, ceil_div(kGrainWork, work),
                   [&](int64_t begin, int64_t end) {
                     const Memory memory = room();
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t block = task / n_panels_;
                       prepare(number, block, memory.rows);
                       run_panel(block * block_rows_, task % n_panels_ * kernels_.columns, memory);
                     }
                   });
    }

   private:
    struct Memory {
      uint8_t *rows, *panel;
      float* scales;
      int32_t* sums;
    };

    Memory room() const {
      static thread_local Workspace workspace;
      // Panels are written in whole vectors of a row.
      const int64_t panel = round_up(units_, 4) * kernels_.panel_unit[kind_.of];
      const int64_t scales = round_up(kind_.groups, 2) * kernels_.columns * 4;
      const int64_t sums = kernels_.rows * kernels_.columns * 4;
      uint8_t* at = bytes_of(workspace, block_rows_ * lda_ + panel + scales + sums);
      Memory memory;
      memory.rows = at;
      memory.panel = at += block_rows_ * lda_;
      memory.scales = reinterpret_cast<float*>(at += panel);
      memory.sums = reinterpret_cast<int32_t*>(at += scales);
      return memory;
    }

    /// Unless the thread has them.
    void prepare(uint64_t number, int64_t block, uint8_t* to) const {
      static thread_local struct {
        uint64_t number;
        int64_t block;
      } present = {0, 0};
      if (present.number == number && present.block == block) return;
      const int64_t i0 = block * block_rows_;
      for (int64_t i = 0; i < rows_of(i0); i += kernels_.rows) {
        p_.prepare(kernels_.tile_rows[kind_.of], i0 + i,
                   std::min<int64_t>(kernels_.rows, rows_of(i0) - i), lda_, to + i * lda_);
      }
      present = {number, block};
    }

    int64_t rows_of(int64_t i0) const { return std::min(block_rows_, g_.m - i0); }

    void run_panel(int64_t i0, int64_t j0, const Memory& memory) const {
      const int64_t n = std::min<int64_t>(kernels_.columns, g_.n - j0);
      const int offset = kernels_.tile_rows[kind_.of].offset;
      kernels_.pack[kind_.of](g_.b.data + j0 * g_.b.row_bytes, g_.b.row_bytes, n, kind_.row_bytes,
                              memory.panel);
      int8::Tile tile{};
      tile.lda = lda_;
      tile.panel = memory.panel;
      tile.units = units_;
      tile.sums = memory.sums;
      if (kind_.form == int8::kGroups) {
        kernels_.pack_scales(g_.b.group_scales + j0 * kind_.groups, kind_.groups, n, memory.scales);
        tile.scales = memory.scales;
        tile.group_units = g_.b.group_size / int8::kUnit;
      }
      for (int64_t i = 0; i < rows_of(i0); i += kernels_.rows) {
        const int64_t height = std::min<int64_t>(kernels_.rows, rows_of(i0) - i);
        tile.a = memory.rows + i * lda_;
        kernels_.tile[kind_.form][height](tile);
        kernels_.finish({&g_, offset, i0 + i, height, j0, n, memory.sums, kernels_.columns});
      }
    }

    const Product& p_;
    const Int8Gemm& g_;
    const int8::Kernels& kernels_;
    const Kind& kind_;
    int64_t lda_, units_, n_panels_, n_blocks_, block_rows_;
  };

  const Int8Gemm& g_;
  const int8::Kernels& kernels_;
  Kind kind_;
};

}  // namespace

RowQuantization quantize_row(const float* x, int64_t n, int8_t* q) {
  return int8::kernels().quantize_row(x, n, q);
}

void DepthwiseSums::run() const {
  int8::kernels().depthwise(*this);
}

void sum_rows(const Int8Weights& w, int64_t n, int64_t k, int32_t* sums, float* group_sums) {
  // A row of ones, as they are once prepared.
  static thread_local Workspace workspace;
  const Kind kind(w, k);
  const int8::Operand& operand = int8::kernels().dot_rows[kind.of];
  uint8_t* const a = bytes_of(workspace, k + operand.row_bytes(k));
  std::memset(a, 1 - operand.offset, static_cast<size_t>(k));
  operand.prepare(reinterpret_cast<int8_t*>(a), 0, k, a + k);
  parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    int32_t* const to = kind.groups > 0 ? reinterpret_cast<int32_t*>(group_sums) : sums;
    run_dots(w, kind, a + k, 0, 1, k, begin, end, to + begin, end - begin);
  });
}

void Int8Gemm::run() const {
  if (m > 0 && n > 0) Product(*this).run();
}

}  // namespace executorch::cpu
