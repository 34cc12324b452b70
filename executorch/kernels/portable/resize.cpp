#include <executorch/cpu/nn/bilinear.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/resample.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

// Resampling images [n, c, h, w] to other extents; any dim order.
namespace torch::executor::native {

using namespace internal;

namespace {

struct Images {
  const Tensor& in;
  const Tensor& out;
  Layout from, to;
  Images(const Tensor& self, const Tensor& result)
      : in(self), out(result), from(self), to(result) {}
};

/// Calls row(n, y) for the rows of all images of the output, on all threads.
template <class F>
void for_each_row(const Images& images, const F& row) {
  const int64_t height = images.out.size(2);
  const int64_t row_work = images.out.size(1) * images.out.size(3);
  if (row_work > 0) for_each_image_row(images.out.size(0), height, row_work, row);
}

/// Calls f(c, x) for the elements of a row, in the order in which they lie in memory.
template <class F>
void for_each_in_row(const Images& images, const F& f) {
  const int64_t n_channels = images.out.size(1), width = images.out.size(3);
  if (images.to.strides[1] == 1 && images.to.strides[3] != 1) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < n_channels; ++c) f(c, x);
    }
    return;
  }
  for (int64_t c = 0; c < n_channels; ++c) {
    for (int64_t x = 0; x < width; ++x) f(c, x);
  }
}

/// A scale that is used (see step_of) must be one that an extent can have.
bool require_scale(KernelRuntimeContext& ctx, const char* op, double scale) {
  ET_REQUIRE(ctx, !(scale > 0) || scale >= 0x1p-31, InvalidArgument, false,
             "%s: the scale %g is too small", op, scale);
  return true;
}

/// Checks the input, reads the output's extents from `output_size` or `scale_factors` and resizes
/// `out`; scales[d] is the factor given, or 0.
bool prepare_resize(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                    const std::optional<IntArrayRef>& output_size,
                    const std::optional<ArrayRef<double>>& scale_factors, Tensor& out,
                    double* scales) {
  ET_REQUIRE(ctx, self.dim() == 4 && (self.numel() > 0 || self.size(0) == 0), InvalidArgument,
             false, "%s: nonempty images [n, c, h, w] were expected; the shape is %s", op,
             ShapeText(self).c_str());
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, false,
             "%s: the input is %s and out is %s; one dtype was expected", op,
             toString(self.scalar_type()), toString(out.scalar_type()));
  const bool by_size = output_size.has_value();
  ET_REQUIRE(ctx,
             by_size != scale_factors.has_value() &&
                 (by_size ? output_size->size() : scale_factors->size()) == 2,
             InvalidArgument, false, "%s: two output sizes or two scale factors were expected", op);
  Shape shape(self);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t dim = 2 + static_cast<int64_t>(d);
    const int64_t extent =
        by_size ? (*output_size)[d]
                : to_int64(std::floor(static_cast<double>(self.size(dim)) * (*scale_factors)[d]));
    ET_REQUIRE(ctx, extent >= 1, InvalidArgument, false,
               "%s: the result's extent %" PRId64 " in spatial dim %zu is not a size", op, extent,
               d);
    shape.set(dim, extent);
    scales[d] = by_size ? 0 : (*scale_factors)[d];
    if (!require_scale(ctx, op, scales[d])) return false;
  }
  return resize_out(ctx, op, out, shape);
}

/// The number of input positions per output position.
template <class C>
C step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) {
    return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C{0};
  }
  return scale > 0 ? static_cast<C>(1.0 / scale) : static_cast<C>(in) / static_cast<C>(out);
}

int64_t nearest_source(int64_t o, int64_t in, int64_t out, float step) {
  if (in == out) return o;
  return std::min(static_cast<int64_t>(std::floor(static_cast<float>(o) * step)), in - 1);
}

/// f(o) for o < n, where the memory lies; null, with a message, if memory is refused.
template <class F>
auto* table_of(KernelRuntimeContext& ctx, const char* op, executorch::cpu::Scratch& scratch,
               int64_t n, const F& f) {
  auto* const table = scratch.array<decltype(f(n))>(n);
  for (int64_t o = 0; table != nullptr && o < n; ++o) table[o] = f(o);
  (void)require_scratch(ctx, op, table != nullptr);
  return table;
}

