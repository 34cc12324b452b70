#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/nn/conv_transposed.h>
#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <span>
#include <utility>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;

// The floats of the columns of a block: few enough to stay in a cache until they are added, enough
// that dividing a block among threads costs little. It is a constant, because the order in which a
// product is summed may depend on its size, and results must not depend on the machine.
constexpr int64_t kBlockFloats = 1 << 20;
// The fewest pixels of a block for which it costs little to pack the weights once more.
constexpr int64_t kBlockPixels = 256;
// Where a block of all channels would be larger than this, it has fewer channels.
constexpr int64_t kMostFloats = 1 << 22;
// A block should have this many times the inputs that it shares with the next one.
constexpr int64_t kOwnInputs = 8;
// Additions that are worth another thread.
constexpr int64_t kGrainWork = 1 << 14;

// The dim that is divided into blocks: the outermost in which there is more than one input.
int block_dim(const ConvAxis* axis) {
  int d = 0;
  while (d < 2 && axis[d].in == 1) ++d;
  return d;
}

// The most inputs that contribute to a number of neighbouring outputs.
int64_t most_inputs(const ConvAxis& a, int64_t outputs) {
  return std::min(a.in, (outputs - 1 + (a.kernel - 1) * a.dilation) / a.stride + 1);
}

// The outputs [begin, end) of an axis, and the inputs that contribute to them, as an axis of their
// own, whose input 0 is input `first` of `a`.
ConvAxis part_of(const ConvAxis& a, int64_t begin, int64_t end, int64_t* first) {
  const int64_t low = begin + a.padding - (a.kernel - 1) * a.dilation;
  const int64_t high = end - 1 + a.padding;
  *first = low <= 0 ? 0 : std::min(ceil_div(low, a.stride), a.in);
  ConvAxis part = a;
  part.in = high < 0 ? 0 : std::max<int64_t>(std::min(high / a.stride + 1, a.in) - *first, 0);
  part.out = end - begin;
  part.padding = a.padding + begin - *first * a.stride;
  return part;
}

// A tap of a row: input x contributes to output x + shift of one part of the row, which consists of
// the outputs that have the same remainder modulo the stride. Outputs [begin, end) of the part have
// such an input.
struct RowTap {
  int64_t k, part, shift, begin, end;
};

// Taps of the other two dims that contribute to a row of outputs, and the row of inputs they read.
struct InputRow {
  int64_t taps, weights, row;
};

// The weights of some channels as rows (o, t) and columns i of a matrix.
struct Weights {
  const Conv<float>& c;
  const float* first;

  // The distance of neighbouring rows, or 0 if there is no single one.
  int64_t step() const {
    int64_t step = c.weight_out, rows = 1;
    for (int d = 2; d >= 0; --d) {
      if (c.axis[d].kernel == 1) continue;
      if (rows == 1) step = c.axis[d].weight_stride;
      if (c.axis[d].weight_stride != step * rows) return 0;
      rows *= c.axis[d].kernel;
    }
    return c.weight_out == step * rows ? step : 0;
  }
  static void produce(const void* matrix, int64_t, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                      float* to, int64_t ld) {
    const auto& self = *static_cast<const Weights*>(matrix);
    const int64_t taps = self.c.taps();
    for (int64_t i = i0; i < i0 + ni; ++i, to += ld) {
      const float* const row =
          self.first + i / taps * self.c.weight_out + self.c.weight_tap(i % taps);
      for (int64_t p = 0; p < np; ++p) to[p] = row[(p0 + p) * self.c.weight_in];
    }
  }
};

// Some outputs of some channels of an image. What tap t of input x adds to an output of channel i
// is data[(i * taps + t) * tap + x], where x is the index in planes with the extents of `axis`. In
// a convolution with one input channel per group, it is a weight times the image instead.
struct Block {
  ConvAxis axis[3];
  int64_t first_channel, channels;
  const float* data;
  int64_t tap;
  float* out;
};

class Transposed {
 public:
  explicit Transposed(const Conv<float>& c) : given_(c), c_(c), direct_(c.group_in == 1) {
    c_.batch = 1;
  }

