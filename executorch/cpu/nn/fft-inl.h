/// Stockham's passes over transforms that lie side by side.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_FFT_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_FFT_INL_H_
#undef EXECUTORCH_CPU_NN_FFT_INL_H_
#else
#define EXECUTORCH_CPU_NN_FFT_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/fft_plan.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A block holds as many transforms as D has lanes: for each element a vector of real parts and one
/// of imaginary parts.
template <class D>
constexpr int64_t kLinesOf = static_cast<int64_t>(hn::MaxLanes(D()));
template <class D>
constexpr int64_t kElement = 2 * kLinesOf<D>;

/// A complex number of each transform.
template <class D>
struct Numbers {
  hn::Vec<D> re, im;
};

template <class D>
HWY_INLINE Numbers<D> Add(Numbers<D> a, Numbers<D> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class D>
HWY_INLINE Numbers<D> Sub(Numbers<D> a, Numbers<D> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
/// a + i b and a - i b.
template <class D>
HWY_INLINE Numbers<D> AddTimesI(Numbers<D> a, Numbers<D> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}
template <class D>
HWY_INLINE Numbers<D> SubTimesI(Numbers<D> a, Numbers<D> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
/// a w and a conj(w).
template <class D>
HWY_INLINE Numbers<D> Times(Numbers<D> a, Numbers<D> w) {
  return {hn::NegMulAdd(a.im, w.im, hn::Mul(a.re, w.re)),
          hn::MulAdd(a.re, w.im, hn::Mul(a.im, w.re))};
}
template <class D>
HWY_INLINE Numbers<D> TimesConj(Numbers<D> a, Numbers<D> w) {
  return {hn::MulAdd(a.im, w.im, hn::Mul(a.re, w.re)),
          hn::NegMulAdd(a.re, w.im, hn::Mul(a.im, w.re))};
}
/// a + s b.
template <class D, class T>
HWY_INLINE Numbers<D> AddScaled(Numbers<D> a, T s, Numbers<D> b) {
  const hn::Vec<D> v = hn::Set(D(), s);
  return {hn::MulAdd(v, b.re, a.re), hn::MulAdd(v, b.im, a.im)};
}
template <class D, class T>
HWY_INLINE Numbers<D> Scaled(T s, Numbers<D> b) {
  const hn::Vec<D> v = hn::Set(D(), s);
  return {hn::Mul(v, b.re), hn::Mul(v, b.im)};
}
/// The same number for each transform.
template <class D, class T>
HWY_INLINE Numbers<D> Same(D d, const T* w) {
  return {hn::Set(d, w[0]), hn::Set(d, w[1])};
}

/// Transforms of P numbers.
template <class D>
HWY_INLINE void Butterfly(Numbers<D> (&x)[2]) {
  const Numbers<D> sum = Add(x[0], x[1]);
  x[1] = Sub(x[0], x[1]);
  x[0] = sum;
}
template <class D>
HWY_INLINE void Butterfly(Numbers<D> (&x)[3]) {
  using T = hn::TFromD<D>;
  const Numbers<D> sum = Add(x[1], x[2]);
  const Numbers<D> rotated = Scaled(T(0.86602540378443864676), Sub(x[1], x[2]));
  const Numbers<D> middle = AddScaled(x[0], T(-0.5), sum);
  x[0] = Add(x[0], sum);
  x[1] = SubTimesI(middle, rotated);
  x[2] = AddTimesI(middle, rotated);
}
template <class D>
HWY_INLINE void Butterfly(Numbers<D> (&x)[4]) {
  const Numbers<D> even = Add(x[0], x[2]), left = Sub(x[0], x[2]);
  const Numbers<D> odd = Add(x[1], x[3]), rotated = Sub(x[1], x[3]);
  x[0] = Add(even, odd);
  x[1] = SubTimesI(left, rotated);
  x[2] = Sub(even, odd);
  x[3] = AddTimesI(left, rotated);
}
template <class D>
HWY_INLINE void Butterfly(Numbers<D> (&x)[5]) {
  using T = hn::TFromD<D>;
  constexpr T kCos1 = T(0.30901699437494742410), kCos2 = T(-0.80901699437494742410);
  constexpr T kSin1 = T(0.95105651629515357212), kSin2 = T(0.58778525229247312917);
  const Numbers<D> sum1 = Add(x[1], x[4]), sum2 = Add(x[2], x[3]);
  const Numbers<D> rotated1 = Sub(x[1], x[4]), rotated2 = Sub(x[2], x[3]);
  const Numbers<D> a = AddScaled(AddScaled(x[0], kCos1, sum1), kCos2, sum2);
  const Numbers<D> b = AddScaled(AddScaled(x[0], kCos2, sum1), kCos1, sum2);
  const Numbers<D> c = AddScaled(Scaled(kSin1, rotated1), kSin2, rotated2);
  const Numbers<D> d = AddScaled(Scaled(kSin2, rotated1), -kSin1, rotated2);
  x[0] = Add(x[0], Add(sum1, sum2));
  x[1] = SubTimesI(a, c);
  x[2] = SubTimesI(b, d);
  x[3] = AddTimesI(b, d);
  x[4] = AddTimesI(a, c);
}
template <class D>
HWY_INLINE void Butterfly(Numbers<D> (&x)[8]) {
  constexpr hn::TFromD<D> kHalf = hn::TFromD<D>(0.70710678118654752440);
  Numbers<D> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  Butterfly(even);
  Butterfly(odd);
  const Numbers<D> rotated1 = Scaled(kHalf, SubTimesI(odd[1], odd[1]));
  const Numbers<D> rotated3 = Scaled(kHalf, AddTimesI(odd[3], odd[3]));
  x[0] = Add(even[0], odd[0]);
  x[4] = Sub(even[0], odd[0]);
  x[1] = Add(even[1], rotated1);
  x[5] = Sub(even[1], rotated1);
  x[2] = SubTimesI(even[2], odd[2]);
  x[6] = AddTimesI(even[2], odd[2]);
  x[3] = Sub(even[3], rotated3);
  x[7] = Add(even[3], rotated3);
}

/// One pass: for k < m and q < s, the transform of x[q + s (k + m j)] over j < p, times
/// exp(-2 pi sqrt(-1) k r / (p m)), becomes y[q + s (p k + r)], r < p. `re` and `im` are where the
/// real and imaginary parts begin in a block; exchanged, they make the transform a backward one.
template <class D>
struct Pass {
  using T = hn::TFromD<D>;
  using N = Numbers<D>;
  T *x, *y;
  int64_t re, im, m, s;
  Roots<T> roots;

  HWY_INLINE N load(int64_t at) const {
    const T* const p = x + at * kElement<D>;
    return {hn::LoadU(D(), p + re), hn::LoadU(D(), p + im)};
  }
  static HWY_INLINE void Store(N v, T* base, int64_t at, int64_t re, int64_t im) {
    hn::StoreU(v.re, D(), base + at * kElement<D> + re);
    hn::StoreU(v.im, D(), base + at * kElement<D> + im);
  }
  HWY_INLINE void store(N v, int64_t at) const { Store(v, y, at, re, im); }

  template <int P, bool kTwiddled>
  void run() const {
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t q = 0; q < s; ++q) {
        N v[P];
        for (int j = 0; j < P; ++j) v[j] = load(q + s * (k + m * j));
        Butterfly(v);
        store(v[0], q + s * P * k);
        for (int r = 1; r < P; ++r) {
          const int64_t to = q + s * (P * k + r);
          if constexpr (kTwiddled) {
            store(Times(v[r], Same(D(), roots.at(k * r * s))), to);
          } else {
            store(v[r], to);
          }
        }
      }
    }
  }

  /// For odd p: numbers j and p - j are replaced by their sum and difference, of which the results
  /// r and p - r are sums with cosines and with sines as weights. Overwrites x.
  void run_odd(int64_t p) const {
    const int64_t half = p / 2, part = roots.n / p;
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t q = 0; q < s; ++q) {
        const N first = load(q + s * k);
        N sum = first;
        for (int64_t j = 1; j <= half; ++j) {
          const int64_t at = q + s * (k + m * j), mirror = q + s * (k + m * (p - j));
          const N a = load(at), b = load(mirror), both = Add(a, b);
          Store(both, x, at, re, im);
          Store(Sub(a, b), x, mirror, re, im);
          sum = Add(sum, both);
        }
        store(sum, q + s * p * k);
        for (int64_t r = 1; r <= half; ++r) {
          N by_cos = first, by_sin = {hn::Zero(D()), hn::Zero(D())};
          for (int64_t j = 1, step = r; j <= half; ++j, step = (step + r) % p) {
            const T* const w = roots.at(step * part);
            by_cos = AddScaled(by_cos, w[0], load(q + s * (k + m * j)));
            by_sin = AddScaled(by_sin, w[1], load(q + s * (k + m * (p - j))));
          }
          store(Times(AddTimesI(by_cos, by_sin), Same(D(), roots.at(k * r * s))),
                q + s * (p * k + r));
          store(Times(SubTimesI(by_cos, by_sin), Same(D(), roots.at(k * (p - r) * s))),
                q + s * (p * k + p - r));
        }
      }
    }
  }

  void run(int64_t p) const {
    const bool twiddled = m > 1;
    switch (p) {
      case 2:
        return twiddled ? run<2, true>() : run<2, false>();
      case 3:
        return twiddled ? run<3, true>() : run<3, false>();
      case 4:
        return twiddled ? run<4, true>() : run<4, false>();
      case 5:
        return twiddled ? run<5, true>() : run<5, false>();
      case 8:
        return twiddled ? run<8, true>() : run<8, false>();
      default:
        return run_odd(p);
    }
  }
};

