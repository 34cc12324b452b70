#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>

// Copying forms of view operators. Each edits the layout of its input and copies once.
namespace torch::executor::native {

using namespace internal;

namespace {

// view[d] = layout[dims[d]]
Layout permuted(const Layout& layout, const int64_t* dims) {
  Layout view;
  view.offset = layout.offset;
  for (int64_t d = 0; d < layout.shape.ndim(); ++d) {
    view.push(layout.shape[dims[d]], layout.strides[dims[d]]);
  }
  return view;
}

// The `size` of a view with its -1 replaced; false with a message if numel does not match.
bool infer_size(KernelRuntimeContext& ctx, const char* op, const Tensor& self, IntArrayRef size,
                Shape& shape) {
  int64_t known = 1;
  int64_t unknown = -1;
  bool valid = static_cast<int64_t>(size.size()) <= kMaxDims;
  for (size_t d = 0; valid && d < size.size(); ++d) {
    if (size[d] == -1 && unknown < 0) {
      unknown = static_cast<int64_t>(d);
    } else {
      valid = size[d] >= 0 && !__builtin_mul_overflow(known, size[d], &known);
    }
    shape.push(size[d] == -1 ? 0 : size[d]);
  }
  if (valid && unknown >= 0) {
    valid = known > 0 && self.numel() % known == 0;
    if (valid) shape.set(unknown, self.numel() / known);
  } else {
    valid = valid && known == self.numel();
  }
  ET_REQUIRE(ctx, valid, InvalidArgument, false, "%s: shape %s cannot be viewed as %s", op,
             ShapeText(self).c_str(), ShapeText(size).c_str());
  return true;
}

}  // namespace

Tensor& as_strided_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size,
                            IntArrayRef stride, std::optional<int64_t> storage_offset,
                            Tensor& out) {
  constexpr const char* kOp = "as_strided_copy.out";
  Layout view;
  if (!shape_of(ctx, kOp, size, view.shape)) return out;
  ET_REQUIRE(ctx, size.size() == stride.size(), InvalidArgument, out,
             "%s: size %s and stride %s differ in length", kOp, ShapeText(size).c_str(),
             ShapeText(stride).c_str());
  view.offset = storage_offset.value_or(0);
  int64_t last = view.offset;
  bool inside = view.offset >= 0;
  for (size_t d = 0; inside && d < size.size(); ++d) {
    view.strides[d] = stride[d];
    int64_t reach = 0;
    inside = stride[d] >= 0 &&
             !__builtin_mul_overflow(stride[d], std::max<int64_t>(size[d] - 1, 0), &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  ET_REQUIRE(ctx, inside && (view.shape.numel().value_or(1) == 0 || last < self.numel()),
             InvalidArgument, out,
             "%s: size %s, stride %s, offset %" PRId64 " reach outside a storage of %" PRId64
             " elements",
             kOp, ShapeText(size).c_str(), ShapeText(stride).c_str(), view.offset,
             static_cast<int64_t>(self.numel()));
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& diagonal_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t offset,
                          int64_t dim1, int64_t dim2, Tensor& out) {
  constexpr const char* kOp = "diagonal_copy.out";
  if (!normalize_dim(ctx, kOp, dim1, self.dim()) || !normalize_dim(ctx, kOp, dim2, self.dim())) {
    return out;
  }
  ET_REQUIRE(ctx, dim1 != dim2, InvalidArgument, out,
             "%s: dim1 and dim2 are both %" PRId64 " of a tensor of shape %s", kOp, dim1,
             ShapeText(self).c_str());
  Layout view(self);
  const int64_t rows = view.shape[dim1] + std::min<int64_t>(offset, 0);
  const int64_t columns = view.shape[dim2] - std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(std::min(rows, columns), 0);
  const int64_t step = view.strides[dim1] + view.strides[dim2];
  if (length > 0) {
    view.offset += offset >= 0 ? offset * view.strides[dim2] : -offset * view.strides[dim1];
  }
  view.erase(std::max(dim1, dim2));
  view.erase(std::min(dim1, dim2));
  view.push(length, step);
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& expand_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size,
                        bool implicit, Tensor& out) {
  constexpr const char* kOp = "expand_copy.out";
  (void)implicit;
  const Layout layout(self);
  const int64_t lead = static_cast<int64_t>(size.size()) - self.dim();
  bool valid = lead >= 0 && static_cast<int64_t>(size.size()) <= kMaxDims;
  Layout view;
  for (int64_t d = 0; valid && d < static_cast<int64_t>(size.size()); ++d) {
    const int64_t own = d < lead ? 1 : layout.shape[d - lead];
    const int64_t extent = size[d] == -1 && d >= lead ? own : size[d];
    valid = extent >= 0 && extent <= INT32_MAX && (own == 1 || own == extent);
    view.push(extent, own == 1 ? 0 : layout.strides[d - lead]);
  }
  ET_REQUIRE(ctx, valid, InvalidArgument, out, "%s: cannot expand shape %s to %s", kOp,
             ShapeText(self).c_str(), ShapeText(size).c_str());
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& flip_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dims, Tensor& out) {
  uint32_t mask = 0;
  if (!dim_mask(ctx, "flip.out", dims, self.dim(), false, mask)) return out;
  Layout view(self);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(mask >> d & 1) || view.shape[d] == 0) continue;
    view.offset += (view.shape[d] - 1) * view.strides[d];
    view.strides[d] = -view.strides[d];
  }
  copy_view(ctx, "flip.out", self, view, out);
  return out;
}