  bool run(Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    float *image = nullptr, *results = nullptr;
    if (!is_planar(&ConvAxis::in, &ConvAxis::in_stride)) {
      if ((image = scratch.array<float>(lay_out(&ConvAxis::in, &ConvAxis::in_stride) *
                                        (c_.groups * c_.group_in))) == nullptr) {
        return false;
      }
      c_.in_channel = c_.axis[0].in_stride * c_.axis[0].in;
    }
    if (c_.axis[2].out_stride != 1) {
      if ((results = scratch.array<float>(lay_out(&ConvAxis::out, &ConvAxis::out_stride) *
                                          (c_.groups * c_.group_out))) == nullptr) {
        return false;
      }
      c_.out_channel = c_.axis[0].out_stride * c_.axis[0].out;
    }
    for (int64_t b = 0; b < given_.batch; ++b) {
      const float* const from = given_.input + b * given_.in_batch;
      float* const to = given_.out + b * given_.out_batch;
      if (image != nullptr) {
        copy(from, given_, image, c_, c_.groups * c_.group_in, &ConvAxis::in, &ConvAxis::in_stride,
             given_.in_channel, c_.in_channel);
      }
      c_.input = image != nullptr ? image : from;
      c_.out = results != nullptr ? results : to;
      if (!run_image(scratch)) return false;
      if (results != nullptr) {
        copy(results, c_, to, given_, c_.groups * c_.group_out, &ConvAxis::out,
             &ConvAxis::out_stride, c_.out_channel, given_.out_channel);
      }
    }
    return true;
  }

 private:
  bool is_planar(int64_t ConvAxis::*extent, int64_t ConvAxis::*stride) const {
    int64_t size = 1;
    for (int d = 2; d >= 0; --d) {
      if (c_.axis[d].*extent != 1 && c_.axis[d].*stride != size) return false;
      size *= c_.axis[d].*extent;
    }
    return true;
  }

  // Gives the axes the strides of a plane; returns its size.
  Size lay_out(int64_t ConvAxis::*extent, int64_t ConvAxis::*stride) {
    Size size = 1;
    for (int d = 2; d >= 0; --d) {
      c_.axis[d].*stride = size.value();
      size *= c_.axis[d].*extent;
    }
    return size;
  }

  static void copy(const float* from, const Conv<float>& from_layout, float* to,
                   const Conv<float>& to_layout, int64_t channels, int64_t ConvAxis::*extent,
                   int64_t ConvAxis::*stride, int64_t from_channel, int64_t to_channel) {
    Copy::Dim dims[4] = {{channels, from_channel, to_channel}};
    for (int d = 0; d < 3; ++d) {
      dims[d + 1] = {to_layout.axis[d].*extent, from_layout.axis[d].*stride,
                     to_layout.axis[d].*stride};
    }
    // In the order of falling strides of the copy.
    std::sort(dims, dims + 4, [](const Copy::Dim& a, const Copy::Dim& b) { return a.dst > b.dst; });
    Copy{dims, 4, sizeof(float), from, to}.run();
  }

  bool run_image(Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    if (direct_) {
      return add(
          {{c_.axis[0], c_.axis[1], c_.axis[2]}, 0, c_.groups * c_.group_out, c_.input, 0, c_.out},
          scratch);
    }
    const int dim = block_dim(c_.axis);
    const ConvAxis& a = c_.axis[dim];
    const int64_t taps = c_.taps(), shared = most_inputs(a, 1) - 1;
    int64_t inner = 1;  // pixels of a position of the dim
    for (int d = dim + 1; d < 3; ++d) inner *= c_.axis[d].in;
    const int64_t pixels = std::max(kBlockFloats / (taps * c_.group_out), kBlockPixels);
    const int64_t inputs = std::max({pixels / inner, kOwnInputs * shared, int64_t{1}});
    const int64_t outputs = std::min(std::min(inputs, a.in) * a.stride, a.out);
    const int64_t floats = most_inputs(a, outputs) * inner * taps;
    const int64_t channels = std::clamp<int64_t>(kMostFloats / floats, 1, c_.group_out);
    float* const columns = scratch.array<float>(Size(floats) * channels);
    if (columns == nullptr) return false;
    for (int64_t g = 0; g < c_.groups; ++g) {
      for (int64_t i = 0; i < c_.group_out; i += channels) {
        const int64_t n = std::min(channels, c_.group_out - i);
        for (int64_t o = 0; o < a.out; o += outputs) {
          const int64_t end = std::min(o + outputs, a.out);
          if (!run_block(g, i, n, dim, o, end, columns, scratch)) return false;
        }
      }
    }
    return true;
  }

