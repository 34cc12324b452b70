#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/softmax.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Sums of this many elements are kept in float; those of longer lines are added in double.
constexpr int64_t kChunk = 4096;

/// max(x[0..n)); NaN need not be seen: it makes the sum NaN.
template <class T>
float MaxOf(const T* HWY_RESTRICT x, int64_t n) {
  const Floats d;
  V m[4];
  for (V& v : m) v = hn::Set(d, -kInfinity);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) m[k] = hn::Max(m[k], LoadFloats(d, x + i + k * kLanes));
  }
  ForVectors(n - i, [&](int64_t j, const auto& load, const auto&, const auto& here) HWY_ATTR {
    m[0] = hn::IfThenElse(here, hn::Max(m[0], load(x + i + j)), m[0]);
  });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m[0], m[1]), hn::Max(m[2], m[3]))));
}

/// Sum of e^(x - max), which are kept in y unless it is null. Meanwhile `next` is asked for.
template <class T>
double SumExp(const T* HWY_RESTRICT x, int64_t n, float max, const T* next, float* HWY_RESTRICT y) {
  const Floats d;
  const V m = hn::Set(d, max);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    V sum = hn::Zero(d);
    ForVectors(std::min(kChunk, n - begin),
               [&](int64_t i, const auto& load, const auto& store, const auto& here) HWY_ATTR {
                 prefetch(next + begin + i, 1);
                 const V e = Exp(d, hn::Sub(load(x + begin + i), m));
                 if (y != nullptr) store(e, y + begin + i);
                 sum = hn::Add(sum, hn::IfThenElseZero(here, e));
               });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

/// Longer lines than these floats are kept in y between passes, not in a cache.
constexpr int64_t kLongest = 32768;

/// Meanwhile `next`, the line after, is asked for.
template <class T>
void Row(const T* HWY_RESTRICT x, int64_t n, bool log, bool past, const T* next,
         T* HWY_RESTRICT y) {
  const Floats d;
  const float max = MaxOf(x, n);
  if (log) {
    const double sum = SumExp(x, n, max, next, nullptr);
    const V m = hn::Set(d, max), log_sum = hn::Set(d, static_cast<float>(std::log(sum)));
    write(y, n, past, [&](int64_t begin, int64_t count, T* to) HWY_ATTR {
      ForVectors(count, [&](int64_t i, const auto& load, const auto& store, const auto&) HWY_ATTR {
        store(hn::Sub(hn::Sub(load(x + begin + i), m), log_sum), to + i);
      });
    });
    return;
  }
  float* e;
  if (sizeof(T) == sizeof(float) && (!past || n > kLongest)) {
    e = reinterpret_cast<float*>(y);
    past = false;
  } else {
    static thread_local Workspace workspace;
    e = workspace.floats(static_cast<size_t>(n));
  }
  const V share = hn::Set(d, static_cast<float>(1 / SumExp(x, n, max, next, e)));
  write(y, n, past, [&](int64_t begin, int64_t count, T* to) HWY_ATTR {
    ForVectors(count, [&](int64_t i, const auto& load, const auto& store, const auto&)
                          HWY_ATTR { store(hn::Mul(load(e + begin + i), share), to + i); });
  });
}

/// Most lines that are done together: a page of each row of memory.
constexpr int64_t kBlock = 1024;

/// `width` <= kBlock neighbouring lines; element i of them at x + i * step. Rows of memory are
/// walked in order, three times.
template <class T>
void Columns(const T* HWY_RESTRICT x, int64_t n, int64_t step, int64_t width, bool log,
             T* HWY_RESTRICT y) {
  const Floats d;
  HWY_ALIGN float max[kBlock], sum[kBlock], lost[kBlock];
  const int64_t room = (width + kLanes - 1) / kLanes * kLanes;
  std::fill_n(max, room, -kInfinity);
  std::fill_n(sum, room, 0.0f);
  std::fill_n(lost, room, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    ForVectors(width, [&](int64_t c, const auto& load, const auto&, const auto&) HWY_ATTR {
      hn::StoreU(hn::Max(hn::LoadU(d, max + c), load(x + i * step + c)), d, max + c);
    });
  }
  constexpr bool kKeep = sizeof(T) == sizeof(float);  // exponentials, in y
  for (int64_t i = 0; i < n; ++i) {
    ForVectors(width, [&](int64_t c, const auto& load, const auto& store, const auto&) HWY_ATTR {
      const V e = Exp(d, hn::Sub(load(x + i * step + c), hn::LoadU(d, max + c)));
      const V before = hn::LoadU(d, sum + c);  // Kahan: `lost` is what rounding took
      const V term = hn::Sub(e, hn::LoadU(d, lost + c));
      const V after = hn::Add(before, term);
      hn::StoreU(hn::Sub(hn::Sub(after, before), term), d, lost + c);
      hn::StoreU(after, d, sum + c);
      if constexpr (kKeep) {
        if (!log) store(e, y + i * step + c);
      }
    });
  }
  for (int64_t c = 0; c < width; ++c) sum[c] = log ? std::log(sum[c]) : 1 / sum[c];
  for (int64_t i = 0; i < n; ++i) {
    ForVectors(width, [&](int64_t c, const auto& load, const auto& store, const auto&) HWY_ATTR {
      const V factor = hn::LoadU(d, sum + c), m = hn::LoadU(d, max + c);
      V v;
      if (log) {
        v = hn::Sub(hn::Sub(load(x + i * step + c), m), factor);
      } else if constexpr (kKeep) {
        v = hn::Mul(load(y + i * step + c), factor);
      } else {
        v = hn::Mul(Exp(d, hn::Sub(load(x + i * step + c), m)), factor);
      }
      store(v, y + i * step + c);
    });
  }
}

template <class T>
void RunAs(const Softmax& s) {
  const T* x = static_cast<const T*>(s.x);
  T* y = static_cast<T*>(s.y);
  const int64_t grain = std::max<int64_t>(16384 / s.n, 1);  // lines
  const bool past = overflows_caches(2 * s.outer * s.n * s.inner * static_cast<int64_t>(sizeof(T)));
  if (s.inner == 1) {
    parallel_for(s.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* const row = x + o * s.n;
        Row(row, s.n, s.log, past, o + 1 < end ? row + s.n : row, y + o * s.n);
      }
    });
    return;
  }
  // Some blocks for each thread, of whole cache lines.
  const int64_t share = s.outer * s.inner / (4 * static_cast<int64_t>(loop_threads()));
  const int64_t wide = std::clamp<int64_t>(share / 64 * 64, 64, kBlock);
  const int64_t blocks = (s.inner + wide - 1) / wide;
  parallel_for(s.outer * blocks, std::max<int64_t>(grain / wide, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t c = b % blocks * wide;
                   const int64_t at = b / blocks * s.n * s.inner + c;
                   Columns(x + at, s.n, s.inner, std::min(wide, s.inner - c), s.log, y + at);
                 }
               });
}

void RunSoftmax(const Softmax& s) {
  if (s.outer * s.n * s.inner == 0) return;
  with_type(s.type, [&](auto t) { RunAs<decltype(t)>(s); });
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunSoftmax);

void Softmax::run() const {
  HWY_DYNAMIC_DISPATCH(RunSoftmax)(*this);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
