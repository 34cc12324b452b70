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
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  const int64_t group = unit / group_units;
  const uint32_t bits = uint32_t{scales[group < groups ? group : groups - 1].bits} << 16;
  return vdupq_n_f32(std::bit_cast<float>(bits));
}
