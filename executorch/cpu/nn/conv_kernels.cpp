#include <executorch/cpu/nn/conv_kernels.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/conv_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {
namespace conv {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

// ---- patches

// Lanes [begin, end) of a vector of pixels: one stretch of an output row, and the input row it
// meets.
struct Stretch {
  int64_t begin, end;
  int64_t od, oh, ow;  // of lane `begin`
};

// Where those lanes lie from the channel's first element: lane l at offset + l * step.
struct Source {
  int64_t offset;
  int64_t begin, end;
};

HWY_INLINE int64_t FindStretches(const ConvAxis* axis, int64_t j0, int64_t n, Stretch* to) {
  const int64_t w = axis[2].out, h = axis[1].out;
  int64_t count = 0;
  for (int64_t l = 0; l < n;) {
    const int64_t ow = (j0 + l) % w, row = (j0 + l) / w;
    const int64_t end = std::min(n, l + w - ow);
    to[count++] = {l, end, row / h, row % h, ow};
    l = end;
  }
  return count;
}

HWY_INLINE int64_t FindSources(const ConvAxis* axis, const Stretch* stretches, int64_t n,
                               int64_t kd, int64_t kh, int64_t kw, Source* to) {
  const ConvAxis& w = axis[2];
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Stretch& s = stretches[i];
    const int64_t id = axis[0].position(s.od, kd, false), ih = axis[1].position(s.oh, kh, false);
    if (id < 0 || ih < 0) continue;
    const int64_t iw = s.ow * w.stride - w.padding + kw * w.dilation;  // of lane s.begin
    const int64_t skipped = iw >= 0 ? 0 : (-iw + w.stride - 1) / w.stride;
    const int64_t inside = iw >= w.in ? 0 : (w.in - iw + w.stride - 1) / w.stride;
    const int64_t begin = s.begin + skipped, end = std::min(s.end, s.begin + inside);
    if (begin >= end) continue;
    const int64_t offset =
        id * axis[0].in_stride + ih * axis[1].in_stride + (iw - s.begin * w.stride) * w.in_stride;
    to[count++] = {offset, begin, end};
  }
  return count;
}

HWY_INLINE V LoadScattered(const float* from, int64_t step, const Source& s) {
  const Floats d;
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t l = s.begin; l < s.end; ++l) lanes[l] = from[s.offset + l * step];
  return hn::Load(d, lanes);
}

#if HWY_MEM_OPS_MIGHT_FAULT
constexpr bool kMasks = false;  // a masked load may touch memory beyond the image
#else
constexpr bool kMasks = true;
#endif

// Lanes [begin, end).
HWY_INLINE hn::Mask<Floats> Between(int64_t begin, int64_t end) {
  const Floats d;
  return hn::AndNot(hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(begin, 0, kLanes))),
                    hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(end, 0, kLanes))));
}

// The same vector of every channel: rows of the panel `row_step` apart.
template <int kStep>
HWY_INLINE void CopyChannels(const float* image, int64_t channel_stride, int64_t n_channels,
                             const Source* sources, int64_t n_sources, float* to,
                             int64_t row_step) {
  const Floats d;
  hn::Mask<Floats> low[kLanes], high[kLanes];
  for (int64_t i = 0; i < n_sources; ++i) {
    const int64_t begin = kStep * sources[i].begin, end = kStep * (sources[i].end - 1) + 1;
    low[i] = Between(begin, end);
    high[i] = Between(begin - kLanes, end - kLanes);
  }
  for (int64_t c = 0; c < n_channels; ++c, image += channel_stride, to += row_step) {
    V x = hn::Zero(d);
    for (int64_t i = 0; i < n_sources; ++i) {
      const float* from = image + sources[i].offset;
      V y = hn::MaskedLoad(low[i], d, from);
      if constexpr (kStep == 2) {
        y = hn::ConcatEven(d, hn::MaskedLoad(high[i], d, from + kLanes), y);
      }
      x = hn::Or(x, y);
    }
    hn::StoreU(x, d, to);
  }
}

HWY_INLINE void CopyScattered(const float* image, int64_t step, int64_t channel_stride,
                              int64_t n_channels, const Source* sources, int64_t n_sources,
                              float* to, int64_t row_step) {
  const Floats d;
  for (int64_t c = 0; c < n_channels; ++c, image += channel_stride, to += row_step) {
    V x = hn::Zero(d);
    for (int64_t i = 0; i < n_sources; ++i) x = hn::Or(x, LoadScattered(image, step, sources[i]));
    hn::StoreU(x, d, to);
  }
}

