/// Depthwise convolutions of planes: vectors run along width.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_DEPTHWISE_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_DEPTHWISE_PLANES_INL_H_
#undef EXECUTORCH_CPU_NN_DEPTHWISE_PLANES_INL_H_
#else
#define EXECUTORCH_CPU_NN_DEPTHWISE_PLANES_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/depthwise_finish-inl.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE::depthwise {

// A channel with its padding, whose positions are sorted into parts: one part for each pair of
// remainders of the row modulo the vertical stride and of the column modulo the horizontal stride.
// With strides (sh, sw), tap (kh, kw) of output (oh, ow) reads the row oh * sh + kh * dilation,
// which is row oh + kh * dilation / sh of its part, and likewise for columns. So the inputs of a
// tap for a row of outputs are contiguous.
struct PaddedPlane {
  int64_t height, width;  // of a part
  // The index of the element that tap (kh, kw) of output (0, 0) reads.
  int64_t part(const ConvAxis& h, const ConvAxis& w, int64_t kh, int64_t kw) const {
    const int64_t y = kh * h.dilation, x = kw * w.dilation;
    return ((y % h.stride * w.stride + x % w.stride) * height + y / h.stride) * width +
           x / w.stride;
  }
};

// Fills `to`, a plane sorted into parts, from the image's channel `from`.
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

// What follows, up to StripPlanes(), is for the usual windows: kSize x kSize taps without dilation
// and with a stride kStep of 1 or 2. A plane is computed in vertical strips that are one vector of
// outputs wide. A strip reads each row of the image once, from top to bottom, and adds its products
// to the sums of all output rows whose windows contain it. The products of an image row with a row
// of taps are first added to each other and only then to the output's sum, which shortens the chain
// of additions that depend on one another.
//
// Whether the zeros at the left and right of the image are masked out when the image is loaded.
// Otherwise a copy of the plane has them, because the instruction set has no masked loads or
// because the elements must be converted to float anyway.
template <class T>
constexpr bool kMasked = kMasks&& std::is_same_v<T, float>;

template <int kSize, int kStep, bool kByMask>
struct Strip {
  // For each column of taps, the lanes inside of the image: of the vector that is loaded, and for
  // steps of 2 of the one behind it.
  hn::Mask<Floats> low[kSize], high[kSize];
  int64_t ow;     // the strip's first column of outputs
  int64_t first;  // the column of the image that tap 0 of that output reads; may be negative
  size_t n;       // the number of columns of outputs

  Strip() = default;
  Strip(const ConvAxis& w, int64_t column)
      : ow(column),
        first(column * kStep - w.padding),
        n(static_cast<size_t>(std::min(kLanes, w.out - column))) {
    for (int kw = 0; kByMask && kw < kSize; ++kw) {
      low[kw] = Between(Floats(), -(first + kw), w.in - (first + kw));
      high[kw] = Between(Floats(), -(first + kw + kLanes), w.in - (first + kw + kLanes));
    }
  }

  // Loads the inputs of the strip's outputs: x[kw] is what tap kw of a row of taps reads.
  HWY_INLINE void Load(const float* HWY_RESTRICT row, V (&x)[kSize]) const {
    const Floats d;
#pragma GCC unroll 5
    for (int kw = 0; kw < kSize; kw += kStep) {
      const float* at = row + first + kw;
      x[kw] = kByMask ? hn::MaskedLoad(low[kw], d, at) : hn::LoadU(d, at);
      if constexpr (kStep == 2) {
        const V a = x[kw];
        const V b = kByMask ? hn::MaskedLoad(high[kw], d, at + kLanes) : hn::LoadU(d, at + kLanes);
        x[kw] = hn::ConcatEven(d, b, a);
        if (kw + 1 < kSize) x[kw + 1] = hn::ConcatOdd(d, b, a);
      }
    }
  }
};

// Returns the products of a row of the image with a row of taps, added up.
template <int kSize>
HWY_INLINE V RowOfTaps(const V (&x)[kSize], const V* weights) {
  V sum = hn::Mul(x[0], weights[0]);
#pragma GCC unroll 5
  for (int kw = 1; kw < kSize; ++kw) sum = hn::MulAdd(x[kw], weights[kw], sum);
  return sum;
}

