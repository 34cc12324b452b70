// What both sets for NEON have; see int8_kernels-inl.h.

constexpr int kRows = 6, kGroupRows = 3, kVectors = 4, kLanes = 4, kColumns = kVectors * kLanes;
constexpr int kFlip = 0;

#include <executorch/cpu/gemm/int8_vectors-inl.h>

ET_INLINE void Keep(Ints& x) {
  asm("" : "+w"(x));
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return vfmaq_f32(z, x, y);
}
ET_INLINE Ints Rounded(Floats x) {
  const Floats least = vdupq_n_f32(-16384.0f);
  return vcvtnq_s32_f32(x > least ? x : least);
}
ET_INLINE Ints PackInts(Ints a, Ints b) {
  return vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(a), b));
}
ET_INLINE Ints PackWords(Ints a, Ints b) {
  const int8x8_t low = vqmovn_s16(vreinterpretq_s16_s32(a));
  return vreinterpretq_s32_s8(vqmovn_high_s16(low, vreinterpretq_s16_s32(b)));
}
ET_INLINE Ints AddWords(Ints a, Ints b) {
  return vreinterpretq_s32_s16(vqaddq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
ET_INLINE void StoreFew(Ints x, int64_t n, uint8_t* to) {
  StorePieces(x, n, to);
}
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  const int64_t group = unit / group_units;
  const uint32_t bits = uint32_t{scales[group < groups ? group : groups - 1].bits} << 16;
  return vdupq_n_f32(bit_cast<float>(bits));
}
