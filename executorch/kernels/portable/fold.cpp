#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>
#include <numeric>
#include <utility>

// Adding up sliding windows to an image (col2im).
namespace torch::executor::native {

using namespace internal;

namespace {

/// Windows along one dim: window w has image position w * stride - padding + t * dilation at its
/// place t < size. All are below 2^31, `count` below 2^34.
struct Slide {
  int64_t image, size, dilation, padding, stride, count;
  /// Places that have position i lie `period` apart; t * dilation = i + padding modulo stride for
  /// the first of them.
  int64_t common, period, inverse;

  Slide(int64_t n, int64_t window, int64_t dilate, int64_t pad, int64_t step)
      : image(n), size(window), dilation(dilate), padding(pad), stride(step) {
    const int64_t reach = image + 2 * padding - dilation * (size - 1) - 1;
    count = reach < 0 ? 0 : reach / stride + 1;
    common = std::gcd(dilation, stride);
    period = stride / common;
    inverse = inverse_of(dilation / common % period, period);
  }

  /// Calls f(place, window) for the windows over image position `i`, by rising places.
  template <class F>
  void for_each_window(int64_t i, const F& f) const {
    const int64_t at = i + padding;
    if (at % common != 0) return;
    for (int64_t t = first_place(at); t < size && t * dilation <= at; t += period) {
      f(t, (at - t * dilation) / stride);
    }
  }
  bool covers(int64_t i) const {
    const int64_t at = i + padding;
    if (at % common != 0) return false;
    const int64_t t = first_place(at);
    return t < size && t * dilation <= at;
  }

 private:
  /// The lowest place that can hold position `at` and whose window exists.
  int64_t first_place(int64_t at) const {
    const int64_t beyond = at - (count - 1) * stride;
    const int64_t lowest = beyond > 0 ? (beyond + dilation - 1) / dilation : 0;
    const int64_t t = at / common % period * inverse % period;
    return t < lowest ? t + (lowest - t + period - 1) / period * period : t;
  }
  /// The x with a * x = 1 modulo n; a and n have no common divisor. 0 for n = 1.
  static int64_t inverse_of(int64_t a, int64_t n) {
    int64_t r = n, next_r = a, x = 0, next_x = 1;
    while (next_r != 0) {
      const int64_t quotient = r / next_r;
      r = std::exchange(next_r, r - quotient * next_r);
      x = std::exchange(next_x, x - quotient * next_x);
    }
    return (x % n + n) % n;
  }
};

/// to[i, j] = sum of the places of windows that lie over it. from: [size_y, size_x, y, x]
/// Cost: linear in the elements of both.
template <class T>
void fold_plane(const Slide& rows, const Slide& columns, const T* from, int64_t place_step,
                int64_t window_step, T* to, int64_t row_step, int64_t column_step) {
  using C = std::conditional_t<kIsFloat<T> && sizeof(T) == 2, float, T>;
  for (int64_t i = 0; i < rows.image; ++i) {
    for (int64_t j = 0; j < columns.image; ++j) {
      C sum{};
      const auto add_row = [&](int64_t s, int64_t y) {
        columns.for_each_window(j, [&](int64_t t, int64_t x) {
          const C term = static_cast<C>(
              from[(s * columns.size + t) * place_step + (y * columns.count + x) * window_step]);
          if constexpr (kIsFloat<C>) {
            sum += term;
          } else {
            sum = static_cast<C>(
                wrapping_add<int64_t>(static_cast<int64_t>(sum), static_cast<int64_t>(term)));
          }
        });
      };
      if (columns.covers(j)) rows.for_each_window(i, add_row);
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
  const Slide slide[2] = {{image[0], size[0], dilations[0], paddings[0], strides[0]},
                          {image[1], size[1], dilations[1], paddings[1], strides[1]}};
  const int64_t rank = self.dim(), places = size[0] * size[1];
  ET_REQUIRE(ctx,
             (rank == 2 || rank == 3) && self.size(rank - 2) % places == 0 &&
                 (Size(slide[0].count) * slide[1].count).value_or(-1) == self.size(rank - 1),
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
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout from(self), to(out);
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
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
