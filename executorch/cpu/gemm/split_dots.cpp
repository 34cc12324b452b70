// Products of bfloat16 by the instruction that multiplies pairs of them and adds both products to a
// float (x86's AVX-512 BF16, ARM's BF16).
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
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC && ET_SPLITS_BFLOAT16
#define ET_BFLOAT16_TARGET HWY_TARGET_STR ",avx512bf16"
#elif HWY_ARCH_ARM_A64 && HWY_COMPILER_GCC && ET_SPLITS_BFLOAT16
#define ET_BFLOAT16_TARGET "arch=armv8.2-a+crypto+bf16"
#endif

#ifdef ET_BFLOAT16_TARGET
HWY_PUSH_ATTRIBUTES(ET_BFLOAT16_TARGET)
namespace executorch::cpu::gemm::HWY_NAMESPACE {

/// Adds to each float the products of a pair of bfloat16.
HWY_INLINE VF MultiplyAddPairs(VF sum, VI x, VI y) {
#if HWY_ARCH_ARM_A64
  return VF(vbfdotq_f32(sum.raw, vreinterpretq_bf16_s32(x.raw), vreinterpretq_bf16_s32(y.raw)));
#else
  return VF{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(x.raw),
                             reinterpret_cast<__m512bh>(y.raw))};
#endif
}

/// The registers that a vector of kBlockWidth sums takes. 24 registers hold the sums of the most
/// lines and vectors that are multiplied at once.
constexpr int kRegisters = static_cast<int>(kBlockWidth / kPairsAtOnce);
constexpr int kMostVectors = kRegisters == 1 ? 3 : 1;
constexpr int kMostLines = 24 / (kMostVectors * kRegisters);

/// Lines of one operand, which are read pair by pair, and vectors of the other, `vector_bytes`
/// apart. Both have so many blocks along k. The kBlockWidth sums of line i and vector v are stored
/// at to + i * line_step + v * vector_step.
struct Lines {
  const uint8_t *lines, *vectors;
  int64_t vector_bytes, blocks;
  float* to;
  int64_t line_step, vector_step;
};

template <int kLines, int kVectors>
void MultiplyLines(const Lines& m) {
  const Floats d;
  const Ints pairs;
  constexpr int kColumns = kVectors * kRegisters;
  VF sums[kLines][kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kLines; ++i) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) sums[i][c] = hn::Zero(d);
  }
  const auto* line = reinterpret_cast<const int32_t*>(m.lines);
  const auto* row = reinterpret_cast<const int32_t*>(m.vectors);
  constexpr int64_t kBlockPairs = kPartBytes / kPairBytes;
  for (int64_t block = 0; block < m.blocks; ++block, line += kBlockPairs - kBlockWidth) {
    for (int64_t r = 0; r < kBlockWidth; ++r, ++line, row += kBlockWidth) {
      VI y[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const int64_t vector = c / kRegisters * (m.vector_bytes / kPairBytes);
        y[c] = hn::Load(pairs, row + vector + c % kRegisters * kPairsAtOnce);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kLines; ++i) {
        const VI x = hn::Set(pairs, line[i * kBlockWidth]);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) sums[i][c] = MultiplyAddPairs(sums[i][c], x, y[c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLines; ++i) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      hn::StoreU(
          sums[i][c], d,
          m.to + i * m.line_step + c / kRegisters * m.vector_step + c % kRegisters * kPairsAtOnce);
    }
  }
}

using MultiplyFunction = void (*)(const Lines&);
/// MultiplyLines() of so many lines and vectors.
template <int... kCombinations>
HWY_INLINE MultiplyFunction FindMultiply(int64_t lines, int64_t vectors,
                                         std::integer_sequence<int, kCombinations...>) {
  static constexpr MultiplyFunction kTable[] = {
      MultiplyLines<kCombinations % kMostLines + 1, kCombinations / kMostLines + 1>...};
  return kTable[(vectors - 1) * kMostLines + lines - 1];
}

/// Multiplies all lines by all vectors, in groups of nearly equal sizes.
void MultiplyAll(const Lines& all, int64_t lines, int64_t vectors) {
  const int64_t vector_step = ceil_div(vectors, ceil_div(vectors, kMostVectors));
  const int64_t line_step = ceil_div(lines, ceil_div(lines, kMostLines));
  for (int64_t v = 0; v < vectors; v += vector_step) {
    for (int64_t i = 0; i < lines; i += line_step) {
      Lines m = all;
      m.lines += i * kLine;
      m.vectors += v * m.vector_bytes;
      m.to += i * m.line_step + v * m.vector_step;
      FindMultiply(std::min(line_step, lines - i), std::min(vector_step, vectors - v),
                   std::make_integer_sequence<int, kMostLines * kMostVectors>())(m);
    }
  }
}

/// Rows of A are the lines, columns of B the vectors.
void MultiplyRows(const SplitTile& t) {
  const int64_t block_bytes = t.blocks * kPartBytes, width = t.vectors * kBlockWidth;
  PanelSplit& next = *t.next;
  const int64_t split_lines = ceil_div(next.rate * t.steps(1), t.tiles);
  for (int64_t i = 0; i < t.tiles; ++i) {
    MultiplyAll({t.a + i * block_bytes, t.b, block_bytes, t.blocks, t.sums + i * t.height * width,
                 width, kBlockWidth},
                t.height, t.vectors);
    SplitLines<BF16>(next, split_lines);
  }
}

/// Columns of B are the lines, rows of A the vectors. The sums are transposed.
void MultiplyColumns(const SplitTile& t) {
  constexpr int64_t kSquare = kBlockWidth * kBlockWidth;
  const int64_t block_bytes = t.blocks * kPartBytes, width = t.vectors * kBlockWidth;
  PanelSplit& next = *t.next;
  const int64_t split_lines = ceil_div(next.rate * t.steps(1), t.vectors);
  HWY_ALIGN float squares[kMostSplitTiles * kSquare];
  for (int64_t v = 0; v < t.vectors; ++v) {
    MultiplyAll({t.b + v * block_bytes, t.a, block_bytes, t.blocks, squares, kBlockWidth, kSquare},
                kBlockWidth, t.tiles);
    for (int64_t i = 0; i < t.tiles; ++i) {
      TransposeSquare(squares + i * kSquare, t.sums + i * t.height * width + v * kBlockWidth,
                      width);
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
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace executorch::cpu::gemm {

/// Whether vectors of this machine multiply bfloat16.
bool has_bfloat16_dots() {
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
  constexpr unsigned long kBfloat16 = 1 << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kBfloat16) != 0;
#else
  return false;
#endif
}

void fill_split_dots(int64_t target, Kernels& kernels) {
  fill_for<Source::SplitDots>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
