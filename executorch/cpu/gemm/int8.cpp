#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/loop_reads.h>
#include <executorch/cpu/prefetch.h>

#include <array>
#include <cmath>
#include <cstring>

namespace executorch::cpu {
namespace {

using int8::byte_results;
using int8::ceil_div;
using int8::kFewColumns;
using int8::Kind;
using int8::round_up;

// So that rows a power of two apart do not drive one another out of a cache.
constexpr int64_t kRowPadding = kLine;
// Rows of A that repay packing panels of B.
constexpr int64_t kLeastTiles = 4, kBlockRows = 1024;
// Up to so many rows, fewer on some machines, B is read where it lies.
constexpr int64_t kMostDotRows = int8::kMostDotRowsOfAnySet;
// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 18;

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
  dots.group_subgroups = w.group_size / int8::kSubgroup;
  if (kind.groups > 0) dots.scales = w.group_scales + begin * kind.groups;
  dots.sums = sums;
  dots.ld_sums = ld;
  int8::kernels().rows[kind.form].few_rows_dot(dots);
}

/// Prefetches the scales, sums and biases of columns [j, j + n), so that they arrive while the
/// columns are multiplied.
void prefetch_columns(const Int8Gemm& g, int64_t j, int64_t n) {
  const auto bring = [&](const auto* from) {
    if (from == nullptr) return;
    prefetch(from + j, n * static_cast<int64_t>(sizeof(*from)));
    prefetch(from + j + n - 1, 1);  // rows may begin within a line
  };
  bring(g.b.scales);
  bring(g.sums);
  bring(g.group_sums);
  bring(g.bias);
  bring(g.integer_bias);
}

bool run_few(const Int8Gemm& g, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const Kind kind(g.b, g.k);
  const int8::Kernels& kernels = int8::kernels();
  const int8::Row& row = kernels.rows[kind.form];
  const int8::Operand& operand = row.operand;
  const uint8_t flip = g.unsigned_a ? 0x80 : 0;
  const int64_t lda = round_up(operand.row_bytes(g.k), kLine);
  uint8_t* const a = scratch.array<uint8_t>(Size(g.m) * lda);
  if (a == nullptr) return false;
  for (int64_t i = 0; i < g.m; ++i) operand.prepare(g.a + i * g.lda, flip, g.k, a + i * lda);
  const int offset = operand.offset - (g.unsigned_a ? 128 : 0);
  const int8::ByteFormat format(g);
  const int64_t panel = row.columns;
  const auto finish = [&](int64_t j, int64_t n, const int32_t* sums) {
    if (int8::gives_bytes(g)) {
      const int8::ColumnRequantization columns(g, offset, j, n);
      kernels.finish_bytes(sums, kFewColumns, g.m, byte_results(g, format, columns, 0, j, n));
    } else {
      const int8::ColumnDequantization columns(g, j, n, panel);
      row.finish({&g, &columns, offset, 0, g.m, j, n, sums, kFewColumns});
    }
  };
  constexpr int64_t kMultiple = int8::kDotColumns;
  const int64_t grain = g.n * g.k < kGrainWork
                            ? g.n
                            : gemm::Division::even_columns(g.n, kMultiple, 2 * kMultiple, panel);
  const int64_t bytes = g.b.row_bytes;
  if (grain < g.n) will_read({g.b.data, bytes, 1, bytes, bytes});
  parallel_for(g.n, grain, [&](int64_t begin, int64_t end) {
    int32_t sums[kMostDotRows * kFewColumns];
    for (int64_t j0 = begin; j0 < end; j0 += kFewColumns) {
      const int64_t nj = std::min(kFewColumns, end - j0);
      prefetch_columns(g, j0, nj);
      for (int64_t i = 0; i < g.m; i += int8::kDotRows) {
        const int64_t m = std::min<int64_t>(int8::kDotRows, g.m - i);
        run_dots(g.b, kind, a + i * lda, lda, m, g.k, j0, j0 + nj, sums + i * kFewColumns,
                 kFewColumns);
      }
      // Whole vectors of results are computed: the rest of the last panel is finished apart.
      const int64_t whole = nj / panel * panel;
      for (int64_t i = 0; i < g.m && whole < nj; ++i) {
        std::fill_n(sums + i * kFewColumns + nj, whole + panel - nj, 0);
      }
      // Floats of all whole panels at once.
      const int64_t step = int8::gives_bytes(g) ? panel : whole;
      for (int64_t j = 0; j < whole; j += step) finish(j0 + j, step, sums + j);
      if (whole < nj) finish(j0 + whole, nj - whole, sums + whole);
    }
  });
  return true;
}

/// The Source of the rows of a matrix (int8_blocks.h). A line has as many rows as a tile. Tiles
/// read copies of the rows; they read the rows themselves if the rows need not be prepared and each
/// tile is multiplied by all panels at once.
///
/// The copied rows of a block take at most half of the L2 cache, and each panel of B is packed for
/// all of them. Where so few rows fit that they do not repay that, panels of a block stay in L2
/// instead, and each tile of rows is multiplied by all of them.
struct Rows {
  const Int8Gemm& g;
  const int8::Row& row;
  static constexpr int64_t kFirst = 0;
  int8::Segments segments;
  int64_t padded, images = 1, line_rows, image_lines, least_lines, most_lines;
  bool panels_first;
  bool prepared;  // rows are prepared as they are copied
  bool in_place;

