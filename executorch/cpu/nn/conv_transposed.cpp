#include <executorch/cpu/nn/conv_transposed.h>
#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <numeric>

namespace executorch::cpu {
namespace {

// With position(o, k) = (o + padding - k * dilation) / stride, o = q * stride + r, and k0 the first
// tap for which that is whole: taps k0 + m * stride meet q + first - m * dilation. They are walked
// backwards, so that positions rise from `from` on.
struct Phase {
  int64_t k0, taps, out, from;

  Phase(const ConvAxis& a, int64_t r) : k0(0) {
    while ((r + a.padding - k0 * a.dilation) % a.stride != 0) ++k0;
    taps = (a.kernel - 1 - k0) / a.stride + 1;
    out = (a.out - r + a.stride - 1) / a.stride;
    from = (r + a.padding - k0 * a.dilation) / a.stride - (taps - 1) * a.dilation;
  }
  int64_t end(const ConvAxis& a) const { return from + out + (taps - 1) * a.dilation; }
};

int64_t n_phases(const ConvAxis& a) {
  return std::min(a.stride, a.out);
}

// The positions that the phases of an axis read, with what they find outside the image.
struct Reach {
  int64_t from = 0, end = 0;

  explicit Reach(const ConvAxis& a) : end(a.in) {
    for (int64_t r = 0; r < n_phases(a); ++r) {
      const Phase phase(a, r);
      from = std::min(from, phase.from);
      end = std::max(end, phase.end(a));
    }
  }
};

// The image with zeros around it, so that no phase has padding. Its axes' `in` and in_stride, and
// its in_channel, are those of the copy; its input is position 0, with zeros before it.
Conv<float> padded(const Conv<float>& c) {
  Conv<float> to = c;
  const int64_t channels = c.groups * c.group_in;
  int64_t size = 1, first = 0;
  for (int d = 2; d >= 0; --d) {
    const Reach reach(c.axis[d]);
    ConvAxis& a = to.axis[d];
    a.in = reach.end - reach.from;
    a.in_stride = size;
    first -= reach.from * size;
    size *= a.in;
  }
  to.in_channel = size;
  static thread_local Workspace workspace;
  float* const image = workspace.floats(static_cast<size_t>(channels * size));
  if (first != 0 || size != c.axis[0].in * c.axis[1].in * c.axis[2].in) {
    std::fill_n(image, channels * size, 0.0f);
  }
  Copy::Dim dims[4] = {{channels, c.in_channel, size}};
  for (int d = 0; d < 3; ++d) {
    dims[d + 1] = {c.axis[d].in, c.axis[d].in_stride, to.axis[d].in_stride};
  }
  Copy{dims, 4, sizeof(float), c.input, image + first}.run();
  to.input = image + first;
  return to;
}

bool has_phases(const Conv<float>& c) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  if (!c.transposed || c.residual != nullptr || w.out_stride != 1 || h.out_stride < w.out ||
      z.out_stride < h.out * h.out_stride * (z.out > 1) || c.out_channel < h.out * h.out_stride ||
      z.stride * h.stride * w.stride == 1) {
    return false;
  }
  return std::all_of(c.axis, c.axis + 3, [](const ConvAxis& a) {
    return a.kernel >= a.stride && std::gcd(a.dilation, a.stride) == 1;
  });
}

// Outputs of one phase of one image, which is padded.
void run_phase(Conv<float> c, const int64_t (&r)[3]) {
  const ConvAxis all[3] = {c.axis[0], c.axis[1], c.axis[2]};
  float* out = c.out;
  c.transposed = false;
  int64_t step = 1;
  for (int d = 2; d >= 0; --d) {
    const Phase phase(all[d], r[d]);
    ConvAxis& a = c.axis[d];
    a.in = phase.end(a) - phase.from;
    a.kernel = phase.taps;
    a.out = phase.out;
    a.padding = 0;
    a.weight_stride *= -a.stride;
    a.out_stride = step;
    a.stride = 1;
    c.weight += (phase.k0 + (phase.taps - 1) * all[d].stride) * all[d].weight_stride;
    c.input += phase.from * a.in_stride;
    step *= phase.out;
    out += r[d] * all[d].out_stride;
  }
  const int64_t channels = c.groups * c.group_out;
  static thread_local Workspace workspace;
  float* const plane = workspace.floats(static_cast<size_t>(channels * step));
  const Copy::Dim channel = {channels, step, c.out_channel};
  c.out = plane;
  c.out_channel = step;
  c.run();
  Copy::Dim dims[4];
  int n = 0;
  if (channels > 1) dims[n++] = channel;
  for (int d = 0; d < 3; ++d) {
    const ConvAxis& a = c.axis[d];
    if (a.out > 1) dims[n++] = {a.out, a.out_stride, all[d].out_stride * all[d].stride};
  }
  Copy{dims, n, sizeof(float), plane, out}.run();
}

}  // namespace

bool run_in_phases(const Conv<float>& c) {
  if (!has_phases(c)) return false;
  Conv<float> image = c;
  image.batch = 1;
  for (int64_t b = 0; b < c.batch; ++b) {
    const Conv<float> with_zeros = padded(image);
    int64_t r[3];
    for (r[0] = 0; r[0] < n_phases(c.axis[0]); ++r[0]) {
      for (r[1] = 0; r[1] < n_phases(c.axis[1]); ++r[1]) {
        for (r[2] = 0; r[2] < n_phases(c.axis[2]); ++r[2]) run_phase(with_zeros, r);
      }
    }
    image.input += c.in_batch;
    image.out += c.out_batch;
  }
  return true;
}

}  // namespace executorch::cpu
