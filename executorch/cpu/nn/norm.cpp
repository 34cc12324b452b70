#include <executorch/cpu/nn/norm.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/norm.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

/// The elements of a run, whose sum is computed in float. A run stays in the L1 cache.
constexpr int64_t kRun = 2048;
constexpr int64_t kGrain = 16384;     // elements
constexpr int64_t kLongest = 262144;  // bytes of rows of which two stay in a second-level cache
/// What is read after a chunk.
template <class T>
constexpr int64_t kAhead = kStreamBytes / static_cast<int64_t>(sizeof(T));

struct Moments {
  double n = 0, mean = 0, squares = 0;  // squares: sum of (x - mean)^2

  /// The parallel form of Welford's update.
  void Merge(double count, double other_mean, double other_squares) {
    const double total = n + count, delta = other_mean - mean;
    mean += delta * count / total;
    squares += other_squares + delta * delta * n * count / total;
    n = total;
  }
};

/// The sum of f(x[i]) for n <= kRun elements.
template <class T, class F>
HWY_INLINE float SumOf(const T* HWY_RESTRICT x, int64_t n, const F& f) {
  const Floats d;
  V sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) sum[k] = hn::Add(sum[k], f(LoadFloats(d, x + i + k * kLanes)));
  }
  for (; i + kLanes <= n; i += kLanes) sum[0] = hn::Add(sum[0], f(LoadFloats(d, x + i)));
  if (i < n) {
    const size_t rest = static_cast<size_t>(n - i);
    const V last = f(LoadFloatsN(d, x + i, rest));
    sum[1] = hn::Add(sum[1], hn::IfThenElseZero(hn::FirstN(d, rest), last));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

/// The sums of x - middle and of (x - middle)^2.
template <class T>
HWY_INLINE void SumDeviations(const T* HWY_RESTRICT x, int64_t n, float middle, double& sum,
                              double& squares) {
  const Floats d;
  const V m = hn::Set(d, middle);
  V s[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)}, q[4] = {s[0], s[0], s[0], s[0]};
  const auto add = [&](int64_t k, V delta) HWY_ATTR {
    s[k] = hn::Add(s[k], delta);
    q[k] = hn::MulAdd(delta, delta, q[k]);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) add(k, hn::Sub(LoadFloats(d, x + i + k * kLanes), m));
  }
  for (; i + kLanes <= n; i += kLanes) add(0, hn::Sub(LoadFloats(d, x + i), m));
  if (i < n) {
    const size_t rest = static_cast<size_t>(n - i);
    add(1, hn::IfThenElseZero(hn::FirstN(d, rest), hn::Sub(LoadFloatsN(d, x + i, rest), m)));
  }
  const auto all = [&](const V(&v)[4]) HWY_ATTR {
    const V pairs = hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, pairs)));
  };
  sum = all(s);
  squares = all(q);
}

template <class T>
Moments MomentsOf(const T* HWY_RESTRICT x, int64_t n) {
  Moments result;
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t m = std::min(kRun, n - i);
    const double count = static_cast<double>(m);
    const float about = SumOf(x + i, m, [](V v) HWY_ATTR { return v; }) / static_cast<float>(m);
    // The mean is rounded. The sum of deviations from it, `bias`, corrects mean and squares.
    double bias, squares;
    SumDeviations(x + i, m, about, bias, squares);
    result.Merge(count, about + bias / count, squares - bias * bias / count);
  }
  return result;
}

template <class T>
double MeanSquare(const T* HWY_RESTRICT x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kRun) {
    sum += SumOf(x + i, std::min(kRun, n - i), [](V v) HWY_ATTR { return hn::Mul(v, v); });
  }
  return sum / static_cast<double>(n);
}

/// y = x * scale + shift. Meanwhile prefetches as many bytes from `next` on.
template <class T>
HWY_INLINE void Affine(const T* x, int64_t n, float scale, float shift, bool past, const T* next,
                       T* y) {
  const Floats d;
  const V a = hn::Set(d, scale), b = hn::Set(d, shift);
  Produce(y, n, past, next, [&](int64_t i, const auto& lanes) HWY_ATTR {
    return hn::MulAdd(lanes.load(x + i), a, b);
  });
}

