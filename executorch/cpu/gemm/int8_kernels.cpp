#include <executorch/cpu/gemm/int8_kernels.h>

#include <algorithm>
#include <bit>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__)
#define ET_HAS_VNNI 1
// GCC 12 takes the undefined operands inside its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace executorch::cpu::int8 {
namespace {

float to_float(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// ---- any machine: loops that compilers turn into multiply-adds of 16-bit pairs ----

template <int R, int C>
void bytes_portable(const Tile& t) {
  for (int j = 0; j < C; ++j) {
    const auto* b = reinterpret_cast<const int8_t*>(t.b + j * t.ldb);
    for (int i = 0; i < R; ++i) {
      const uint8_t* a = t.a + i * t.lda;
      int32_t sum = 0;
      for (int64_t p = 0; p < t.k; ++p) sum += static_cast<int16_t>(a[p]) * int16_t{b[p]};
      static_cast<int32_t*>(t.sums)[i * t.ld_sums + j] = sum;
    }
  }
}

/// sum of a[even and odd elements] * (nibbles - 8) over n bytes, a's odd elements 64 behind.
int32_t nibble_dot(const uint8_t* a, const uint8_t* b, int64_t n) {
  int32_t sum = 0;
  for (int64_t q = 0; q < n; ++q) {
    sum += static_cast<int16_t>(a[q]) * static_cast<int16_t>((b[q] & 15) - 8);
    sum += static_cast<int16_t>(a[q + 64]) * static_cast<int16_t>((b[q] >> 4) - 8);
  }
  return sum;
}

template <int R, int C>
void nibbles_portable(const Tile& t) {
  const int64_t bytes = (t.k + 1) / 2;
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) {
      int32_t sum = 0;
      for (int64_t q = 0; q < bytes; q += 64) {
        sum += nibble_dot(t.a + i * t.lda + 2 * q, t.b + j * t.ldb + q,
                          std::min<int64_t>(64, bytes - q));
      }
      static_cast<int32_t*>(t.sums)[i * t.ld_sums + j] = sum;
    }
  }
}

template <int R, int C>
void groups_portable(const Tile& t) {
  constexpr int64_t kUnit = 32;  // divides every group
  for (int j = 0; j < C; ++j) {
    for (int i = 0; i < R; ++i) {
      float sum = 0;
      for (int64_t p = 0; p < t.k; p += kUnit) {
        const uint8_t* a = t.a + i * t.lda + p / kBlock * kBlock + p % kBlock / 2;
        const int32_t dot = nibble_dot(a, t.b + j * t.ldb + p / 2, kUnit / 2);
        sum += static_cast<float>(dot) * to_float(t.scales[j * t.groups + p / t.group_size]);
      }
      static_cast<float*>(t.sums)[i * t.ld_sums + j] = sum;
    }
  }
}

#if ET_HAS_VNNI
// ---- AVX-512 with multiply-adds of four bytes into 32 bits ----
#define ET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

ET_VNNI inline __m512i load_rest(const uint8_t* p, int64_t n) {
  return n >= 64 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8((__mmask64{1} << n) - 1, p);
}

/// The sums of the lanes of four vectors.
ET_VNNI inline __m128i sum_lanes(__m512i v0, __m512i v1, __m512i v2, __m512i v3) {
  const __m512i x = _mm512_add_epi32(_mm512_unpacklo_epi32(v0, v1), _mm512_unpackhi_epi32(v0, v1));
  const __m512i y = _mm512_add_epi32(_mm512_unpacklo_epi32(v2, v3), _mm512_unpackhi_epi32(v2, v3));
  const __m512i z = _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
  const __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(z), _mm512_extracti64x4_epi64(z, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}
ET_VNNI inline __m128 sum_lanes(__m512 v0, __m512 v1, __m512 v2, __m512 v3) {
  const __m512 x = _mm512_add_ps(_mm512_unpacklo_ps(v0, v1), _mm512_unpackhi_ps(v0, v1));
  const __m512 y = _mm512_add_ps(_mm512_unpacklo_ps(v2, v3), _mm512_unpackhi_ps(v2, v3));
  const __m512d xd = _mm512_castps_pd(x), yd = _mm512_castps_pd(y);
  const __m512 z = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(xd, yd)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(xd, yd)));
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(z), _mm512_extractf32x8_ps(z, 1));
  return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

template <int R, int C>
ET_VNNI void store_sums(const Tile& t, const __m512i (&sums)[R][C]) {
  for (int i = 0; i < R; ++i) {
    const __m128i row = sum_lanes(sums[i][0], sums[i][C > 1 ? 1 : 0], sums[i][C > 2 ? 2 : 0],
                                  sums[i][C > 3 ? 3 : 0]);
    _mm_mask_storeu_epi32(static_cast<int32_t*>(t.sums) + i * t.ld_sums, (1 << C) - 1, row);
  }
}

