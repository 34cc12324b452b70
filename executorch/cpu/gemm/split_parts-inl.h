/// Splitting of operands into parts of bfloat16 (split_kernels.h), and what is done with sums: shared
/// by the instruction sets that multiply bfloat16. Include this file once for each target, after
/// hwy/highway.h; it has no include guard.

#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/prefetch.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#undef ET_SPLITS_BFLOAT16
#define ET_SPLITS_BFLOAT16 (HWY_MAX_BYTES == 64 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

#if ET_SPLITS_BFLOAT16
HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kBlockWidth>;
using Ints = hn::RebindToSigned<Floats>;
/// The pairs of a line that a vector holds.
constexpr auto kPairsAtOnce = static_cast<int64_t>(hn::MaxLanes(Floats()));
using VF = hn::Vec<Floats>;
using VI = hn::Vec<Ints>;

/// The nearest bfloat16, in the upper half of each element; of two that are as near the larger one.
HWY_INLINE VI ToBfloat16(VF x) {
  const Ints d;
  return hn::And(hn::Add(hn::BitCast(d, x), hn::Set(d, 0x8000)),
                 hn::Set(d, static_cast<int32_t>(0xFFFF0000)));
}
template <class V>
HWY_INLINE VI UpperHalves(V x) {
  return hn::BitCast(Ints(), hn::ShiftRight<16>(hn::BitCast(hn::RebindToUnsigned<Ints>(), x)));
}
HWY_INLINE void StorePart(VI even, VI odd, uint8_t* to) {
  hn::Store(hn::Or(UpperHalves(even), odd), Ints(), reinterpret_cast<int32_t*>(to));
}
/// Stores a vector of a line of each part.
template <class T>
HWY_INLINE void SplitPairs(VF even, VF odd, uint8_t* to) {
  const Floats d;
#pragma GCC unroll 3
  for (int64_t part = 0; part < kParts<T>; ++part, to += kPartBytes) {
    const VI x = ToBfloat16(even), y = ToBfloat16(odd);
    StorePart(x, y, to);
    even = hn::Sub(even, hn::BitCast(d, x));
    odd = hn::Sub(odd, hn::BitCast(d, y));
  }
}

// ---- rows of A ----

/// Stores a line of each part of a row's next n elements; where there are fewer than kBlockDepth,
/// zeros follow.
template <class T, class S>
HWY_INLINE void SplitRowLine(const S* from, int64_t n, uint8_t* to) {
  const Floats d;
  const auto load = [&](int64_t i) HWY_ATTR {
    if (n - i >= kPairsAtOnce) return LoadFloats(d, from + i);
    return n <= i ? hn::Zero(d) : LoadFloatsN(d, from + i, static_cast<size_t>(n - i));
  };
  for (int64_t i = 0; i < kBlockWidth; i += kPairsAtOnce) {
    const VF first = load(i), second = load(i + kBlockWidth);
    if constexpr (kParts<T> == 1) {
      const hn::Rebind<uint16_t, Ints> half;
      auto* const line = reinterpret_cast<uint16_t*>(to) + i;
      hn::Store(hn::DemoteTo(half, UpperHalves(first)), half, line);
      hn::Store(hn::DemoteTo(half, UpperHalves(second)), half, line + kBlockWidth);
    } else {
      SplitPairs<T>(first, second, to + i * kPairBytes);
    }
  }
}

template <class T, class S>
HWY_INLINE void SplitRowsOf(const S* a, int64_t lda, int64_t rows, int64_t k, int64_t height,
                            uint8_t* to) {
  for (int64_t i = 0; i < height; ++i, a += lda, to += kLine) {
    uint8_t* line = to;
    for (int64_t p = 0; p < k; p += kBlockDepth, line += kParts<T> * kPartBytes) {
      SplitRowLine<T>(a + p, i < rows ? k - p : 0, line);
    }
  }
}
template <class T>
void SplitRows(const void* a, bool is_stored, int64_t lda, int64_t rows, int64_t k, int64_t height,
               uint8_t* to) {
  is_stored ? SplitRowsOf<T>(static_cast<const T*>(a), lda, rows, k, height, to)
            : SplitRowsOf<T>(static_cast<const float*>(a), lda, rows, k, height, to);
}

// ---- panels of B ----

/// Distances in rows of B: from one line's first row to that of the next line, and from the first
/// to the second row of a line.
template <class T>
constexpr int64_t kLineRows = kParts<T> == 1 ? 2 : 1;
template <class T>
constexpr int64_t kPairRows = kParts<T> == 1 ? 1 : kBlockWidth;

/// Splits `n` lines of kVectors vectors each, of a block all of whose rows exist in B.
template <class T, int kVectors, class S>
HWY_INLINE void SplitWhole(const S* even, int64_t ld, int64_t n, uint8_t* to,
                           int64_t vector_bytes) {
  const Floats d;
  const S* odd = even + kPairRows<T> * ld;
  for (; n > 0; --n, even += kLineRows<T> * ld, odd += kLineRows<T> * ld, to += kLine) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      const int64_t j = v * kBlockWidth;
      __builtin_prefetch(even + kBlockDepth * ld + j, 0, 3);
      __builtin_prefetch(odd + kBlockDepth * ld + j, 0, 3);
      for (int64_t i = 0; i < kBlockWidth; i += kPairsAtOnce) {
        SplitPairs<T>(LoadFloats(d, even + j + i), LoadFloats(d, odd + j + i),
                      to + v * vector_bytes + i * kPairBytes);
      }
    }
  }
}

