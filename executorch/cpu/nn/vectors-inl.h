/// A run of elements as vectors of float.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_VECTORS_INL_H_
#undef EXECUTORCH_CPU_NN_VECTORS_INL_H_
#else
#define EXECUTORCH_CPU_NN_VECTORS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

/// Calls f(i, load, store, here) for the vectors of n elements, load(p) and store(v, p) at their
/// place; `here` is the mask of the lanes that are elements.
template <class F>
HWY_INLINE void ForVectors(int64_t n, const F& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    f(
        i, [d](const auto* p) HWY_ATTR { return LoadFloats(d, p); },
        [d](V v, auto* p) HWY_ATTR { StoreFloats(v, d, p); }, hn::FirstN(d, kLanes));
  }
  const size_t rest = static_cast<size_t>(n) % kLanes;
  if (rest == 0) return;
  f(
      i, [d, rest](const auto* p) HWY_ATTR { return LoadFloatsN(d, p, rest); },
      [d, rest](V v, auto* p) HWY_ATTR { StoreFloatsN(v, d, p, rest); }, hn::FirstN(d, rest));
}

/// y[i] = f(i, load) for the vectors of n elements, past the caches if `past`. Meanwhile a line is
/// asked for at `next` for each that is written: memory reads and writes by turns.
template <class T, class F>
HWY_INLINE void Produce(T* y, int64_t n, bool past, const T* next, const F& f) {
  const Floats d;
  const auto plain = [&](int64_t begin, int64_t end) HWY_ATTR {
    ForVectors(end - begin, [&](int64_t i, const auto& load, const auto& store, const auto&)
                                HWY_ATTR { store(f(begin + i, load), y + begin + i); });
  };
  constexpr int64_t kPerLine = kLine / static_cast<int64_t>(sizeof(T));
  if (!past || reinterpret_cast<uintptr_t>(y) % sizeof(T) != 0) return plain(0, n);
  int64_t i = before_line(y, n);
  plain(0, i);
  HWY_ALIGN T line[kPerLine];
  for (; i + kPerLine <= n; i += kPerLine) {
    prefetch(next + i, 1);
    for (int64_t j = 0; j < kPerLine; j += kLanes) {
      const V v = f(i + j, [d](const auto* p) HWY_ATTR { return LoadFloats(d, p); });
      if constexpr (sizeof(T) == sizeof(float)) {
        hn::Stream(v, d, y + i + j);
      } else {
        StoreFloats(v, d, line + j);
      }
    }
    if constexpr (sizeof(T) != sizeof(float)) {
      const hn::Repartition<uint8_t, Floats> bytes;
      const auto* const from = reinterpret_cast<const uint8_t*>(line);
      auto* const to = reinterpret_cast<uint8_t*>(y + i);
      for (int64_t j = 0; j < kLine; j += 4 * kLanes) {
        hn::Stream(hn::Load(bytes, from + j), bytes, to + j);
      }
    }
  }
  plain(i, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
