#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Convolution as a matrix product: for each image and group,
//   out[oc, (od, oh, ow)] = sum over p = (ic, kd, kh, kw) of weight[oc, p] * patches[p, (od, oh,
//   ow)]
// The patches are not stored: Gemm asks for the panel it needs and pack_patches reads it from the
// input, zeros where the window lies in the padding (or, transposed, between the strides).
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

// One spatial dim.
struct Axis {
  int64_t in = 1, kernel = 1, out = 1;
  int64_t stride = 1, padding = 0, dilation = 1;
  int64_t in_step = 0;

  // Input position that output `o` meets with tap `k`; -1 outside.
  int64_t position(int64_t o, int64_t k, bool transposed) const {
    int64_t at = transposed ? o + padding - k * dilation : o * stride - padding + k * dilation;
    if (transposed) {
      if (at < 0 || at % stride != 0) return -1;
      at /= stride;
    }
    return at >= 0 && at < in ? at : -1;
  }
};

struct Conv {
  Axis axis[kSpatial];
  bool transposed = false;
  int64_t n_batch = 0, n_groups = 1;
  int64_t group_in = 0, group_out = 0;  // channels per group
  int64_t in_batch = 0, in_channel = 0;
  int64_t out_batch = 0, out_channel = 0, out_pixel = 0;
  // Weight of one group: output channel, input channel, tap; and from group to group.
  int64_t weight_out = 0, weight_in = 0, weight_tap = 0, weight_group = 0;

  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  int64_t pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
};

// The channels of one group of one image.
template <class T>
struct Patches {
  const Conv* conv;
  const T* image;
};

// Outputs [ow, ow + n) of one row that meets the input row `src` with tap `k`.
template <class T>
void read_row(const Axis& a, bool transposed, const T* src, int64_t k, int64_t ow, int64_t n,
              Accumulator<T>* dst) {
  using Acc = Accumulator<T>;
  if (transposed) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = a.position(ow + i, k, true);
      dst[i] = at < 0 ? Acc(0) : static_cast<Acc>(src[at * a.in_step]);
    }
    return;
  }
  const int64_t first = ow * a.stride - a.padding + k * a.dilation;
  const auto outputs_before =
      [&](int64_t position) {  // how many i have first + i * stride < position
        const int64_t distance = position - first;
        return distance <= 0 ? 0 : std::min(n, (distance + a.stride - 1) / a.stride);
      };
  const int64_t begin = outputs_before(0), end = outputs_before(a.in);
  std::fill(dst, dst + begin, Acc(0));
  const int64_t step = a.stride * a.in_step;
  const T* from = src + first * a.in_step;
  if (step == 1) {
    for (int64_t i = begin; i < end; ++i) dst[i] = static_cast<Acc>(from[i]);
  } else {
    for (int64_t i = begin; i < end; ++i) dst[i] = static_cast<Acc>(from[i * step]);
  }
  std::fill(dst + std::max(begin, end), dst + n, Acc(0));
}

template <class T>
void pack_patches(const void* matrix, int64_t p0, int64_t np, int64_t j0, int64_t nj,
                  Accumulator<T>* panel, int64_t width) {
  const auto& patches = *static_cast<const Patches<T>*>(matrix);
  const Conv& c = *patches.conv;
  const Axis &d = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  for (int64_t p = p0; p < p0 + np; ++p, panel += width) {
    const int64_t kw = p % w.kernel, kh = p / w.kernel % h.kernel;
    const int64_t kd = p / (w.kernel * h.kernel) % d.kernel, ic = p / c.taps();
    const T* channel = patches.image + ic * c.in_channel;
    for (int64_t j = 0; j < nj;) {
      const int64_t ow = (j0 + j) % w.out, row = (j0 + j) / w.out;
      const int64_t n = std::min(w.out - ow, nj - j);
      const int64_t id = d.position(row / h.out, kd, c.transposed);
      const int64_t ih = h.position(row % h.out, kh, c.transposed);
      if (id < 0 || ih < 0) {
        std::fill_n(panel + j, n, Accumulator<T>(0));
      } else {
        read_row(w, c.transposed, channel + id * d.in_step + ih * h.in_step, kw, ow, n, panel + j);
      }
      j += n;
    }
    std::fill(panel + nj, panel + width, Accumulator<T>(0));
  }
}

