#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Putting an image together from its sliding windows.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

struct Slide {
  int64_t image, size, dilation, padding, stride, count;

  /// The window that has image position `i` at its place `t`; -1 if none has.
  int64_t window(int64_t i, int64_t t) const {
    const int64_t start = i + padding - t * dilation;
    return start >= 0 && start % stride == 0 && start / stride < count ? start / stride : -1;
  }
};

/// to[i, j] = sum of the places of windows that lie over it. from: [size_y, size_x, y, x]
template <class T>
void fold_plane(const Slide& rows, const Slide& columns, const T* from, int64_t place_step,
                int64_t window_step, T* to, int64_t row_step, int64_t column_step) {
  using C = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
  for (int64_t i = 0; i < rows.image; ++i) {
    for (int64_t j = 0; j < columns.image; ++j) {
      C sum = 0;
      for (int64_t s = 0; s < rows.size; ++s) {
        const int64_t y = rows.window(i, s);
        if (y < 0) continue;
        for (int64_t t = 0; t < columns.size; ++t) {
          const int64_t x = columns.window(j, t);
          if (x < 0) continue;
          sum = static_cast<C>(sum + static_cast<C>(from[(s * columns.size + t) * place_step +
                                                         (y * columns.count + x) * window_step]));
        }
      }
      to[i * row_step + j * column_step] = static_cast<T>(sum);
    }
  }
}

}  // namespace

Tensor& col2im_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef output_size,
                   IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                   IntArrayRef stride, Tensor& out) {
  constexpr const char* kOp = "col2im.out";
  int64_t image[2], size[2], dilations[2], paddings[2], strides[2];
  if (!read_spatial_list(ctx, kOp, "output_size", output_size, 2, 1, nullptr, image) ||
      !read_spatial_list(ctx, kOp, "kernel_size", kernel_size, 2, 1, nullptr, size) ||
      !read_spatial_list(ctx, kOp, "dilation", dilation, 2, 1, nullptr, dilations) ||
      !read_spatial_list(ctx, kOp, "padding", padding, 2, 0, nullptr, paddings) ||
      !read_spatial_list(ctx, kOp, "stride", stride, 2, 1, nullptr, strides)) {
    return out;
  }
  Slide slide[2];
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = image[d] + 2 * paddings[d] - dilations[d] * (size[d] - 1) - 1;
    slide[d] = {image[d],    size[d],    dilations[d],
                paddings[d], strides[d], reach < 0 ? 0 : reach / strides[d] + 1};
  }
  const int64_t rank = self.dim(), places = size[0] * size[1];
  ET_REQUIRE(ctx,
             (rank == 2 || rank == 3) && self.size(rank - 2) % places == 0 &&
                 self.size(rank - 1) == slide[0].count * slide[1].count,
             InvalidArgument, out,
             "%s: shape %s does not hold the windows of kernel_size %s of an image of %s", kOp,
             ShapeText(self).c_str(), ShapeText(kernel_size).c_str(),
             ShapeText(output_size).c_str());
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: the input is %s and out is %s; one dtype was expected", kOp,
             toString(self.scalar_type()), toString(out.scalar_type()));
  const int64_t batch = rank == 3 ? self.size(0) : 1, channels = self.size(rank - 2) / places;
  Shape shape;
  if (rank == 3) shape.push(batch);
  shape.push(channels);
  shape.push(image[0]);
  shape.push(image[1]);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  const Layout from(self), to(out);
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    executorch::cpu::parallel_for(batch * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t n = p / channels, c = p % channels;
        const T* src = self.const_data_ptr<T>() + c * places * from.strides[rank - 2] +
                       (rank == 3 ? n * from.strides[0] : 0);
        T* dst = out.mutable_data_ptr<T>() + c * to.strides[rank - 2] +
                 (rank == 3 ? n * to.strides[0] : 0);
        fold_plane(slide[0], slide[1], src, from.strides[rank - 2], from.strides[rank - 1], dst,
                   to.strides[rank - 1], to.strides[rank]);
      }
    });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(self.scalar_type()));
  return out;
}

namespace {
constexpr Kernel kFoldOps[] = {
    ET_OP("aten::col2im.out", col2im_out),
};
}  // namespace

Span<const Kernel> fold_ops() {
  return kFoldOps;
}

}  // namespace torch::executor::native
