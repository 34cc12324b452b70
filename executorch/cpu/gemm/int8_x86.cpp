// AVX-512 with VNNI, AVX2 with VNNI, AVX2. The last has no multiply-add of quads: bytes are
// multiplied as pairs of 16-bit numbers; products of unsigned bytes with nibbles are so small that
// eight pairs, a unit, add up in 16 bits (255 * 8 * 2 * 8 = 32640).
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <hwy/base.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

// GCC 12 takes the undefined operands inside its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define ET_INLINE inline __attribute__((always_inline))
#define ET_TARGET_INLINE(set) __attribute__((target(set), always_inline))

namespace executorch::cpu::int8 {

// ---- AVX-512 ----
#define ET_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma"
#define ET_TARGET_LAMBDA ET_TARGET_INLINE(ET_TARGET)
HWY_PUSH_ATTRIBUTES(ET_TARGET)
namespace vnni512 {

constexpr int kRows = 12, kVectors = 2, kLanes = 16, kQuadOffset = 128;
using Ints = __m512i;
using Floats = __m512;

ET_INLINE void Clear(Ints& x) {
  x = _mm512_setzero_si512();
}
ET_INLINE void Clear(Floats& x) {
  x = _mm512_setzero_ps();
}
ET_INLINE void Keep(Ints& x) {
  asm("" : "+v"(x));
}
ET_INLINE Ints Load(const void* p) {
  return _mm512_loadu_si512(p);
}
ET_INLINE void Store(Ints x, void* p) {
  _mm512_storeu_si512(p, x);
}
ET_INLINE Floats LoadFloats(const float* p) {
  return _mm512_loadu_ps(p);
}
ET_INLINE void StoreFloats(Floats x, float* p) {
  _mm512_storeu_ps(p, x);
}
ET_INLINE Floats ToFloat(Ints x) {
  return _mm512_cvtepi32_ps(x);
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return _mm512_fmadd_ps(x, y, z);
}
ET_INLINE Ints Add(Ints x, Ints y) {
  return _mm512_add_epi32(x, y);
}
ET_INLINE Ints Broadcast(const uint8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return _mm512_set1_epi32(quad);
}
ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}
ET_INLINE Ints LowNibbles(Ints x) {
  return _mm512_and_si512(x, _mm512_set1_epi8(15));
}
ET_INLINE Ints HighNibbles(Ints x) {
  return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15));
}
ET_INLINE Ints NibblesLessEight(Ints x) {
  return _mm512_sub_epi8(x, _mm512_set1_epi8(8));
}
ET_INLINE Ints LowHalvesAsFloats(Ints x) {
  return _mm512_slli_epi32(x, 16);
}
ET_INLINE Ints HighHalvesAsFloats(Ints x) {
  return _mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  uint16_t bits[4];
  if (group_units == 1 && unit + 4 <= groups) {
    std::memcpy(bits, scales + unit, 8);
  } else {
    for (int u = 0; u < 4; ++u) {
      const int64_t group = (unit + u) / group_units;
      bits[u] = scales[group < groups ? group : groups - 1].bits;
    }
  }
  const __m128i four = _mm_slli_epi32(
      _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bits))), 16);
  const __m512i index = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  return _mm512_castsi512_ps(_mm512_permutexvar_epi32(index, _mm512_castsi128_si512(four)));
}
ET_INLINE void Transpose(Ints (&x)[16]) {
  Ints y[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const Ints a = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    const Ints b = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    const Ints c = _mm512_unpacklo_epi32(x[i + 2], x[i + 3]);
    const Ints d = _mm512_unpackhi_epi32(x[i + 2], x[i + 3]);
    y[i] = _mm512_unpacklo_epi64(a, c);
    y[i + 1] = _mm512_unpackhi_epi64(a, c);
    y[i + 2] = _mm512_unpacklo_epi64(b, d);
    y[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Ints a = _mm512_shuffle_i32x4(y[i], y[i + 4], 0x44);
    const Ints b = _mm512_shuffle_i32x4(y[i], y[i + 4], 0xEE);
    const Ints c = _mm512_shuffle_i32x4(y[i + 8], y[i + 12], 0x44);
    const Ints d = _mm512_shuffle_i32x4(y[i + 8], y[i + 12], 0xEE);
    x[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    x[i + 4] = _mm512_shuffle_i32x4(a, c, 0xDD);
    x[i + 8] = _mm512_shuffle_i32x4(b, d, 0x88);
    x[i + 12] = _mm512_shuffle_i32x4(b, d, 0xDD);
  }
}
ET_INLINE void SumLanes(const Ints (&v)[4], int32_t* to) {
  const Ints x =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const Ints y =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const Ints z = _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
  const __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(z), _mm512_extracti64x4_epi64(z, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}
ET_INLINE void SumLanes(const Floats (&v)[4], int32_t* to) {
  const Floats x = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
  const Floats y = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
  const __m512d xd = _mm512_castps_pd(x), yd = _mm512_castps_pd(y);
  const Floats z = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(xd, yd)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(xd, yd)));
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(z), _mm512_extractf32x8_ps(z, 1));
  const __m128 sums = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  std::memcpy(to, &sums, 16);
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace vnni512
HWY_POP_ATTRIBUTES
#undef ET_TARGET_LAMBDA
#undef ET_TARGET

// ---- AVX2 ----
#define ET_TARGET "avx2,fma"
HWY_PUSH_ATTRIBUTES(ET_TARGET)
namespace avx2_ops {

constexpr int kRows = 6, kVectors = 2, kLanes = 8;
using Ints = __m256i;
using Floats = __m256;

ET_INLINE void Clear(Ints& x) {
  x = _mm256_setzero_si256();
}
ET_INLINE void Clear(Floats& x) {
  x = _mm256_setzero_ps();
}
ET_INLINE void Keep(Ints& x) {
  asm("" : "+x"(x));
}
ET_INLINE Ints Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
ET_INLINE void Store(Ints x, void* p) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), x);
}
ET_INLINE Floats LoadFloats(const float* p) {
  return _mm256_loadu_ps(p);
}
ET_INLINE void StoreFloats(Floats x, float* p) {
  _mm256_storeu_ps(p, x);
}
ET_INLINE Floats ToFloat(Ints x) {
  return _mm256_cvtepi32_ps(x);
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return _mm256_fmadd_ps(x, y, z);
}
ET_INLINE Ints Add(Ints x, Ints y) {
  return _mm256_add_epi32(x, y);
}
ET_INLINE Ints Broadcast(const uint8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return _mm256_set1_epi32(quad);
}
ET_INLINE Ints LowNibbles(Ints x) {
  return _mm256_and_si256(x, _mm256_set1_epi8(15));
}
ET_INLINE Ints HighNibbles(Ints x) {
  return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}
