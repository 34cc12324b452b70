#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/tile_config.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/split.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

#undef ET_SPLIT_TARGET
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 64 && defined(__linux__)
#define ET_SPLIT_TARGET HWY_TARGET_STR ",amx-tile,amx-bf16"
#endif

#ifdef ET_SPLIT_TARGET
HWY_PUSH_ATTRIBUTES(ET_SPLIT_TARGET)
namespace executorch::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

using Floats = hn::FixedTag<float, 16>;
using Ints = hn::FixedTag<int32_t, 16>;
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
/// Stores a line of each part.
template <class T>
HWY_INLINE void SplitLine(VF even, VF odd, uint8_t* to) {
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

template <class T>
HWY_INLINE void SplitRowLine(VF first, VF second, uint8_t* to) {
  if constexpr (kParts<T> != 1) return SplitLine<T>(first, second, to);
  const hn::Rebind<uint16_t, Ints> half;
  auto* const line = reinterpret_cast<uint16_t*>(to);
  hn::Store(hn::DemoteTo(half, UpperHalves(first)), half, line);
  hn::Store(hn::DemoteTo(half, UpperHalves(second)), half, line + kBlockWidth);
}

/// Loads n elements; the lanes behind them are zero.
template <class S>
HWY_INLINE VF LoadFirst(const S* from, int64_t n) {
  const Floats d;
  if (n >= kBlockWidth) return LoadFloats(d, from);
  return n <= 0 ? hn::Zero(d) : LoadFloatsN(d, from, static_cast<size_t>(n));
}

template <class T, class S>
HWY_INLINE void SplitRowsOf(const S* a, int64_t lda, int64_t rows, int64_t k, int64_t height,
                            uint8_t* to) {
  const Floats d;
  for (int64_t i = 0; i < height; ++i, a += lda, to += kLine) {
    uint8_t* line = to;
    for (int64_t p = 0; p < k; p += kBlockDepth, line += kParts<T> * kPartBytes) {
      const int64_t n = i < rows ? k - p : 0;
      if (n >= kBlockDepth) {
        SplitRowLine<T>(LoadFloats(d, a + p), LoadFloats(d, a + p + kBlockWidth), line);
      } else {
        SplitRowLine<T>(LoadFirst(a + p, n), LoadFirst(a + p + kBlockWidth, n - kBlockWidth), line);
      }
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
      SplitLine<T>(LoadFloats(d, even + j), LoadFloats(d, odd + j), to + v * vector_bytes);
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
      const int64_t j = v * kBlockWidth;
      const VF x = p < s.k ? LoadFloats(d, even + j) : hn::Zero(d);
      const VF y = p + kPairRows<T> < s.k ? LoadFloats(d, odd + j) : hn::Zero(d);
      SplitLine<T>(x, y, to);
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
        const hn::FixedTag<uint8_t, kLine> bytes;
        hn::Store(hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from + p)), bytes, to);
      } else {
        SplitRowLine<T>(LoadFirst(from + p, left),
                        LoadFirst(from + p + kBlockWidth, left - kBlockWidth), to);
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

// ---- registers: sums in 0 to 3, rows of A in 4 and 5, columns of B in 6 and 7 ----

// If columns of B are contiguous (kByColumns), the registers of B are the left operands, and sums
// are transposed: register rows are columns of B.

template <bool kByColumns>
struct Shapes : TileConfig {
  explicit Shapes(int64_t height) {
    for (int i = 0; i < 6; ++i) {
      rows[i] = static_cast<uint8_t>(kByColumns ? kBlockWidth : height);
      if (kByColumns) bytes[i] = static_cast<uint16_t>(height * kFloatBytes);
    }
    rows[6] = rows[7] = kBlockWidth;
  }
  static constexpr int64_t kFloatBytes = sizeof(float);
};

/// The blocks, at one place along k, of the tiles of A and of the vectors of columns of B. Part i
/// of A is multiplied by part j of B if i + j <= 2.
struct Operands {
  const uint8_t *a, *b;
  int64_t tile_bytes, vector_bytes;
};
#define ET_LOAD_A(reg, tile, part) \
  _tile_loadd(reg, x.a + (tile)*x.tile_bytes + (part)*kPartBytes, kLine)
#define ET_LOAD_B(reg, vector, part) \
  _tile_loadd(reg, x.b + (vector)*x.vector_bytes + (part)*kPartBytes, kLine)

#define ET_MULTIPLY_ADD(sums, a, b) \
  if constexpr (kByColumns) {       \
    _tile_dpbf16ps(sums, b, a);     \
  } else {                          \
    _tile_dpbf16ps(sums, a, b);     \
  }

/// Sums of tile i and vector j are in register 2 * i + j.
HWY_INLINE void LoadTiles(const Operands& x, int64_t part) {
  ET_LOAD_A(4, 0, part);
  ET_LOAD_A(5, 1, part);
}
HWY_INLINE void LoadVectors(const Operands& x, int64_t part) {
  ET_LOAD_B(6, 0, part);
  ET_LOAD_B(7, 1, part);
}
template <bool kByColumns>
HWY_INLINE void MultiplyPairs() {
  ET_MULTIPLY_ADD(0, 4, 6)
  ET_MULTIPLY_ADD(1, 4, 7)
  ET_MULTIPLY_ADD(2, 5, 6)
  ET_MULTIPLY_ADD(3, 5, 7)
}
template <class A, class B, bool kByColumns>
HWY_INLINE void AddPairs(const Operands& x, PanelSplit& next) {
  LoadVectors(x, 0);
  for (int part = kParts<A> - 1; part > 0; --part) {
    LoadTiles(x, part);
    MultiplyPairs<kByColumns>();
  }
  LoadTiles(x, 0);
  SplitLines<B>(next, next.rate);
  MultiplyPairs<kByColumns>();
  if constexpr (kParts<B> == 3) {
    LoadVectors(x, 2);
    SplitLines<B>(next, next.rate);
    MultiplyPairs<kByColumns>();
  }
  if constexpr (kParts<B> == 1) return;
  LoadVectors(x, 1);
  MultiplyPairs<kByColumns>();
  LoadTiles(x, 1);
  MultiplyPairs<kByColumns>();
}

/// Adds to the sums of each tile, which are in the register of the tile's number, the products of a
/// part of the tile with register 6 and, if `kBoth`, with register 7.
#define ET_MULTIPLY_TILE(tile, reg)                    \
  if constexpr (kTiles > tile) {                       \
    ET_LOAD_A(reg, tile, part);                        \
    ET_MULTIPLY_ADD(tile, reg, 6)                      \
    if constexpr (kBoth) ET_MULTIPLY_ADD(tile, reg, 7) \
  }
template <int kTiles, bool kBoth, bool kByColumns>
HWY_INLINE void MultiplyColumn(const Operands& x, int64_t part) {
  ET_MULTIPLY_TILE(0, 4)
  ET_MULTIPLY_TILE(1, 5)
  ET_MULTIPLY_TILE(2, 4)
  ET_MULTIPLY_TILE(3, 5)
}
template <class A, class B, int kTiles, bool kByColumns>
HWY_INLINE void AddColumn(const Operands& x, PanelSplit& next) {
  constexpr bool kBoth = kParts<B> != 1;
  if constexpr (kParts<B> == 3) {
    ET_LOAD_B(6, 0, 2);
    MultiplyColumn<kTiles, false, kByColumns>(x, 0);
  }
  ET_LOAD_B(6, 0, 0);
  if constexpr (kBoth) {
    ET_LOAD_B(7, 0, 1);
    MultiplyColumn<kTiles, true, kByColumns>(x, 1);
  }
  SplitLines<B>(next, next.rate);
  MultiplyColumn<kTiles, kBoth, kByColumns>(x, 0);
  if constexpr (kParts<B> == 3) SplitLines<B>(next, next.rate);
  if constexpr (kParts<A> == 3) MultiplyColumn<kTiles, false, kByColumns>(x, 2);
}

/// to[c * ld + r] = square[r * kBlockWidth + c]
inline void TransposeSquare(const float* square, float* to, int64_t ld) {
  const Floats d;
  constexpr int64_t kStep = kTransposedColumns<Floats>;
  for (int64_t c = 0; c < kBlockWidth; c += kStep) {
    TransposeColumns(d, square + c, kBlockWidth, to + c * ld, ld);
  }
}
#define ET_STORE_SUMS(reg, to)                                            \
  do {                                                                    \
    if constexpr (kByColumns) {                                           \
      _tile_stored(reg, square, kLine);                                   \
      TransposeSquare(square, to, row_floats);                            \
    } else {                                                              \
      _tile_stored(reg, to, row_floats* Shapes<kByColumns>::kFloatBytes); \
    }                                                                     \
  } while (false)

/// Multiplies 2 tiles by 2 vectors of columns, or 2 or 4 tiles by one vector. With 4 registers of
/// sums no product has to wait for another.
template <class A, class B, int kTiles, int kVectors, bool kByColumns>
void MultiplyBlocks(const SplitTile& t, int64_t tile, int64_t vector) {
  constexpr int64_t kBytesOfA = kParts<A> * kPartBytes, kBytesOfB = kParts<B> * kPartBytes;
  const int64_t tile_bytes = t.blocks * kBytesOfA, vector_bytes = t.blocks * kBytesOfB;
  Operands x{t.a + tile * tile_bytes, t.b + vector * vector_bytes, tile_bytes, vector_bytes};
  PanelSplit& next = *t.next;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < t.blocks; ++i, x.a += kBytesOfA, x.b += kBytesOfB) {
    if constexpr (kVectors == 2) {
      AddPairs<A, B, kByColumns>(x, next);
    } else {
      AddColumn<A, B, kTiles, kByColumns>(x, next);
    }
  }
  const int64_t row_floats = t.vectors * kBlockWidth, tile_floats = t.height * row_floats;
  float* const to = t.sums + tile * tile_floats + vector * kBlockWidth;
  HWY_ALIGN float square[kBlockWidth * kBlockWidth] = {};
  ET_STORE_SUMS(0, to);
  if constexpr (kVectors == 2) {
    ET_STORE_SUMS(1, to + kBlockWidth);
    ET_STORE_SUMS(2, to + tile_floats);
    ET_STORE_SUMS(3, to + tile_floats + kBlockWidth);
  } else {
    ET_STORE_SUMS(1, to + tile_floats);
    if constexpr (kTiles == 4) {
      ET_STORE_SUMS(2, to + 2 * tile_floats);
      ET_STORE_SUMS(3, to + 3 * tile_floats);
    }
  }
}
#undef ET_LOAD_A
#undef ET_LOAD_B
#undef ET_MULTIPLY_TILE
#undef ET_MULTIPLY_ADD
#undef ET_STORE_SUMS

/// Two vectors of columns take two tiles at once; the last vector of an odd number takes four.
template <class A, class B, bool kByColumns = false>
void Multiply(const SplitTile& t) {
  const Shapes<kByColumns> shapes(t.height);
  shapes.keep();
  _tile_loadconfig(&shapes);
  int64_t v = 0;
  for (; v + 2 <= t.vectors; v += 2) {
    for (int64_t i = 0; i < t.tiles; i += 2) MultiplyBlocks<A, B, 2, 2, kByColumns>(t, i, v);
  }
  if (v < t.vectors) {
    int64_t i = 0;
    for (; i + 4 <= t.tiles; i += 4) MultiplyBlocks<A, B, 4, 1, kByColumns>(t, i, v);
    if (i < t.tiles) MultiplyBlocks<A, B, 2, 1, kByColumns>(t, i, v);
  }
  _tile_release();
}

bool AreFinite(const float* sums, int64_t rows, int64_t width) {
  const Ints d;
  VI most = hn::Zero(d);
  for (int64_t i = 0; i < rows * width; i += kBlockWidth) {
    const VI bits = hn::BitCast(d, hn::LoadU(Floats(), sums + i));
    most = hn::Max(most, hn::And(bits, hn::Set(d, 0x7FFFFFFF)));
  }
  return hn::AllTrue(d, hn::Lt(most, hn::Set(d, 0x7F800000)));
}

void StoreFinished(const Tile<float>& t, const float* sums, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t i = 0; i < rows; ++i, sums += width) {
    for (int64_t j = 0; j < width; j += kBlockWidth) {
      VF x = hn::LoadU(d, sums + j);
      if (t.partial != nullptr) x = hn::Add(x, hn::LoadU(d, t.partial + i * t.ld_partial + j));
      if (t.bias != nullptr) x = hn::Add(x, hn::LoadU(d, t.bias + j));
      if (t.residual != nullptr) x = hn::Add(x, hn::LoadU(d, t.residual + i * t.ld_residual + j));
      if (t.bounded) x = Clamp(d, x, t.low, t.high);
      hn::StoreU(x, d, t.to + i * t.ld_to + j);
    }
  }
}

template <class T>
void FillParts(SplitKernels& k) {
  k = {SplitRows<T>, SplitRest<T>, Multiply<T, T>, Multiply<T, T, true>,
       nullptr,      AreFinite,    StoreFinished};
  if constexpr (kParts<T> != 1) k.multiply_by_floats = Multiply<T, float>;
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

namespace executorch::cpu::gemm {

bool has_bfloat16_matrices();

template <>
bool fill<Source::Split, HWY_TARGET>(Kernels& kernels) {
  if (!has_bfloat16_matrices()) return false;
#define ET_ROW(T, name) HWY_NAMESPACE::FillParts<T>(kernels.split[kParts<T>]);
  ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW
  return true;
}

}  // namespace executorch::cpu::gemm
#endif  // ET_SPLIT_TARGET

#if HWY_ONCE
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
#include <cpuid.h>
#endif

namespace executorch::cpu::gemm {

/// Whether the matrix registers of this machine, if it has any, multiply bfloat16. fill_int8() asks
/// the system for permission to use these registers.
bool has_bfloat16_matrices() {
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1) != 0;
#else
  return false;
#endif
}

void fill_split(int64_t target, Kernels& kernels) {
  fill_for<Source::Split>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