/// Linear interpolation along one axis: position o lies between `first` and `second`.
template <class C>
struct Linear {
  int64_t in;
  C step;
  bool align_corners;
  struct Pair {
    int64_t first, second, n;
    C w0, w1;
    C weight(int64_t i) const { return n == 1 ? w0 + w1 : i == 0 ? w0 : w1; }
  };
  Pair at(int64_t o) const {
    const C position = align_corners ? step * static_cast<C>(o)
                                     : std::max(step * (static_cast<C>(o) + C(0.5)) - C(0.5), C(0));
    const int64_t first = std::min(static_cast<int64_t>(position), in - 1);
    const C w1 = std::clamp(position - static_cast<C>(first), C(0), C(1));
    const int64_t second = first + (first < in - 1);
    return {first, second, second - first + 1, C(1) - w1, w1};
  }
};

/// The triangle filter, widened by `step` <= 2^31 where the image shrinks: the weights of the
/// positions [first, first + n) are triangle((first + i - center + 0.5) * sharpness) * norm.
template <class C>
struct Triangle {
  int64_t in;
  C step;
  struct Window {
    int64_t first = 0, n = 0;
    C center, sharpness, norm;
    C weight(int64_t i) const {
      return norm * triangle((static_cast<C>(first + i) - center + C(0.5)) * sharpness);
    }
  };
  static C triangle(C x) { return std::max(C(1) - std::abs(x), C(0)); }
  Window at(int64_t o) const {
    const C support = std::max(step, C(1));
    const C center = step * (static_cast<C>(o) + C(0.5));
    Window w{.center = center, .sharpness = C(1) / support, .norm = C(1)};
    w.first = std::clamp<int64_t>(static_cast<int64_t>(center - support + C(0.5)), 0, in);
    w.n = std::min<int64_t>(static_cast<int64_t>(center + support + C(0.5)), in) - w.first;
    C total = 0;
    for (int64_t i = 0; i < w.n; ++i) total += w.weight(i);
    if (total != C(0)) w.norm = C(1) / total;
    return w;
  }
};

/// Calls f(T{}, C{}) for the types that are interpolated: T as stored, C as computed.
template <class F>
bool with_image_dtype(ScalarType type, F&& f) {
  switch (type) {
    case ScalarType::Float:
      f(float{}, float{});
      return true;
    case ScalarType::Double:
      f(double{}, double{});
      return true;
    case ScalarType::Half:
      f(Half{}, float{});
      return true;
    case ScalarType::BFloat16:
      f(BFloat16{}, float{});
      return true;
    case ScalarType::Byte:
      f(uint8_t{}, double{});
      return true;
    default:
      return false;
  }
}

/// Resamples by weighted sums along one axis after the other. For bytes, sums are integers and the
/// result of each axis is rounded, as in eager PyTorch.
template <class T, class C, class Filter>
bool resample_images(KernelRuntimeContext& ctx, const char* op, const Images& images,
                     const Filter& vertical, const Filter& horizontal) {
  constexpr bool kBytes = std::is_same_v<T, uint8_t>;
  ImageView<const T> from{static_cast<const T*>(images.in.const_data_ptr()), {}};
  ImageView<T> to{static_cast<T*>(images.out.mutable_data_ptr()), {}};
  int64_t from_sizes[4], to_sizes[4];
  for (int d = 0; d < 4; ++d) {
    from.strides[d] = images.from.strides[d], to.strides[d] = images.to.strides[d];
    from_sizes[d] = images.in.size(d), to_sizes[d] = images.out.size(d);
  }
  EngineScratch scratch(ctx);
  return require_scratch(
      ctx, op,
      resample<std::conditional_t<kBytes, uint8_t, C>, T, std::conditional_t<kBytes, uint32_t, C>>(
          from, from_sizes, to, to_sizes, vertical, horizontal, scratch));
}