ET_INLINE Ints NibblesLessEight(Ints x) {
  return _mm256_sub_epi8(x, _mm256_set1_epi8(8));
}
ET_INLINE Ints LowHalvesAsFloats(Ints x) {
  return _mm256_slli_epi32(x, 16);
}
ET_INLINE Ints HighHalvesAsFloats(Ints x) {
  return _mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xFFFF0000)));
}
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  const int64_t first = unit / group_units, second = (unit + 1) / group_units;
  const auto bits = [=](int64_t group) ET_TARGET_INLINE(ET_TARGET) {
    return static_cast<int>(uint32_t{scales[group < groups ? group : groups - 1].bits} << 16);
  };
  return _mm256_castsi256_ps(
      _mm256_set_m128i(_mm_set1_epi32(bits(second)), _mm_set1_epi32(bits(first))));
}
ET_INLINE void Transpose(Ints (&x)[8]) {
  Ints y[8];
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    const Ints a = _mm256_unpacklo_epi32(x[i], x[i + 1]);
    const Ints b = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    const Ints c = _mm256_unpacklo_epi32(x[i + 2], x[i + 3]);
    const Ints d = _mm256_unpackhi_epi32(x[i + 2], x[i + 3]);
    y[i] = _mm256_unpacklo_epi64(a, c);
    y[i + 1] = _mm256_unpackhi_epi64(a, c);
    y[i + 2] = _mm256_unpacklo_epi64(b, d);
    y[i + 3] = _mm256_unpackhi_epi64(b, d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_permute2x128_si256(y[i], y[i + 4], 0x20);
    x[i + 4] = _mm256_permute2x128_si256(y[i], y[i + 4], 0x31);
  }
}
ET_INLINE void SumLanes(const Ints (&v)[4], int32_t* to) {
  const Ints z = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_add_epi32(_mm256_castsi256_si128(z), _mm256_extracti128_si256(z, 1)));
}
ET_INLINE void SumLanes(const Floats (&v)[4], int32_t* to) {
  const Floats z = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  const __m128 sums = _mm_add_ps(_mm256_castps256_ps128(z), _mm256_extractf128_ps(z, 1));
  std::memcpy(to, &sums, 16);
}

}  // namespace avx2_ops

