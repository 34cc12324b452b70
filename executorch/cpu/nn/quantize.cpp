#include <executorch/cpu/nn/quantize.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/vectors-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

using Ints = hn::Rebind<int32_t, Floats>;
using Words = hn::RebindToUnsigned<Ints>;

/// The larger and the smaller number; b where a is NaN, as x86's instructions do.
HWY_INLINE V Larger(V a, V b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}
HWY_INLINE V Smaller(V a, V b) {
#if HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}

/// Dequantizes bytes. The subtraction is unsigned, so that it wraps rather than overflows for a
/// senseless zero point from a file.
template <class T>
class Reals {
 public:
  explicit Reals(const Int8Format& format)
      : zero_(hn::Set(Ints(), format.zero_point)), scale_(hn::Set(Floats(), format.scale)) {}

  template <class Bytes>
  HWY_INLINE V operator()(Bytes bytes) const {
    return hn::Mul(hn::ConvertTo(Floats(), hn::Sub(hn::PromoteTo(Ints(), bytes), zero_)), scale_);
  }

 private:
  hn::Vec<Ints> zero_;
  V scale_;
};

/// Clamps numbers before they are rounded. They are divided by the scale already, and the zero
/// point is not added yet. A NaN becomes the lower bound. Converting the result to an integer is
/// defined for every float.
class Range {
 public:
  Range(const Int8Format& format, float least, float most) : zero_(format.zero_point) {
    low_ = (format.is_unsigned ? 0.0f : -128.0f) - static_cast<float>(zero_);
    high_ = (format.is_unsigned ? 255.0f : 127.0f) - static_cast<float>(zero_);
    const float lowest = low_, highest = high_;
    low_ = least > lowest ? (least < highest ? least : highest) : lowest;
    high_ = most < highest ? (most > lowest ? most : lowest) : highest;
  }

  /// Integers whose low bytes are the result: the sum with 1.5 * 2^23 has the integer in its low
  /// bits, rounded to nearest even.
  HWY_INLINE auto operator()(V x) const {
    const Floats d;
    const V within = Smaller(Larger(x, hn::Set(d, low_)), hn::Set(d, high_));
    const auto bits = hn::BitCast(Ints(), hn::Add(within, hn::Set(d, 12582912.0f)));
    return hn::BitCast(Words(), hn::Add(bits, hn::Set(Ints(), zero_)));
  }

 private:
  float low_, high_;
  int32_t zero_;
};

/// Stores the low bytes of f(i, lanes) at y + i, for each vector of elements.
template <class F>
HWY_INLINE void StoreLowBytes(uint8_t* y, int64_t n, const F& f) {
  const hn::Repartition<uint16_t, Floats> halves;
  const hn::Repartition<uint8_t, Floats> bytes;
  const auto pair = [&](int64_t i) HWY_ATTR {
    const auto low = f(i, AllLanes()), high = f(i + kLanes, AllLanes());
    return hn::ConcatEven(halves, hn::BitCast(halves, high), hn::BitCast(halves, low));
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const auto low = pair(i), high = pair(i + 2 * kLanes);
    hn::StoreU(hn::ConcatEven(bytes, hn::BitCast(bytes, high), hn::BitCast(bytes, low)), bytes,
               y + i);
  }
  ForVectors(n - i, [&](int64_t j, const auto& lanes) HWY_ATTR {
    const hn::Rebind<uint8_t, Floats> few;
    lanes.store(hn::TruncateTo(few, f(i + j, lanes)), few, y + i + j);
  });
}

template <class T>
void DequantizeAs(const T* q, int64_t n, const Int8Format& format, float* x) {
  const Reals<T> real(format);
  ForVectors(n, [&](int64_t i, const auto& lanes) HWY_ATTR {
    lanes.store(real(lanes.load(hn::Rebind<T, Floats>(), q + i)), Floats(), x + i);
  });
}

void Dequantize(const void* q, int64_t n, const Int8Format& format, float* x) {
  format.is_unsigned ? DequantizeAs(static_cast<const uint8_t*>(q), n, format, x)
                     : DequantizeAs(static_cast<const int8_t*>(q), n, format, x);
}

void Quantize(const float* x, int64_t n, const Int8Format& format, void* q) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Range range(format, -kInfinity, kInfinity);
  const V inverse = hn::Set(Floats(), 1 / format.scale);
  StoreLowBytes(static_cast<uint8_t*>(q), n, [&](int64_t i, const auto& lanes) HWY_ATTR {
    return range(hn::Mul(lanes.load(x + i), inverse));
  });
}

