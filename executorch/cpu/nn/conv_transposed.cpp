#include <executorch/cpu/nn/conv_transposed.h>
#include <executorch/cpu/nn/copy.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace executorch::cpu {
namespace {

// The outputs of one axis that have the same remainder r modulo the stride: o = q * stride + r.
//
// In a transposed convolution, tap k of output o reads the input position
// (o + padding - k * dilation) / stride, if that is a whole number. For each tap k0 < stride there
// is exactly one r for which it is. The taps of the phase are then k = k0 + m * stride, m >= 0, and
// tap k of output q of the phase reads position
//     q + (r + padding - k0 * dilation) / stride - m * dilation.
// This is a convolution of stride 1. Its taps are visited from the last m to the first, because
// positions then increase from tap to tap. The stride and the dilation must have no common factor:
// otherwise several k0 would have the same r, and some r would have no tap at all.
struct Phase {
  int64_t r;     // the remainder of the phase's outputs
  int64_t taps;  // the number of its taps
  int64_t out;   // the number of its outputs
  int64_t from;  // the first position that it reads: that of output 0 and the last tap

  Phase(const ConvAxis& a, int64_t k0) {
    const int64_t at = (k0 * a.dilation - a.padding) % a.stride;
    r = at < 0 ? at + a.stride : at;
    taps = (a.kernel - 1 - k0) / a.stride + 1;
    out = (a.out - r + a.stride - 1) / a.stride;
    from = (r + a.padding - k0 * a.dilation) / a.stride - (taps - 1) * a.dilation;
  }
  bool is_empty() const { return out <= 0; }
  int64_t end(const ConvAxis& a) const { return from + out + (taps - 1) * a.dilation; }
};

// Calls f(k0, phase) for each phase that has outputs, where k0 is its first tap. Stops and returns
// false when a call returns false.
template <class F>
bool for_phases(const ConvAxis& a, const F& f) {
  for (int64_t k0 = 0; k0 < a.stride; ++k0) {
    const Phase phase(a, k0);
    if (!phase.is_empty() && !f(k0, phase)) return false;
  }
  return true;
}

// The range of positions [from, end) that the phases of an axis read, which may begin before the
// image and end behind it, and the most outputs that a phase has.
struct ReadRange {
  int64_t from = 0, end = 0, most_out = 0;

  explicit ReadRange(const ConvAxis& a) : end(a.in) {
    for_phases(a, [&](int64_t, const Phase& phase) {
      from = std::min(from, phase.from);
      end = std::max(end, phase.end(a));
      most_out = std::max(most_out, phase.out);
      return true;
    });
  }
};

// Computes a convolution phase by phase. The image is first copied into a larger one, with zeros
// around it, so that no phase needs padding. The results of a phase are contiguous and are then
// copied to every stride-th element of the output.
class Phases {
 public:
  explicit Phases(const Conv<float>& c) : c_(c), padded_(c) {
    for (int d = 2; d >= 0; --d) {
      const ReadRange range(c.axis[d]);
      ConvAxis& a = padded_.axis[d];
      a.in = range.end - range.from;
      a.in_stride = size_.value();
      first_ -= range.from * a.in_stride;
      size_ *= a.in;
      plane_ *= range.most_out;
    }
    padded_.batch = 1;
    padded_.in_channel = size_.value();
  }

  bool run(Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    const int64_t channels = c_.groups * c_.group_in;
    float* const image = scratch.array<float>(size_ * channels);
    results_ = scratch.array<float>(plane_ * (c_.groups * c_.group_out));
    if (image == nullptr || results_ == nullptr) return false;
    padded_.input = image + first_;
    for (int64_t b = 0; b < c_.batch; ++b) {
      copy(c_.input + b * c_.in_batch, channels, image);
      const bool done = for_phases(c_.axis[0], [&](int64_t z, const Phase& of_z) {
        return for_phases(c_.axis[1], [&](int64_t h, const Phase& of_h) {
          return for_phases(c_.axis[2], [&](int64_t w, const Phase& of_w) {
            return run_phase({z, h, w}, {of_z, of_h, of_w}, c_.out + b * c_.out_batch, scratch);
          });
        });
      });
      if (!done) return false;
    }
    return true;
  }

 private:
  void copy(const float* from, int64_t channels, float* image) const {
    const ConvAxis* const a = c_.axis;
    if (first_ != 0 || size_.value() != a[0].in * a[1].in * a[2].in) {
      std::fill_n(image, channels * size_.value(), 0.0f);
    }
    Copy::Dim dims[4] = {{channels, c_.in_channel, size_.value()}};
    for (int d = 0; d < 3; ++d) dims[d + 1] = {a[d].in, a[d].in_stride, padded_.axis[d].in_stride};
    Copy{dims, 4, sizeof(float), from, image + first_}.run();
  }

  // Computes the outputs of one phase from the padded image.
  bool run_phase(const int64_t (&k0)[3], const Phase (&phases)[3], float* out,
                 Scratch& scratch) const {
    const ConvAxis* const all = padded_.axis;
    Conv<float> c = padded_;
    c.transposed = false;
    int64_t step = 1;
    for (int d = 2; d >= 0; --d) {
      const Phase& phase = phases[d];
      ConvAxis& a = c.axis[d];
      a.in = phase.end(a) - phase.from;
      a.kernel = phase.taps;
      a.out = phase.out;
      a.padding = 0;
      a.weight_stride *= -a.stride;
      a.out_stride = step;
      a.stride = 1;
      c.weight += (k0[d] + (phase.taps - 1) * all[d].stride) * all[d].weight_stride;
      c.input += phase.from * a.in_stride;
      step *= phase.out;
      out += phase.r * all[d].out_stride;
    }
    const int64_t channels = c.groups * c.group_out;
    const Copy::Dim channel = {channels, step, c.out_channel};
    c.out = results_;
    c.out_channel = step;
    if (!c.run(scratch)) return false;
    Copy::Dim dims[4];
    int n = 0;
    if (channels > 1) dims[n++] = channel;
    for (int d = 0; d < 3; ++d) {
      const ConvAxis& a = c.axis[d];
      if (a.out > 1) dims[n++] = {a.out, a.out_stride, all[d].out_stride * all[d].stride};
    }
    Copy{dims, n, sizeof(float), results_, out}.run();
    return true;
  }

  const Conv<float>& c_;
  /// The convolution of the padded copy of an image. `input` is the address of position 0, which
  /// has index first_ in the copy.
  Conv<float> padded_;
  int64_t first_ = 0;
  Size size_ = 1;   // floats of a channel of the copy
  Size plane_ = 1;  // floats of a channel of the results of the largest phase
  float* results_ = nullptr;
};

}  // namespace

bool has_phases(const Conv<float>& c) {
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  if (!c.transposed || c.residual != nullptr || w.out_stride != 1 || h.out_stride < w.out ||
      z.out_stride < h.out * h.out_stride * (z.out > 1) || c.out_channel < h.out * h.out_stride) {
    return false;
  }
  const auto fits = [](const ConvAxis& a) {
    return a.kernel >= a.stride && std::gcd(a.dilation, a.stride) == 1;
  };
  const auto has_stride = [](const ConvAxis& a) { return a.stride > 1; };
  return std::all_of(c.axis, c.axis + 3, fits) && std::any_of(c.axis, c.axis + 3, has_stride);
}

bool run_in_phases(const Conv<float>& c, Scratch& scratch) {
  return Phases(c).run(scratch);
}

}  // namespace executorch::cpu