template <class T>
void convolve(const Conv& c, const Tensor& input, const Tensor& weight,
              const std::optional<Tensor>& bias, Tensor& out) {
  const T* bias_data = bias.has_value() ? bias->const_data_ptr<T>() : nullptr;
  for (int64_t n = 0; n < c.n_batch; ++n) {
    for (int64_t g = 0; g < c.n_groups; ++g) {
      const Patches<T> patches = {
          &c, input.const_data_ptr<T>() + n * c.in_batch + g * c.group_in * c.in_channel};
      T* to = out.mutable_data_ptr<T>() + n * c.out_batch + g * c.group_out * c.out_channel;
      Gemm<T>{.m = c.group_out,
              .n = c.pixels(),
              .k = c.group_in * c.taps(),
              .a = {weight.const_data_ptr<T>() + g * c.weight_group, c.weight_out, c.weight_tap},
              .b = {},
              .c = {to, c.out_channel, c.out_pixel},
              .addend = {bias_data == nullptr ? nullptr : bias_data + g * c.group_out, 1, 0},
              .b_source = {pack_patches<T>, &patches},
              .a_inner = c.taps(),
              .a_outer_stride = c.weight_in}
          .run();
    }
  }
}

// The stride between neighbours when the dims of `layout` from `first` on are walked as one; 0 if
// they cannot be.
int64_t joint_stride(const Layout& layout, int64_t first) {
  int64_t stride = 0, extent = 1;
  for (int64_t d = layout.shape.ndim - 1; d >= first; --d) {
    if (layout.shape.sizes[d] == 1) continue;
    if (stride == 0) stride = layout.strides[d];
    if (layout.strides[d] != stride * extent) return 0;
    extent *= layout.shape.sizes[d];
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
               IntArrayRef output_padding, Conv& c, Shape& shape) {
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
    Axis& a = c.axis[kSpatial - n + d];
    a = {.in = input.size(d + 2),
         .kernel = weight.size(d + 2),
         .stride = strides[d],
         .padding = paddings[d],
         .dilation = dilations[d]};
    const int64_t reach = a.dilation * (a.kernel - 1) + 1;
    ET_REQUIRE(ctx, extra[d] < std::max(a.stride, a.dilation) || extra[d] == 0, InvalidArgument,
               false, "%s: output_padding %s must be smaller than stride %s or dilation %s", op,
               ShapeText(output_padding).c_str(), ShapeText(stride).c_str(),
               ShapeText(dilation).c_str());
    const int64_t span = a.in + 2 * a.padding - reach;
    a.out = c.transposed ? (a.in - 1) * a.stride - 2 * a.padding + reach + extra[d]
            : span < 0   ? 0
                         : span / a.stride + 1;
    ET_REQUIRE(ctx, a.out > 0 && a.kernel > 0, InvalidArgument, false,
               "%s: kernel %s does not fit input %s with padding %s", op, ShapeText(weight).c_str(),
               ShapeText(input).c_str(), ShapeText(padding).c_str());
    shape.push(a.out);
  }
  return true;
}

}  // namespace

Tensor& convolution_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                        int64_t groups, Tensor& out) {
  constexpr const char* kOp = "convolution.out";
  if (!require_conv_tensors(ctx, kOp, input, weight, bias, transposed, groups, out)) return out;
  Conv c;
  c.transposed = transposed;
  c.n_batch = input.size(0);
  c.n_groups = groups;
  c.group_in = input.size(1) / groups;
  c.group_out = transposed ? weight.size(1) : weight.size(0) / groups;
  Shape shape;
  shape.push(c.n_batch);
  shape.push(c.group_out * groups);
  if (!read_axes(ctx, kOp, input, weight, stride, padding, dilation, output_padding, c, shape) ||
      !resize_out(ctx, kOp, out, shape)) {
    return out;
  }
  const Layout in(input), w(weight), result(out);
  c.in_batch = in.strides[0];
  c.in_channel = in.strides[1];
  for (int64_t d = 2; d < input.dim(); ++d) {
    c.axis[kSpatial + d - input.dim()].in_step = in.strides[d];
  }
  c.weight_out = w.strides[transposed ? 1 : 0];
  c.weight_in = w.strides[transposed ? 0 : 1];
  c.weight_group = transposed ? c.group_in * w.strides[0] : c.group_out * w.strides[0];
  c.weight_tap = joint_stride(w, 2);
  c.out_batch = result.strides[0];
  c.out_channel = result.strides[1];
  c.out_pixel = joint_stride(result, 2);
  ET_REQUIRE(ctx, c.weight_tap != 0 && c.out_pixel != 0, InvalidArgument, out,
             "%s: weight and out must be contiguous or channels last", kOp);
  with_gemm_dtype(out.scalar_type(),
                  [&](auto tag) { convolve<decltype(tag)>(c, input, weight, bias, out); });
  return out;
}

namespace {
constexpr Kernel kConvOps[] = {ET_OP("aten::convolution.out", convolution_out)};
}  // namespace

Span<const Kernel> conv_ops() {
  return kConvOps;
}

}  // namespace torch::executor::native
