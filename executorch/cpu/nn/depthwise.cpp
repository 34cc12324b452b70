#include <executorch/cpu/nn/depthwise.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/lanes-inl.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {
namespace depthwise {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

template <class T>
HWY_INLINE float ToFloat(const T* p) {
  return hn::GetLane(LoadFloatsN(Floats(), p, 1));
}

// A channel with its padding, its positions sorted by their remainder modulo the strides, so that
// what a tap meets is contiguous along width: position (oh + kh', ow + kw') of a part.
struct PaddedPlane {
  int64_t height, width;  // of a part
  int64_t part(const ConvAxis& h, const ConvAxis& w, int64_t kh, int64_t kw) const {
    const int64_t y = kh * h.dilation, x = kw * w.dilation;
    return ((y % h.stride * w.stride + x % w.stride) * height + y / h.stride) * width +
           x / w.stride;
  }
};

template <class T>
HWY_INLINE void PadPlane(const ConvAxis& h, const ConvAxis& w, const PaddedPlane& plane,
                         const T* from, float* to) {
  const Floats d;
  std::fill_n(to, plane.height * plane.width * h.stride * w.stride, 0.0f);
  for (int64_t y = 0; y < h.in; ++y) {
    const T* row = from + y * h.in_stride;
    const int64_t py = y + h.padding;
    float* line = to + (py % h.stride * w.stride * plane.height + py / h.stride) * plane.width;
    if (py / h.stride >= plane.height) break;
    if (w.stride == 1) {
      float* at = line + w.padding;
      const int64_t n = std::min(w.in, plane.width - w.padding);
      int64_t x = 0;
      for (; x + kLanes <= n; x += kLanes) hn::StoreU(LoadFloats(d, row + x), d, at + x);
      if (x < n) {
        const auto rest = static_cast<size_t>(n - x);
        StoreFloatsN(LoadFloatsN(d, row + x, rest), d, at + x, rest);
      }
      continue;
    }
    for (int64_t x = 0; x < w.in; ++x) {
      const int64_t px = x + w.padding;
      if (px / w.stride >= plane.width) break;
      line[px % w.stride * plane.height * plane.width + px / w.stride] = ToFloat(row + x);
    }
  }
}

// to[q] += sum over taps of weights[tap] * plane[parts[tap] + q], q < n rounded up to kWide.
constexpr int64_t kVectors = 4, kWide = kVectors * kLanes;
HWY_INLINE void SumTaps(const float* plane, const int64_t* parts, const float* weights,
                        int64_t taps, int64_t n, float* to) {
  const Floats d;
  for (int64_t q = 0; q < n; q += kWide) {
    V sums[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, to + q + v * kLanes);
    for (int64_t t = 0; t < taps; ++t) {
      const V weight = hn::Set(d, weights[t]);
      const float* at = plane + parts[t] + q;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[v] = hn::MulAdd(weight, hn::LoadU(d, at + v * kLanes), sums[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, to + q + v * kLanes);
  }
}

// What follows the sum of n <= kLanes results: the residual and the function.
template <class T>
HWY_INLINE void Finish(const Conv<T>& c, V x, size_t n, int64_t at) {
  const Floats d;
  const bool adds = c.residual != nullptr;
  const V r = adds ? LoadFloatsN(d, c.residual + at, n) : hn::Zero(d);
  if (adds && c.act_last) x = hn::Add(x, r);
  if (c.act.kind != Activation::Kind::None) x = Apply(d, c.act, x);
  if (adds && !c.act_last) x = hn::Add(x, r);
  if (n == static_cast<size_t>(kLanes)) {
    StoreFloats(x, d, c.out + at);
  } else {
    StoreFloatsN(x, d, c.out + at, n);
  }
}

// The same, known to be a bound at most where kBounded.
template <class T>
bool IsBounded(const Conv<T>& c) {
  return c.residual == nullptr &&
         (c.act.kind == Activation::Kind::None || c.act.kind == Activation::Kind::Clamp);
}
template <bool kBounded, class T>
HWY_INLINE void FinishWith(const Conv<T>& c, V x, size_t n, int64_t at) {
  if constexpr (kBounded) {
    const Floats d;
    if (c.act.kind == Activation::Kind::Clamp) x = Clamp(d, x, c.act.low, c.act.high);
    if (n == static_cast<size_t>(kLanes)) {
      StoreFloats(x, d, c.out + at);
    } else {
      StoreFloatsN(x, d, c.out + at, n);
    }
  } else {
    Finish(c, x, n, at);
  }
}

// The usual windows: kSize x kSize taps side by side, steps of 1 or 2. A strip of one vector of
// outputs goes down the plane; masks stand for the padding at both sides. Each row of the image is
// read once: its products with the rows of taps go to the outputs that are under way, summed among
// themselves first, so that no output waits for the one before.
template <int kSize, int kStep>
struct Strip {
  hn::Mask<Floats> low[kSize], high[kSize];  // the first and, for steps of 2, the second vector
  int64_t ow, first;                         // the position that lane 0 meets with tap 0
  size_t n;

  Strip() = default;
  Strip(const ConvAxis& w, int64_t column)
      : ow(column),
        first(column * kStep - w.padding),
        n(static_cast<size_t>(std::min(kLanes, w.out - column))) {
    for (int kw = 0; kw < kSize; ++kw) {
      low[kw] = Between(Floats(), -(first + kw), w.in - (first + kw));
      high[kw] = Between(Floats(), -(first + kw + kLanes), w.in - (first + kw + kLanes));
    }
  }

  // What the lanes meet with each tap of a row.
  HWY_INLINE void Load(const float* HWY_RESTRICT row, V (&x)[kSize]) const {
    const Floats d;
#pragma GCC unroll 5
    for (int kw = 0; kw < kSize; kw += kStep) {
      const float* at = row + first + kw;
      x[kw] = hn::MaskedLoad(low[kw], d, at);
      if constexpr (kStep == 2) {
        const V a = x[kw], b = hn::MaskedLoad(high[kw], d, at + kLanes);
        x[kw] = hn::ConcatEven(d, b, a);
        if (kw + 1 < kSize) x[kw + 1] = hn::ConcatOdd(d, b, a);
      }
    }
  }
};

template <int kSize>
HWY_INLINE V RowOfTaps(const V (&x)[kSize], const V* weights) {
  V sum = hn::Mul(x[0], weights[0]);
#pragma GCC unroll 5
  for (int kw = 1; kw < kSize; ++kw) sum = hn::MulAdd(x[kw], weights[kw], sum);
  return sum;
}

template <int kSize, int kStep, bool kBounded, class T>
HWY_INLINE void RunStrip(const Conv<T>& c, const Strip<kSize, kStep>& strip, const float* image,
                         int64_t row_stride, const V (&weights)[kSize * kSize], V bias,
                         int64_t to) {
  const ConvAxis& h = c.axis[1];
  constexpr int kWaiting = (kSize - 1) / kStep;  // outputs that more rows will be added to
  V sums[kWaiting];
#pragma GCC unroll 4
  for (int i = 0; i < kWaiting; ++i) sums[i] = bias;
  const auto add = [&](int64_t y, auto first_row) HWY_ATTR {
    // Rows of taps first_row, first_row + kStep ... of one row of the image.
    constexpr int kFirst = decltype(first_row)::value;
    constexpr int kCount = (kSize - kFirst + kStep - 1) / kStep;
    V parts[kCount];
    const int64_t ih = y - h.padding;
    if (ih >= 0 && ih < h.in) {
      // The next plane: a strip jumps from row to row, which no processor foresees.
      const float* const ahead = image + ih * row_stride + strip.first + c.in_channel;
      if constexpr (std::is_same_v<T, float>) {
        __builtin_prefetch(ahead);
        if constexpr (kStep == 2) __builtin_prefetch(ahead + kLanes);
      }
      V x[kSize];
      strip.Load(image + ih * row_stride, x);
#pragma GCC unroll 5
      for (int i = 0; i < kCount; ++i) {
        parts[i] = RowOfTaps<kSize>(x, weights + (kFirst + i * kStep) * kSize);
      }
    } else {
#pragma GCC unroll 5
      for (int i = 0; i < kCount; ++i) parts[i] = hn::Zero(Floats());
    }
    if constexpr (kFirst > 0) {
#pragma GCC unroll 5
      for (int i = 0; i < kCount; ++i) sums[i] = hn::Add(sums[i], parts[i]);
    } else {
      const V done = hn::Add(sums[kWaiting - 1], parts[kCount - 1]);
#pragma GCC unroll 5
      for (int i = kWaiting - 1; i > 0; --i) sums[i] = hn::Add(sums[i - 1], parts[i]);
      sums[0] = hn::Add(bias, parts[0]);
      const int64_t oh = y / kStep - kWaiting;
      if (oh >= 0) FinishWith<kBounded>(c, done, strip.n, to + oh * h.out_stride + strip.ow);
    }
  };
  const int64_t last = (h.out - 1) * kStep + kSize - 1;
  for (int64_t y = 0; y < last; y += kStep) {
    add(y, std::integral_constant<int, 0>());
    if constexpr (kStep == 2) add(y + 1, std::integral_constant<int, 1>());
  }
  add(last, std::integral_constant<int, 0>());
}

// A plane of float, or converted to it.
template <class T>
HWY_INLINE const float* FloatPlane(const ConvAxis& h, const ConvAxis& w, const T* from,
                                   int64_t* row_stride) {
  if constexpr (std::is_same_v<T, float>) {
    *row_stride = h.in_stride;
    return from;
  } else {
    static thread_local Workspace workspace;
    const Floats d;
    float* const to = workspace.floats(static_cast<size_t>(h.in * w.in));
    *row_stride = w.in;
    for (int64_t y = 0; y < h.in; ++y) {
      for (int64_t x = 0; x < w.in; x += kLanes) {
        const T* at = from + y * h.in_stride + x;
        const auto n = static_cast<size_t>(std::min(kLanes, w.in - x));
        const V v = n == static_cast<size_t>(kLanes) ? LoadFloats(d, at) : LoadFloatsN(d, at, n);
        StoreFloatsN(v, d, to + y * w.in + x, n);
      }
    }
    return to;
  }
}

template <class T>
HWY_INLINE bool HasStrips(const Conv<T>& c) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  return kMasks && h.kernel == w.kernel && h.stride == w.stride && h.dilation == 1 &&
         w.dilation == 1 && z.kernel == 1 && z.stride == 1 && z.padding == 0 &&
         (w.kernel == 3 || w.kernel == 5) && w.stride <= 2;
}

// Planes [begin, end) of all images.
template <int kSize, int kStep, bool kBounded, class T>
void StripPlanes(const Conv<T>& c, int64_t begin, int64_t end) {
  const Floats d;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  using OneStrip = Strip<kSize, kStep>;
  constexpr int64_t kKept = 8;  // strips
  OneStrip strips[kKept];
  for (int64_t i = 0; i < std::min(kKept, (w.out + kLanes - 1) / kLanes); ++i) {
    strips[i] = OneStrip(w, i * kLanes);
  }
  for (int64_t i = begin; i < end; ++i) {
    const int64_t b = i / c.groups, g = i % c.groups;
    V weights[kSize * kSize];
    for (int t = 0; t < kSize * kSize; ++t) {
      weights[t] = hn::Set(d, ToFloat(c.weight + g * c.weight_group + t / kSize * h.weight_stride +
                                      t % kSize * w.weight_stride));
    }
    const V bias = hn::Set(d, c.bias == nullptr ? 0.0f : ToFloat(c.bias + g));
    for (int64_t od = 0; od < z.out; ++od) {
      int64_t ld;
      const float* image =
          FloatPlane(h, w, c.input + b * c.in_batch + g * c.in_channel + od * z.in_stride, &ld);
      const int64_t to = b * c.out_batch + g * c.out_channel + od * z.out_stride;
      for (int64_t s = 0; s * kLanes < w.out; ++s) {
        const OneStrip strip = s < kKept ? strips[s] : OneStrip(w, s * kLanes);
        RunStrip<kSize, kStep, kBounded>(c, strip, image, ld, weights, bias, to);
      }
    }
  }
}

template <int kSize, int kStep, class T>
void StripPlanes(const Conv<T>& c, int64_t begin, int64_t end) {
  if (IsBounded(c)) return StripPlanes<kSize, kStep, true>(c, begin, end);
  StripPlanes<kSize, kStep, false>(c, begin, end);
}

template <class T>
void Plane(const Conv<T>& c, int64_t b, int64_t g) {
  static thread_local Workspace workspace;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  PaddedPlane plane;
  plane.height = h.out + (h.kernel - 1) * h.dilation / h.stride;
  plane.width = w.out + (w.kernel - 1) * w.dilation / w.stride;
  const int64_t n_plane = plane.height * plane.width * h.stride * w.stride;
  const int64_t n_sums = (h.out * plane.width + kWide - 1) / kWide * kWide;
  // The last vectors of sums read beyond the plane, and are not used.
  float* padded = workspace.floats(static_cast<size_t>(n_plane + n_sums + 2 * kWide));
  float* sums = padded + n_plane + kWide;
  std::fill_n(padded + n_plane, kWide, 0.0f);
  constexpr int64_t kTaps = 64;  // at a time
  float weights[kTaps];
  int64_t parts[kTaps];
  const T* weight = c.weight + g * c.weight_group;
  const T* in = c.input + b * c.in_batch + g * c.in_channel;
  const float bias = c.bias == nullptr ? 0.0f : ToFloat(c.bias + g);
  for (int64_t od = 0; od < z.out; ++od) {
    std::fill_n(sums, n_sums, bias);
    for (int64_t kd = 0; kd < z.kernel; ++kd) {
      const int64_t id = z.position(od, kd, false);
      if (id < 0) continue;
      PadPlane(h, w, plane, in + id * z.in_stride, padded);
      const int64_t taps = h.kernel * w.kernel;
      for (int64_t t0 = 0; t0 < taps; t0 += kTaps) {
        const int64_t n = std::min(kTaps, taps - t0);
        for (int64_t t = 0; t < n; ++t) {
          const int64_t kh = (t0 + t) / w.kernel, kw = (t0 + t) % w.kernel;
          weights[t] =
              ToFloat(weight + kd * z.weight_stride + kh * h.weight_stride + kw * w.weight_stride);
          parts[t] = plane.part(h, w, kh, kw);
        }
        SumTaps(padded, parts, weights, n, h.out * plane.width, sums);
      }
    }
    const int64_t at = b * c.out_batch + g * c.out_channel + od * z.out_stride;
    for (int64_t oh = 0; oh < h.out; ++oh) {
      const int64_t row = at + oh * h.out_stride;
      for (int64_t ow = 0; ow < w.out; ow += kLanes) {
        const auto n = static_cast<size_t>(std::min(kLanes, w.out - ow));
        Finish(c, LoadFloatsN(Floats(), sums + oh * plane.width + ow, n), n, row + ow);
      }
    }
  }
}

template <class T>
void Planes(const Conv<T>& c, int64_t begin, int64_t end) {
  const int64_t size = c.axis[2].kernel, step = c.axis[2].stride;
  if (HasStrips(c)) {
    if (size == 3 && step == 1) return StripPlanes<3, 1>(c, begin, end);
    if (size == 3 && step == 2) return StripPlanes<3, 2>(c, begin, end);
    if (size == 5 && step == 1) return StripPlanes<5, 1>(c, begin, end);
    return StripPlanes<5, 2>(c, begin, end);
  }
  for (int64_t i = begin; i < end; ++i) Plane(c, i / c.groups, i % c.groups);
}

// The taps of one output that lie inside the image, from channel 0 on.
template <class T>
struct Taps {
  const T* x[kDepthwiseTaps];
  const float* weight[kDepthwiseTaps];
  int64_t n = 0;
};

// kVectors vectors of channels from g on.
template <int kVectors, class T>
HWY_INLINE void PixelChannels(const Conv<T>& c, const Taps<T>& taps, int64_t g, const float* biases,
                              int64_t to) {
  const Floats d;
  V sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = biases == nullptr ? hn::Zero(d) : hn::LoadU(d, biases + g + v * kLanes);
  }
  for (int64_t t = 0; t < taps.n; ++t) {
    const T* x = taps.x[t] + g;
    const float* weight = taps.weight[t] + g;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[v] =
          hn::MulAdd(hn::LoadU(d, weight + v * kLanes), LoadFloats(d, x + v * kLanes), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    Finish(c, sums[v], static_cast<size_t>(kLanes), to + g + v * kLanes);
  }
}

// The last n < kLanes channels.
template <class T>
HWY_INLINE void LastChannels(const Conv<T>& c, const Taps<T>& taps, int64_t g, size_t n,
                             const float* biases, int64_t to) {
  const Floats d;
  V sum = biases == nullptr ? hn::Zero(d) : LoadFloatsN(d, biases + g, n);
  for (int64_t t = 0; t < taps.n; ++t) {
    sum = hn::MulAdd(LoadFloatsN(d, taps.weight[t] + g, n), LoadFloatsN(d, taps.x[t] + g, n), sum);
  }
  Finish(c, sum, n, to + g);
}

// Columns [begin, end) of a row of outputs whose windows of kSize x kSize taps lie within the
// image; kVectors vectors of channels from g on, whose weights stay in registers. `x` is channel 0
// of column 0's first tap, `to` of its output.
template <int kSize, int kVectors, class T>
HWY_INLINE void RowChannels(const Conv<T>& c, const T* x, int64_t begin, int64_t end,
                            const float* weights, const float* biases, int64_t g, int64_t to) {
  const Floats d;
  const ConvAxis &h = c.axis[1], &w = c.axis[2];
  V weight[kSize * kSize][kVectors], bias[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = g + v * kLanes;
    bias[v] = biases == nullptr ? hn::Zero(d) : hn::LoadU(d, biases + at);
    for (int t = 0; t < kSize * kSize; ++t)
      weight[t][v] = hn::LoadU(d, weights + t * c.groups + at);
  }
  const int64_t down = h.dilation * h.in_stride, right = w.dilation * w.in_stride;
  for (int64_t ow = begin; ow < end; ++ow) {
    const T* at = x + ow * w.stride * w.in_stride + g;
    V sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = bias[v];
#pragma GCC unroll 25
    for (int t = 0; t < kSize * kSize; ++t) {
      const T* tap = at + t / kSize * down + t % kSize * right;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[v] = hn::MulAdd(weight[t][v], LoadFloats(d, tap + v * kLanes), sums[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      FinishWith<true>(c, sums[v], static_cast<size_t>(kLanes),
                       to + ow * w.out_stride + g + v * kLanes);
    }
  }
}

// The columns whose windows lie within the image: computed for whole vectors of channels here,
// begin == end if none are.
template <class T>
HWY_INLINE void InnerColumns(const Conv<T>& c, int64_t b, int64_t row, const float* weights,
                             const float* biases, int64_t* begin, int64_t* end) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  *begin = *end = 0;
  const int64_t ih = row % h.out * h.stride - h.padding;
  const bool inside = z.kernel == 1 && z.stride == 1 && z.padding == 0 && ih >= 0 &&
                      ih + (h.kernel - 1) * h.dilation < h.in;
  if (!inside || h.kernel != w.kernel || w.kernel != 3 || !IsBounded(c)) return;
  const int64_t room = w.in - 1 - (w.kernel - 1) * w.dilation + w.padding;  // of the last column
  *begin = std::min((w.padding + w.stride - 1) / w.stride, w.out);
  *end = room < 0 ? *begin : std::clamp(room / w.stride + 1, *begin, w.out);
  const int64_t id = row / h.out;
  const T* x =
      c.input + b * c.in_batch + id * z.in_stride + ih * h.in_stride - w.padding * w.in_stride;
  const int64_t to = b * c.out_batch + id * z.out_stride + row % h.out * h.out_stride;
  int64_t g = 0;
  for (; g + 2 * kLanes <= c.groups; g += 2 * kLanes) {
    RowChannels<3, 2>(c, x, *begin, *end, weights, biases, g, to);
  }
  for (; g + kLanes <= c.groups; g += kLanes) {
    RowChannels<3, 1>(c, x, *begin, *end, weights, biases, g, to);
  }
}

template <class T>
void Pixels(const Conv<T>& c, int64_t b, int64_t row, const float* weights, const float* biases) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  const int64_t od = row / h.out, oh = row % h.out;
  int64_t inner_begin, inner_end;
  InnerColumns(c, b, row, weights, biases, &inner_begin, &inner_end);
  for (int64_t ow = 0; ow < w.out; ++ow) {
    const bool inner = ow >= inner_begin && ow < inner_end;
    if (inner && c.groups % kLanes == 0) {
      ow = inner_end - 1;
      continue;
    }
    Taps<T> taps;
    for (int64_t t = 0; t < c.taps(); ++t) {
      const int64_t id = z.position(od, t / (w.kernel * h.kernel), false);
      const int64_t ih = h.position(oh, t / w.kernel % h.kernel, false);
      const int64_t iw = w.position(ow, t % w.kernel, false);
      if (id < 0 || ih < 0 || iw < 0) continue;
      taps.x[taps.n] =
          c.input + b * c.in_batch + id * z.in_stride + ih * h.in_stride + iw * w.in_stride;
      taps.weight[taps.n++] = weights + t * c.groups;
    }
    const int64_t to = b * c.out_batch + od * z.out_stride + oh * h.out_stride + ow * w.out_stride;
    int64_t g = inner ? c.groups / kLanes * kLanes : 0;
    for (; g + 4 * kLanes <= c.groups; g += 4 * kLanes) PixelChannels<4>(c, taps, g, biases, to);
    for (; g + kLanes <= c.groups; g += kLanes) PixelChannels<1>(c, taps, g, biases, to);
    if (g < c.groups) LastChannels(c, taps, g, static_cast<size_t>(c.groups - g), biases, to);
  }
}

}  // namespace depthwise

template <class T>
const DepthwiseKernels<T>& DepthwiseOf() {
  static constexpr DepthwiseKernels<T> kTable = {depthwise::Planes<T>, depthwise::Pixels<T>};
  return kTable;
}
const DepthwiseKernels<float>& FloatDepthwise() {
  return DepthwiseOf<float>();
}
const DepthwiseKernels<F16>& F16Depthwise() {
  return DepthwiseOf<F16>();
}
const DepthwiseKernels<BF16>& BF16Depthwise() {
  return DepthwiseOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(FloatDepthwise);
HWY_EXPORT(F16Depthwise);
HWY_EXPORT(BF16Depthwise);

template <>
const DepthwiseKernels<float>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(FloatDepthwise)();
}
template <>
const DepthwiseKernels<F16>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(F16Depthwise)();
}
template <>
const DepthwiseKernels<BF16>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(BF16Depthwise)();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
