#include <executorch/cpu/nn/patches.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/patches.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace patches {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

// Lanes [begin, end) of a vector of pixels: a stretch of one output row, and the input row that it
// reads.
struct Stretch {
  int64_t begin, end;
  int64_t od, oh, ow;  // of lane `begin`
};

// The inputs of those lanes: lane l reads the element offset + l * step of the channel.
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

// The input rows that stretches read with one row of taps: their offsets, and the positions along
// width of tap 0. Stretches outside of the image are left out.
struct Row {
  int64_t begin, end, offset, iw;
};

HWY_INLINE int64_t FindRows(const ConvAxis* axis, const Stretch* stretches, int64_t n, int64_t kd,
                            int64_t kh, Row* to) {
  const ConvAxis& w = axis[2];
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Stretch& s = stretches[i];
    const int64_t id = axis[0].position(s.od, kd, false), ih = axis[1].position(s.oh, kh, false);
    if (id < 0 || ih < 0) continue;
    to[count++] = {s.begin, s.end, id * axis[0].in_stride + ih * axis[1].in_stride,
                   s.ow * w.stride - w.padding};
  }
  return count;
}

// a / stride, rounded up, without a division for the usual strides 1 and 2.
HWY_INLINE int64_t Steps(int64_t a, int64_t stride) {
  return stride == 1 ? a : stride == 2 ? (a + 1) >> 1 : (a + stride - 1) / stride;
}

HWY_INLINE int64_t FindSources(const ConvAxis& w, const Row* rows, int64_t n, int64_t kw,
                               Source* to) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Row& row = rows[i];
    const int64_t iw = row.iw + kw * w.dilation;  // of lane row.begin
    const int64_t skipped = iw >= 0 ? 0 : Steps(-iw, w.stride);
    const int64_t inside = iw >= w.in ? 0 : Steps(w.in - iw, w.stride);
    const int64_t begin = row.begin + skipped, end = std::min(row.end, row.begin + inside);
    if (begin >= end) continue;
    to[count++] = {row.offset + (iw - row.begin * w.stride) * w.in_stride, begin, end};
  }
  return count;
}

HWY_INLINE V LoadScattered(const float* from, int64_t step, const Source& s) {
  const Floats d;
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t l = s.begin; l < s.end; ++l) lanes[l] = from[s.offset + l * step];
  return hn::Load(d, lanes);
}

// Copies the same vector of every channel to the panel, whose rows are `row_step` elements apart.
template <int kStep>
HWY_INLINE void CopyChannels(const float* image, int64_t channel_stride, int64_t n_channels,
                             const Source* sources, int64_t n_sources, float* to,
                             int64_t row_step) {
  const Floats d;
  if (n_sources == 1 && sources[0].begin == 0 && sources[0].end == kLanes) {
    const auto but_last = hn::FirstN(d, static_cast<size_t>(kLanes - 1));
    image += sources[0].offset;
    for (int64_t c = 0; c < n_channels; ++c, image += channel_stride, to += row_step) {
      V x = hn::LoadU(d, image);
      if constexpr (kStep == 2) {
        x = hn::ConcatEven(d, hn::MaskedLoad(but_last, d, image + kLanes), x);
      }
      hn::StoreU(x, d, to);
    }
    return;
  }
  hn::Mask<Floats> low[kLanes], high[kLanes];
  for (int64_t i = 0; i < n_sources; ++i) {
    const int64_t begin = kStep * sources[i].begin, end = kStep * (sources[i].end - 1) + 1;
    low[i] = Between(Floats(), begin, end);
    high[i] = Between(Floats(), begin - kLanes, end - kLanes);
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
  Row rows[kLanes];
  Source sources[kLanes];
  for (int64_t v = 0; v < ld; v += kLanes) {
    const int64_t n_lanes = std::clamp<int64_t>(nj - v, 0, kLanes);
    const int64_t n_stretches = FindStretches(axis, j0 + v, n_lanes, stretches);
    int64_t tap = 0;
    for (int64_t kd = 0; kd < axis[0].kernel; ++kd) {
      for (int64_t kh = 0; kh < axis[1].kernel; ++kh) {
        const int64_t n_rows = FindRows(axis, stretches, n_stretches, kd, kh, rows);
        for (int64_t kw = 0; kw < axis[2].kernel; ++kw, ++tap) {
          const int64_t first = p0 - tap * r.tap_rows;
          const int64_t c0 = ceil_div(first, r.channel_rows);
          const int64_t c1 = std::min(r.n_channels, ceil_div(first + np, r.channel_rows));
          if (c0 >= c1) continue;
          const int64_t n = FindSources(axis[2], rows, n_rows, kw, sources);
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

}  // namespace patches

GatherPatches PatchGatherer() {
  return patches::Gather;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(PatchGatherer);

GatherPatches gather_patches() {
  return HWY_DYNAMIC_DISPATCH(PatchGatherer)();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
