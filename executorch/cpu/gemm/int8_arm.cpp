// NEON, with and without the multiply-add of quads.
#include <executorch/cpu/bit_cast.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#if defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>
#include <hwy/base.h>
#include <hwy/detect_targets.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#define ET_INLINE inline __attribute__((always_inline))

namespace executorch::cpu::int8 {

#define ET_TARGET_LAMBDA __attribute__((always_inline))
namespace neon {

#include <executorch/cpu/gemm/int8_neon-inl.h>

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  const int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, y));
  return sum + vpaddq_s32(low, high);
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

#include <executorch/cpu/gemm/int8_neon-inl.h>

ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
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
  if (has_dot()) sets.add(neon_dot::kKernels, HWY_NEON);
  sets.add(neon::kKernels, HWY_NEON);
}

}  // namespace executorch::cpu::int8
#else
namespace executorch::cpu::int8 {
void add_arm(Sets&) {}
}  // namespace executorch::cpu::int8
#endif