  // Computes the outputs [begin, end) along `dim` of some channels of group g.
  bool run_block(int64_t g, int64_t first, int64_t channels, int dim, int64_t begin, int64_t end,
                 float* columns, Scratch& scratch) {
    const int64_t channel = g * c_.group_out + first;
    Block block = {{c_.axis[0], c_.axis[1], c_.axis[2]},
                   channel,
                   channels,
                   columns,
                   0,
                   c_.out + channel * c_.out_channel + begin * c_.axis[dim].out_stride};
    int64_t first_input = 0;
    block.axis[dim] = part_of(c_.axis[dim], begin, end, &first_input);
    block.tap = block.axis[0].in * block.axis[1].in * block.axis[2].in;
    const Weights weights = {c_, weight_of(channel)};
    Gemm<float> product;
    product.m = channels * c_.taps();
    product.n = block.tap;
    product.k = c_.group_in;
    if (const int64_t step = weights.step(); step != 0) {
      product.a = {weights.first, step, c_.weight_in};
    } else {
      product.a_source = {Weights::produce, &weights};
    }
    product.b = {c_.input + g * c_.group_in * c_.in_channel + first_input * c_.axis[dim].in_stride,
                 c_.in_channel, 1};
    return multiply(product, columns, scratch) && add(block, scratch);
  }

  // Writes the rows of a product to `columns`, one after the other. Of few pixels, it is cheaper to
  // transpose the product than to pack the weights, which can be multiplied where they lie.
  static bool multiply(Gemm<float>& product, float* columns, Scratch& scratch) {
    const int64_t m = product.m, n = product.n;
    if (n >= product.k / 2 || product.a.data == nullptr) {
      product.c = {columns, n, 1};
      return product.run(scratch);
    }
    const Scratch::Frame frame(scratch);
    float* const by_pixels = scratch.array<float>(Size(m) * n);
    if (by_pixels == nullptr) return false;
    product.c = {by_pixels, 1, m};
    if (!product.run(scratch)) return false;
    const Copy::Dim dims[2] = {{m, 1, n}, {n, m, 1}};
    Copy{dims, 2, sizeof(float), by_pixels, columns}.run();
    return true;
  }

  const float* weight_of(int64_t channel) const {
    return c_.weight + channel / c_.group_out * c_.weight_group +
           channel % c_.group_out * c_.weight_out;
  }

  // Lists the taps of a row by their parts.
  bool list_taps(const ConvAxis& w, Scratch& scratch) {
    row_taps_ = scratch.array<RowTap>(w.kernel);
    if (row_taps_ == nullptr) return false;
    n_row_taps_ = 0;
    for (int64_t k = 0; k < w.kernel; ++k) {
      const int64_t at = k * w.dilation - w.padding;  // the output of input 0
      const int64_t part = (at % w.stride + w.stride) % w.stride, shift = (at - part) / w.stride;
      if (part >= w.out) continue;
      const int64_t outputs = (w.out - part - 1) / w.stride + 1;
      const int64_t begin = std::max<int64_t>(shift, 0), end = std::min(outputs, w.in + shift);
      if (begin < end) row_taps_[n_row_taps_++] = {k, part, shift, begin, end};
    }
    std::sort(row_taps_, row_taps_ + n_row_taps_, [](const RowTap& a, const RowTap& b) {
      return std::pair(a.part, a.k) < std::pair(b.part, b.k);
    });
    return true;
  }

  bool add(const Block& block, Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    const ConvAxis &z = block.axis[0], &h = block.axis[1], &w = block.axis[2];
    parts_ = std::min(w.stride, w.out);
    part_ = ceil_div(w.out, w.stride);
    const Size bytes =
        Size(z.kernel) * h.kernel * sizeof(InputRow) + Size(part_) * parts_ * sizeof(float);
    const ThreadScratch<uint8_t> buffers(scratch, bytes);
    if (!buffers || !list_taps(w, scratch)) return false;
    const int64_t work = w.out * (1 + c_.taps() / z.stride / h.stride / w.stride);
    buffers.parallel_for(
        z.out * h.out * block.channels, ceil_div(kGrainWork, work),
        [&](int64_t begin, int64_t end, uint8_t* buffer) { add_rows(block, begin, end, buffer); });
    return true;
  }

