#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <utility>

// Convolution and its gradients: argument checks around the engine's Conv and Gemm.
namespace torch::executor::native {

namespace cpu = ::executorch::cpu;
using namespace internal;

namespace {

// A convolution without its operands' element type: the fields of Conv<float> except for addresses.
using Geometry = cpu::Conv<float>;

template <class T>
EngineType<T>* elements(const Tensor& t) {
  return reinterpret_cast<EngineType<T>*>(t.mutable_data_ptr<T>());
}

template <class T>
bool convolve(const Geometry& g, const Tensor& input, const Tensor& weight,
              const std::optional<Tensor>& bias, Tensor& out, cpu::Scratch& scratch) {
  cpu::Conv<EngineType<T>> c;
  std::copy_n(g.axis, kSpatial, c.axis);
  c.transposed = g.transposed;
  c.batch = g.batch, c.groups = g.groups, c.group_in = g.group_in, c.group_out = g.group_out;
  c.in_batch = g.in_batch, c.in_channel = g.in_channel;
  c.weight_group = g.weight_group, c.weight_out = g.weight_out, c.weight_in = g.weight_in;
  c.out_batch = g.out_batch, c.out_channel = g.out_channel;
  c.input = elements<T>(input);
  c.weight = elements<T>(weight);
  c.bias = bias.has_value() ? elements<T>(*bias) : nullptr;
  c.out = elements<T>(out);
  return c.run(scratch);
}

bool convolve(KernelRuntimeContext& ctx, const char* op, const Geometry& g, const Tensor& input,
              const Tensor& weight, const std::optional<Tensor>& bias, Tensor& out) {
  EngineScratch scratch(ctx);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    granted = convolve<decltype(tag)>(g, input, weight, bias, out, scratch);
  });
  return require_scratch(ctx, op, granted);
}

// For convolutions without products: fills each channel of `out` (dim 1) with its bias, or 0.
void fill_channels(const std::optional<Tensor>& bias, Tensor& out) {
  if (!bias.has_value()) return fill(Scalar(0), out);
  Layout from;
  for (int64_t d = 0; d < out.dim(); ++d) from.push(out.size(d), d == 1);
  copy_layout(bias->const_data_ptr(), bias->scalar_type(), from, out.mutable_data_ptr(),
              out.scalar_type(), Layout(out));
}

// The stride between neighbours if a single stride walks the dims of `layout` from `first` on; 0 if
// none does.
int64_t joint_stride(const Layout& layout, int64_t first) {
  int64_t stride = 0, extent = 1;
  for (int64_t d = layout.shape.ndim() - 1; d >= first; --d) {
    if (layout.shape[d] == 1) continue;
    if (stride == 0) stride = layout.strides[d];
    if (layout.strides[d] != stride * extent) return 0;
    extent *= layout.shape[d];
  }
  return stride == 0 ? 1 : stride;
}

bool require_conv_tensors(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                          const Tensor& weight, const std::optional<Tensor>& bias, bool transposed,
                          int64_t groups, const Tensor& out) {
  const int64_t rank = input.dim();
  ET_REQUIRE(ctx, rank >= 3 && rank <= 2 + kSpatial && weight.dim() == rank, InvalidArgument, false,
             "%s: input and weight of rank 3, 4 or 5 were expected; their shapes are %s and %s", op,
             ShapeText(input).c_str(), ShapeText(weight).c_str());
  const int64_t in_channels = input.size(1);
  const bool fits =
      groups > 0 && weight.size(0) % groups == 0 && weight.size(0) > 0 &&
      (transposed ? weight.size(0) == in_channels : weight.size(1) * groups == in_channels);
  ET_REQUIRE(ctx, fits, InvalidArgument, false,
             "%s: input %s does not fit %sweight %s in %" PRId64 " groups", op,
             ShapeText(input).c_str(), transposed ? "transposed " : "", ShapeText(weight).c_str(),
             groups);
  const int64_t out_channels = transposed ? weight.size(1) * groups : weight.size(0);
  ET_REQUIRE(ctx, !bias.has_value() || (bias->dim() == 1 && bias->size(0) == out_channels),
             InvalidArgument, false, "%s: bias must have shape [%" PRId64 "]", op, out_channels);
  const ScalarType type = input.scalar_type();
  ET_REQUIRE(ctx,
             weight.scalar_type() == type && out.scalar_type() == type &&
                 (!bias.has_value() || bias->scalar_type() == type) &&
                 with_gemm_dtype(type, [](auto) {}),
             InvalidArgument, false,
             "%s: one dtype with products was expected; input, weight and out have %s, %s and %s",
             op, toString(type), toString(weight.scalar_type()), toString(out.scalar_type()));
  return true;
}