#define ET_TARGET_LAMBDA ET_TARGET_INLINE(ET_TARGET)
namespace avx2 {
using namespace avx2_ops;

constexpr int64_t kPanelBytes[2] = {kUnit * kVectors * kLanes * 2, kUnit* kVectors* kLanes};
constexpr int64_t kRowBytes[2] = {kUnit * 2, kUnit};
constexpr int kBytesOffset = 0, kNibblesOffset = 128, kDotOffset = 0;
constexpr int64_t kDotRowBytes = kLanes * 4 * 2;

template <int R>
ET_INLINE void BytesUnit(const uint8_t* a, int64_t lda, const uint8_t* b,
                         Ints (&sums)[R][kVectors]) {
#pragma GCC unroll 2
  for (int pair = 0; pair < kUnit / 2; ++pair, a += 4, b += kVectors * 32) {
    Ints y[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * 32);
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const Ints x = Broadcast(a + i * lda);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Add(sums[i][v], _mm256_madd_epi16(x, y[v]));
    }
  }
}
/// Rows [i, i + N) of a unit: 16-bit sums of more would not stay in registers beside the others.
template <int N, int R>
ET_INLINE void NibbleRows(int i0, const uint8_t* a, int64_t lda, const uint8_t* b,
                          Ints (&sums)[R][kVectors]) {
  Ints part[N][kVectors];
#pragma GCC unroll 3
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Clear(part[i][v]);
  }
#pragma GCC unroll 2
  for (int quad = 0; quad < kUnit / 4; ++quad, a += 4, b += kVectors * 32) {
    Ints y[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * 32);
#pragma GCC unroll 3
    for (int i = 0; i < N; ++i) {
      const Ints x = Broadcast(a + (i0 + i) * lda);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        part[i][v] = _mm256_add_epi16(part[i][v], _mm256_maddubs_epi16(x, y[v]));
      }
    }
  }
#pragma GCC unroll 3
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Keep(part[i][v]);
      sums[i0 + i][v] = Add(sums[i0 + i][v], _mm256_madd_epi16(part[i][v], _mm256_set1_epi16(1)));
    }
  }
}
template <int R>
ET_INLINE void NibblesUnit(const uint8_t* a, int64_t lda, const uint8_t* b,
                           Ints (&sums)[R][kVectors]) {
  if constexpr (R > 3) {
    NibbleRows<3>(0, a, lda, b, sums);
    NibbleRows<R - 3>(3, a, lda, b, sums);
  } else {
    NibbleRows<R>(0, a, lda, b, sums);
  }
}
/// Elements 0 and 2 of each quad, then 1 and 3.
ET_INLINE void WriteBytes(uint8_t* panel, int64_t d, int v, Ints x) {
  uint8_t* const to = panel + (2 * d * kVectors + v) * 32;
  Store(_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), to);
  Store(_mm256_srai_epi16(x, 8), to + kVectors * 32);
}
void PrepareBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  constexpr int kOrder[4] = {0, 2, 1, 3};
  auto* const words = reinterpret_cast<int16_t*>(to);
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    for (int q = 0; q < 4; ++q) words[p + q] = static_cast<int8_t>(a[p + kOrder[q]] ^ flip);
  }
  for (int64_t q = p; q < (k + kUnit - 1) / kUnit * kUnit; ++q) {
    const int64_t from = p + (q - p) / 4 * 4 + kOrder[q % 4];
    words[q] = from < k ? static_cast<int8_t>(a[from] ^ flip) : int8_t{0};
  }
}
void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  auto* const words = reinterpret_cast<int16_t*>(to);
  for (int64_t p = 0; p < k; ++p) words[p] = static_cast<int8_t>(a[p] ^ flip);
  for (int64_t p = k; p < (k + 31) / 32 * 32; ++p) words[p] = 0;
}
ET_INLINE Ints ByteDots(Ints sum, const uint8_t* a, Ints b) {
  const Ints low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(b));
  const Ints high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(b, 1));
  return Add(sum, Add(_mm256_madd_epi16(low, Load(a)), _mm256_madd_epi16(high, Load(a + 32))));
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  const Ints pairs =
      _mm256_add_epi16(_mm256_maddubs_epi16(low, even), _mm256_maddubs_epi16(high, odd));
  return Add(start, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace avx2
HWY_POP_ATTRIBUTES
#undef ET_TARGET_LAMBDA
#undef ET_TARGET

#define ET_TARGET "avx2,fma,avxvnni"
#define ET_TARGET_LAMBDA ET_TARGET_INLINE(ET_TARGET)
HWY_PUSH_ATTRIBUTES(ET_TARGET)
namespace vnni256 {
using namespace avx2_ops;

constexpr int kQuadOffset = 128;

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return _mm256_dpbusd_avx_epi32(sum, a, b);
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace vnni256
HWY_POP_ATTRIBUTES

void add_x86(Sets& sets) {
  const bool fma = __builtin_cpu_supports("fma"), avx2 = __builtin_cpu_supports("avx2") && fma;
  const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && fma;
  if (avx512 && __builtin_cpu_supports("avx512vnni")) sets.add(vnni512::kKernels);
  if (avx2 && __builtin_cpu_supports("avxvnni")) sets.add(vnni256::kKernels);
  if (avx2) sets.add(avx2::kKernels);
}

}  // namespace executorch::cpu::int8
#else
namespace executorch::cpu::int8 {
void add_x86(Sets&) {}
}  // namespace executorch::cpu::int8
#endif