Tensor& permute_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dims,
                         Tensor& out) {
  constexpr const char* kOp = "permute_copy.out";
  ET_REQUIRE(ctx, static_cast<int64_t>(dims.size()) == self.dim(), InvalidArgument, out,
             "%s: dims %s do not permute a tensor of shape %s", kOp, ShapeText(dims).c_str(),
             ShapeText(self).c_str());
  uint32_t mask = 0;
  if (!dim_mask(ctx, kOp, dims, self.dim(), false, mask)) return out;
  int64_t order[kTensorDimensionLimit];
  for (size_t d = 0; d < dims.size(); ++d) order[d] = dims[d] < 0 ? dims[d] + self.dim() : dims[d];
  copy_view(ctx, kOp, self, permuted(Layout(self), order), out);
  return out;
}

Tensor& select_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                            int64_t index, Tensor& out) {
  constexpr const char* kOp = "select_copy.int_out";
  Layout view(self);
  if (!select_in(ctx, kOp, dim, index, view)) return out;
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& slice_copy_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                              std::optional<int64_t> start, std::optional<int64_t> end,
                              int64_t step, Tensor& out) {
  constexpr const char* kOp = "slice_copy.Tensor_out";
  Layout view(self);
  if (!slice_in(ctx, kOp, dim, start, end, step, view)) return out;
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& narrow_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, int64_t start,
                        int64_t length, Tensor& out) {
  constexpr const char* kOp = "narrow_copy.out";
  ET_REQUIRE(ctx, self.dim() > 0, InvalidArgument, out, "%s: a 0-d tensor has nothing to narrow",
             kOp);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  Layout view(self);
  const int64_t extent = view.shape[dim];
  const int64_t begin = start < 0 ? start + extent : start;
  ET_REQUIRE(ctx, length >= 0 && begin >= 0 && begin <= extent && length <= extent - begin,
             InvalidArgument, out,
             "%s: start %" PRId64 " and length %" PRId64 " exceed dim %" PRId64 " of shape %s", kOp,
             start, length, dim, ShapeText(self).c_str());
  view.offset += begin * view.strides[dim];
  view.shape.set(dim, length);
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& squeeze_copy_dims_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                              Tensor& out) {
  constexpr const char* kOp = "squeeze_copy.dims_out";
  uint32_t mask = 0;
  if (!dim_mask(ctx, kOp, dim, self.dim(), false, mask)) return out;
  Layout view(self);
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    if ((mask >> d & 1) && view.shape[d] == 1) view.erase(d);
  }
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& squeeze_copy_dim_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                             Tensor& out) {
  constexpr const char* kOp = "squeeze_copy.dim_out";
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  Layout view(self);
  if (self.dim() > 0 && view.shape[dim] == 1) view.erase(dim);
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& t_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  ET_REQUIRE(ctx, self.dim() <= 2, InvalidArgument, out,
             "t_copy.out: a tensor of rank at most 2 was expected; its shape is %s",
             ShapeText(self).c_str());
  const int64_t swapped[2] = {1, 0};
  const Layout layout(self);
  copy_view(ctx, "t_copy.out", self, self.dim() == 2 ? permuted(layout, swapped) : layout, out);
  return out;
}