/// Transforms the roots.n elements of `block` and returns the block that holds the result, which is
/// `block` or `other`.
template <class D, class T>
T* TransformBlock(D, bool forward, Roots<T> roots, T* block, T* other) {
  const int64_t re = forward ? 0 : kLinesOf<D>, im = kLinesOf<D> - re;
  for (int64_t rest = roots.n, s = 1; rest > 1;) {
    const int64_t p = next_factor(rest);
    rest /= p;
    Pass<D>{block, other, re, im, rest, s, roots}.run(p);
    s *= p;
    T* const result = other;
    other = block;
    block = result;
  }
  return block;
}

/// Of the transform of m complex numbers (x[2 i], x[2 i + 1]), makes the first m + 1 numbers of
/// that of the n = 2 m real ones, in place. `block` has room for m + 1 elements, `roots` are of n.
template <class D, class T>
void SplitHalves(D d, Roots<T> roots, T scale, T* block) {
  using N = Numbers<D>;
  const int64_t m = roots.n / 2;
  const Pass<D> at{block, block, 0, kLinesOf<D>, 1, 1, roots};
  at.store(at.load(0), m);
  for (int64_t k = 0; k <= m / 2; ++k) {
    const N a = Scaled(scale / 2, at.load(k)), b = Scaled(scale / 2, at.load(m - k));
    const N even = {hn::Add(a.re, b.re), hn::Sub(a.im, b.im)};
    const N odd = {hn::Sub(a.re, b.re), hn::Add(a.im, b.im)};
    const N twiddled = Times(odd, Same(d, roots.at(k)));
    const N other = AddTimesI(even, twiddled);
    at.store(SubTimesI(even, twiddled), k);
    at.store({other.re, hn::Neg(other.im)}, m - k);
  }
}

