#include <executorch/cpu/nn/rotary.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/rotary.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

template <class T>
void Rotate(const T* x, const T* cos, const T* sin, int64_t half, T* out) {
  ForVectors(half, [&](int64_t i, const auto& lanes) HWY_ATTR {
    const V low = lanes.load(x + i), high = lanes.load(x + half + i);
    const V rotated_low =
        hn::NegMulAdd(high, lanes.load(sin + i), hn::Mul(low, lanes.load(cos + i)));
    const V rotated_high =
        hn::MulAdd(low, lanes.load(sin + half + i), hn::Mul(high, lanes.load(cos + half + i)));
    lanes.store(rotated_low, out + i);
    lanes.store(rotated_high, out + half + i);
  });
}

void RotateHalves(Type type, const void* x, const void* cos, const void* sin, int64_t half,
                  void* out) {
  with_type(type, [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    const auto as = [](const void* data) { return static_cast<const T*>(data); };
    Rotate<T>(as(x), as(cos), as(sin), half, static_cast<T*>(out));
  });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RotateHalves);

void rotate_halves(Type type, const void* x, const void* cos, const void* sin, int64_t half,
                   void* out) {
  HWY_DYNAMIC_DISPATCH(RotateHalves)(type, x, cos, sin, half, out);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