// Fills the axes of `c` and the shape of the result.
bool read_axes(KernelRuntimeContext& ctx, const char* op, const Tensor& input, const Tensor& weight,
               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
               IntArrayRef output_padding, Geometry& c, Shape& shape) {
  const int n = static_cast<int>(input.dim()) - 2;
  int64_t strides[kSpatial], paddings[kSpatial], dilations[kSpatial], extra[kSpatial] = {};
  const int64_t ones[kSpatial] = {1, 1, 1}, zeros[kSpatial] = {};
  if (!read_spatial_list(ctx, op, "stride", stride, n, 1, ones, strides) ||
      !read_spatial_list(ctx, op, "padding", padding, n, 0, zeros, paddings) ||
      !read_spatial_list(ctx, op, "dilation", dilation, n, 1, ones, dilations) ||
      (c.transposed &&
       !read_spatial_list(ctx, op, "output_padding", output_padding, n, 0, zeros, extra))) {
    return false;
  }
  for (int d = 0; d < n; ++d) {
    cpu::ConvAxis& a = c.axis[kSpatial - n + d];
    a = {.in = input.size(d + 2),
         .kernel = weight.size(d + 2),
         .stride = strides[d],
         .padding = paddings[d],
         .dilation = dilations[d]};
    const Size reach = Size(a.dilation) * (a.kernel - 1) + 1;
    ET_REQUIRE(ctx, extra[d] < std::max(a.stride, a.dilation) || extra[d] == 0, InvalidArgument,
               false, "%s: output_padding %s must be smaller than stride %s or dilation %s", op,
               ShapeText(output_padding).c_str(), ShapeText(stride).c_str(),
               ShapeText(dilation).c_str());
    const Size span = Size(a.in) + 2 * a.padding - reach;
    const Size out = c.transposed ? Size(a.in - 1) * a.stride - 2 * a.padding + reach + extra[d]
                                  : (span.value_or(-1) < 0 ? Size(0) : span / a.stride + 1);
    a.out = out.value_or(0);
    ET_REQUIRE(ctx, a.out > 0 && a.kernel > 0, InvalidArgument, false,
               "%s: kernel %s does not fit input %s with padding %s", op, ShapeText(weight).c_str(),
               ShapeText(input).c_str(), ShapeText(padding).c_str());
    shape.push(a.out);
  }
  return true;
}

// Reads channels and strides; c.transposed and the axes are set, the shapes agree.
void bind(const Tensor& input, const Tensor& weight, int64_t groups, const Tensor& out,
          Geometry& c) {
  const Layout in(input), w(weight), result(out);
  c.batch = input.size(0);
  c.groups = groups;
  c.group_in = input.size(1) / groups;
  c.group_out = out.size(1) / groups;
  c.in_batch = in.strides[0];
  c.in_channel = in.strides[1];
  c.out_batch = result.strides[0];
  c.out_channel = result.strides[1];
  for (int64_t d = 2; d < input.dim(); ++d) {
    cpu::ConvAxis& a = c.axis[kSpatial + d - input.dim()];
    a.in_stride = in.strides[d];
    a.weight_stride = w.strides[d];
    a.out_stride = result.strides[d];
  }
  c.weight_out = w.strides[c.transposed ? 1 : 0];
  c.weight_in = w.strides[c.transposed ? 0 : 1];
  c.weight_group = (c.transposed ? c.group_in : c.group_out) * w.strides[0];
}

