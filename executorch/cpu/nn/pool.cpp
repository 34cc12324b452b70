#include <executorch/cpu/nn/pool.h>

#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/pool.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;
using VI = hn::Vec<Ints>;
constexpr int64_t kGrain = 16384;  // elements of x
/// A stride whose multiples, one for each lane, int32 holds.
constexpr int64_t kAnyStride = INT32_MAX / kLanes;

/// Replaces `best` and its place by v where v is larger or NaN.
HWY_INLINE void Take(V v, VI place, V& best, VI& at) {
  const auto taken = hn::Or(hn::Gt(v, best), hn::IsNaN(v));
  best = hn::IfThenElse(taken, v, best);
  at = hn::IfThenElse(hn::RebindMask(Ints(), taken), place, at);
}

/// Take() for places that do not come in order: keeps the NaN of the highest place or, if there is
/// none, the maximum of the lowest place.
HWY_INLINE void TakeByPlace(V v, VI place, V& best, VI& at) {
  const Floats d;
  const auto later = hn::RebindMask(d, hn::Gt(place, at));
  const auto sooner = hn::RebindMask(d, hn::Lt(place, at));
  const auto by_value = hn::Or(hn::Gt(v, best), hn::And(hn::Eq(v, best), sooner));
  const auto by_nan = hn::And(hn::IsNaN(v), hn::Or(hn::Not(hn::IsNaN(best)), later));
  const auto taken = hn::Or(by_value, by_nan);
  best = hn::IfThenElse(taken, v, best);
  at = hn::IfThenElse(hn::RebindMask(Ints(), taken), place, at);
}

/// Loads p[0], p[stride] ...; reads stride * kLanes elements for strides of 2 to 4.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadEvery(D d, const T* p, int64_t stride) {
  hn::Vec<D> v, other;
  switch (stride) {
    case 1:
      return hn::LoadU(d, p);
    case 2:
      hn::LoadInterleaved2(d, p, v, other);
      return v;
    case 3:
      hn::LoadInterleaved3(d, p, v, other, other);
      return v;
    case 4:
      hn::LoadInterleaved4(d, p, v, other, other, other);
      return v;
    default:
      const Ints di;
      return hn::GatherIndex(d, p,
                             hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride))));
  }
}

/// Calls vector(o) for kLanes outputs at a time whose windows are whole and at most `apart` apart,
/// and one(o) for the others. Some outputs may be computed twice.
template <class Vector, class One>
HWY_INLINE void AlongRow(const PoolAxis& w, int64_t apart, const Vector& vector, const One& one) {
  const int64_t vectors_end = w.stride >= 1 && w.stride <= apart ? w.whole_end : 0;
  int64_t o = 0;
  while (o < w.out) {
    const int64_t at = std::min(o, vectors_end - kLanes);
    if (at >= w.whole_begin && at + kLanes > o) {
      vector(at);
      o = at + kLanes;
    } else {
      one(o++);
    }
  }
}

/// The larger number; NaN if one is NaN.
HWY_INLINE V Larger(V v, V best) {
  return hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
}

/// MaxRow() without places.
template <class T>
void MaxValuesRow(const Pool2d& a, const T* HWY_RESTRICT x, int64_t oh, T* HWY_RESTRICT y,
                  float* best, float* values) {
  const Floats d;
  const int64_t width = a.w.in;
  ForVectors(width, [&](int64_t c, const auto& lanes) HWY_ATTR {
    const T* at = x + a.h.begin[oh] * width + c;
    V v = lanes.load(at);
    for (int64_t t = 1; t < a.h.count[oh]; ++t)
      v = Larger(lanes.load(at += a.h.dilation * width), v);
    hn::StoreU(v, d, best + c);
  });
  const auto vector = [&](int64_t o) HWY_ATTR {
    const float* at = best + a.w.begin[o];
    V v = LoadEvery(d, at, a.w.stride);
    for (int64_t t = 1; t < a.w.count[o]; ++t) {
      v = Larger(LoadEvery(d, at += a.w.dilation, a.w.stride), v);
    }
    hn::StoreU(v, d, values + o);
  };
  const auto one = [&](int64_t o) HWY_ATTR {
    const float* at = best + a.w.begin[o];
    float value = *at;
    for (int64_t t = 1; t < a.w.count[o]; ++t) {
      at += a.w.dilation;
      if (*at > value || std::isnan(*at)) value = *at;
    }
    values[o] = value;
  };
  AlongRow(a.w, kAnyStride, vector, one);
  ForVectors(a.w.out, [&](int64_t o, const auto& lanes)
                          HWY_ATTR { lanes.store(lanes.load(values + o), y + o); });
}

