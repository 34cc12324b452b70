#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/softmax.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Sums of this many elements are computed in float; those of longer lines are added up in double.
constexpr int64_t kChunk = 4096;

/// max(x[0..n)). NaN may be ignored, because it makes the sum NaN later.
template <class T>
float MaxOf(const T* HWY_RESTRICT x, int64_t n) {
  const Floats d;
  V m[4];
  for (V& v : m) v = hn::Set(d, -kInfinity);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) m[k] = hn::Max(m[k], LoadFloats(d, x + i + k * kLanes));
  }
  ForVectors(n - i, [&](int64_t j, const auto& lanes) HWY_ATTR {
    m[0] = hn::IfThenElse(lanes.mask(), hn::Max(m[0], lanes.load(x + i + j)), m[0]);
  });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m[0], m[1]), hn::Max(m[2], m[3]))));
}

/// The sum of e^(x - max). Stores these powers in y unless it is null. Meanwhile prefetches `next`.
template <class T>
double SumExp(const T* HWY_RESTRICT x, int64_t n, float max, const T* next, float* HWY_RESTRICT y) {
  const Floats d;
  const V m = hn::Set(d, max);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    V sum = hn::Zero(d);
    ForVectors(std::min(kChunk, n - begin), [&](int64_t i, const auto& lanes) HWY_ATTR {
      prefetch(next + begin + i, 1);
      const V e = Exp(d, hn::Sub(lanes.load(x + begin + i), m));
      if (y != nullptr) lanes.store(e, y + begin + i);
      sum = hn::Add(sum, hn::IfThenElseZero(lanes.mask(), e));
    });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

/// The floats of the longest line that is kept in a buffer between passes. Longer lines are kept in
/// y.
constexpr int64_t kLongest = 32768;

/// Whether Row() needs a buffer for what it computes.
template <class T>
bool NeedsScratch(int64_t n, bool log, bool past) {
  return !log && (sizeof(T) != sizeof(float) || (past && n <= kLongest));
}

/// Computes a line. Meanwhile prefetches `next`, the following line. `buffer` has n floats, or is
/// null if none is needed.
template <class T>
void Row(const T* HWY_RESTRICT x, int64_t n, bool log, bool past, const T* next, float* buffer,
         T* HWY_RESTRICT y) {
  const Floats d;
  const float max = MaxOf(x, n);
  if (log) {
    const double sum = SumExp(x, n, max, next, nullptr);
    const V m = hn::Set(d, max), log_sum = hn::Set(d, static_cast<float>(std::log(sum)));
    write(y, n, past, [&](int64_t begin, int64_t count, T* to) HWY_ATTR {
      ForVectors(count, [&](int64_t i, const auto& lanes) HWY_ATTR {
        lanes.store(hn::Sub(hn::Sub(lanes.load(x + begin + i), m), log_sum), to + i);
      });
    });
    return;
  }
  if (buffer == nullptr) past = false;
  float* const e = buffer == nullptr ? reinterpret_cast<float*>(y) : buffer;
  const V share = hn::Set(d, static_cast<float>(1 / SumExp(x, n, max, next, e)));
  write(y, n, past, [&](int64_t begin, int64_t count, T* to) HWY_ATTR {
    ForVectors(count, [&](int64_t i, const auto& lanes) HWY_ATTR {
      lanes.store(hn::Mul(lanes.load(e + begin + i), share), to + i);
    });
  });
}

/// Computes kColumns neighbouring lines, whose elements i lie at x + i * step. They are gathered in
/// `buffer`, kColumns floats for each of the n elements, which fits an L2 cache, so that memory is
/// read once. Lines from `width` on are neither read nor written.
template <int64_t kColumns, class T>
class Strip {
 public:
  Strip(int64_t n, int64_t step, int64_t width, float* buffer)
      : n_(n), step_(step), width_(width), buffer_(buffer) {}

  void Run(const T* x, bool log, bool past, T* y) {
    Gather(x);
    Sum(log);
    for (int64_t i = 0; i < n_; ++i) {
      V v[kVectors];
      for (int64_t k = 0; k < kVectors; ++k) {
        v[k] = hn::Load(d_, buffer_ + i * kColumns + k * kLanes);
        v[k] = log ? hn::Sub(hn::Sub(v[k], max_[k]), scale_[k]) : hn::Mul(v[k], scale_[k]);
      }
      Store(v, past, y + i * step_);
    }
  }

 private:
  static constexpr int64_t kVectors = kColumns / kLanes;

  /// Converts the elements to floats and finds the largest of each line.
  void Gather(const T* x) {
    for (V& m : max_) m = hn::Set(d_, -kInfinity);
    for (int64_t i = 0; i < n_; ++i) {
      const T* const row = x + i * step_;
      prefetch(x + std::min(i + kRowsAhead, n_ - 1) * step_, kColumns * sizeof(T));
      for (int64_t k = 0; k < kVectors; ++k) {
        const int64_t rest = width_ - k * kLanes;
        V v = hn::Zero(d_);
        if (rest >= kLanes) {
          v = LoadFloats(d_, row + k * kLanes);
        } else if (rest > 0) {
          v = LoadFloatsN(d_, row + k * kLanes, static_cast<size_t>(rest));
        }
        hn::Store(v, d_, buffer_ + i * kColumns + k * kLanes);
        max_[k] = hn::Max(max_[k], v);
      }
    }
  }

  /// Sums of e^(x - max), which are kept unless `log`: of kRun of them in float, of the runs with
  /// what rounding took. Leaves what each line is to be multiplied with, or lessened by.
  void Sum(bool log) {
    V total[kVectors], lost[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) total[k] = lost[k] = hn::Zero(d_);
    for (int64_t begin = 0; begin < n_; begin += kRun) {
      V sum[kVectors];
      for (V& v : sum) v = hn::Zero(d_);
      for (int64_t i = begin; i < std::min(begin + kRun, n_); ++i) {
        for (int64_t k = 0; k < kVectors; ++k) {
          float* const at = buffer_ + i * kColumns + k * kLanes;
          const V e = Exp(d_, hn::Sub(hn::Load(d_, at), max_[k]));
          sum[k] = hn::Add(sum[k], e);
          if (!log) hn::Store(e, d_, at);
        }
      }
      for (int64_t k = 0; k < kVectors; ++k) {  // Kahan's
        const V term = hn::Sub(sum[k], lost[k]), after = hn::Add(total[k], term);
        lost[k] = hn::Sub(hn::Sub(after, total[k]), term);
        total[k] = after;
      }
    }
    for (int64_t k = 0; k < kVectors; ++k) {
      scale_[k] = log ? Log(d_, total[k]) : hn::Div(hn::Set(d_, 1.0f), total[k]);
    }
  }

  void Store(const V (&v)[kVectors], bool past, T* y) const {
    if (width_ == kColumns && !past) {
      for (int64_t k = 0; k < kVectors; ++k) StoreFloats(v[k], d_, y + k * kLanes);
      return;
    }
    HWY_ALIGN T row[kColumns];
    for (int64_t k = 0; k < kVectors; ++k) StoreFloats(v[k], d_, row + k * kLanes);
    if (width_ < kColumns) {
      memcpy(y, row, static_cast<size_t>(width_) * sizeof(T));
      return;
    }
    if constexpr (sizeof(row) % kLine == 0) {
      const hn::CappedTag<uint8_t, static_cast<size_t>(kLine)> bytes;
      for (size_t i = 0; i < sizeof(row); i += hn::MaxLanes(bytes)) {
        hn::Stream(hn::Load(bytes, reinterpret_cast<const uint8_t*>(row) + i), bytes,
                   reinterpret_cast<uint8_t*>(y) + i);
      }
    }
  }

  static constexpr int64_t kRun = 128, kRowsAhead = 16;
  const Floats d_;
  int64_t n_, step_, width_;
  float* buffer_;
  V max_[kVectors], scale_[kVectors];
};

/// Computes strips of neighbouring lines. Strips begin on cache line boundaries of y.
template <int64_t kColumns, class T>
bool RunStrips(const Softmax& s, bool overflows, Scratch& scratch) {
  const T* x = static_cast<const T*>(s.x);
  T* y = static_cast<T*>(s.y);
  constexpr int64_t kPerLine = kLine / static_cast<int64_t>(sizeof(T));
  const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % kLine);
  const bool alike = s.inner % kPerLine == 0 && misplaced % static_cast<int64_t>(sizeof(T)) == 0;
  const int64_t early = alike ? misplaced / static_cast<int64_t>(sizeof(T)) : 0;
  const bool past = overflows && alike && kColumns >= kPerLine;
  const int64_t strips = (s.inner + early + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(16384 / (s.n * std::min(kColumns, s.inner)), 1);
  LoopScratch threads(scratch);
  return threads.parallel_for(
      s.outer * strips, grain, [&](int64_t strip, int64_t end, Scratch& own) {
        const Scratch::Frame frame(own);
        float* const buffer = own.array<float>(Size(s.n) * kColumns);
        if (buffer == nullptr) return false;
        for (; strip < end; ++strip) {
          const int64_t first = strip % strips * kColumns - early;
          const int64_t c = std::max<int64_t>(first, 0);
          const int64_t width = std::min(first + kColumns, s.inner) - c;
          const int64_t at = strip / strips * s.n * s.inner + c;
          Strip<kColumns, T>(s.n, s.inner, width, buffer).Run(x + at, s.log, past, y + at);
        }
        if (past) end_stream();
        return true;
      });
}

template <class T>
bool RunAs(const Softmax& s, Scratch& scratch) {
  const T* x = static_cast<const T*>(s.x);
  T* y = static_cast<T*>(s.y);
  const int64_t grain = std::max<int64_t>(16384 / s.n, 1);  // lines
  const bool past = overflows_caches(2 * s.outer * s.n * s.inner * static_cast<int64_t>(sizeof(T)));
  if (s.inner == 1) {
    const auto rows = [&](int64_t begin, int64_t end, float* buffer) {
      for (int64_t o = begin; o < end; ++o) {
        const T* const row = x + o * s.n;
        Row(row, s.n, s.log, past, o + 1 < end ? row + s.n : row, buffer, y + o * s.n);
      }
    };
    if (!NeedsScratch<T>(s.n, s.log, past)) {
      parallel_for(s.outer, grain, [&](int64_t begin, int64_t end) { rows(begin, end, nullptr); });
      return true;
    }
    LoopScratch threads(scratch);
    return threads.parallel_for(s.outer, grain, [&](int64_t begin, int64_t end, Scratch& own) {
      const Scratch::Frame frame(own);
      float* const buffer = own.array<float>(s.n);
      if (buffer != nullptr) rows(begin, end, buffer);
      return buffer != nullptr;
    });
  }
  // A strip is as wide as possible while its floats fit an L2 cache.
  constexpr int64_t kMost = (512 << 10) / sizeof(float);
  if (s.inner > 32 && s.n * 64 <= kMost) return RunStrips<64, T>(s, past, scratch);
  if (s.inner > 16 && (s.n * 32 <= kMost || sizeof(T) == 2))
    return RunStrips<32, T>(s, past, scratch);
  return RunStrips<16, T>(s, past, scratch);
}

bool RunSoftmax(const Softmax& s, Scratch& scratch) {
  return with_type(s.type, [&](auto t) { return RunAs<decltype(t)>(s, scratch); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunSoftmax);

bool Softmax::run(Scratch& scratch) const {
  if (outer <= 0 || n <= 0 || inner <= 0) return true;
  if (!is_countable(outer, n, inner)) return false;
  return HWY_DYNAMIC_DISPATCH(RunSoftmax)(*this, scratch);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
