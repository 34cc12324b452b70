#include <executorch/cpu/nn/magnitude.h>

#include <executorch/cpu/threadpool.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/magnitude.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/vectors-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;
using Parts = hn::Rebind<float, Doubles>;

/// Squares of floats are exact in double, where neither they nor their sum leave the range.
HWY_INLINE hn::Vec<Parts> Magnitude(hn::Vec<Parts> re, hn::Vec<Parts> im) {
  const Doubles d;
  const Parts df;
  const auto a = hn::PromoteTo(d, re), b = hn::PromoteTo(d, im);
  const auto length = hn::DemoteTo(df, hn::Sqrt(hn::MulAdd(a, a, hn::Mul(b, b))));
  const auto infinity = hn::Set(df, std::numeric_limits<float>::infinity());
  const auto is_infinite = hn::Or(hn::Eq(hn::Abs(re), infinity), hn::Eq(hn::Abs(im), infinity));
  return hn::IfThenElse(is_infinite, infinity, length);
}

void Magnitudes(const float* HWY_RESTRICT x, float* HWY_RESTRICT y, int64_t n) {
  const Parts df;
  constexpr int64_t kLengths = static_cast<int64_t>(hn::MaxLanes(df));
  const auto some = [&](const float* from, float* to) HWY_ATTR {
    hn::Vec<Parts> re, im;
    hn::LoadInterleaved2(df, from, re, im);
    hn::StoreU(Magnitude(re, im), df, to);
  };
  int64_t i = 0;
  for (; i + kLengths <= n; i += kLengths) some(x + 2 * i, y + i);
  if (i == n) return;
  HWY_ALIGN float rest[2 * kLengths] = {}, lengths[kLengths];
  memcpy(rest, x + 2 * i, static_cast<size_t>(2 * (n - i)) * sizeof(float));
  some(rest, lengths);
  memcpy(y + i, lengths, static_cast<size_t>(n - i) * sizeof(float));
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(Magnitudes);

void magnitudes(const float* x, float* y, int64_t n) {
  constexpr int64_t kGrain = 8192;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Magnitudes)(x + 2 * begin, y + begin, end - begin);
  });
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