  explicit Rows(const Int8Gemm& gemm)
      : g(gemm),
        row(int8::kernels().rows[Kind(gemm.b, gemm.k).form]),
        segments{&kFirst, 1, gemm.k},
        prepared(row.operand.prepare_tile != nullptr) {
    padded = round_up(g.k * row.operand.tile_element, kLine) + kRowPadding;
    line_rows = ceil_div(g.m, ceil_div(g.m, Kind(g.b, g.k).tile_rows(segments)));
    image_lines = ceil_div(g.m, line_rows);
    const int64_t fit = std::min(machine().l2 / 2 / (line_rows * padded), image_lines);
    panels_first = fit * line_rows >= std::min<int64_t>(g.m, int8::kernels().least_block_rows);
    in_place = !panels_first && !prepared && !g.unsigned_a && g.k % 4 == 0;
    least_lines = kLeastTiles;
    most_lines = std::max(kBlockRows / line_rows, least_lines);
    if (panels_first) {
      // Threads take blocks of C in turn, those of the same columns first. With such a number of
      // blocks of rows, a thread mostly gets rows that it has copied already.
      const int64_t threads = gemm::Division::n_threads();
      int64_t blocks = ceil_div(image_lines, fit);
      while (threads % blocks != 0 && blocks % threads != 0) ++blocks;
      least_lines = most_lines = ceil_div(image_lines, blocks);
    }
  }

  Size bytes(int64_t n) const {
    return in_place ? Size(0) : Size(panels_first ? n : 1) * line_rows * padded;
  }
  int8::Lines lines(int64_t, int64_t first, int64_t n, int8_t* to) const {
    const int8_t* const a = g.a + first * line_rows * g.lda;
    if (!panels_first) return {a, line_rows * g.lda, g.lda, first};
    copy(a, g.lda, std::min(n * line_rows, g.m - first * line_rows), to);
    return {to, line_rows * padded, padded, first};
  }
  const int8_t* tile(const int8_t* a, int64_t& lda, int64_t n, int8_t* to) const {
    if (in_place || panels_first) return a;
    copy(a, lda, n, to);
    lda = padded;
    return to;
  }
  void copy(const int8_t* a, int64_t lda, int64_t n, int8_t* to) const {
    const int64_t element = row.operand.tile_element;
    // Each row is followed by elements that are multiplied as 0, because the nibbles that follow
    // the last weight of a column may be anything.
    const int padding = prepared ? 0 : -row.operand.tile_offset;
    const uint8_t flip = g.unsigned_a ? 0x80 : 0;
    for (int64_t i = 0; i < n; ++i, a += lda, to += padded) {
      std::memset(to + g.k * element, padding, static_cast<size_t>(4 * element));
      if (prepared) {
        row.operand.prepare_tile(a, flip, g.k, reinterpret_cast<uint8_t*>(to));
        continue;
      }
      std::copy_n(a, g.k, to);
      for (int64_t p = 0; flip != 0 && p < g.k; ++p) to[p] = static_cast<int8_t>(to[p] ^ flip);
    }
  }
};

/// Zeros where there are no columns: whole vectors of results are computed.
template <class T>
void copy_columns(const T* from, int64_t j0, int64_t n, T* to) {
  if (from == nullptr) n = 0;
  for (int64_t j = 0; j < n; ++j) to[j] = from[j0 + j];
  for (int64_t j = n; j < int8::kMostColumns; ++j) to[j] = 0;
}

}  // namespace

