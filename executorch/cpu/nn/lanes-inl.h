/// Masks for ranges of lanes, and whether masked loads access memory inside of their mask only.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_LANES_INL_H_
#undef EXECUTORCH_CPU_NN_LANES_INL_H_
#else
#define EXECUTORCH_CPU_NN_LANES_INL_H_
#endif
// clang-format on

#include <executorch/cpu/machine.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// If false, a masked load of floats may access memory that its mask leaves out.
constexpr bool kMasks = ET_MASKED_FLOATS;

/// The mask of lanes [begin, end); both may lie outside the vector.
template <class D>
HWY_INLINE hn::Mask<D> Between(D d, int64_t begin, int64_t end) {
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  return hn::AndNot(hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(begin, 0, kLanes))),
                    hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(end, 0, kLanes))));
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