// Windows as large as images take time in proportion to the product of both. Returns false if that
// is too much. For floats the engine does many multiply-adds at a time.
bool require_affordable_windows(KernelRuntimeContext& ctx, const char* op, const Geometry& c,
                                const Tensor& input, const Tensor& weight, const Tensor& out) {
  constexpr int64_t kManyTaps = 1024;
  if (c.taps() <= kManyTaps) return true;
  const Size products = c.transposed ? Size(input.numel()) * c.taps() * c.group_out
                                     : Size(out.numel()) * c.taps() * c.group_in;
  const bool by_engine = input.scalar_type() == ScalarType::Float ||
                         input.scalar_type() == ScalarType::Half ||
                         input.scalar_type() == ScalarType::BFloat16;
  return require_affordable(ctx, op, products / (by_engine ? 64 : 8),
                            elements_of(input, weight, out));
}

}  // namespace

Tensor& convolution_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                        int64_t groups, Tensor& out) {
  constexpr const char* kOp = "convolution.out";
  if (!require_conv_tensors(ctx, kOp, input, weight, bias, transposed, groups, out)) return out;
  Geometry c;
  c.transposed = transposed;
  Shape shape{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  if (!read_axes(ctx, kOp, input, weight, stride, padding, dilation, output_padding, c, shape) ||
      !resize_out(ctx, kOp, out, shape) || out.numel() == 0) {
    return out;
  }
  if (input.numel() == 0 || weight.numel() == 0) {
    fill_channels(bias, out);
    return out;
  }
  bind(input, weight, groups, out, c);
  if (!require_affordable_windows(ctx, kOp, c, input, weight, out)) return out;
  (void)convolve(ctx, kOp, c, input, weight, bias, out);
  return out;
}

namespace {

// One group of all images, for pack_positions.
template <class E>
struct Images {
  const Geometry& c;
  const E* data;
  int64_t batch_stride;
};

// A column of the matrix of patches: steps from the position of a window to what the tap reads,
// and elements where all of the window lies inside the image.
struct PatchColumn {
  int64_t z, y, x, channel, inside;
};

// Columns (channel, tap) of the matrix whose rows are the positions that a convolution visits,
// image after image: the transpose of its patches.
template <class E>
void pack_positions(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                    cpu::Accumulator<E>* panel, int64_t width) {
  const auto& images = *static_cast<const Images<E>*>(matrix);
  const Geometry& c = images.c;
  const cpu::ConvAxis &d = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  PatchColumn columns[cpu::gemm::kMostPanelColumns];
  for (int64_t j = 0; j < nj; ++j) {
    const int64_t tap = (j0 + j) % c.taps(), channel = (j0 + j) / c.taps() * c.in_channel;
    const int64_t z = tap / (w.kernel * h.kernel) * d.dilation;
    const int64_t y = tap / w.kernel % h.kernel * h.dilation, x = tap % w.kernel * w.dilation;
    const bool fits = z < d.in && y < h.in && x < w.in;
    columns[j] = {z, y, x, channel,
                  fits ? channel + z * d.in_stride + y * h.in_stride + x * w.in_stride : 0};
  }
  E row[cpu::gemm::kMostPanelColumns] = {};
  for (int64_t p = p0; p < p0 + np; ++p, panel += width) {
    const int64_t z = p / (w.out * h.out) % d.out * d.stride - d.padding;
    const int64_t y = p / w.out % h.out * h.stride - h.padding;
    const int64_t x = p % w.out * w.stride - w.padding;
    const E* const image = images.data + p / c.pixels() * images.batch_stride;
    const auto inside = [](const cpu::ConvAxis& a, int64_t first) {
      return first >= 0 && first + (a.kernel - 1) * a.dilation < a.in;
    };
    if (inside(d, z) && inside(h, y) && inside(w, x)) {
      const E* const first = image + z * d.in_stride + y * h.in_stride + x * w.in_stride;
      for (int64_t j = 0; j < nj; ++j) row[j] = first[columns[j].inside];
    } else {
      for (int64_t j = 0; j < nj; ++j) {
        const PatchColumn& at = columns[j];
        const int64_t iz = z + at.z, iy = y + at.y, ix = x + at.x;
        const bool inside = iz >= 0 && iz < d.in && iy >= 0 && iy < h.in && ix >= 0 && ix < w.in;
        row[j] = inside ? image[at.channel + iz * d.in_stride + iy * h.in_stride + ix * w.in_stride]
                        : E();
      }
    }
    cpu::gemm::convert(row, width, panel);
  }
}

// One group of the channels of all images, for take_pixels.
template <class E>
struct Channels {
  const E* data;
  int64_t stride, batch_stride, pixel_stride, pixels;
};

// Rows of the matrix of channels, whose columns are pixels, image after image.
template <class E>
void take_pixels(const void* matrix, int64_t, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                 cpu::Accumulator<E>* to, int64_t ld) {
  const auto& c = *static_cast<const Channels<E>*>(matrix);
  for (int64_t i = i0; i < i0 + ni; ++i, to += ld) {
    std::fill(to + np, to + ld, cpu::Accumulator<E>(0));
    for (int64_t p = p0, n; p < p0 + np; p += n) {
      const int64_t pixel = p % c.pixels;
      n = std::min(p0 + np - p, c.pixels - pixel);
      cpu::gemm::gather(
          c.data + i * c.stride + p / c.pixels * c.batch_stride + pixel * c.pixel_stride,
          c.pixel_stride, n, to + p - p0);
    }
  }
}

// The sum for one weight over the elements that its tap reads.
template <class T>
T weight_gradient_of(const Geometry& c, const T* rows, int64_t row_batch, int64_t row_pixel,
                     const T* image, int64_t image_batch, const int64_t (&tap)[kSpatial]) {
  cpu::ConvAxis::Steps steps[kSpatial];
  for (int d = 0; d < kSpatial; ++d) {
    steps[d] = c.axis[d].valid_steps(tap[d], false);
    if (steps[d].begin == steps[d].end) return T(0);
  }
  const auto position = [&](int d, int64_t o) {
    const cpu::ConvAxis& a = c.axis[d];
    return (o * a.stride + tap[d] * a.dilation - a.padding) * a.in_stride;
  };
  cpu::Accumulator<EngineType<T>> sum = 0;
  for (int64_t b = 0; b < c.batch; ++b, rows += row_batch, image += image_batch) {
    for (int64_t z = steps[0].begin; z < steps[0].end; ++z) {
      for (int64_t y = steps[1].begin; y < steps[1].end; ++y) {
        const T* const row = rows + (z * c.axis[1].out + y) * c.axis[2].out * row_pixel;
        const T* const line = image + position(0, z) + position(1, y);
        for (int64_t x = steps[2].begin; x < steps[2].end; ++x) {
          sum += static_cast<decltype(sum)>(row[x * row_pixel]) *
                 static_cast<decltype(sum)>(line[position(2, x)]);
        }
      }
    }
  }
  return static_cast<T>(sum);
}

// weight_gradient() if most taps of most positions read no element of the image.
template <class T>
void sparse_weight_gradient(const Geometry& c, const Tensor& rows, const Tensor& image, T* to,
                            int64_t numel) {
  const Layout r(rows), i(image);
  const int64_t row_pixel = joint_stride(r, 2), n = c.group_in * c.taps();
  const cpu::ConvAxis &h = c.axis[1], &w = c.axis[2];
  cpu::parallel_for(numel, 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const int64_t row = e / n, channel = row / c.group_out * c.group_in + e % n / c.taps();
      const int64_t t = e % c.taps();
      to[e] = weight_gradient_of(
          c, rows.const_data_ptr<T>() + row * r.strides[1], r.strides[0], row_pixel,
          image.const_data_ptr<T>() + channel * i.strides[1], i.strides[0],
          {t / (w.kernel * h.kernel), t / w.kernel % h.kernel, t % w.kernel});
    }
  });
}