Tensor& transpose_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim0,
                               int64_t dim1, Tensor& out) {
  constexpr const char* kOp = "transpose_copy.int_out";
  if (!normalize_dim(ctx, kOp, dim0, self.dim()) || !normalize_dim(ctx, kOp, dim1, self.dim())) {
    return out;
  }
  Layout view(self);
  view.shape.swap(dim0, dim1);
  std::swap(view.strides[dim0], view.strides[dim1]);
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& unfold_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dimension,
                        int64_t size, int64_t step, Tensor& out) {
  constexpr const char* kOp = "unfold_copy.out";
  if (!normalize_dim(ctx, kOp, dimension, self.dim())) return out;
  Layout view(self);
  const int64_t extent = self.dim() == 0 ? 1 : view.shape[dimension];
  ET_REQUIRE(
      ctx, step > 0 && size >= 0 && size <= extent && self.dim() < kMaxDims, InvalidArgument, out,
      "%s: windows of size %" PRId64 " and step %" PRId64 " do not fit dim %" PRId64 " of shape %s",
      kOp, size, step, dimension, ShapeText(self).c_str());
  int64_t stride = 1;
  if (self.dim() > 0) {
    stride = view.strides[dimension];
    view.shape.set(dimension, (extent - size) / step + 1);
    view.strides[dimension] = view.shape[dimension] > 1 ? step * stride : 0;
  }
  view.push(size, stride);
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& unsqueeze_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                           Tensor& out) {
  constexpr const char* kOp = "unsqueeze_copy.out";
  if (!normalize_dim(ctx, kOp, dim, self.dim() + 1)) return out;
  const Layout layout(self);
  Layout view;
  for (int64_t d = 0; d <= self.dim(); ++d) {
    if (d == dim) view.push(1, 0);
    if (d < self.dim()) view.push(layout.shape[d], layout.strides[d]);
  }
  copy_view(ctx, kOp, self, view, out);
  return out;
}

Tensor& view_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size,
                      Tensor& out) {
  constexpr const char* kOp = "view_copy.out";
  Shape shape;
  if (!infer_size(ctx, kOp, self, size, shape)) return out;
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: out has dtype %s; the input's dtype %s was expected", kOp,
             toString(out.scalar_type()), toString(self.scalar_type()));
  if (!resize_out(ctx, kOp, out, shape)) return out;
  if (self.const_data_ptr() == out.const_data_ptr() && is_contiguous(self) && is_contiguous(out)) {
    return out;
  }
  copy_in_order(self.const_data_ptr(), Layout(self), 0, out.mutable_data_ptr(), Layout(out), 0,
                out.numel(), static_cast<size_t>(out.element_size()));
  return out;
}

Tensor& view_copy_dtype_out(KernelRuntimeContext& ctx, const Tensor& self, ScalarType dtype,
                            Tensor& out) {
  constexpr const char* kOp = "view_copy.dtype_out";
  ET_REQUIRE(ctx, out.scalar_type() == dtype, InvalidArgument, out,
             "%s: out has dtype %s; %s was expected", kOp, toString(out.scalar_type()),
             toString(dtype));
  const int64_t from = self.element_size(), to = out.element_size();
  Shape shape(self);
  ET_REQUIRE(ctx, from > 0 && to > 0, InvalidArgument, out, "%s: elements of %s have no size", kOp,
             toString(from > 0 ? dtype : self.scalar_type()));
  if (from != to) {  // the bytes along the last dim are cut anew
    const int64_t n_bytes = self.dim() == 0 ? 0 : self.size(self.dim() - 1) * from;
    ET_REQUIRE(ctx, self.dim() > 0 && n_bytes % to == 0 && is_contiguous(self), InvalidArgument,
               out, "%s: the last dim of %s of %s cannot be cut into elements of %s", kOp,
               ShapeText(self).c_str(), toString(self.scalar_type()), toString(dtype));
    shape.set(self.dim() - 1, n_bytes / to);
  }
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  if (from == to) {
    copy_layout(self.const_data_ptr(), dtype, Layout(self), out.mutable_data_ptr(), dtype,
                Layout(out));
    return out;
  }
  ET_REQUIRE(ctx, is_contiguous(out), InvalidArgument, out, "%s: out is not contiguous", kOp);
  std::memmove(out.mutable_data_ptr(), self.const_data_ptr(), out.nbytes());
  return out;
}

Tensor& view_as_real_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "view_as_real_copy.out";
  const ScalarType part = part_of(self.scalar_type());
  ET_REQUIRE(ctx, part != ScalarType::Undefined && self.dim() < kMaxDims, InvalidArgument, out,
             "%s: a complex tensor was expected; the dtype is %s", kOp,
             toString(self.scalar_type()));
  ET_REQUIRE(ctx, convertible(part, out.scalar_type()), InvalidArgument, out,
             "%s: cannot convert dtype %s to %s", kOp, toString(part), toString(out.scalar_type()));
  Layout view(self);
  for (int64_t d = 0; d < self.dim(); ++d) view.strides[d] *= 2;
  view.push(2, 1);
  if (!resize_out(ctx, kOp, out, view.shape)) return out;
  copy_layout(self.const_data_ptr(), part, view, out.mutable_data_ptr(), out.scalar_type(),
              Layout(out));
  return out;
}