/// Computes a row of a layer norm, with a weight and a bias per element.
template <class T>
HWY_INLINE void NormalizeRow(const T* x, int64_t n, float mean, float rstd, const float* weight,
                             const float* bias, bool past, const T* next, T* y) {
  const Floats d;
  const V m = hn::Set(d, mean), r = hn::Set(d, rstd);
  Produce(y, n, past, next, [&](int64_t i, const auto& lanes) HWY_ATTR {
    V v = hn::Mul(hn::Sub(lanes.load(x + i), m), r);
    if (weight != nullptr) v = hn::Mul(v, lanes.load(weight + i));
    return bias != nullptr ? hn::Add(v, lanes.load(bias + i)) : v;
  });
}

/// Elements [i, end) of a row whose moments are known. What lies `ahead` elements further is
/// prefetched.
template <class T>
void FinishRow(const NormalizeRows& a, int64_t row, int64_t i, int64_t end, float mean, float rstd,
               bool past, int64_t ahead) {
  const T* x = static_cast<const T*>(a.x) + row * a.n;
  T* y = static_cast<T*>(a.y) + row * a.n;
  const int64_t first = row % a.weight_period * (a.n / a.inner);
  const float* weight = a.weight == nullptr ? nullptr : a.weight + first;
  const float* bias = a.bias == nullptr ? nullptr : a.bias + first;
  if (a.inner == 1) {
    const auto at = [&](const float* p) { return p == nullptr ? nullptr : p + i; };
    return NormalizeRow(x + i, end - i, mean, rstd, at(weight), at(bias), past, x + i + ahead,
                        y + i);
  }
  for (int64_t last; i < end; i = last) {
    const int64_t c = i / a.inner;
    last = std::min(end, (c + 1) * a.inner);
    const float scale = weight == nullptr ? rstd : rstd * weight[c];
    const float shift = (bias == nullptr ? 0.0f : bias[c]) - mean * scale;
    Affine(x + i, last - i, scale, shift, past, x + i + kAhead<T>, y + i);
  }
}

/// Keeps the statistics of a row, and returns its rstd.
float Keep(const NormalizeRows& a, int64_t row, float mean, double variance) {
  const float rstd = static_cast<float>(1 / std::sqrt(variance + a.eps));
  if (a.mean != nullptr) a.mean[row] = mean;
  if (a.rstd != nullptr) a.rstd[row] = rstd;
  return rstd;
}

template <class T>
void Normalize(const NormalizeRows& a, int64_t row, bool past, int64_t last) {
  const T* x = static_cast<const T*>(a.x) + row * a.n;
  // If rows fit a cache, the next row is prefetched while one is written.
  const int64_t ahead = row < last && a.n * static_cast<int64_t>(sizeof(T)) <= kLongest ? a.n : 0;
  double mean = 0, variance;
  if (a.rms) {
    variance = MeanSquare(x, a.n);
  } else {
    const Moments moments = MomentsOf(x, a.n);
    mean = moments.mean;
    variance = moments.squares / moments.n;
  }
  const float center = static_cast<float>(mean);
  FinishRow<T>(a, row, 0, a.n, center, Keep(a, row, center, variance), past, ahead);
}

/// The moments of all of `x`, from those of up to kParts parts, which threads share.
template <class T>
Moments MomentsOfParts(const T* x, int64_t n, bool rms) {
  constexpr int64_t kParts = 64;
  const int64_t runs = (n + kRun - 1) / kRun, part = (runs + kParts - 1) / kParts * kRun;
  const int64_t parts = (n + part - 1) / part;
  Moments of[kParts], all;
  parallel_for(parts, std::max<int64_t>(kGrain / part, 1), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const T* const from = x + i * part;
      const int64_t m = std::min(part, n - i * part);
      const auto count = static_cast<double>(m);
      of[i] = rms ? Moments{count, 0, MeanSquare(from, m) * count} : MomentsOf(from, m);
    }
  });
  for (int64_t i = 0; i < parts; ++i) all.Merge(of[i].n, of[i].mean, of[i].squares);
  return all;
}

