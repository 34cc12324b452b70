// AVX-512 with VNNI, AVX2 with VNNI, AVX2. The last has no multiply-add of
// quads: bytes are multiplied as pairs of 16-bit numbers; products of unsigned
// bytes with nibbles are so small that eight pairs, a unit, add up in 16 bits
// (255 * 8 * 2 * 8 = 32640).
#include <executorch/cpu/bit_cast.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <hwy/base.h>
#include <hwy/detect_targets.h>

#include <array>
#include <cstring>
#include <limits>
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

constexpr int kRows = 12, kGroupRows = 6, kVectors = 2, kLanes = 16, kColumns = kVectors * kLanes;
constexpr int kFlip = static_cast<int>(0x80808080);  // the first operand of Dot is unsigned

#include <executorch/cpu/gemm/int8_vectors-inl.h>

ET_INLINE void Keep(Ints& x) {
  asm("" : "+v"(x));
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return _mm512_fmadd_ps(x, y, z);
}
ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return reinterpret_cast<Ints>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
ET_INLINE Ints Rounded(Floats x) {
  const Floats most = Floats{} + 16384.0f;
  return reinterpret_cast<Ints>(_mm512_cvtps_epi32(most < x ? most : x));
}
ET_INLINE Ints PackInts(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm512_packs_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
ET_INLINE Ints PackWords(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm512_packs_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
ET_INLINE Ints AddWords(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm512_adds_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
ET_INLINE void StoreFew(Ints x, int64_t n, uint8_t* to) {
  _mm512_mask_storeu_epi8(to, ~uint64_t{0} >> (kVectorBytes - n), reinterpret_cast<__m512i>(x));
}
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  uint64_t four = 0;
  if (group_units == 1 && unit + 4 <= groups) {
    std::memcpy(&four, scales + unit, 8);
  } else {
    for (int u = 0; u < 4; ++u) {
      const int64_t group = (unit + u) / group_units;
      four |= uint64_t{scales[group < groups ? group : groups - 1].bits} << 16 * u;
    }
  }
  // The u-th 16 bits become the upper ones of all lanes of the u-th block, zeros the lower ones.
  constexpr int k0 = 0x01008080, k1 = 0x03028080, k2 = 0x05048080, k3 = 0x07068080;
  const __m512i index =
      _mm512_setr_epi32(k0, k0, k0, k0, k1, k1, k1, k1, k2, k2, k2, k2, k3, k3, k3, k3);
  return _mm512_castsi512_ps(
      _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(four)), index));
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
#define ET_TARGET_LAMBDA ET_TARGET_INLINE(ET_TARGET)
HWY_PUSH_ATTRIBUTES(ET_TARGET)
namespace avx2 {

#include <executorch/cpu/gemm/int8_avx2-inl.h>

/// Numbers of 16 bits; the sums of pairs of their products.
ET_INLINE Ints Pairs(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
/// The same of unsigned with signed bytes, as numbers of 16 bits.
ET_INLINE Ints BytePairs(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_maddubs_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
ET_INLINE Ints Widened(__m128i bytes) {
  return reinterpret_cast<Ints>(_mm256_cvtepi8_epi16(bytes));
}
ET_INLINE Ints AddHalves(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_add_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
ET_INLINE Ints Ones() {
  return Ints{} + 0x00010001;
}

/// A vector of sums has two for each of four columns, of the even and of the
/// odd pairs. Rows of A are widened before they are multiplied, once for all
/// columns: in the inner loop that would cost as much as the products.
struct ByteSums {
  static constexpr int kPasses = 2, kOffset = 0;
  static constexpr bool kWide = true;
  /// As many as fit the first-level cache beside the same quads of a panel.
  static constexpr int64_t kWideQuads = 256;
  /// Rows a power of two apart would compete for lines of the cache.
  static constexpr int64_t kWideRow = kWideQuads * 4 + 32;

  /// `n` quads as numbers of 16 bits.
  ET_INLINE static void Widen(const int8_t* a, int64_t n, int16_t* to) {
    int64_t quad = 0;
    for (; quad + 4 <= n; quad += 4) {
      Store(Widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + 4 * quad))),
            to + 4 * quad);
    }
    for (int64_t p = 4 * quad; p < 4 * n; ++p) to[p] = a[p];
  }
  /// sums += `n` widened quads of R rows times those of columns of a panel.
  template <int R>
  ET_INLINE static void Add(const int16_t (&a)[R][kWideRow], int64_t n, const uint8_t* b,
                            Ints (&sums)[R][kVectors]) {
    for (int64_t quad = 0; quad < n; ++quad, b += kColumns * 4) {
      Ints y[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        y[v] = Widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + v * 16)));
      }
#pragma GCC unroll 6
      for (int i = 0; i < R; ++i) {
        int64_t four;
        std::memcpy(&four, a[i] + quad * 4, 8);
        const Ints x = reinterpret_cast<Ints>(_mm256_set1_epi64x(four));
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[i][v] += Pairs(x, y[v]);
      }
    }
  }
  ET_INLINE static void Write(const Ints (&sums)[kVectors], int32_t* to) {
    const __m256i both =
        _mm256_hadd_epi32(reinterpret_cast<__m256i>(sums[0]), reinterpret_cast<__m256i>(sums[1]));
    Store(reinterpret_cast<Ints>(_mm256_permute4x64_epi64(both, 0xD8)), to);
  }
};