// grad[r, (ch, tap)] = sum over images and positions of rows[r, position] * patches of `image`, one
// product, so that the sum is rounded once.
// Forward, the rows are the output's gradient and the image is the input; transposed, they change
// places, and the weight keeps its first dim with the rows.
template <class T>
bool weight_gradient(const Geometry& c, const Tensor& rows, const Tensor& image, T* grad,
                     int64_t numel, cpu::Scratch& scratch) {
  using E = EngineType<T>;
  if (cpu::is_sparse({c.axis, kSpatial, false, c.batch, c.groups, c.group_in, c.group_out})) {
    sparse_weight_gradient<T>(c, rows, image, grad, numel);
    return true;
  }
  const Layout r(rows), i(image);
  const int64_t n = c.group_in * c.taps();
  E* const to = reinterpret_cast<E*>(grad);
  std::fill_n(grad, numel, T(0));
  if (numel == 0 || rows.numel() == 0 || image.numel() == 0) return true;
  for (int64_t g = 0; g < c.groups; ++g) {
    const Images<E> patches = {c, elements<T>(image) + g * c.group_in * i.strides[1], i.strides[0]};
    const Channels<E> channels = {elements<T>(rows) + g * c.group_out * r.strides[1], r.strides[1],
                                  r.strides[0], joint_stride(r, 2), c.pixels()};
    const cpu::Gemm<E> product = {.m = c.group_out,
                                  .n = n,
                                  .k = c.batch * c.pixels(),
                                  .a = {},
                                  .b = {},
                                  .c = {to + g * c.group_out * n, n, 1},
                                  .a_source = {take_pixels<E>, &channels},
                                  .b_source = {pack_positions<E>, &patches}};
    if (!product.run(scratch)) return false;
  }
  return true;
}