void Gather(const PatchRows& r, int64_t j0, int64_t nj, int64_t p0, int64_t np, float* to,
            int64_t ld) {
  const ConvAxis* axis = r.axis;
  const int64_t step = axis[2].stride * axis[2].in_stride;
  const auto ceil_div = [](int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; };
  Stretch stretches[kLanes];
  Source sources[kLanes];
  for (int64_t v = 0; v < ld; v += kLanes) {
    const int64_t n_lanes = std::clamp<int64_t>(nj - v, 0, kLanes);
    const int64_t n_stretches = FindStretches(axis, j0 + v, n_lanes, stretches);
    int64_t tap = 0;
    for (int64_t kd = 0; kd < axis[0].kernel; ++kd) {
      for (int64_t kh = 0; kh < axis[1].kernel; ++kh) {
        for (int64_t kw = 0; kw < axis[2].kernel; ++kw, ++tap) {
          const int64_t first = p0 - tap * r.tap_rows;
          const int64_t c0 = ceil_div(first, r.channel_rows);
          const int64_t c1 = std::min(r.n_channels, ceil_div(first + np, r.channel_rows));
          if (c0 >= c1) continue;
          const int64_t n = FindSources(axis, stretches, n_stretches, kd, kh, kw, sources);
          const float* image = r.image + c0 * r.channel_stride;
          float* at = to + (c0 * r.channel_rows - first) * ld + v;
          const int64_t row_step = r.channel_rows * ld;
          if (kMasks && step == 1) {
            CopyChannels<1>(image, r.channel_stride, c1 - c0, sources, n, at, row_step);
          } else if (kMasks && step == 2) {
            CopyChannels<2>(image, r.channel_stride, c1 - c0, sources, n, at, row_step);
          } else {
            CopyScattered(image, step, r.channel_stride, c1 - c0, sources, n, at, row_step);
          }
        }
      }
    }
  }
}

// ---- one channel per group

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

// What follows the sum: the residual and the function.
template <class T>
HWY_INLINE void Finish(const Conv<T>& c, const float* sums, int64_t n, const T* residual, T* to) {
  const Floats d;
  const Activation act = c.act;
  for (int64_t j = 0; j < n; j += kLanes) {
    const auto m = static_cast<size_t>(std::min(kLanes, n - j));
    V x = LoadFloatsN(d, sums + j, m);
    const V r = residual == nullptr ? hn::Zero(d) : LoadFloatsN(d, residual + j, m);
    if (residual != nullptr && c.act_last) x = hn::Add(x, r);
    if (act.kind != Activation::Kind::None) x = Apply(d, act, x);
    if (residual != nullptr && !c.act_last) x = hn::Add(x, r);
    if (m == static_cast<size_t>(kLanes)) {
      StoreFloats(x, d, to + j);
    } else {
      StoreFloatsN(x, d, to + j, m);
    }
  }
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
      Finish(c, sums + oh * plane.width, w.out, c.residual == nullptr ? nullptr : c.residual + row,
             c.out + row);
    }
  }
}

// One output in n <= kLanes channels from g on.
template <class T>
HWY_INLINE void PixelChannels(const Conv<T>& c, const T* const* rows, const int64_t* row_taps,
                              int64_t n_rows, int64_t ow, int64_t g, size_t n, const float* weights,
                              const float* biases, float* to) {
  const Floats d;
  const ConvAxis& w = c.axis[2];
  const bool whole = n == static_cast<size_t>(kLanes);
  V sum = biases == nullptr ? hn::Zero(d) : LoadFloatsN(d, biases + g, n);
  const int64_t iw = ow * w.stride - w.padding;
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t kw = 0; kw < w.kernel; ++kw) {
      const int64_t at = iw + kw * w.dilation;
      if (at < 0 || at >= w.in) continue;
      const float* weight = weights + (row_taps[r] + kw) * c.groups + g;
      const T* x = rows[r] + at * w.in_stride + g;
      sum = whole ? hn::MulAdd(hn::LoadU(d, weight), LoadFloats(d, x), sum)
                  : hn::MulAdd(LoadFloatsN(d, weight, n), LoadFloatsN(d, x, n), sum);
    }
  }
  if (whole) {
    hn::StoreU(sum, d, to);
  } else {
    StoreFloatsN(sum, d, to, n);
  }
}

template <class T>
void Pixels(const Conv<T>& c, int64_t b, int64_t row, const float* weights, const float* biases) {
  static thread_local Workspace workspace;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  const int64_t od = row / h.out, oh = row % h.out;
  const T* rows[kDepthwiseRows];
  int64_t row_taps[kDepthwiseRows];
  int64_t n_rows = 0;
  for (int64_t kd = 0; kd < z.kernel; ++kd) {
    for (int64_t kh = 0; kh < h.kernel; ++kh) {
      const int64_t id = z.position(od, kd, false), ih = h.position(oh, kh, false);
      if (id < 0 || ih < 0) continue;
      rows[n_rows] = c.input + b * c.in_batch + id * z.in_stride + ih * h.in_stride;
      row_taps[n_rows++] = (kd * h.kernel + kh) * w.kernel;
    }
  }
  float* sums = workspace.floats(static_cast<size_t>(c.groups));
  for (int64_t ow = 0; ow < w.out; ++ow) {
    for (int64_t g = 0; g < c.groups; g += kLanes) {
      const auto n = static_cast<size_t>(std::min(kLanes, c.groups - g));
      PixelChannels(c, rows, row_taps, n_rows, ow, g, n, weights, biases, sums + g);
    }
    const int64_t at = b * c.out_batch + od * z.out_stride + oh * h.out_stride + ow * w.out_stride;
    Finish(c, sums, c.groups, c.residual == nullptr ? nullptr : c.residual + at, c.out + at);
  }
}

}  // namespace conv

GatherPatches PatchGatherer() {
  return conv::Gather;
}

template <class T>
const DepthwiseKernels<T>& DepthwiseOf() {
  static constexpr DepthwiseKernels<T> kTable = {conv::Plane<T>, conv::Pixels<T>};
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

HWY_EXPORT(PatchGatherer);
HWY_EXPORT(FloatDepthwise);
HWY_EXPORT(F16Depthwise);
HWY_EXPORT(BF16Depthwise);

GatherPatches gather_patches() {
  return HWY_DYNAMIC_DISPATCH(PatchGatherer)();
}
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