struct NibbleSums {
  static constexpr int kOffset = 128;
  static constexpr bool kWide = false;

  /// Rows [i, i + N): 16-bit sums of more would not stay in registers beside
  /// the others.
  template <int N, int R>
  ET_INLINE static void AddRows(int i0, const int8_t* a, int64_t lda, int64_t n, const uint8_t* b,
                                Ints (&sums)[R][kVectors]) {
    Ints part[N][kVectors] = {};
#pragma GCC unroll 2
    for (int64_t quad = 0; quad < n; ++quad, a += 4, b += kColumns * 4) {
      Ints y[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * kVectorBytes);
#pragma GCC unroll 3
      for (int i = 0; i < N; ++i) {
        const Ints x = Broadcast(a + (i0 + i) * lda) ^ static_cast<int>(0x80808080);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) part[i][v] = AddHalves(part[i][v], BytePairs(x, y[v]));
      }
    }
#pragma GCC unroll 3
    for (int i = 0; i < N; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Keep(part[i][v]);
        sums[i0 + i][v] += Pairs(part[i][v], Ones());
      }
    }
  }
  template <int R>
  ET_INLINE static void Add(const int8_t* a, int64_t lda, int64_t n, const uint8_t*& b,
                            Ints (&sums)[R][kVectors]) {
    while (n > 0) {
      const int64_t unit = n < kUnit / 4 ? n : kUnit / 4;
      if constexpr (R > 3) {
        AddRows<3>(0, a, lda, unit, b, sums);
        AddRows<R - 3>(3, a, lda, unit, b, sums);
      } else {
        AddRows<R>(0, a, lda, unit, b, sums);
      }
      n -= unit;
      a += 4 * unit;
      b += unit * kColumns * 4;
    }
  }
  ET_INLINE static void Write(const Ints (&sums)[kVectors], int32_t* to) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Store(sums[v], to + v * kLanes);
  }
};

constexpr int kDepthwiseOffset = 0;
ET_INLINE Ints DepthwiseDot(Ints sum, Ints a, Ints b) {
  const auto even = [](Ints x) ET_TARGET_LAMBDA {
    const __m256i bytes = reinterpret_cast<__m256i>(x);
    return reinterpret_cast<Ints>(_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8));
  };
  const auto odd = [](Ints x) ET_TARGET_LAMBDA {
    return reinterpret_cast<Ints>(_mm256_srai_epi16(reinterpret_cast<__m256i>(x), 8));
  };
  return sum + Pairs(even(a), even(b)) + Pairs(odd(a), odd(b));
}

constexpr int kDotOffset = 0;
constexpr int64_t kDotRowBytes = kVectorBytes * 2;

void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  auto* const words = reinterpret_cast<int16_t*>(to);
  for (int64_t p = 0; p < k; ++p) words[p] = static_cast<int8_t>(a[p] ^ flip);
  for (int64_t p = k; p < (k + 31) / 32 * 32; ++p) words[p] = 0;
}
ET_INLINE Ints ByteDots(Ints sum, const uint8_t* a, Ints b) {
  const __m256i bytes = reinterpret_cast<__m256i>(b);
  return sum + Pairs(Widened(_mm256_castsi256_si128(bytes)), Load(a)) +
         Pairs(Widened(_mm256_extracti128_si256(bytes, 1)), Load(a + kVectorBytes));
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return start + Pairs(AddHalves(BytePairs(low, even), BytePairs(high, odd)), Ones());
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

#include <executorch/cpu/gemm/int8_avx2-inl.h>

constexpr int kFlip = static_cast<int>(0x80808080);

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return reinterpret_cast<Ints>(_mm256_dpbusd_avx_epi32(
      reinterpret_cast<__m256i>(sum), reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace vnni256
HWY_POP_ATTRIBUTES

namespace {

bool has_avx_vnni() {  // not every compiler knows its name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

}  // namespace

void add_x86(Sets& sets) {
  const bool fma = __builtin_cpu_supports("fma"), avx2 = __builtin_cpu_supports("avx2") && fma;
  const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && fma;
  if (avx512 && __builtin_cpu_supports("avx512vnni")) sets.add(vnni512::kKernels, HWY_AVX3);
  if (avx2 && has_avx_vnni()) sets.add(vnni256::kKernels, HWY_AVX2);
  if (avx2) sets.add(avx2::kKernels, HWY_AVX2);
}

}  // namespace executorch::cpu::int8
#else
namespace executorch::cpu::int8 {
void add_x86(Sets&) {}
}  // namespace executorch::cpu::int8
#endif
