#include <executorch/cpu/nn/elementwise.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/elementwise.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

/// y[i] = f(x[i]), f on vectors of float.
template <class X, class Y, class F>
HWY_INLINE void Map(const X* x, Y* y, int64_t count, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFloats(f(d, LoadFloats(d, x + i)), d, y + i);
  if (i < n) StoreFloatsN(f(d, LoadFloatsN(d, x + i, n - i)), d, y + i, n - i);
}

void ApplyActivation(const Activation& act, const float* x, float* y, int64_t n) {
  with_kind(act.kind, [&](auto kind) HWY_ATTR {
    const Activation fixed = {decltype(kind)::value, act.low, act.high};
    Map(x, y, n, [&](auto d, auto v) HWY_ATTR { return Apply(d, fixed, v); });
  });
}

void MapExp(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
}
void MapErf(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Erf(d, v); });
}
void MapLog(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Log(d, v); });
}
void MapLog2(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](auto d, auto v) HWY_ATTR { return Log2(d, v); });
}

#define ET_CONVERT(name, X, Y)                             \
  void name(const X* x, Y* y, int64_t n) {                 \
    Map(x, y, n, [](auto, auto v) HWY_ATTR { return v; }); \
  }
ET_CONVERT(FloatFromF16, F16, float)
ET_CONVERT(FloatFromBF16, BF16, float)
ET_CONVERT(F16FromFloat, float, F16)
ET_CONVERT(BF16FromFloat, float, BF16)
#undef ET_CONVERT

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(ApplyActivation);
HWY_EXPORT(MapExp);
HWY_EXPORT(MapErf);
HWY_EXPORT(MapLog);
HWY_EXPORT(MapLog2);
HWY_EXPORT(FloatFromF16);
HWY_EXPORT(FloatFromBF16);
HWY_EXPORT(F16FromFloat);
HWY_EXPORT(BF16FromFloat);

void apply(const Activation& act, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyActivation)(act, x, y, n);
}
void exp(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MapExp)(x, y, n);
}
void erf(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MapErf)(x, y, n);
}
void log(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MapLog)(x, y, n);
}
void log2(const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MapLog2)(x, y, n);
}
void convert(const F16* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatFromF16)(x, y, n);
}
void convert(const BF16* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatFromBF16)(x, y, n);
}
void convert(const float* x, F16* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(F16FromFloat)(x, y, n);
}
void convert(const float* x, BF16* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BF16FromFloat)(x, y, n);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