namespace {

// Moves blocks of factor x factor positions between the channel and the two spatial dims. `wide` is
// the layout [..., C * factor^2, H, W], `tall` the layout [..., C, H * factor, W * factor].
void copy_pixels(const Tensor& self, Tensor& out, int64_t factor, bool to_tall) {
  const Layout from(self), to(out);
  const Layout& wide = to_tall ? from : to;
  const Layout& tall = to_tall ? to : from;
  const int64_t c = self.dim() - 3, h = c + 1, w = c + 2;
  StridedLoop loop;
  const auto add = [&](int64_t size, int64_t wide_stride, int64_t tall_stride) {
    loop.add(size, to_tall ? wide_stride : tall_stride, to_tall ? tall_stride : wide_stride);
  };
  for (int64_t d = 0; d < c; ++d) add(wide.shape[d], wide.strides[d], tall.strides[d]);
  add(tall.shape[c], wide.strides[c] * factor * factor, tall.strides[c]);
  add(factor, wide.strides[c] * factor, tall.strides[h]);
  add(factor, wide.strides[c], tall.strides[w]);
  add(wide.shape[h], wide.strides[h], tall.strides[h] * factor);
  add(wide.shape[w], wide.strides[w], tall.strides[w] * factor);
  loop.copy(self.const_data_ptr(), self.scalar_type(), out.mutable_data_ptr(), out.scalar_type());
}

bool resize_pixels(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t factor,
                   bool to_tall, Tensor& out) {
  ET_REQUIRE(ctx, self.dim() >= 3 && factor > 0 && factor < 32768, InvalidArgument, false,
             "%s: a tensor [..., C, H, W] and a positive factor were expected; found shape %s and "
             "factor %" PRId64,
             op, ShapeText(self).c_str(), factor);
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, false,
             "%s: out has dtype %s; the input's dtype %s was expected", op,
             toString(out.scalar_type()), toString(self.scalar_type()));
  const int64_t c = self.dim() - 3;
  const int64_t channels = self.size(c), height = self.size(c + 1), width = self.size(c + 2);
  const int64_t square = factor * factor;
  ET_REQUIRE(ctx, to_tall ? channels % square == 0 : height % factor == 0 && width % factor == 0,
             InvalidArgument, false, "%s: shape %s is not divisible by factor %" PRId64, op,
             ShapeText(self).c_str(), factor);
  int64_t size[kTensorDimensionLimit];
  for (int64_t d = 0; d < c; ++d) size[d] = self.size(d);
  size[c] = to_tall ? channels / square : channels * square;
  size[c + 1] = to_tall ? height * factor : height / factor;
  size[c + 2] = to_tall ? width * factor : width / factor;
  Shape shape;
  return shape_of(ctx, op, {size, static_cast<size_t>(self.dim())}, shape) &&
         resize_out(ctx, op, out, shape);
}

}  // namespace

Tensor& pixel_shuffle_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t upscale_factor,
                          Tensor& out) {
  if (resize_pixels(ctx, "pixel_shuffle.out", self, upscale_factor, true, out)) {
    copy_pixels(self, out, upscale_factor, true);
  }
  return out;
}

Tensor& pixel_unshuffle_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t downscale_factor,
                            Tensor& out) {
  if (resize_pixels(ctx, "pixel_unshuffle.out", self, downscale_factor, false, out)) {
    copy_pixels(self, out, downscale_factor, false);
  }
  return out;
}

namespace {
constexpr Kernel kShapeOps[] = {
    ET_OP("aten::as_strided_copy.out", as_strided_copy_out, select),
    ET_OP("aten::diagonal_copy.out", diagonal_copy_out, select),
    ET_OP("aten::expand_copy.out", expand_copy_out),
    ET_OP("aten::flip.out", flip_out),
    ET_OP("aten::narrow_copy.out", narrow_copy_out, select),
    ET_OP("aten::permute_copy.out", permute_copy_out),
    ET_OP("aten::pixel_shuffle.out", pixel_shuffle_out),
    ET_OP("aten::pixel_unshuffle.out", pixel_unshuffle_out),
    ET_OP("aten::select_copy.int_out", select_copy_int_out, select),
    ET_OP("aten::slice_copy.Tensor_out", slice_copy_Tensor_out, select),
    ET_OP("aten::squeeze_copy.dim_out", squeeze_copy_dim_out),
    ET_OP("aten::squeeze_copy.dims_out", squeeze_copy_dims_out),
    ET_OP("aten::t_copy.out", t_copy_out),
    ET_OP("aten::transpose_copy.int_out", transpose_copy_int_out),
    ET_OP("aten::unfold_copy.out", unfold_copy_out, select),
    ET_OP("aten::unsqueeze_copy.out", unsqueeze_copy_out),
    ET_OP("aten::view_as_real_copy.out", view_as_real_copy_out, other),
    ET_OP("aten::view_copy.dtype_out", view_copy_dtype_out),
    ET_OP("aten::view_copy.out", view_copy_out),
};
}  // namespace

Span<const Kernel> shape_ops() {
  return kShapeOps;
}

}  // namespace torch::executor::native
