// NEON, with and without the multiply-add of quads.
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#if defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>
#include <hwy/base.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#define ET_INLINE inline __attribute__((always_inline))

namespace executorch::cpu::int8 {
namespace neon_ops {

constexpr int kRows = 6, kVectors = 4, kLanes = 4, kQuadOffset = 0;
using Ints = int32x4_t;
using Floats = float32x4_t;

ET_INLINE void Clear(Ints& x) {
  x = vdupq_n_s32(0);
}
ET_INLINE void Clear(Floats& x) {
  x = vdupq_n_f32(0);
}
ET_INLINE void Keep(Ints& x) {
  asm("" : "+w"(x));
}
ET_INLINE Ints Load(const void* p) {
  return vreinterpretq_s32_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
}
ET_INLINE void Store(Ints x, void* p) {
  vst1q_u8(static_cast<uint8_t*>(p), vreinterpretq_u8_s32(x));
}
ET_INLINE Floats LoadFloats(const float* p) {
  return vld1q_f32(p);
}
ET_INLINE void StoreFloats(Floats x, float* p) {
  vst1q_f32(p, x);
}
ET_INLINE Floats ToFloat(Ints x) {
  return vcvtq_f32_s32(x);
}
ET_INLINE Floats MulAdd(Floats x, Floats y, Floats z) {
  return vfmaq_f32(z, x, y);
}
ET_INLINE Ints Add(Ints x, Ints y) {
  return vaddq_s32(x, y);
}
ET_INLINE Ints Broadcast(const uint8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return vdupq_n_s32(quad);
}
ET_INLINE Ints LowNibbles(Ints x) {
  return vandq_s32(x, vdupq_n_s32(0x0F0F0F0F));
}
ET_INLINE Ints HighNibbles(Ints x) {
  return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(x), 4));
}
ET_INLINE Ints NibblesLessEight(Ints x) {
  return vreinterpretq_s32_s8(vsubq_s8(vreinterpretq_s8_s32(x), vdupq_n_s8(8)));
}
ET_INLINE Ints LowHalvesAsFloats(Ints x) {
  return vshlq_n_s32(x, 16);
}
ET_INLINE Ints HighHalvesAsFloats(Ints x) {
  return vandq_s32(x, vdupq_n_s32(static_cast<int32_t>(0xFFFF0000)));
}
ET_INLINE Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units,
                             int64_t groups) {
  const int64_t group = unit / group_units;
  const uint32_t bits = uint32_t{scales[group < groups ? group : groups - 1].bits} << 16;
  return vdupq_n_f32(std::bit_cast<float>(bits));
}
ET_INLINE void Transpose(Ints (&x)[4]) {
  const int32x4x2_t a = vtrnq_s32(x[0], x[1]), b = vtrnq_s32(x[2], x[3]);
  x[0] = vcombine_s32(vget_low_s32(a.val[0]), vget_low_s32(b.val[0]));
  x[1] = vcombine_s32(vget_low_s32(a.val[1]), vget_low_s32(b.val[1]));
  x[2] = vcombine_s32(vget_high_s32(a.val[0]), vget_high_s32(b.val[0]));
  x[3] = vcombine_s32(vget_high_s32(a.val[1]), vget_high_s32(b.val[1]));
}
ET_INLINE void SumLanes(const Ints (&v)[4], int32_t* to) {
  vst1q_s32(to, vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])));
}
ET_INLINE void SumLanes(const Floats (&v)[4], int32_t* to) {
  const Floats sums = vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3]));
  vst1q_s32(to, vreinterpretq_s32_f32(sums));
}

}  // namespace neon_ops

#define ET_TARGET_LAMBDA __attribute__((always_inline))
namespace neon {
using namespace neon_ops;

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  const int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, y));
  return Add(sum, vpaddq_s32(low, high));
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace neon
#undef ET_TARGET_LAMBDA

#define ET_TARGET "arch=armv8.2-a+dotprod"
#define ET_TARGET_LAMBDA __attribute__((target(ET_TARGET), always_inline))
HWY_PUSH_ATTRIBUTES(ET_TARGET)
namespace neon_dot {
using namespace neon_ops;

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace neon_dot
HWY_POP_ATTRIBUTES

namespace {

bool has_dot() {
#if defined(__linux__)
  constexpr unsigned long kDotProduct = 1 << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
#elif defined(__APPLE__)
  return true;
#else
  return false;
#endif
}

}  // namespace

void add_arm(Sets& sets) {
  if (has_dot()) sets.add(neon_dot::kKernels);
  sets.add(neon::kKernels);
}

}  // namespace executorch::cpu::int8
#else
namespace executorch::cpu::int8 {
void add_arm(Sets&) {}
}  // namespace executorch::cpu::int8
#endif
