// Products of bfloat16 by the instruction that multiplies pairs of them and adds both products to a
// float (x86's AVX-512 BF16).
#include <executorch/cpu/gemm/kernels.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/split_dots.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/gemm/split_parts-inl.h>

#undef ET_BFLOAT16_TARGET
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 64
#define ET_BFLOAT16_TARGET HWY_TARGET_STR ",avx512bf16"
#endif

#ifdef ET_BFLOAT16_TARGET
HWY_PUSH_ATTRIBUTES(ET_BFLOAT16_TARGET)
namespace executorch::cpu::gemm::HWY_NAMESPACE {

/// Adds to each float the products of a pair of bfloat16.
HWY_INLINE VF MultiplyAddPairs(VF sum, VI a, VI b) {
  return VF{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.raw),
                             reinterpret_cast<__m512bh>(b.raw))};
}

/// The most lines that are multiplied at once: with 3 vectors they have 24 registers of sums.
constexpr int kMostLines = 8;

/// Where MultiplyLines() stores the kBlockWidth sums of line i and vector v: at
/// to + i * line_step + v * vector_step.
struct LineSums {
  float* to;
  int64_t line_step, vector_step;
};

/// Multiplies kLines lines of one operand, read pair by pair, by kVectors vectors of the other,
/// which are `vector_bytes` apart. Both have so many blocks along k.
template <int kLines, int kVectors>
void MultiplyLines(const uint8_t* lines, const uint8_t* vectors, int64_t vector_bytes,
                   int64_t blocks, const LineSums& result) {
  const Floats d;
  const Ints pairs;
  VF sums[kLines][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kLines; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(d);
  }
  for (int64_t block = 0; block < blocks; ++block, lines += kPartBytes, vectors += kPartBytes) {
    const auto* line = reinterpret_cast<const int32_t*>(lines);
    const auto* row = reinterpret_cast<const int32_t*>(vectors);
    for (int64_t r = 0; r < kBlockWidth; ++r, ++line, row += kBlockWidth) {
      VI y[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) y[v] = hn::Load(pairs, row + v * (vector_bytes / 4));
#pragma GCC unroll 8
      for (int i = 0; i < kLines; ++i) {
        const VI x = hn::Set(pairs, line[i * kBlockWidth]);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) sums[i][v] = MultiplyAddPairs(sums[i][v], x, y[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLines; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[i][v], d, result.to + i * result.line_step + v * result.vector_step);
    }
  }
}

using MultiplyLinesFunction = decltype(&MultiplyLines<1, 1>);
template <int kVectors, int... kLinesLess1>
HWY_INLINE MultiplyLinesFunction OfLines(int64_t lines,
                                         std::integer_sequence<int, kLinesLess1...>) {
  static constexpr MultiplyLinesFunction kTable[] = {MultiplyLines<kLinesLess1 + 1, kVectors>...};
  return kTable[lines - 1];
}
/// The function that multiplies so many lines by so many vectors.
HWY_INLINE MultiplyLinesFunction Of(int64_t lines, int64_t vectors) {
  const std::make_integer_sequence<int, kMostLines> all;
  return vectors == 1   ? OfLines<1>(lines, all)
         : vectors == 2 ? OfLines<2>(lines, all)
                        : OfLines<3>(lines, all);
}

/// Rows of A are the lines. They are multiplied in groups of nearly equal height.
void MultiplyRows(const SplitTile& t) {
  const int64_t groups = ceil_div(t.height, kMostLines), rows = ceil_div(t.height, groups);
  const int64_t block_bytes = t.blocks * kPartBytes, width = t.vectors * kBlockWidth;
  PanelSplit& next = *t.next;
  const int64_t split_lines = ceil_div(next.rate * t.steps(1), t.tiles * groups);
  for (int64_t tile = 0; tile < t.tiles; ++tile) {
    for (int64_t i = 0; i < t.height; i += rows) {
      const int64_t n = std::min(rows, t.height - i);
      Of(n, t.vectors)(t.a + tile * block_bytes + i * kLine, t.b, block_bytes, t.blocks,
                       {t.sums + (tile * t.height + i) * width, width, kBlockWidth});
      SplitLines<BF16>(next, split_lines);
    }
  }
}

/// Columns of B are the lines, and so many tiles of A the vectors. The sums are transposed.
template <int kTiles>
void MultiplyTilesByColumns(const SplitTile& t, int64_t tile, int64_t vector) {
  constexpr int64_t kSquare = kBlockWidth * kBlockWidth;
  const int64_t block_bytes = t.blocks * kPartBytes, width = t.vectors * kBlockWidth;
  HWY_ALIGN float squares[kTiles * kSquare];
  for (int64_t j = 0; j < kBlockWidth; j += kMostLines) {
    MultiplyLines<kMostLines, kTiles>(t.b + vector * block_bytes + j * kLine,
                                      t.a + tile * block_bytes, block_bytes, t.blocks,
                                      {squares + j * kBlockWidth, kBlockWidth, kSquare});
  }
  for (int64_t i = 0; i < kTiles; ++i) {
    TransposeSquare(squares + i * kSquare,
                    t.sums + (tile + i) * t.height * width + vector * kBlockWidth, width);
  }
}

void MultiplyColumns(const SplitTile& t) {
  PanelSplit& next = *t.next;
  const int64_t split_lines = ceil_div(next.rate * t.steps(1), t.vectors);
  for (int64_t vector = 0; vector < t.vectors; ++vector) {
    if (t.tiles == 3) {
      MultiplyTilesByColumns<3>(t, 0, vector);
    } else {
      for (int64_t tile = 0; tile + 2 <= t.tiles; tile += 2) {
        MultiplyTilesByColumns<2>(t, tile, vector);
      }
      if (t.tiles == 1) MultiplyTilesByColumns<1>(t, 0, vector);
    }
    SplitLines<BF16>(next, split_lines);
  }
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

namespace executorch::cpu::gemm {

bool has_bfloat16_dots();

template <>
bool fill<Source::SplitDots, HWY_TARGET>(Kernels& kernels) {
  if (!has_bfloat16_dots()) return false;
  SplitKernels& k = kernels.split[kParts<BF16>];
  k.least_rows = kMostAxpyRows + 2;
  k.least_rows_by_columns = 24;
  k.split_rows = HWY_NAMESPACE::SplitRows<BF16>;
  k.split_rest = HWY_NAMESPACE::SplitRest<BF16>;
  k.multiply = HWY_NAMESPACE::MultiplyRows;
  k.multiply_columns = HWY_NAMESPACE::MultiplyColumns;
  k.are_finite = HWY_NAMESPACE::AreFinite;
  k.store = HWY_NAMESPACE::StoreFinished;
  return true;
}

}  // namespace executorch::cpu::gemm
#endif  // ET_BFLOAT16_TARGET

#if HWY_ONCE
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
#include <cpuid.h>
#endif

namespace executorch::cpu::gemm {

/// Whether vectors of this machine multiply bfloat16.
bool has_bfloat16_dots() {
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
#else
  return false;
#endif
}

void fill_split_dots(int64_t target, Kernels& kernels) {
  fill_for<Source::SplitDots>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
