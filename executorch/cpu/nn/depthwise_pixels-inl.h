/// Depthwise convolutions of pixels whose channels are contiguous: vectors run along channels.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_DEPTHWISE_PIXELS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_DEPTHWISE_PIXELS_INL_H_
#undef EXECUTORCH_CPU_NN_DEPTHWISE_PIXELS_INL_H_
#else
#define EXECUTORCH_CPU_NN_DEPTHWISE_PIXELS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/depthwise_finish-inl.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE::depthwise {

// The taps of one output pixel that lie inside the image.
template <class T>
struct Taps {
  const T* x[kDepthwiseTaps];
  const float* weight[kDepthwiseTaps];
  int64_t n = 0;
};

// Computes kVectors vectors of channels of an output pixel, from channel g on.
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

// Computes the last n < kLanes channels of an output pixel.
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

// Computes output columns [begin, end) of a row, whose windows of kSize x kSize taps lie within the
// image, in kVectors vectors of channels from g on. Weights stay in registers. `x` is the address
// of channel 0 of the first tap of column 0, `to` that of its output.
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

// Computes whole vectors of channels of the columns [begin, end) whose windows lie within the
// image. begin == end if there are none.
template <class T>
HWY_INLINE void InnerColumns(const Conv<T>& c, int64_t b, int64_t row, const float* weights,
                             const float* biases, int64_t* begin, int64_t* end) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  *begin = *end = 0;
  const int64_t ih = row % h.out * h.stride - h.padding;
  const bool inside = z.kernel == 1 && z.stride == 1 && z.padding == 0 && z.out <= z.in &&
                      ih >= 0 && ih + (h.kernel - 1) * h.dilation < h.in;
  if (!inside || h.kernel != w.kernel || w.kernel != 3 || !IsBounded(c)) return;
  const int64_t last =
      w.in - 1 - (w.kernel - 1) * w.dilation + w.padding;  // where a window can begin
  *begin = std::min((w.padding + w.stride - 1) / w.stride, w.out);
  *end = last < 0 ? *begin : std::clamp(last / w.stride + 1, *begin, w.out);
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

}  // namespace executorch::cpu::HWY_NAMESPACE::depthwise
HWY_AFTER_NAMESPACE();

#endif  // once per target