template <class T, class C>
void bilinear(const Images& images, const Linear<C>& vertical,
              const typename Linear<C>::Pair* columns) {
  const int64_t* a = images.from.strides;
  const int64_t* b = images.to.strides;
  const T* in = static_cast<const T*>(images.in.const_data_ptr());
  T* out = static_cast<T*>(images.out.mutable_data_ptr());
  for_each_row(images, [&](int64_t n, int64_t y) {
    const auto v = vertical.at(y);
    const T* upper = in + n * a[0] + v.first * a[2];
    const T* lower = in + n * a[0] + v.second * a[2];
    T* row = out + n * b[0] + y * b[2];
    for_each_in_row(images, [&](int64_t c, int64_t x) {
      const auto& h = columns[x];
      const auto along = [&](const T* line) {
        line += c * a[1];
        return h.w0 * static_cast<C>(line[h.first * a[3]]) +
               h.w1 * static_cast<C>(line[h.second * a[3]]);
      };
      row[c * b[1] + x * b[3]] = static_cast<T>(v.w0 * along(upper) + v.w1 * along(lower));
    });
  });
}

/// Planes of floats whose rows are contiguous, by the engine. False if these are others, or memory
/// is refused.
bool bilinear_planes(KernelRuntimeContext& ctx, const Images& images, const Linear<float>& vertical,
                     const Linear<float>& horizontal) {
  const int64_t *a = images.from.strides, *b = images.to.strides;
  const int64_t n_images = images.out.size(0), channels = images.out.size(1);
  if (a[3] != 1 || b[3] != 1) return false;
  EngineScratch memory(ctx);
  executorch::cpu::Scratch& scratch = memory;
  executorch::cpu::Bilinear planes;
  planes.out_h = images.out.size(2);
  planes.out_w = images.out.size(3);
  planes.in_w = images.in.size(3);
  const auto pair_of = [](const Linear<float>& axis) {
    return [&axis](int64_t i) {
      const auto at = axis.at(i);
      return executorch::cpu::Bilinear::Pair{at.first, at.second, at.w0, at.w1};
    };
  };
  if (!planes.place(pair_of(vertical), pair_of(horizontal), scratch)) return false;
  planes.x_plane = a[1], planes.x_row = a[2], planes.y_plane = b[1], planes.y_row = b[2];
  const bool together = a[0] == channels * a[1] && b[0] == channels * b[1];
  planes.planes = together ? n_images * channels : channels;
  for (int64_t n = 0; n < (together ? 1 : n_images); ++n) {
    planes.x = images.in.const_data_ptr<float>() + n * a[0];
    planes.y = images.out.mutable_data_ptr<float>() + n * b[0];
    if (!planes.run(scratch)) return false;
  }
  return true;
}

}  // namespace

Tensor& upsample_nearest2d_vec_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   std::optional<IntArrayRef> output_size,
                                   std::optional<ArrayRef<double>> scale_factors, Tensor& out) {
  constexpr const char* kOp = "upsample_nearest2d.vec_out";
  double scales[2];
  if (!prepare_resize(ctx, kOp, input, output_size, scale_factors, out, scales) ||
      out.numel() == 0) {
    return out;
  }
  const Images images(input, out);
  const float step_y = step_of<float>(input.size(2), out.size(2), false, scales[0]);
  const float step_x = step_of<float>(input.size(3), out.size(3), false, scales[1]);
  EngineScratch scratch(ctx);
  const int64_t* const columns = table_of(ctx, kOp, scratch, out.size(3), [&](int64_t x) {
    return nearest_source(x, input.size(3), out.size(3), step_x) * images.from.strides[3];
  });
  if (columns == nullptr) return out;
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const int64_t* a = images.from.strides;
    const int64_t* b = images.to.strides;
    for_each_row(images, [&](int64_t n, int64_t y) {
      const int64_t from = nearest_source(y, input.size(2), out.size(2), step_y);
      const T* line = static_cast<const T*>(input.const_data_ptr()) + n * a[0] + from * a[2];
      T* row = static_cast<T*>(out.mutable_data_ptr()) + n * b[0] + y * b[2];
      if (a[1] == 1 && b[1] == 1) {
        for (int64_t x = 0; x < out.size(3); ++x) {
          std::copy_n(line + columns[x], out.size(1), row + x * b[3]);
        }
        return;
      }
      for_each_in_row(images, [&](int64_t c, int64_t x) {
        row[c * b[1] + x * b[3]] = line[c * a[1] + columns[x]];
      });
    });
  });
  return out;
}