// Computes a strip of a plane, whose rows are `row_stride` elements apart, and stores it at `to`.
// The weights and the bias are the same in all lanes.
template <int kSize, int kStep, bool kBounded, class T>
HWY_INLINE void RunStrip(const Conv<T>& c, const Strip<kSize, kStep, kMasked<T>>& strip,
                         const float* image, int64_t row_stride, const V (&weights)[kSize * kSize],
                         V bias, int64_t to) {
  const ConvAxis& h = c.axis[1];
  // sums[i] are unfinished output rows, the newest first: more image rows will be added to them.
  constexpr int kWaiting = (kSize - 1) / kStep;
  V sums[kWaiting];
#pragma GCC unroll 4
  for (int i = 0; i < kWaiting; ++i) sums[i] = bias;
  const auto add = [&](int64_t y, auto first_row) HWY_ATTR {
    // Adds row y of the padded image to the outputs whose rows of taps first_row, first_row + kStep
    // ... read it. In the first of the kStep rows of a step, an output begins and another one ends.
    constexpr int kFirst = decltype(first_row)::value;
    constexpr int kCount = (kSize - kFirst + kStep - 1) / kStep;
    V parts[kCount];
    const int64_t ih = y - h.padding;
    if (ih >= 0 && ih < h.in) {
      // Prefetch the next plane. Strips jump from row to row, which hardware prefetchers do not
      // predict.
      const float* const ahead = image + ih * row_stride + strip.first + c.in_channel;
      if constexpr (kMasked<T>) {
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

// A copy of a plane as floats, with the zeros that strips read at both sides. The zeros are written
// once and stay from plane to plane.
struct PaddedRows {
  int64_t width;    // of a row of the copy
  int64_t left;     // zeros before the image
  int64_t columns;  // of the image that are copied: those that some output reads

  explicit PaddedRows(const ConvAxis& w)
      : width((w.out + kLanes - 1) / kLanes * kLanes * w.stride + w.kernel - 1),
        left(std::min(w.padding, width)),
        columns(std::min(w.in, width - left)) {}

  static Size floats(const ConvAxis& h, const ConvAxis& w) {
    return (round_up(Size(w.out), kLanes) * w.stride + w.kernel) * h.in;
  }

  template <class T>
  HWY_INLINE const float* copy(const ConvAxis& h, const T* from, float* to) const {
    const Floats d;
    for (int64_t y = 0; y < h.in; ++y) {
      const T* const row = from + y * h.in_stride;
      float* const at = to + y * width + left;
      int64_t x = 0;
      for (; x + kLanes <= columns; x += kLanes) hn::StoreU(LoadFloats(d, row + x), d, at + x);
      if (x < columns) {
        const auto n = static_cast<size_t>(columns - x);
        StoreFloatsN(LoadFloatsN(d, row + x, n), d, at + x, n);
      }
    }
    return to + left;
  }
};

template <class T>
HWY_INLINE bool HasStrips(const Conv<T>& c) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  return h.kernel == w.kernel && h.stride == w.stride && h.dilation == 1 && w.dilation == 1 &&
         z.kernel == 1 && z.stride == 1 && z.padding == 0 && z.out <= z.in &&
         (w.kernel == 3 || w.kernel == 5) && w.stride <= 2;
}

// Computes the planes [begin, end), which are numbered through all images of the batch.
template <int kSize, int kStep, bool kBounded, class T>
void StripPlanes(const Conv<T>& c, int64_t begin, int64_t end, float* buffer) {
  const Floats d;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  using OneStrip = Strip<kSize, kStep, kMasked<T>>;
  constexpr int64_t kKept = 8;  // strips whose masks are computed once for all planes
  OneStrip strips[kKept];
  for (int64_t i = 0; i < std::min(kKept, (w.out + kLanes - 1) / kLanes); ++i) {
    strips[i] = OneStrip(w, i * kLanes);
  }
  const PaddedRows rows(w);
  if constexpr (!kMasked<T>) std::fill_n(buffer, h.in * rows.width, 0.0f);
  const int64_t ld = kMasked<T> ? h.in_stride : rows.width;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t b = i / c.groups, g = i % c.groups;
    V weights[kSize * kSize];
    for (int t = 0; t < kSize * kSize; ++t) {
      weights[t] = hn::Set(d, ToFloat(c.weight + g * c.weight_group + t / kSize * h.weight_stride +
                                      t % kSize * w.weight_stride));
    }
    const V bias = hn::Set(d, c.bias == nullptr ? 0.0f : ToFloat(c.bias + g));
    for (int64_t od = 0; od < z.out; ++od) {
      const T* plane = c.input + b * c.in_batch + g * c.in_channel + od * z.in_stride;
      const float* image;
      if constexpr (kMasked<T>) {
        image = plane;
      } else {
        image = rows.copy(h, plane, buffer);
      }
      const int64_t to = b * c.out_batch + g * c.out_channel + od * z.out_stride;
      for (int64_t s = 0; s * kLanes < w.out; ++s) {
        const OneStrip strip = s < kKept ? strips[s] : OneStrip(w, s * kLanes);
        RunStrip<kSize, kStep, kBounded>(c, strip, image, ld, weights, bias, to);
      }
    }
  }
}

template <int kSize, int kStep, class T>
void StripPlanes(const Conv<T>& c, int64_t begin, int64_t end, float* buffer) {
  if (IsBounded(c)) return StripPlanes<kSize, kStep, true>(c, begin, end, buffer);
  StripPlanes<kSize, kStep, false>(c, begin, end, buffer);
}

// The axis with stride 1 if it has a single output, for which the stride does not matter.
inline ConvAxis WithSteps(ConvAxis a) {
  if (a.out == 1) a.stride = 1;
  return a;
}

// The sizes of the scratch memory: of the padded plane, and of its sums.
struct PlaneScratch {
  ConvAxis h, w;
  PaddedPlane plane;
  Size n_plane, n_sums;

  template <class T>
  explicit PlaneScratch(const Conv<T>& c) : h(WithSteps(c.axis[1])), w(WithSteps(c.axis[2])) {
    plane.height = h.out + (h.kernel - 1) * h.dilation / h.stride;
    plane.width = w.out + (w.kernel - 1) * w.dilation / w.stride;
    n_plane = Size(plane.height) * plane.width * h.stride * w.stride;
    n_sums = round_up(Size(h.out) * plane.width, kWide);
  }
  // The last vectors of sums read beyond the plane; these sums are not used.
  Size floats() const { return n_plane + n_sums + 2 * kWide; }
};

template <class T>
void Plane(const Conv<T>& c, int64_t b, int64_t g, float* padded) {
  const PlaneScratch buffer(c);
  const ConvAxis &z = c.axis[0], &h = buffer.h, &w = buffer.w;
  const PaddedPlane& plane = buffer.plane;
  const int64_t n_plane = buffer.n_plane.value(), n_sums = buffer.n_sums.value();
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
Size PlaneFloats(const Conv<T>& c) {
  if (!HasStrips(c)) return PlaneScratch(c).floats();
  return kMasked<T> ? Size(0) : PaddedRows::floats(c.axis[1], c.axis[2]);
}

template <class T>
void Planes(const Conv<T>& c, int64_t begin, int64_t end, float* buffer) {
  const int64_t size = c.axis[2].kernel, step = c.axis[2].stride;
  if (HasStrips(c)) {
    if (size == 3 && step == 1) return StripPlanes<3, 1>(c, begin, end, buffer);
    if (size == 3 && step == 2) return StripPlanes<3, 2>(c, begin, end, buffer);
    if (size == 5 && step == 1) return StripPlanes<5, 1>(c, begin, end, buffer);
    return StripPlanes<5, 2>(c, begin, end, buffer);
  }
  for (int64_t i = begin; i < end; ++i) Plane(c, i / c.groups, i % c.groups, buffer);
}

}  // namespace executorch::cpu::HWY_NAMESPACE::depthwise
HWY_AFTER_NAMESPACE();

#endif  // once per target