/// The same for each dtype, in the layout of `grad`, which need not be contiguous.
bool lay_out_weight_gradient(const Geometry& c, const Tensor& rows, const Tensor& image,
                             Tensor& grad, cpu::Scratch& scratch) {
  const bool is_plain = is_contiguous(grad);
  void* const to = is_plain ? grad.mutable_data_ptr() : scratch.array<char>(grad.nbytes());
  if (!is_plain && to == nullptr) return false;
  const ScalarType type = grad.scalar_type();
  bool granted = true;
  with_gemm_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    granted = weight_gradient(c, rows, image, static_cast<T*>(to), grad.numel(), scratch);
  });
  if (!granted || is_plain) return granted;
  Layout from;
  from.shape = Shape(grad);
  int64_t stride = 1;
  for (int64_t d = grad.dim(); d-- > 0; stride *= grad.size(d)) from.strides[d] = stride;
  copy_layout(to, type, from, grad.mutable_data_ptr(), type, Layout(grad));
  return true;
}

template <class T>
void bias_gradient(const Tensor& grad_output, Tensor& grad) {
  const Layout g(grad_output);
  const int64_t pixel = joint_stride(g, 2), n_batch = grad_output.size(0);
  std::fill_n(grad.mutable_data_ptr<T>(), grad.numel(), T(0));
  if (grad_output.numel() == 0) return;
  int64_t pixels = 1;
  for (int64_t d = 2; d < grad_output.dim(); ++d) pixels *= grad_output.size(d);
  for (int64_t channel = 0; channel < grad_output.size(1); ++channel) {
    cpu::Accumulator<EngineType<T>> sum = 0;
    for (int64_t n = 0; n < n_batch; ++n) {
      const T* at = grad_output.const_data_ptr<T>() + n * g.strides[0] + channel * g.strides[1];
      for (int64_t i = 0; i < pixels; ++i) sum += static_cast<decltype(sum)>(at[i * pixel]);
    }
    grad.mutable_data_ptr<T>()[channel] = static_cast<T>(sum);
  }
}

