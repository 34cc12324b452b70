#include <executorch/cpu/nn/elementwise.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/elementwise.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/functions-inl.h>
#include <executorch/cpu/nn/rounded_division-inl.h>
#include <executorch/cpu/nn/short_math-inl.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

/// Whether elements of both types can be loaded and stored in pairs of vectors, without shuffles.
template <class X, class Y>
constexpr bool kPaired = std::is_same_v<X, BF16>&& std::is_same_v<Y, BF16>;

/// y[i] = f(x[i]), f on vectors of float.
template <class X, class Y, class F>
HWY_INLINE void Map(const X* x, Y* y, int64_t count, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  size_t i = 0;
  if constexpr (kPaired<X, Y>) {
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      hn::Vec<decltype(d)> a, b;
      LoadPair(d, x + i, a, b);
      StorePair(f(d, a), f(d, b), d, y + i);
    }
  }
  for (; i + lanes <= n; i += lanes) StoreFloats(f(d, LoadFloats(d, x + i)), d, y + i);
  if (i < n) StoreFloatsN(f(d, LoadFloatsN(d, x + i, n - i)), d, y + i, n - i);
}

/// y[i] = f(a[i], b[i])
template <class T, class F>
HWY_INLINE void Zip(const T* a, const T* b, T* y, int64_t count, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  size_t i = 0;
  if constexpr (kPaired<T, T>) {
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      hn::Vec<decltype(d)> v, w, p, q;
      LoadPair(d, a + i, v, w);
      LoadPair(d, b + i, p, q);
      StorePair(f(v, p), f(w, q), d, y + i);
    }
  }
  for (; i + lanes <= n; i += lanes) {
    StoreFloats(f(LoadFloats(d, a + i), LoadFloats(d, b + i)), d, y + i);
  }
  if (i < n) {
    const auto v = LoadFloatsN(d, a + i, n - i), w = LoadFloatsN(d, b + i, n - i);
    StoreFloatsN(f(v, w), d, y + i, n - i);
  }
}

template <class T, class F>
void Combine(const Operand& a, const Operand& b, void* y, int64_t n, const F& f) {
  const hn::ScalableTag<float> d;
  const T *left = static_cast<const T*>(a.data), *right = static_cast<const T*>(b.data);
  T* const to = static_cast<T*>(y);
  if (left == nullptr) {
    const auto v = hn::Set(d, a.number);
    Map(right, to, n, [&](auto, auto w) HWY_ATTR { return f(v, w); });
  } else if (right == nullptr) {
    const auto w = hn::Set(d, b.number);
    Map(left, to, n, [&](auto, auto v) HWY_ATTR { return f(v, w); });
  } else {
    Zip(left, right, to, n, f);
  }
}

template <class T>
void CombineAs(Arithmetic op, const Operand& a, const Operand& b, void* y, int64_t n) {
#define ET_OPERATION(name, expression) \
  case Arithmetic::name:               \
    return Combine<T>(a, b, y, n, [](auto v, auto w) HWY_ATTR { return expression; });
  switch (op) {
    ET_FOR_EACH_ARITHMETIC(ET_OPERATION)
    ET_FOR_EACH_ROUNDED_DIVISION(ET_OPERATION)
  }
#undef ET_OPERATION
}

/// y[i] = f(x[i]), with a single copy of f in the program: functions are long, and there are many.
template <class F>
void MapFunction(const float* x, float* y, int64_t count, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  for (size_t i = 0; i < n; i += lanes) {
    const bool is_whole = i + lanes <= n;
    const auto v = f(d, is_whole ? LoadFloats(d, x + i) : LoadFloatsN(d, x + i, n - i));
    is_whole ? StoreFloats(v, d, y + i) : StoreFloatsN(v, d, y + i, n - i);
  }
}

void FunctionOfFloats(Function function, const float* x, float* y, int64_t n) {
#define ET_ROW(name, op) \
  case Function::name:   \
    return MapFunction(x, y, n, [](auto d, auto v) HWY_ATTR { return name(d, v); });
  switch (function) { ET_FUNCTIONS(ET_ROW) }
#undef ET_ROW
}