/// Normalize() of a row that all threads share.
template <class T>
void NormalizeTogether(const NormalizeRows& a, int64_t row, bool past) {
  const Moments moments = MomentsOfParts(static_cast<const T*>(a.x) + row * a.n, a.n, a.rms);
  const float center = static_cast<float>(moments.mean);
  const float rstd = Keep(a, row, center, moments.squares / moments.n);
  parallel_for(a.n, kGrain, [&](int64_t i, int64_t end) {
    FinishRow<T>(a, row, i, end, center, rstd, past, kAhead<T>);
    end_stream();
  });
}

/// Whether there are too few rows for all threads, which are long enough to be shared.
bool AreShared(const NormalizeRows& a) {
  constexpr int64_t kFew = 8;
  return a.rows < kFew && a.n >= 4 * kGrain;
}

template <class T>
void Scale(const ScaleChannels& a) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.y);
  const bool past =
      overflows_caches(2 * a.outer * a.channels * a.inner * static_cast<int64_t>(sizeof(T)));
  if (a.inner == 1) {
    parallel_for(a.outer, std::max<int64_t>(kGrain / a.channels, 1),
                 [&](int64_t r, int64_t end) HWY_ATTR {
                   for (; r < end; ++r) {
                     const T* from = x + r * a.channels;
                     T* to = y + r * a.channels;
                     ForVectors(a.channels, [&](int64_t c, const auto& lanes) HWY_ATTR {
                       const V scaled = hn::MulAdd(lanes.load(from + c), lanes.load(a.scale + c),
                                                   lanes.load(a.shift + c));
                       lanes.store(scaled, to + c);
                     });
                   }
                 });
    return;
  }
  parallel_for(a.outer * a.channels, std::max<int64_t>(kGrain / a.inner, 1),
               [&](int64_t plane, int64_t end) HWY_ATTR {
                 for (; plane < end; ++plane) {
                   const int64_t c = plane % a.channels;
                   const T* const from = x + plane * a.inner;
                   Affine(from, a.inner, a.scale[c], a.shift[c], past, from + kAhead<T>,
                          y + plane * a.inner);
                 }
               });
}

void RunMoments(Type type, const void* x, int64_t n, RowMoments* result) {
  with_type(type, [&](auto tag) {
    const Moments moments = MomentsOf(static_cast<const decltype(tag)*>(x), n);
    *result = {moments.mean, moments.squares};
  });
}

void RunNormalizeRows(const NormalizeRows& a) {
  if (a.rows * a.n == 0) return;
  with_type(a.type, [&](auto tag) {
    const bool past = overflows_caches(2 * a.rows * a.n * static_cast<int64_t>(sizeof(tag)));
    for (int64_t row = 0; AreShared(a) && row < a.rows; ++row) {
      NormalizeTogether<decltype(tag)>(a, row, past && a.x != a.y);
    }
    if (AreShared(a)) return;
    parallel_for(a.rows, std::max<int64_t>(kGrain / a.n, 1), [&](int64_t row, int64_t end) {
      for (const int64_t last = end - 1; row < end; ++row) {
        Normalize<decltype(tag)>(a, row, past && a.x != a.y, last);
      }
      end_stream();
    });
  });
}

void RunScaleChannels(const ScaleChannels& a) {
  if (a.outer * a.channels * a.inner == 0) return;
  with_type(a.type, [&](auto tag) { Scale<decltype(tag)>(a); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunMoments);
HWY_EXPORT(RunNormalizeRows);
HWY_EXPORT(RunScaleChannels);

RowMoments moments(Type type, const void* x, int64_t n) {
  RowMoments result;
  HWY_DYNAMIC_DISPATCH(RunMoments)(type, x, n, &result);
  return result;
}

void NormalizeRows::run() const {
  HWY_DYNAMIC_DISPATCH(RunNormalizeRows)(*this);
}
void ScaleChannels::run() const {
  HWY_DYNAMIC_DISPATCH(RunScaleChannels)(*this);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