/// First down the columns of a plane, then along the row that gives: `best` and `place` have room
/// for a row of x, `values` and `index` for one of y.
template <class T>
void MaxRow(const Pool2d& a, const T* HWY_RESTRICT x, int64_t oh, T* HWY_RESTRICT y,
            int64_t* HWY_RESTRICT index, float* best, int32_t* place, float* values) {
  const Floats d;
  const Ints di;
  const int64_t width = a.w.in;
  ForVectors(width, [&](int64_t c, const auto& lanes) HWY_ATTR {
    int64_t h = a.h.begin[oh] * width + c;
    V v = lanes.load(x + h);
    VI at = hn::Iota(di, static_cast<int32_t>(h));
    for (int64_t t = 1; t < a.h.count[oh]; ++t) {
      h += a.h.dilation * width;
      Take(lanes.load(x + h), hn::Iota(di, static_cast<int32_t>(h)), v, at);
    }
    hn::StoreU(v, d, best + c);
    hn::StoreU(at, di, place + c);
  });
  const auto vector = [&](int64_t o) HWY_ATTR {
    int64_t c = a.w.begin[o];
    V v = LoadEvery(d, best + c, a.w.stride);
    VI at = LoadEvery(di, place + c, a.w.stride);
    for (int64_t t = 1; t < a.w.count[o]; ++t) {
      c += a.w.dilation;
      TakeByPlace(LoadEvery(d, best + c, a.w.stride), LoadEvery(di, place + c, a.w.stride), v, at);
    }
    hn::StoreU(v, d, values + o);
    HWY_ALIGN int32_t lanes[static_cast<size_t>(kLanes)];
    hn::StoreU(at, di, lanes);
    for (int64_t k = 0; k < kLanes; ++k) index[o + k] = lanes[k];
  };
  const auto one = [&](int64_t o) HWY_ATTR {
    int64_t c = a.w.begin[o];
    float value = best[c];
    int32_t at = place[c];
    for (int64_t t = 1; t < a.w.count[o]; ++t) {
      c += a.w.dilation;
      const bool taken = std::isnan(best[c])
                             ? !std::isnan(value) || place[c] > at
                             : best[c] > value || (best[c] == value && place[c] < at);
      value = taken ? best[c] : value;
      at = taken ? place[c] : at;
    }
    values[o] = value;
    index[o] = at;
  };
  AlongRow(a.w, kAnyStride, vector, one);
  ForVectors(a.w.out, [&](int64_t o, const auto& lanes)
                          HWY_ATTR { lanes.store(lanes.load(values + o), y + o); });
}

template <class T>
void AverageRow(const Pool2d& a, const T* HWY_RESTRICT x, int64_t oh, T* HWY_RESTRICT y,
                float* sums, float* values) {
  const Floats d;
  const int64_t width = a.w.in;
  ForVectors(width, [&](int64_t c, const auto& lanes) HWY_ATTR {
    const T* at = x + a.h.begin[oh] * width + c;
    V sum = lanes.load(at);
    for (int64_t t = 1; t < a.h.count[oh]; ++t) sum = hn::Add(sum, lanes.load(at += width));
    hn::StoreU(sum, d, sums + c);
  });
  const auto vector = [&](int64_t o) HWY_ATTR {
    const float* at = sums + a.w.begin[o];
    V sum = LoadEvery(d, at, a.w.stride);
    for (int64_t t = 1; t < a.w.count[o]; ++t) sum = hn::Add(sum, LoadEvery(d, at + t, a.w.stride));
    hn::StoreU(sum, d, values + o);
  };
  const auto one = [&](int64_t o) HWY_ATTR {
    const float* at = sums + a.w.begin[o];
    const int64_t n = a.w.count[o];
    float part[4] = {};
    int64_t t = 0;
    for (; t + 4 <= n; t += 4) {
      for (int64_t k = 0; k < 4; ++k) part[k] += at[t + k];
    }
    for (; t < n; ++t) part[0] += at[t];
    values[o] = part[0] + part[1] + (part[2] + part[3]);
  };
  AlongRow(a.w, 4, vector, one);
  const V height = hn::Set(d, a.h.divisor[oh]);
  ForVectors(a.w.out, [&](int64_t o, const auto& lanes) HWY_ATTR {
    lanes.store(hn::Div(lanes.load(values + o), hn::Mul(height, lanes.load(a.w.divisor + o))),
                y + o);
  });
}

template <class T>
bool Planes(const Pool2d& a, Scratch& scratch) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.y);
  const int64_t in = a.h.in * a.w.in, out = a.h.out * a.w.out;
  const int64_t n = a.batch * a.channels, grain = std::max<int64_t>(kGrain / in, 1);
  const int64_t row_floats = a.w.in + 3 * kLanes;  // whole vectors, also of every fourth element
  const Scratch::Frame frame(scratch);
  const ThreadScratch<float> buffers(scratch, Size(2) * row_floats + a.w.out + kLanes,
                                     n <= grain ? 1 : loop_threads());
  if (!buffers) return false;
  buffers.parallel_for(n, grain, [&](int64_t p, int64_t end, float* row) {
    int32_t* places = reinterpret_cast<int32_t*>(row + row_floats);
    float* values = row + 2 * row_floats;
    for (; p < end; ++p) {
      for (int64_t oh = 0; oh < a.h.out; ++oh) {
        T* to = y + p * out + oh * a.w.out;
        if (a.max && a.index == nullptr) {
          MaxValuesRow(a, x + p * in, oh, to, row, values);
        } else if (a.max) {
          MaxRow(a, x + p * in, oh, to, a.index + p * out + oh * a.w.out, row, places, values);
        } else {
          AverageRow(a, x + p * in, oh, to, row, values);
        }
      }
    }
  });
  return true;
}

