// Transposed convolutions of 8-bit images with strides.
//
// Outputs with the same remainder modulo the stride use only every stride-th tap and read
// neighbouring inputs, so they are a convolution of stride 1, a phase. Phases are computed one by
// one, each with a packed filter of its own, and their results are spread over the output.
#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/int8_conv.h>

#include <algorithm>
#include <new>
#include <numeric>

namespace executorch::cpu {
namespace {

// Each phase has some overhead.
constexpr int64_t kMostPhases = 64;

// The taps k0, k0 + stride, k0 + 2 stride ... of an axis, k0 < stride, from the last to the first,
// because the positions that they read then increase.
struct Phase {
  int64_t k0, taps;

  Phase(const ConvAxis& a, int64_t first)
      : k0(first), taps((a.kernel - 1 - first) / a.stride + 1) {}
  int64_t tap(const ConvAxis& a, int64_t i) const { return k0 + (taps - 1 - i) * a.stride; }

  // The remainder modulo the stride of the outputs that these taps contribute to.
  int64_t remainder(const ConvAxis& a) const {
    const int64_t at = (k0 * a.dilation - a.padding) % a.stride;
    return at < 0 ? at + a.stride : at;
  }
  // These outputs as a convolution of stride 1; `out` of the result may be 0.
  ConvAxis axis(const ConvAxis& a) const {
    const int64_t r = remainder(a);
    ConvAxis phase = a;
    phase.kernel = taps;
    phase.out = r >= a.out ? 0 : (a.out - r - 1) / a.stride + 1;
    phase.stride = 1;
    phase.padding = (taps - 1) * a.dilation - (r + a.padding - k0 * a.dilation) / a.stride;
    return phase;
  }
};

}  // namespace

bool Int8Conv::has_phases() const {
  const auto fits = [](const ConvAxis& a) {
    return a.kernel >= a.stride && std::gcd(a.dilation, a.stride) == 1;
  };
  return transposed && product.b.group_scales == nullptr && fits(axis[0]) && fits(axis[1]) &&
         std::max(axis[0].stride, axis[1].stride) > 1 &&
         (Size(axis[0].stride) * axis[1].stride).within(kMostPhases);
}

Int8Conv Int8Conv::of_phase(int64_t index, const Int8Filter::Phase& packed) const {
  Int8Conv conv = *this;
  conv.transposed = false;
  conv.filter_step = 1;
  conv.axis[0] = Phase(axis[0], index / axis[1].stride).axis(axis[0]);
  conv.axis[1] = Phase(axis[1], index % axis[1].stride).axis(axis[1]);
  conv.product.k = conv.axis[0].kernel * conv.axis[1].kernel * group_in;
  conv.product.b.data = packed.rows.get();
  conv.product.b.row_bytes = conv.product.k;
  conv.product.sums = packed.sums.get();
  return conv;
}

bool Int8Conv::pack_phases(Int8Filter& filter) const {
  const int64_t n_phases = axis[0].stride * axis[1].stride, n = groups * group_out;
  filter.phases_.reset(new (std::nothrow) Int8Filter::Phase[static_cast<size_t>(n_phases)]);
  if (filter.phases_ == nullptr) return false;
  for (int64_t i = 0; i < n_phases; ++i) {
    Int8Filter::Phase& packed = filter.phases_[static_cast<size_t>(i)];
    const Phase y(axis[0], i / axis[1].stride), x(axis[1], i % axis[1].stride);
    const int64_t k = y.taps * x.taps * group_in;
    packed.rows.reset(new (std::nothrow) uint8_t[static_cast<size_t>(n * k)]);
    packed.sums.reset(new (std::nothrow) int32_t[static_cast<size_t>(n)]);
    if (packed.rows == nullptr || packed.sums == nullptr) return false;
    uint8_t* to = packed.rows.get();
    for (int64_t j = 0; j < n; ++j) {
      const uint8_t* const row = product.b.data + j * product.b.row_bytes;
      int32_t sum = 0;
      for (int64_t t = 0; t < y.taps * x.taps; ++t) {
        const int64_t tap =
            y.tap(axis[0], t / x.taps) * axis[1].kernel + x.tap(axis[1], t % x.taps);
        for (int64_t p = tap * group_in; p < (tap + 1) * group_in; ++p) {
          *to = row[p * filter_step];
          sum += static_cast<int8_t>(*to++);
        }
      }
      packed.sums[static_cast<size_t>(j)] = sum;
    }
    const Int8Conv conv = of_phase(i, packed);
    const bool is_empty = conv.axis[0].out == 0 || conv.axis[1].out == 0;
    if (!is_empty && !conv.pack(packed.filter)) return false;
  }
  return true;
}

bool Int8Conv::run_phases(const Int8Filter& filter, Scratch& scratch) const {
  using Out = Int8Gemm::Out;
  const Scratch::Frame frame(scratch);
  const ConvAxis &h = axis[0], &w = axis[1];
  const int64_t element = product.out == Out::F32                               ? 4
                          : product.out == Out::F16 || product.out == Out::BF16 ? 2
                                                                                : 1;
  const int64_t pixel = groups * group_out * element;
  uint8_t* const results =
      scratch.array<uint8_t>(Size(batch) * (h.out / h.stride + 1) * (w.out / w.stride + 1) * pixel);
  if (results == nullptr) return false;
  for (int64_t i = 0; i < h.stride * w.stride; ++i) {
    const Int8Filter::Phase& packed = filter.phases_[static_cast<size_t>(i)];
    Int8Conv conv = of_phase(i, packed);
    const int64_t oh = conv.axis[0].out, ow = conv.axis[1].out;
    if (oh == 0 || ow == 0) continue;
    conv.product.c = results;
    if (!conv.run(packed.filter, scratch)) return false;
    const int64_t ry = Phase(h, i / w.stride).remainder(h),
                  rx = Phase(w, i % w.stride).remainder(w);
    const Copy::Dim dims[] = {{batch, oh * ow * pixel, h.out * w.out * pixel},
                              {oh, ow * pixel, h.stride * w.out * pixel},
                              {ow, pixel, w.stride * pixel},
                              {pixel, 1, 1}};
    Copy{dims, 4, 1, results, static_cast<uint8_t*>(product.c) + (ry * w.out + rx) * pixel}.run();
  }
  return true;
}

}  // namespace executorch::cpu