template <class T, class S>
HWY_INLINE void SplitLinesOf(PanelSplit& s, int64_t n) {
  const Floats d;
  constexpr int64_t kBlockBytes = kParts<T> * kPartBytes;
  const int64_t blocks = s.blocks(), vector_bytes = blocks * kBlockBytes;
  const int64_t end = std::min(s.done + n, blocks * kBlockWidth);
  while (s.done < end) {
    const int64_t block = s.done / kBlockWidth, r = s.done % kBlockWidth;
    const int64_t p = block * kBlockDepth + r * kLineRows<T>;
    const S* const even = static_cast<const S*>(s.from) + p * s.ld;
    uint8_t* to = s.to + block * kBlockBytes + r * kLine;
    if (s.vectors == kMostPanelVectors && (block + 1) * kBlockDepth <= s.k) {
      const int64_t lines = std::min(end - s.done, kBlockWidth - r);
      SplitWhole<T, kMostPanelVectors>(even, s.ld, lines, to, vector_bytes);
      s.done += lines;
      continue;
    }
    const S* const odd = even + kPairRows<T> * s.ld;
    for (int64_t v = 0; v < s.vectors; ++v, to += vector_bytes) {
      for (int64_t i = 0; i < kBlockWidth; i += kPairsAtOnce) {
        const int64_t j = v * kBlockWidth + i;
        const VF x = p < s.k ? LoadFloats(d, even + j) : hn::Zero(d);
        const VF y = p + kPairRows<T> < s.k ? LoadFloats(d, odd + j) : hn::Zero(d);
        SplitPairs<T>(x, y, to + i * kPairBytes);
      }
    }
    ++s.done;
  }
}

/// The least bytes between the elements that are split and those that are prefetched.
constexpr int64_t kBytesAhead = 4096;

/// Splits the next `n` lines of a panel whose columns, of stored elements, are contiguous. They are
/// read one after the other.
template <class T>
HWY_INLINE void SplitColumnLines(PanelSplit& s, int64_t n) {
  constexpr int64_t kBlockBytes = kParts<T> * kPartBytes;
  const int64_t blocks = s.blocks(), end = std::min(s.done + n, s.lines());
  constexpr auto kBlockRowBytes = static_cast<int64_t>(kBlockDepth * sizeof(T));
  const int64_t ahead = ceil_div(kBytesAhead, blocks * kBlockRowBytes) * s.ld;
  while (s.done < end) {
    const int64_t column = s.done / blocks, vector = column / kBlockWidth;
    int64_t block = s.done % blocks;
    const int64_t stop = std::min(blocks, block + end - s.done);
    const T* const from = static_cast<const T*>(s.from) + column * s.ld;
    uint8_t* to = s.to + (vector * blocks + block) * kBlockBytes + column % kBlockWidth * kLine;
    s.done += stop - block;
    for (; block < stop; ++block, to += kBlockBytes) {
      const int64_t p = block * kBlockDepth, left = column < s.columns ? s.k - p : 0;
      for (int64_t i = 0; i < kBlockRowBytes; i += kLine) {
        __builtin_prefetch(reinterpret_cast<const char*>(from + p + ahead) + i, 0, 3);
      }
      if (kParts<T> == 1 && left >= kBlockDepth) {
        std::memcpy(to, from + p, kLine);
      } else {
        SplitRowLine<T>(from + p, left, to);
      }
    }
  }
}

/// Splits the next `n` lines of a panel, or what is left of it. It is not inlined, because it needs
/// all registers.
template <class T>
HWY_NOINLINE void SplitLines(PanelSplit& s, int64_t n) {
  if (s.columns > 0) return SplitColumnLines<T>(s, n);
  if constexpr (!std::is_same_v<T, float>) {
    if (s.is_stored) return SplitLinesOf<T, T>(s, n);
  }
  SplitLinesOf<T, float>(s, n);
}
template <class T>
void SplitRest(PanelSplit& s) {
  SplitLines<T>(s, s.lines());
}

// ---- sums ----

/// to[c * ld + r] = square[r * kBlockWidth + c]
inline void TransposeSquare(const float* square, float* to, int64_t ld) {
  const Floats d;
  constexpr int64_t kStep = kTransposedColumns<Floats>;
  for (int64_t r = 0; r < kBlockWidth; r += kPairsAtOnce) {
    for (int64_t c = 0; c < kBlockWidth; c += kStep) {
      TransposeColumns(d, square + r * kBlockWidth + c, kBlockWidth, to + c * ld + r, ld);
    }
  }
}

inline bool AreFinite(const float* sums, int64_t rows, int64_t width) {
  const Ints d;
  VI most = hn::Zero(d);
  for (int64_t i = 0; i < rows * width; i += kPairsAtOnce) {
    const VI bits = hn::BitCast(d, hn::LoadU(Floats(), sums + i));
    most = hn::Max(most, hn::And(bits, hn::Set(d, 0x7FFFFFFF)));
  }
  return hn::AllTrue(d, hn::Lt(most, hn::Set(d, 0x7F800000)));
}

inline void StoreFinished(const Tile<float>& t, const float* sums, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t i = 0; i < rows; ++i, sums += width) {
    for (int64_t j = 0; j < width; j += kPairsAtOnce) {
      VF x = hn::LoadU(d, sums + j);
      if (t.partial != nullptr) x = hn::Add(x, hn::LoadU(d, t.partial + i * t.ld_partial + j));
      if (t.bias != nullptr) x = hn::Add(x, hn::LoadU(d, t.bias + j));
      if (t.residual != nullptr) x = hn::Add(x, hn::LoadU(d, t.residual + i * t.ld_residual + j));
      if (t.bounded) x = Clamp(d, x, t.low, t.high);
      hn::StoreU(x, d, t.to + i * t.ld_to + j);
    }
  }
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