/// Computes one output pixel of [n,h,w,c]. x is the image; y and index point to the pixel's
/// channels.
template <class T>
void MaxPixel(const Pool2d& a, const T* HWY_RESTRICT x, int64_t oh, int64_t ow, T* HWY_RESTRICT y,
              int64_t* HWY_RESTRICT index) {
  const Ints di;
  const int64_t first = a.h.begin[oh] * a.w.in + a.w.begin[ow];
  ForVectors(a.channels, [&](int64_t c, const auto& lanes) HWY_ATTR {
    V best = lanes.load(x + first * a.channels + c);
    VI at = hn::Set(di, static_cast<int32_t>(first));
    for (int64_t i = 0; i < a.h.count[oh]; ++i) {
      const int64_t row = first + i * a.h.dilation * a.w.in;
      for (int64_t j = 0; j < a.w.count[ow]; ++j) {
        const int64_t place = row + j * a.w.dilation;
        Take(lanes.load(x + place * a.channels + c), hn::Set(di, static_cast<int32_t>(place)), best,
             at);
      }
    }
    lanes.store(best, y + c);
    if (index == nullptr) return;
    HWY_ALIGN int32_t places[static_cast<size_t>(kLanes)];
    hn::StoreU(at, di, places);
    const int64_t n = std::min(kLanes, a.channels - c);
    for (int64_t k = 0; k < n; ++k) index[c + k] = places[k];
  });
}

template <class T>
void AveragePixel(const Pool2d& a, const T* HWY_RESTRICT x, int64_t oh, int64_t ow,
                  T* HWY_RESTRICT y) {
  const Floats d;
  constexpr int64_t kBlock = 512;  // channels
  const int64_t first = a.h.begin[oh] * a.w.in + a.w.begin[ow];
  const V share = hn::Set(d, 1 / (a.h.divisor[oh] * a.w.divisor[ow]));
  HWY_ALIGN float sums[kBlock];
  for (int64_t begin = 0; begin < a.channels; begin += kBlock) {
    const int64_t n = std::min(kBlock, a.channels - begin);
    std::fill_n(sums, n, 0.0f);
    for (int64_t i = 0; i < a.h.count[oh]; ++i) {
      for (int64_t j = 0; j < a.w.count[ow]; ++j) {
        const T* at = x + (first + i * a.w.in + j) * a.channels + begin;
        ForVectors(n, [&](int64_t c, const auto& lanes) HWY_ATTR {
          lanes.store(hn::Add(lanes.load(sums + c), lanes.load(at + c)), sums + c);
        });
      }
    }
    ForVectors(n, [&](int64_t c, const auto& lanes) HWY_ATTR {
      lanes.store(hn::Mul(lanes.load(sums + c), share), y + begin + c);
    });
  }
}

template <class T>
void Pixels(const Pool2d& a) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.y);
  const int64_t image = a.h.in * a.w.in * a.channels;
  const int64_t grain = std::max<int64_t>(kGrain * a.h.out / image, 1);  // rows
  parallel_for(a.batch * a.h.out, grain, [&](int64_t row, int64_t end) {
    for (; row < end; ++row) {
      const T* from = x + row / a.h.out * image;
      for (int64_t ow = 0; ow < a.w.out; ++ow) {
        const int64_t at = (row * a.w.out + ow) * a.channels;
        if (a.max) {
          MaxPixel(a, from, row % a.h.out, ow, y + at, a.index == nullptr ? nullptr : a.index + at);
        } else {
          AveragePixel(a, from, row % a.h.out, ow, y + at);
        }
      }
    }
  });
}

template <class T>
bool RunAs(const Pool2d& a, Scratch& scratch) {
  if (!a.channels_last) return Planes<T>(a, scratch);
  Pixels<T>(a);
  return true;
}

bool RunPool2d(const Pool2d& a, Scratch& scratch) {
  return with_type(a.type, [&](auto t) { return RunAs<decltype(t)>(a, scratch); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunPool2d);

bool Pool2d::run(Scratch& scratch) const {
  if (batch <= 0 || channels <= 0 || h.out <= 0 || w.out <= 0) return true;
  // Every window lies in the image, so an empty image is a mistake.
  if (h.in <= 0 || w.in <= 0 || !is_countable(batch, channels, h.in, w.in) ||
      !is_countable(batch, channels, h.out, w.out)) {
    return false;
  }
  return HWY_DYNAMIC_DISPATCH(RunPool2d)(*this, scratch);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
