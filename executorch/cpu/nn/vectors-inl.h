/// A run of elements as vectors of float.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_VECTORS_INL_H_
#undef EXECUTORCH_CPU_NN_VECTORS_INL_H_
#else
#define EXECUTORCH_CPU_NN_VECTORS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

/// Calls f(i, load, store, here) for the vectors of n elements, load(p) and store(v, p) at their
/// place; `here` is the mask of the lanes that are elements.
template <class F>
HWY_INLINE void ForVectors(int64_t n, const F& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    f(
        i, [d](const auto* p) HWY_ATTR { return LoadFloats(d, p); },
        [d](V v, auto* p) HWY_ATTR { StoreFloats(v, d, p); }, hn::FirstN(d, kLanes));
  }
  const size_t rest = static_cast<size_t>(n) % kLanes;
  if (rest == 0) return;
  f(
      i, [d, rest](const auto* p) HWY_ATTR { return LoadFloatsN(d, p, rest); },
      [d, rest](V v, auto* p) HWY_ATTR { StoreFloatsN(v, d, p, rest); }, hn::FirstN(d, rest));
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