// Checks that the wanted gradients agree with the convolution in shape and dtype.
bool require_gradients(KernelRuntimeContext& ctx, const char* op, const Tensor& grad_output,
                       const Tensor& input, const Shape& shape, ArrayRef<bool> output_mask,
                       const Tensor* const (&outs)[3]) {
  ET_REQUIRE(ctx, shape.equals(grad_output.sizes()), InvalidArgument, false,
             "%s: grad_output has shape %s; %s was expected", op, ShapeText(grad_output).c_str(),
             ShapeText(shape.ref()).c_str());
  ET_REQUIRE(ctx, joint_stride(Layout(grad_output), 2) != 0 && joint_stride(Layout(input), 2) != 0,
             InvalidArgument, false,
             "%s: grad_output and input must be contiguous or channels last", op);
  for (size_t i = 0; i < 3; ++i) {
    ET_REQUIRE(ctx, !output_mask[i] || outs[i]->scalar_type() == input.scalar_type(),
               InvalidArgument, false,
               "%s: out%zu has dtype %s; that of the input, %s, was expected", op, i,
               toString(outs[i]->scalar_type()), toString(input.scalar_type()));
  }
  return true;
}

}  // namespace

TensorTriple convolution_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                      const Tensor& input, const Tensor& weight,
                                      std::optional<IntArrayRef> bias_sizes, IntArrayRef stride,
                                      IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                      IntArrayRef output_padding, int64_t groups,
                                      ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                      Tensor& out2) {
  constexpr const char* kOp = "convolution_backward.out";
  (void)bias_sizes;  // the channels of grad_output
  TensorTriple result(out0, out1, out2);
  ET_REQUIRE(ctx, output_mask.size() == 3, InvalidArgument, result,
             "%s: output_mask must have 3 values; it has %zu", kOp, output_mask.size());
  if (!require_conv_tensors(ctx, kOp, input, weight, std::nullopt, transposed, groups,
                            grad_output)) {
    return result;
  }
  Geometry c;
  c.transposed = transposed;
  Shape shape{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  if (!read_axes(ctx, kOp, input, weight, stride, padding, dilation, output_padding, c, shape) ||
      !require_gradients(ctx, kOp, grad_output, input, shape, output_mask, {&out0, &out1, &out2})) {
    return result;
  }
  // The gradient of a convolution's input is the transposed convolution of that of its output.
  Geometry back = c;
  back.transposed = !transposed;
  for (cpu::ConvAxis& a : back.axis) std::swap(a.in, a.out);
  if (output_mask[0]) {
    if (!resize_out(ctx, kOp, out0, input.sizes())) return result;
    if (grad_output.numel() == 0 || weight.numel() == 0) {
      fill_channels(std::nullopt, out0);
    } else if (out0.numel() > 0) {
      bind(grad_output, weight, groups, out0, back);
      if (!convolve(ctx, kOp, back, grad_output, weight, std::nullopt, out0)) return result;
    }
  }
  if (output_mask[1]) {
    Geometry& forward = transposed ? back : c;  // the one of the two that is not transposed
    const Tensor& rows = transposed ? input : grad_output;
    const Tensor& image = transposed ? grad_output : input;
    if (!resize_out(ctx, kOp, out1, weight.sizes())) return result;
    bind(image, weight, groups, rows, forward);
    EngineScratch scratch(ctx);
    const bool granted = lay_out_weight_gradient(forward, rows, image, out1, scratch);
    if (!require_scratch(ctx, kOp, granted)) return result;
  }
  if (output_mask[2]) {
    if (!resize_out(ctx, kOp, out2, Shape{grad_output.size(1)})) return result;
    with_gemm_dtype(input.scalar_type(),
                    [&](auto tag) { bias_gradient<decltype(tag)>(grad_output, out2); });
  }
  return result;
}

namespace {
constexpr Kernel kConvOps[] = {
    ET_OP("aten::convolution.out", convolution_out),
    ET_OP("aten::convolution_backward.out", convolution_backward_out, other),
};
}  // namespace

Span<const Kernel> conv_ops() {
  return kConvOps;
}

}  // namespace torch::executor::native