int8::ColumnDequantization::ColumnDequantization(const Int8Gemm& g, int64_t j0, int64_t n,
                                                 int64_t width) {
  static constexpr float kZeros[kFewColumns] = {};
  static constexpr auto kOnes = [] {
    std::array<float, kFewColumns> ones = {};
    ones.fill(1);
    return ones;
  }();
  // Whole vectors are read: the last columns of all are copied, zeros behind them.
  const auto columns = [&](const auto* from, auto* copy) {
    if (from != nullptr && n % width == 0) return from + j0;
    copy_columns(from, j0, n, copy);
    return static_cast<decltype(from)>(copy);
  };
  const bool grouped = g.b.group_scales != nullptr;
  scale = grouped ? kOnes.data() : columns(g.b.scales, scale_);
  group_sums = grouped ? columns(g.group_sums, group_sums_) : nullptr;
  sums = grouped ? nullptr : columns(g.sums, sums_);
  bias = g.bias != nullptr ? columns(g.bias, bias_) : kZeros;
}

int8::ColumnRequantization::ColumnRequantization(const Int8Gemm& g, int offset, int64_t j0,
                                                 int64_t n) {
  float scale[kMostColumns];
  int32_t sums[kMostColumns];
  copy_columns(g.b.scales, j0, n, scale);
  copy_columns(g.sums, j0, n, sums);
  copy_columns(g.integer_bias, j0, n, start);
  const auto zero = static_cast<uint32_t>(g.rows->zero_point + offset);
  for (int j = 0; j < kMostColumns; ++j) {
    // Wraps rather than overflows where a file says nonsense.
    start[j] = static_cast<int32_t>(static_cast<uint32_t>(start[j]) -
                                    zero * static_cast<uint32_t>(sums[j]));
    // Scaled once, so that what lies half-way between two integers is rounded as such.
    factor[j] = g.rows->scale * scale[j] / g.c_quantization.scale;
  }
}

int8::ByteFormat::ByteFormat(const Int8Gemm& g) {
  const bool is_unsigned = g.out == Int8Gemm::Out::UInt8;
  const RowQuantization& to = g.c_quantization;
  const int shift = is_unsigned ? 128 : 0;
  // Bounds are rounded as results are; a zero point beyond any byte holds all results there. A NaN
  // is no bound.
  constexpr float kMost = 2048;
  const int zero = to.zero_point - shift;
  const auto byte = [&](float q) {
    const float at = std::nearbyint(q) + static_cast<float>(zero);
    return static_cast<int8_t>(std::clamp(at, -128.0f, 127.0f));
  };
  const float least = g.low / to.scale, most = g.high / to.scale;
  zero_point = static_cast<int16_t>(zero);
  low = byte(least > -kMost ? std::min(least, kMost) : -kMost);
  high = byte(most < kMost ? std::max(most, -kMost) : kMost);
  high = std::max(high, low);
  flip = is_unsigned ? 0x80 : 0;
}

bool sum_rows(const Int8Weights& w, int64_t n, int64_t k, int32_t* sums, float* group_sums,
              Scratch& scratch) {
  if (!is_countable(n, k)) return false;
  const Scratch::Frame frame(scratch);
  // A row of ones, as they are once prepared.
  const Kind kind(w, k);
  const int8::Operand& operand = int8::kernels().rows[kind.form].operand;
  const int64_t ones_bytes = round_up(k + 1, kLine);
  uint8_t* const ones = scratch.array<uint8_t>(Size(ones_bytes) + operand.row_bytes(k));
  if (ones == nullptr) return false;
  uint8_t* const a = ones + ones_bytes;
  std::memset(ones, 1 - operand.offset, static_cast<size_t>(k));
  operand.prepare(reinterpret_cast<int8_t*>(ones), 0, k, a);
  parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    int32_t* const to = kind.groups > 0 ? reinterpret_cast<int32_t*>(group_sums) : sums;
    run_dots(w, kind, a, 0, 1, k, begin, end, to + begin, end - begin);
  });
  return true;
}

bool Int8Gemm::run(Scratch& scratch) const {
  if (m <= 0 || n <= 0) return true;
  if (!is_countable(m, n, k)) return false;
  scratch.add_products(Size(m) * n * k);
  if (m <= int8::kernels().most_dot_rows) return run_few(*this, scratch);
  const Rows rows(*this);
  return int8::Blocks<Rows>(*this, rows).run(scratch);
}

}  // namespace executorch::cpu