void ApplyActivation(const Activation& act, Type type, const void* x, void* y, int64_t n) {
  with_type(type, [&](auto t) HWY_ATTR {
    using T = decltype(t);
    with_kind(act.kind, [&](auto kind) HWY_ATTR {
      const Activation fixed = {decltype(kind)::value, act.low, act.high};
      Map(static_cast<const T*>(x), static_cast<T*>(y), n, [&](auto d, auto v) HWY_ATTR {
        if constexpr (sizeof(T) == 2) return ApplyShort(d, fixed, v);
        return Apply(d, fixed, v);
      });
    });
  });
}

void ApplyFunction(Function f, Type type, const void* x, void* y, int64_t n) {
  with_type(type, [&](auto t) HWY_ATTR {
    using T = decltype(t);
    const T* const from = static_cast<const T*>(x);
    T* const to = static_cast<T*>(y);
    if constexpr (std::is_same_v<T, float>) {
      FunctionOfFloats(f, from, to, n);
    } else {
      constexpr int64_t kPiece = 256;
      float piece[kPiece];
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t m = std::min(kPiece, n - i);
        Map(from + i, piece, m, [](auto, auto v) HWY_ATTR { return v; });
        FunctionOfFloats(f, piece, piece, m);
        Map(piece, to + i, m, [](auto, auto v) HWY_ATTR { return v; });
      }
    }
  });
}

void ApplyElu(const Elu& elu, Type type, const void* x, void* y, int64_t n) {
  with_type(type, [&](auto t) HWY_ATTR {
    using T = decltype(t);
    Map(static_cast<const T*>(x), static_cast<T*>(y), n, [&](auto d, auto v) HWY_ATTR {
      const auto exponential = Expm1(d, hn::Mul(v, hn::Set(d, elu.inner)));
      const auto negative = hn::Mul(exponential, hn::Set(d, elu.negative));
      const auto positive = hn::Mul(v, hn::Set(d, elu.positive));
      return hn::IfThenElse(hn::Le(v, hn::Zero(d)), negative, positive);
    });
  });
}

void ApplyArithmetic(Arithmetic op, Type type, const Operand& a, const Operand& b, void* y,
                     int64_t n) {
  with_type(type, [&](auto t) HWY_ATTR { CombineAs<decltype(t)>(op, a, b, y, n); });
}

#define ET_CONVERT(name, X, Y)                             \
  void name(const X* x, Y* y, int64_t n) {                 \
    Map(x, y, n, [](auto, auto v) HWY_ATTR { return v; }); \
  }
#define ET_ROW(T, name)                 \
  ET_CONVERT(FloatFrom##name, T, float) \
  ET_CONVERT(name##FromFloat, float, T)
ET_NARROW_FLOATS(ET_ROW)
#undef ET_ROW
#undef ET_CONVERT

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(ApplyActivation);
HWY_EXPORT(ApplyFunction);
HWY_EXPORT(ApplyElu);
HWY_EXPORT(ApplyArithmetic);

void apply(const Activation& act, Type type, const void* x, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyActivation)(act, type, x, y, n);
}
void apply(const Elu& elu, Type type, const void* x, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyElu)(elu, type, x, y, n);
}
void apply(Function f, Type type, const void* x, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyFunction)(f, type, x, y, n);
}
void apply(Arithmetic op, Type type, const Operand& a, const Operand& b, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyArithmetic)(op, type, a, b, y, n);
}
#define ET_ROW(T, name)                             \
  HWY_EXPORT(FloatFrom##name);                      \
  HWY_EXPORT(name##FromFloat);                      \
  void convert(const T* x, float* y, int64_t n) {   \
    HWY_DYNAMIC_DISPATCH(FloatFrom##name)(x, y, n); \
  }                                                 \
  void convert(const float* x, T* y, int64_t n) {   \
    HWY_DYNAMIC_DISPATCH(name##FromFloat)(x, y, n); \
  }
ET_NARROW_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
#endif  // HWY_ONCE