RowQuantization QuantizeRow(const float* x, int64_t n, int8_t* q) {
  const Floats d;
  V lows[4], highs[4];  // of which a NaN becomes none
  for (int r = 0; r < 4; ++r) lows[r] = highs[r] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int r = 0; r < 4; ++r) {
      const V v = hn::LoadU(d, x + i + r * kLanes);
      lows[r] = Smaller(v, lows[r]);
      highs[r] = Larger(v, highs[r]);
    }
  }
  ForVectors(n - i, [&](int64_t j, const auto& lanes) HWY_ATTR {
    const V v = lanes.load(x + i + j);
    lows[0] = Smaller(v, lows[0]);
    highs[0] = Larger(v, highs[0]);
  });
  for (int r = 1; r < 4; ++r) {
    lows[0] = Smaller(lows[r], lows[0]);
    highs[0] = Larger(highs[r], highs[0]);
  }
  const float low = hn::GetLane(hn::MinOfLanes(d, lows[0]));
  const float high = hn::GetLane(hn::MaxOfLanes(d, highs[0]));
  const float inverse = high == low ? 1.0f : 255.0f / (high - low);
  const float a = low * inverse, b = high * inverse;
  const float zero = (-128 + a) + (127 + b) > 0 ? -128 - a : 127 - b;
  // With an infinite range, no integer represents 0; the zero point is then bounded.
  const float bounded = zero > -128 ? (zero < 127 ? zero : 127) : -128;
  constexpr float kRounder = 12582912.0f;
  const RowQuantization to{1 / inverse, static_cast<int32_t>((bounded + kRounder) - kRounder)};
  Quantize(x, n, {to.scale, to.zero_point, false}, q);
  return to;
}

template <class T, class F>
HWY_INLINE void CombineWith(const Int8Binary& b, const F& f) {
  const float inverse = 1 / b.y_format.scale;
  const Range range(b.y_format, b.low * inverse, b.high * inverse);
  const Reals<T> left(b.a_format), right(b.b_format);
  const auto* const p = static_cast<const T*>(b.a);
  const auto* const q = static_cast<const T*>(b.b);
  const hn::Rebind<T, Floats> bytes;
  StoreLowBytes(static_cast<uint8_t*>(b.y), b.n, [&](int64_t i, const auto& lanes) HWY_ATTR {
    const V result = f(left(lanes.load(bytes, p + i)), right(lanes.load(bytes, q + i)));
    return range(hn::Mul(result, hn::Set(Floats(), inverse)));
  });
}

template <class T>
void CombineAs(const Int8Binary& b) {
  switch (b.op) {
    case Int8Binary::Op::Add:
      return CombineWith<T>(b, [](V x, V y) HWY_ATTR { return hn::Add(x, y); });
    case Int8Binary::Op::Subtract:
      return CombineWith<T>(b, [](V x, V y) HWY_ATTR { return hn::Sub(x, y); });
    case Int8Binary::Op::Multiply:
      return CombineWith<T>(b, [](V x, V y) HWY_ATTR { return hn::Mul(x, y); });
  }
}

void Combine(const Int8Binary& b) {
  b.a_format.is_unsigned ? CombineAs<uint8_t>(b) : CombineAs<int8_t>(b);
}

template <class T>
void MaximumAs(const Int8Maximum& m) {
  const hn::ScalableTag<T> d;
  const auto low = hn::Set(d, static_cast<T>(m.low)), high = hn::Set(d, static_cast<T>(m.high));
  ForVectors(d, m.n, [&](int64_t i, const auto& lanes) HWY_ATTR {
    auto most = low;
    for (int64_t r = 0; r < m.n_rows; ++r) {
      most = hn::Max(most, lanes.load(d, static_cast<const T*>(m.rows[r]) + i));
    }
    lanes.store(hn::Min(most, high), d, static_cast<T*>(m.y) + i);
  });
}

void Maximum(const Int8Maximum& m) {
  m.is_unsigned ? MaximumAs<uint8_t>(m) : MaximumAs<int8_t>(m);
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(Dequantize);
HWY_EXPORT(Quantize);
HWY_EXPORT(QuantizeRow);
HWY_EXPORT(Combine);
HWY_EXPORT(Maximum);

void dequantize(const void* q, int64_t n, const Int8Format& format, float* x) {
  HWY_DYNAMIC_DISPATCH(Dequantize)(q, n, format, x);
}
void quantize(const float* x, int64_t n, const Int8Format& format, void* q) {
  HWY_DYNAMIC_DISPATCH(Quantize)(x, n, format, q);
}
RowQuantization quantize_row(const float* x, int64_t n, int8_t* q) {
  return HWY_DYNAMIC_DISPATCH(QuantizeRow)(x, n, q);
}
void Int8Binary::run() const {
  HWY_DYNAMIC_DISPATCH(Combine)(*this);
}
void Int8Maximum::run() const {
  HWY_DYNAMIC_DISPATCH(Maximum)(*this);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
