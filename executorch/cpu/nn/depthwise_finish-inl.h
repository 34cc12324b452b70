/// The epilogue of depthwise convolutions of both layouts.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_DEPTHWISE_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_DEPTHWISE_FINISH_INL_H_
#undef EXECUTORCH_CPU_NN_DEPTHWISE_FINISH_INL_H_
#else
#define EXECUTORCH_CPU_NN_DEPTHWISE_FINISH_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/depthwise.h>
#include <executorch/cpu/nn/lanes-inl.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE::depthwise {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

template <class T>
HWY_INLINE float ToFloat(const T* p) {
  return hn::GetLane(LoadFloatsN(Floats(), p, 1));
}

// Applies residual and activation to n <= kLanes sums and stores them at out + at.
template <class T>
HWY_INLINE void Finish(const Conv<T>& c, V x, size_t n, int64_t at) {
  const Floats d;
  const bool adds = c.residual != nullptr;
  const V r = adds ? LoadFloatsN(d, c.residual + at, n) : hn::Zero(d);
  if (adds && c.act_last) x = hn::Add(x, r);
  if (c.act.kind != Activation::Kind::None) x = Apply(d, c.act, x);
  if (adds && !c.act_last) x = hn::Add(x, r);
  if (n == static_cast<size_t>(kLanes)) {
    StoreFloats(x, d, c.out + at);
  } else {
    StoreFloatsN(x, d, c.out + at, n);
  }
}

// Whether results are finished by bounds at most; FinishWith<true> then does the same as Finish.
template <class T>
bool IsBounded(const Conv<T>& c) {
  return c.residual == nullptr &&
         (c.act.kind == Activation::Kind::None || c.act.kind == Activation::Kind::Clamp);
}
template <bool kBounded, class T>
HWY_INLINE void FinishWith(const Conv<T>& c, V x, size_t n, int64_t at) {
  if constexpr (kBounded) {
    const Floats d;
    if (c.act.kind == Activation::Kind::Clamp) x = Clamp(d, x, c.act.low, c.act.high);
    if (n == static_cast<size_t>(kLanes)) {
      StoreFloats(x, d, c.out + at);
    } else {
      StoreFloatsN(x, d, c.out + at, n);
    }
  } else {
    Finish(c, x, n, at);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE::depthwise
HWY_AFTER_NAMESPACE();

#endif  // once per target
