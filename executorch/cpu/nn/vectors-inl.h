/// Loops over arrays by vectors of float.
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
namespace executorch::cpu::HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

/// Loads and stores for vectors in which all lanes are elements of the array. load(p) and store(v,
/// p) convert to and from float. load(d, p) and store(v, d, p) take vectors of another type with as
/// many lanes.
struct AllLanes {
  template <class T>
  HWY_INLINE V load(const T* p) const {
    return LoadFloats(Floats(), p);
  }
  template <class T>
  HWY_INLINE void store(V v, T* p) const {
    StoreFloats(v, Floats(), p);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    hn::StoreU(v, d, p);
  }
  HWY_INLINE hn::Mask<Floats> mask() const { return hn::FirstN(Floats(), kLanes); }
};

/// The same where only the first n lanes are elements. The others are zero; nothing beyond the
/// elements is read or written.
class FirstLanes {
 public:
  explicit FirstLanes(size_t n) : n_(n) {}

  template <class T>
  HWY_INLINE V load(const T* p) const {
    return LoadFloatsN(Floats(), p, n_);
  }
  template <class T>
  HWY_INLINE void store(V v, T* p) const {
    StoreFloatsN(v, Floats(), p, n_);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)] = {};
    memcpy(buffer, p, n_ * sizeof(*p));
    return hn::Load(d, buffer);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)];
    hn::Store(v, d, buffer);
    memcpy(p, buffer, n_ * sizeof(*p));
  }
  HWY_INLINE hn::Mask<Floats> mask() const { return hn::FirstN(Floats(), n_); }

 private:
  size_t n_;
};

/// Calls f(i, lanes) for each vector of n elements, which begins at element i. The last one may
/// have fewer elements than D has lanes.
template <class D, class F>
HWY_INLINE void ForVectors(D d, int64_t n, const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, AllLanes());
  if (i < n) f(i, FirstLanes(static_cast<size_t>(n - i)));
}
template <class F>
HWY_INLINE void ForVectors(int64_t n, const F& f) {
  ForVectors(Floats(), n, f);
}

/// Stores f(i, lanes) at y + i for each vector of n elements, past the caches if `past`. For each
/// cache line that is written, one is prefetched from `next` on, so that memory reads and writes by
/// turns.
template <class T, class F>
HWY_INLINE void Produce(T* y, int64_t n, bool past, const T* next, const F& f) {
  const Floats d;
  const auto plain = [&](int64_t begin, int64_t end) HWY_ATTR {
    ForVectors(end - begin, [&](int64_t i, const auto& lanes)
                                HWY_ATTR { lanes.store(f(begin + i, lanes), y + begin + i); });
  };
  constexpr int64_t kPerLine = kLine / static_cast<int64_t>(sizeof(T));
  if (!past || reinterpret_cast<uintptr_t>(y) % sizeof(T) != 0) return plain(0, n);
  int64_t i = before_line(y, n);
  plain(0, i);
  HWY_ALIGN T line[kPerLine];
  for (; i + kPerLine <= n; i += kPerLine) {
    prefetch(next + i, 1);
    for (int64_t j = 0; j < kPerLine; j += kLanes) {
      const V v = f(i + j, AllLanes());
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

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