/// The reverse: makes of m + 1 numbers the m that a backward transform turns into pairs of reals.
template <class D, class T>
void JoinHalves(D d, Roots<T> roots, T scale, T* block) {
  using N = Numbers<D>;
  const int64_t m = roots.n / 2;
  const Pass<D> at{block, block, 0, kLinesOf<D>, 1, 1, roots};
  at.store({at.load(0).re, hn::Zero(d)}, 0);
  at.store({at.load(m).re, hn::Zero(d)}, m);
  for (int64_t k = 0; k <= m / 2; ++k) {
    const N a = Scaled(scale, at.load(k)), b = Scaled(scale, at.load(m - k));
    const N even = {hn::Add(a.re, b.re), hn::Sub(a.im, b.im)};
    const N odd = {hn::Sub(a.re, b.re), hn::Add(a.im, b.im)};
    const N twiddled = TimesConj(odd, Same(d, roots.at(k)));
    const N other = SubTimesI(even, twiddled);
    at.store(AddTimesI(even, twiddled), k);
    at.store({other.re, hn::Neg(other.im)}, m - k);
  }
}

/// Elements i in [first, end) of the block become the conjugates of elements n - i.
template <class D, class T>
void Mirror(D, int64_t n, int64_t first, int64_t end, T* block) {
  const Pass<D> at{block, block, 0, kLinesOf<D>, 1, 1, {nullptr, 1, 1}};
  for (int64_t i = first; i < end; ++i) {
    const Numbers<D> v = at.load(n - i);
    at.store({v.re, hn::Neg(v.im)}, i);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