template <int R, int C>
ET_VNNI void bytes_vnni(const Tile& t) {
  __m512i sums[R][C];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) sums[i][j] = _mm512_setzero_si512();
  }
  for (int64_t p = 0; p < t.k; p += 64) {
    __m512i b[C];
    for (int j = 0; j < C; ++j) b[j] = load_rest(t.b + j * t.ldb + p, t.k - p);
    for (int i = 0; i < R; ++i) {
      const __m512i a = _mm512_loadu_si512(t.a + i * t.lda + p);
      for (int j = 0; j < C; ++j) sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], a, b[j]);
    }
  }
  store_sums<R, C>(t, sums);
}

/// Low and high bits of 64 bytes, less 8.
ET_VNNI inline void split_nibbles(__m512i bytes, __m512i& low, __m512i& high) {
  const __m512i mask = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8);
  low = _mm512_sub_epi8(_mm512_and_si512(bytes, mask), eight);
  high = _mm512_sub_epi8(_mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask), eight);
}

template <int R, int C>
ET_VNNI void nibbles_vnni(const Tile& t) {
  __m512i sums[R][C];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) sums[i][j] = _mm512_setzero_si512();
  }
  const int64_t bytes = (t.k + 1) / 2;
  for (int64_t q = 0; q < bytes; q += 64) {
    __m512i low[C], high[C];
    for (int j = 0; j < C; ++j) {
      split_nibbles(load_rest(t.b + j * t.ldb + q, bytes - q), low[j], high[j]);
    }
    for (int i = 0; i < R; ++i) {
      const uint8_t* a = t.a + i * t.lda + 2 * q;
      const __m512i even = _mm512_loadu_si512(a), odd = _mm512_loadu_si512(a + 64);
      for (int j = 0; j < C; ++j) {
        sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], even, low[j]);
        sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], odd, high[j]);
      }
    }
  }
  store_sums<R, C>(t, sums);
}

/// The scale of each eighth of the kBlock elements at p.
ET_VNNI inline __m512 block_scales(const Tile& t, int j, int64_t p, __m512i group_of) {
  const int64_t first = p / t.group_size, left = t.groups - first;
  const __mmask8 mask = static_cast<__mmask8>(left >= 4 ? 15 : (1 << left) - 1);
  const __m128i bits = _mm_maskz_loadu_epi16(mask, t.scales + j * t.groups + first);
  const __m128i floats = _mm_slli_epi32(_mm_cvtepu16_epi32(bits), 16);
  return _mm512_permutexvar_ps(group_of, _mm512_castsi512_ps(_mm512_castsi128_si512(floats)));
}

template <int R, int C>
ET_VNNI void groups_vnni(const Tile& t) {
  __m512 sums[R][C];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  const int32_t* group_of = t.group_of;
  for (int64_t p = 0; p < t.k; p += kBlock, group_of += 16) {
    const __m512i index = _mm512_loadu_si512(group_of);
    __m512i low[C], high[C];
    __m512 scale[C];
    for (int j = 0; j < C; ++j) {
      split_nibbles(load_rest(t.b + j * t.ldb + p / 2, (t.k - p) / 2), low[j], high[j]);
      scale[j] = block_scales(t, j, p, index);
    }
    for (int i = 0; i < R; ++i) {
      const uint8_t* a = t.a + i * t.lda + p;
      const __m512i even = _mm512_loadu_si512(a), odd = _mm512_loadu_si512(a + 64);
      for (int j = 0; j < C; ++j) {
        const __m512i part = _mm512_dpbusd_epi32(
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), even, low[j]), odd, high[j]);
        sums[i][j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part), scale[j], sums[i][j]);
      }
    }
  }
  for (int i = 0; i < R; ++i) {
    const __m128 row = sum_lanes(sums[i][0], sums[i][C > 1 ? 1 : 0], sums[i][C > 2 ? 2 : 0],
                                 sums[i][C > 3 ? 3 : 0]);
    _mm_mask_storeu_ps(static_cast<float*>(t.sums) + i * t.ld_sums, (1 << C) - 1, row);
  }
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}
#endif

#define ET_TILES(family)                                            \
  {                                                                 \
    {family<1, 1>, family<1, 2>, family<1, 3>, family<1, 4>},       \
        {family<2, 1>, family<2, 2>, family<2, 3>, family<2, 4>},   \
        {family<3, 1>, family<3, 2>, family<3, 3>, family<3, 4>}, { \
      family<4, 1>, family<4, 2>, family<4, 3>, family<4, 4>        \
    }                                                               \
  }

constexpr Kernels kPortable = {ET_TILES(bytes_portable), ET_TILES(nibbles_portable),
                               ET_TILES(groups_portable)};
#if ET_HAS_VNNI
constexpr Kernels kVnni = {ET_TILES(bytes_vnni), ET_TILES(nibbles_vnni), ET_TILES(groups_vnni)};
#endif

}  // namespace

const Kernels& portable_kernels() {
  return kPortable;
}

const Kernels& kernels() {
#if ET_HAS_VNNI
  static const bool vnni = has_vnni();
  if (vnni) return kVnni;
#endif
  return kPortable;
}

}  // namespace executorch::cpu::int8