  // Computes rows of outputs, counted from channel to channel, then from row to row.
  void add_rows(const Block& block, int64_t begin, int64_t end, uint8_t* buffer) const {
    const ConvAxis &z = block.axis[0], &h = block.axis[1];
    auto* const rows = reinterpret_cast<InputRow*>(buffer);
    auto* const sums = reinterpret_cast<float*>(rows + z.kernel * h.kernel);
    int64_t n_rows = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % block.channels, line = i / block.channels;
      if (channel == 0 || n_rows < 0) n_rows = list_rows(block, line, rows);
      add_row(block, channel, {rows, static_cast<size_t>(n_rows)}, sums);
      plane_kernels().join(sums, part_, parts_, block.axis[2].out,
                           block.out + channel * c_.out_channel + line / h.out * z.out_stride +
                               line % h.out * h.out_stride);
    }
  }

  static int64_t list_rows(const Block& block, int64_t line, InputRow* rows) {
    const ConvAxis &z = block.axis[0], &h = block.axis[1];
    int64_t n = 0;
    for (int64_t kz = 0; kz < z.kernel; ++kz) {
      const int64_t iz = z.position(line / h.out, kz, true);
      for (int64_t kh = 0; kh < h.kernel && iz >= 0; ++kh) {
        const int64_t ih = h.position(line % h.out, kh, true);
        if (ih < 0) continue;
        rows[n++] = {kz * h.kernel + kh, kz * z.weight_stride + kh * h.weight_stride,
                     iz * h.in + ih};
      }
    }
    return n;
  }

  // Computes one row of outputs, part by part, because what a tap adds to a part is contiguous.
  void add_row(const Block& block, int64_t i, std::span<const InputRow> rows, float* sums) const {
    const int64_t channel = block.first_channel + i;
    const float bias = c_.bias == nullptr ? 0.0f : c_.bias[channel];
    int64_t tap = 0;
    for (int64_t part = 0; part < parts_; ++part) {
      const int64_t first = tap;
      while (tap < n_row_taps_ && row_taps_[tap].part == part) ++tap;
      add_part(block, i, rows, {row_taps_ + first, static_cast<size_t>(tap - first)}, bias,
               sums + part * part_);
    }
    if (c_.act.kind != Activation::Kind::None) apply(c_.act, sums, sums, part_ * parts_);
  }

  void add_part(const Block& block, int64_t i, std::span<const InputRow> rows,
                std::span<const RowTap> taps, float bias, float* sums) const {
    constexpr int64_t kTerms = 16;
    PlaneTerm terms[kTerms];
    const ConvAxis& w = block.axis[2];
    const int64_t channel = block.first_channel + i;
    const float* const weight = weight_of(channel);
    const float* const data =
        block.data + (direct_ ? channel / c_.group_out * c_.in_channel : i * c_.taps() * block.tap);
    const float* first = &bias;
    int64_t n = 0;
    for (const InputRow& row : rows) {
      for (const RowTap& tap : taps) {
        const float scale = direct_ ? weight[row.weights + tap.k * w.weight_stride] : 1.0f;
        const float* const from = data + (row.taps * w.kernel + tap.k) * block.tap +
                                  row.row * w.in + tap.begin - tap.shift;
        terms[n++] = {from, scale, tap.begin, tap.end};
        if (n < kTerms) continue;
        plane_kernels().add(terms, n, std::exchange(first, nullptr), part_, sums);
        n = 0;
      }
    }
    if (n > 0 || first != nullptr) plane_kernels().add(terms, n, first, part_, sums);
  }

  const Conv<float>& given_;
  Conv<float> c_;  // one image of it, whose operands lie as planes
  const bool direct_;
  // Outputs of a row with the same remainder modulo the stride are a part of it: the number of
  // parts, and the most outputs of one.
  int64_t parts_ = 0, part_ = 0;
  RowTap* row_taps_ = nullptr;
  int64_t n_row_taps_ = 0;
};

}  // namespace

bool fits_transposed(const Conv<float>& c) {
  return c.transposed && c.residual == nullptr;
}

bool run_transposed(const Conv<float>& c, Scratch& scratch) {
  return Transposed(c).run(scratch);
}

Size least_columns(const ConvAxis* axis) {
  const int dim = block_dim(axis);
  Size columns = 1;
  for (int d = 0; d < 3; ++d) {
    columns *=
        Size(axis[d].kernel) * (d == dim ? most_inputs(axis[d], axis[d].stride) : axis[d].in);
  }
  return columns;
}

}  // namespace executorch::cpu
