#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/tile_config.h>

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/split.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/gemm/split_parts-inl.h>

#undef ET_SPLIT_TARGET
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 64 && defined(__linux__)
#define ET_SPLIT_TARGET HWY_TARGET_STR ",amx-tile,amx-bf16"
#endif

#ifdef ET_SPLIT_TARGET
HWY_PUSH_ATTRIBUTES(ET_SPLIT_TARGET)
namespace executorch::cpu::gemm::HWY_NAMESPACE {

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

template <class T>
void FillParts(SplitKernels& k) {
  k.least_rows = kParts<T> == 3 ? 49 : kMostAxpyRows + 1;
  k.least_rows_by_columns = kParts<T> == 3 ? 34 : kParts<T> == 2 ? 14 : 11;
  k.tile_step = 2;
  k.split_rows = SplitRows<T>;
  k.split_rest = SplitRest<T>;
  k.multiply = Multiply<T, T>;
  k.multiply_columns = Multiply<T, T, true>;
  if constexpr (kParts<T> != 1) k.multiply_by_floats = Multiply<T, float>;
  k.are_finite = AreFinite;
  k.store = StoreFinished;
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
