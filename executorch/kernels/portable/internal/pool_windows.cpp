#include <executorch/kernels/portable/internal/pool_windows.h>

namespace torch::executor::native::internal {

void Pooling::bind(const Tensor& self, const Tensor& out) {
  const Layout a(self), b(out);
  const int64_t lead = self.dim() - n_spatial;
  n_channels = self.size(lead - 1);
  in_channel = a.strides[lead - 1];
  out_channel = b.strides[lead - 1];
  if (lead == 2) {
    n_batch = self.size(0);
    in_batch = a.strides[0];
    out_batch = b.strides[0];
  }
  for (int d = 0; d < n_spatial; ++d) {
    axis[kSpatial - n_spatial + d].in_step = a.strides[lead + d];
    axis[kSpatial - n_spatial + d].out_step = b.strides[lead + d];
  }
}

bool require_rank(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int n_spatial) {
  bool nonempty = self.dim() == n_spatial + 1 || self.dim() == n_spatial + 2;
  for (int64_t d = self.dim() - n_spatial; nonempty && d < self.dim(); ++d) {
    nonempty = self.size(d) > 0;
  }
  ET_REQUIRE(ctx, nonempty, InvalidArgument, false,
             "%s: a tensor of rank %d or %d with nonempty spatial dims was expected; its shape is "
             "%s",
             op, n_spatial + 1, n_spatial + 2, ShapeText(self).c_str());
  return true;
}

namespace {

// Every part is below 2^31, so the sums are far from int64's ends.
int64_t window_count(const Axis& a, bool ceil_mode) {
  const int64_t reach = a.in + 2 * a.padding - a.dilation * (a.size - 1) - 1;
  if (reach < 0 && !(ceil_mode && reach + a.stride - 1 >= 0)) return 0;
  int64_t n = (reach + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
  // The last window must begin inside the input or its left padding.
  if (ceil_mode && (n - 1) * a.stride >= a.in + a.padding) --n;
  return n;
}

}  // namespace

bool read_windows(KernelRuntimeContext& ctx, Pooling& p, const Tensor& self, IntArrayRef kernel,
                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                  Shape& shape) {
  const int n = p.n_spatial;
  int64_t sizes[kSpatial], strides[kSpatial], paddings[kSpatial], dilations[kSpatial];
  if (!require_rank(ctx, p.op, self, n) ||
      !read_spatial_list(ctx, p.op, "kernel_size", kernel, n, 1, nullptr, sizes) ||
      !read_spatial_list(ctx, p.op, "stride", stride, n, 1, sizes, strides) ||
      !read_spatial_list(ctx, p.op, "padding", padding, n, 0, nullptr, paddings) ||
      !read_spatial_list(ctx, p.op, "dilation", dilation, n, 1, nullptr, dilations)) {
    return false;
  }
  shape = Shape(self);
  for (int d = 0; d < n; ++d) {
    Axis& a = p.axis[kSpatial - n + d];
    const int64_t dim = self.dim() - n + d;
    a = {.in = self.size(dim),
         .size = sizes[d],
         .stride = strides[d],
         .padding = paddings[d],
         .dilation = dilations[d]};
    ET_REQUIRE(ctx, 2 * a.padding <= a.size, InvalidArgument, false,
               "%s: padding %s is more than half of kernel_size %s", p.op,
               ShapeText(padding).c_str(), ShapeText(kernel).c_str());
    a.out = window_count(a, ceil_mode);
    ET_REQUIRE(ctx, a.out > 0, InvalidArgument, false,
               "%s: windows of size %s do not fit shape %s with padding %s", p.op,
               ShapeText(kernel).c_str(), ShapeText(self).c_str(), ShapeText(padding).c_str());
    shape.set(dim, a.out);
  }
  return true;
}

bool is_dense(const Pooling& p, bool last, bool of_out) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const int64_t height = of_out ? h.out : h.in, width = of_out ? w.out : w.in;
  const auto is = [](int64_t extent, int64_t step, int64_t wanted) {
    return extent <= 1 || step == wanted;
  };
  const int64_t c = last ? p.n_channels : 1;
  return is(width, of_out ? w.out_step : w.in_step, c) &&
         is(height, of_out ? h.out_step : h.in_step, c * width) &&
         is(p.n_channels, of_out ? p.out_channel : p.in_channel, last ? 1 : height * width) &&
         is(p.n_batch, of_out ? p.out_batch : p.in_batch, p.n_channels * height * width);
}

void clip(int64_t o, const Axis& a, int64_t& begin, int64_t& count) {
  const int64_t first = a.begin(o), last = first + (a.size - 1) * a.dilation;
  const int64_t before = first < 0 ? (a.dilation - 1 - first) / a.dilation : 0;
  const int64_t behind = last < a.in ? 0 : (last - a.in) / a.dilation + 1;
  begin = first + before * a.dilation;
  count = a.size - before - behind;
}

}  // namespace torch::executor::native::internal
