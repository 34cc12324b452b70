// What both sets with vectors of 32 bytes have; see int8_kernels-inl.h.

constexpr int kRows = 6, kGroupRows = 3, kVectors = 2, kLanes = 8, kColumns = kVectors * kLanes;

#include <executorch/cpu/gemm/int8_vectors-inl.h>

ET_INLINE void Keep(Ints& x) {
  asm("" : "+x"(x));
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return _mm256_fmadd_ps(x, y, z);
}
ET_INLINE Ints Rounded(Floats x) {
  const Floats most = Floats{} + 16384.0f;
  return reinterpret_cast<Ints>(_mm256_cvtps_epi32(most < x ? most : x));
}
ET_INLINE Ints PackInts(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_packs_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
ET_INLINE Ints PackWords(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_packs_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
ET_INLINE Ints AddWords(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_adds_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
ET_INLINE void StoreFew(Ints x, int64_t n, uint8_t* to) {
  StorePieces(x, n, to);
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