Tensor& upsample_bilinear2d_vec_out(KernelRuntimeContext& ctx, const Tensor& input,
                                    std::optional<IntArrayRef> output_size, bool align_corners,
                                    std::optional<ArrayRef<double>> scale_factors, Tensor& out) {
  constexpr const char* kOp = "upsample_bilinear2d.vec_out";
  double scales[2];
  if (!prepare_resize(ctx, kOp, input, output_size, scale_factors, out, scales) ||
      out.numel() == 0) {
    return out;
  }
  const bool known = with_image_dtype(input.scalar_type(), [&](auto stored_tag, auto tag) {
    using C = decltype(tag);
    const auto axis = [&](int64_t d) {
      return Linear<C>{input.size(d),
                       step_of<C>(input.size(d), out.size(d), align_corners, scales[d - 2]),
                       align_corners};
    };
    if constexpr (std::is_same_v<decltype(stored_tag), uint8_t>) {
      (void)resample_images<uint8_t, C>(ctx, kOp, Images(input, out), axis(2), axis(3));
    } else {
      EngineScratch scratch(ctx);
      const Linear<C> horizontal = axis(3);
      if constexpr (std::is_same_v<decltype(stored_tag), float>) {
        if (bilinear_planes(ctx, Images(input, out), axis(2), horizontal)) return;
      }
      const auto* columns =
          table_of(ctx, kOp, scratch, out.size(3), [&](int64_t x) { return horizontal.at(x); });
      if (columns == nullptr) return;
      bilinear<decltype(stored_tag), C>(Images(input, out), axis(2), columns);
    }
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(input.scalar_type()));
  return out;
}

Tensor& _upsample_bilinear2d_aa_out(KernelRuntimeContext& ctx, const Tensor& self,
                                    IntArrayRef output_size, bool align_corners,
                                    std::optional<double> scales_h, std::optional<double> scales_w,
                                    Tensor& out) {
  constexpr const char* kOp = "_upsample_bilinear2d_aa.out";
  double scales[2];
  if (!prepare_resize(ctx, kOp, self, output_size, std::nullopt, out, scales)) return out;
  scales[0] = scales_h.value_or(0);
  scales[1] = scales_w.value_or(0);
  if (!require_scale(ctx, kOp, scales[0]) || !require_scale(ctx, kOp, scales[1]) ||
      out.numel() == 0) {
    return out;
  }
  const auto window = [&](int64_t d) {
    const double step = step_of<double>(self.size(d), out.size(d), align_corners, scales[d - 2]);
    return std::min<int64_t>(2 * static_cast<int64_t>(std::max(step, 1.0)) + 2, self.size(d));
  };
  const Size planes = Size(out.size(0)) * out.size(1);
  const Size steps = planes * out.size(3) * self.size(2) * window(3) +
                     planes * out.size(2) * out.size(3) * window(2);
  if (!require_affordable(ctx, kOp, steps, elements_of(self, out))) return out;
  const bool known = with_image_dtype(self.scalar_type(), [&](auto stored_tag, auto tag) {
    using C = decltype(tag);
    const auto axis = [&](int64_t d) {
      return Triangle<C>{self.size(d),
                         step_of<C>(self.size(d), out.size(d), align_corners, scales[d - 2])};
    };
    (void)resample_images<decltype(stored_tag), C>(ctx, kOp, Images(self, out), axis(2), axis(3));
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(self.scalar_type()));
  return out;
}

namespace {
constexpr Kernel kResizeOps[] = {
    ET_OP("aten::_upsample_bilinear2d_aa.out", _upsample_bilinear2d_aa_out, other),
    ET_OP("aten::upsample_bilinear2d.vec_out", upsample_bilinear2d_vec_out),
    ET_OP("aten::upsample_nearest2d.vec_out", upsample_nearest2d_vec_out, copy),
};
}  // namespace

Span<const Kernel> resize_ops() {
  return kResizeOps;
}

}  // namespace torch::executor::native
