#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/promote.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Joining tensors along a dim (cat, stack) and taking them apart (split, unbind), and the copies
// that place a tensor several times or in part (repeat, roll, scatters of a slice).
namespace torch::executor::native {

using namespace internal;

namespace {

// The part of `out` that `src` is written to; the shapes are equal.
void copy_into(const Tensor& src, Tensor& out, const Layout& part) {
  copy_layout(src.const_data_ptr(), src.scalar_type(), Layout(src), out.mutable_data_ptr(),
              out.scalar_type(), part);
}

// Whether `t` has the extents of `first` in all dims but `dim`.
bool joins(const Tensor& t, const Tensor& first, int64_t dim) {
  bool fits = t.dim() == first.dim();
  for (int64_t d = 0; fits && d < t.dim(); ++d) fits = d == dim || t.size(d) == first.size(d);
  return fits;
}

// Whether cat skips `t`, because it has no elements and does not fit the others, such as shape [0].
bool is_skipped(const Tensor& t, const Tensor& first, int64_t dim) {
  return t.numel() == 0 && !joins(t, first, dim);
}

// The first tensor that has elements; if none has, the first one whose shape is not [0].
const Tensor& first_to_join(TensorList tensors) {
  const Tensor* first = &tensors[0];
  for (const Tensor& t : tensors) {
    if (t.numel() > 0) return t;
    if (first->dim() == 1) first = &t;
  }
  return *first;
}

bool require_result_dtype(KernelRuntimeContext& ctx, const char* op, TensorList tensors,
                          const Tensor& out) {
  ET_REQUIRE(ctx, !tensors.empty(), InvalidArgument, false,
             "%s: at least one tensor was expected; the list is empty", op);
  ScalarType common = tensors[0].scalar_type();
  bool mixed = false;
  Promotion promotion;
  for (const Tensor& t : tensors) {
    ET_REQUIRE(ctx, convertible(t.scalar_type(), out.scalar_type()), InvalidArgument, false,
               "%s: cannot convert dtype %s to %s", op, toString(t.scalar_type()),
               toString(out.scalar_type()));
    mixed = mixed || t.scalar_type() != common;
    promotion.add(t);
  }
  if (mixed) common = promotion.result();
  ET_REQUIRE(ctx, common == out.scalar_type() || can_store(common, out.scalar_type()),
             InvalidArgument, false, "%s: the result's dtype %s cannot be stored as %s", op,
             toString(common), toString(out.scalar_type()));
  return true;
}

}  // namespace

Tensor& cat_out(KernelRuntimeContext& ctx, TensorList tensors, int64_t dim, Tensor& out) {
  constexpr const char* kOp = "cat.out";
  if (!require_result_dtype(ctx, kOp, tensors, out)) return out;
  const Tensor& first = first_to_join(tensors);
  ET_REQUIRE(ctx, first.dim() > 0, InvalidArgument, out, "%s: 0-d tensors cannot be joined", kOp);
  if (!normalize_dim(ctx, kOp, dim, first.dim())) return out;
  Shape shape(first);
  int64_t length = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t, first, dim)) continue;
    ET_REQUIRE(ctx, joins(t, first, dim), InvalidArgument, out,
               "%s: tensor %zu of shape %s does not join %s along dim %" PRId64, kOp, i,
               ShapeText(t).c_str(), ShapeText(first).c_str(), dim);
    length += t.size(dim);
  }
  shape.set(dim, length);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  Layout part(out);
  for (const Tensor& t : tensors) {
    if (is_skipped(t, first, dim)) continue;
    part.shape.set(dim, t.size(dim));
    copy_into(t, out, part);
    part.offset += t.size(dim) * part.strides[dim];
  }
  return out;
}

Tensor& stack_out(KernelRuntimeContext& ctx, TensorList tensors, int64_t dim, Tensor& out) {
  constexpr const char* kOp = "stack.out";
  if (!require_result_dtype(ctx, kOp, tensors, out)) return out;
  const Tensor& first = tensors[0];
  if (!normalize_dim(ctx, kOp, dim, first.dim() + 1)) return out;
  for (size_t i = 1; i < tensors.size(); ++i) {
    ET_REQUIRE(ctx, Shape(tensors[i]).ref().equals(first.sizes()), InvalidArgument, out,
               "%s: tensor %zu has shape %s; that of the first, %s, was expected", kOp, i,
               ShapeText(tensors[i]).c_str(), ShapeText(first).c_str());
  }
  Shape shape;
  for (int64_t d = 0; d <= first.dim(); ++d) {
    if (d == dim) shape.push(static_cast<int64_t>(tensors.size()));
    if (d < first.dim()) shape.push(first.size(d));
  }
  if (!resize_out(ctx, kOp, out, shape)) return out;
  Layout part(out);
  const int64_t step = part.strides[dim];
  part.erase(dim);
  for (const Tensor& t : tensors) {
    copy_into(t, out, part);
    part.offset += step;
  }
  return out;
}

namespace {

// Copies pieces of `self` along `dim` to the outs. The i-th piece is length(i) long.
template <class F>
void split_into(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                TensorList out, F&& length) {
  Layout piece(self);
  for (size_t i = 0; i < out.size(); ++i) {
    piece.shape.set(dim, length(i));
    Tensor target = out[i];
    if (!copy_view(ctx, op, self, piece, target)) return;
    piece.offset += piece.shape[dim] * piece.strides[dim];
  }
}

}  // namespace

void split_copy_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t split_size,
                           int64_t dim, TensorList out) {
  constexpr const char* kOp = "split_copy.Tensor_out";
  ET_REQUIRE(ctx, self.dim() > 0, InvalidArgument, , "%s: a 0-d tensor cannot be split", kOp);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return;
  const int64_t extent = self.size(dim);
  ET_REQUIRE(ctx, split_size > 0 || (split_size == 0 && extent == 0), InvalidArgument, ,
             "%s: split_size must be positive; the value is %" PRId64, kOp, split_size);
  const int64_t pieces = extent == 0 ? 1 : extent / split_size + (extent % split_size != 0);
  ET_REQUIRE(ctx, static_cast<int64_t>(out.size()) == pieces, InvalidArgument, ,
             "%s: shape %s splits into %" PRId64 " pieces along dim %" PRId64
             "; %zu out tensors were given",
             kOp, ShapeText(self).c_str(), pieces, dim, out.size());
  split_into(ctx, kOp, self, dim, out, [&](size_t i) {
    return std::min(split_size, extent - static_cast<int64_t>(i) * split_size);
  });
}

void split_with_sizes_copy_out(KernelRuntimeContext& ctx, const Tensor& self,
                               IntArrayRef split_sizes, int64_t dim, TensorList out) {
  constexpr const char* kOp = "split_with_sizes_copy.out";
  ET_REQUIRE(ctx, self.dim() > 0, InvalidArgument, , "%s: a 0-d tensor cannot be split", kOp);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return;
  int64_t left = self.size(dim);
  bool fits = split_sizes.size() == out.size();
  for (int64_t size : split_sizes) {
    fits = fits && size >= 0 && size <= left;
    if (fits) left -= size;
  }
  ET_REQUIRE(ctx, fits && left == 0, InvalidArgument, ,
             "%s: sizes %s do not split dim %" PRId64 " of shape %s into %zu out tensors", kOp,
             ShapeText(split_sizes).c_str(), dim, ShapeText(self).c_str(), out.size());
  split_into(ctx, kOp, self, dim, out, [&](size_t i) { return split_sizes[i]; });
}

void unbind_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                         TensorList out) {
  constexpr const char* kOp = "unbind_copy.int_out";
  ET_REQUIRE(ctx, self.dim() > 0, InvalidArgument, , "%s: a 0-d tensor cannot be unbound", kOp);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return;
  ET_REQUIRE(ctx, static_cast<int64_t>(out.size()) == self.size(dim), InvalidArgument, ,
             "%s: dim %" PRId64 " of shape %s does not give %zu out tensors", kOp, dim,
             ShapeText(self).c_str(), out.size());
  Layout piece(self);
  const int64_t step = piece.strides[dim];
  piece.erase(dim);
  for (size_t i = 0; i < out.size(); ++i) {
    Tensor target = out[i];
    if (!copy_view(ctx, kOp, self, piece, target)) return;
    piece.offset += step;
  }
}

Tensor& repeat_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef repeats,
                   Tensor& out) {
  constexpr const char* kOp = "repeat.out";
  const int64_t rank = static_cast<int64_t>(repeats.size());
  const int64_t lead = rank - self.dim();
  int64_t extents[kTensorDimensionLimit] = {};
  bool valid = lead >= 0 && rank <= kMaxDims;
  for (int64_t d = 0; valid && d < rank; ++d) {
    valid = repeats[d] >= 0 &&
            !__builtin_mul_overflow(repeats[d], d < lead ? 1 : self.size(d - lead), &extents[d]);
  }
  ET_REQUIRE(ctx, valid, InvalidArgument, out, "%s: shape %s cannot be repeated %s times", kOp,
             ShapeText(self).c_str(), ShapeText(repeats).c_str());
  Shape shape;
  if (!shape_of(ctx, kOp, {extents, repeats.size()}, shape)) return out;
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: out has dtype %s; the input's dtype %s was expected", kOp,
             toString(out.scalar_type()), toString(self.scalar_type()));
  if (!resize_out(ctx, kOp, out, shape)) return out;
  const Layout from(self), to(out);
  StridedLoop loop;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent = d < lead ? 1 : from.shape[d - lead];
    loop.add(repeats[d], 0, to.strides[d] * extent);
    if (d >= lead) loop.add(extent, from.strides[d - lead], to.strides[d]);
  }
  loop.copy(self.const_data_ptr(), self.scalar_type(), out.mutable_data_ptr(), out.scalar_type());
  return out;
}

namespace {

// Each rolled dim cuts the tensor into two parts that are exchanged. `dim` counts the dims that are
// still to be cut.
void roll_parts(const Tensor& self, Tensor& out, Layout from, Layout to, const int64_t* shifts,
                int64_t dim) {
  for (; dim < self.dim() && shifts[dim] == 0; ++dim) {
  }
  if (dim == self.dim()) {
    copy_layout(self.const_data_ptr(), self.scalar_type(), from, out.mutable_data_ptr(),
                out.scalar_type(), to);
    return;
  }
  const int64_t extent = self.size(dim), shift = shifts[dim];
  const auto part = [&](int64_t src, int64_t dst, int64_t length) {
    Layout a = from, b = to;
    a.shape.set(dim, length);
    b.shape.set(dim, length);
    a.offset += src * a.strides[dim];
    b.offset += dst * b.strides[dim];
    roll_parts(self, out, a, b, shifts, dim + 1);
  };
  part(0, shift, extent - shift);
  part(extent - shift, 0, shift);
}

int64_t modulo(int64_t a, int64_t n) {
  return n == 0 ? 0 : (a % n + n) % n;
}

}  // namespace

Tensor& roll_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef shifts,
                 IntArrayRef dims, Tensor& out) {
  constexpr const char* kOp = "roll.out";
  ET_REQUIRE(
      ctx, (dims.empty() && shifts.size() == 1) || (!dims.empty() && dims.size() == shifts.size()),
      InvalidArgument, out, "%s: shifts %s and dims %s do not go together", kOp,
      ShapeText(shifts).c_str(), ShapeText(dims).c_str());
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: out has dtype %s; the input's dtype %s was expected", kOp,
             toString(out.scalar_type()), toString(self.scalar_type()));
  if (self.numel() == 0) {  // whatever the dims are, as in eager
    (void)resize_out(ctx, kOp, out, self.sizes());
    return out;
  }
  int64_t by_dim[kTensorDimensionLimit] = {};
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = dims[i];
    if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
    if (self.dim() == 0) continue;
    by_dim[dim] = modulo(by_dim[dim] + modulo(shifts[i], self.size(dim)), self.size(dim));
  }
  if (!resize_out(ctx, kOp, out, self.sizes())) return out;
  const Layout from(self), to(out);
  if (!dims.empty()) {
    roll_parts(self, out, from, to, by_dim, 0);
    return out;
  }
  const int64_t n = self.numel(), shift = modulo(shifts[0], n);
  const size_t size = static_cast<size_t>(self.element_size());
  copy_in_order(self.const_data_ptr(), from, 0, out.mutable_data_ptr(), to, shift, n - shift, size);
  copy_in_order(self.const_data_ptr(), from, n - shift, out.mutable_data_ptr(), to, 0, shift, size);
  return out;
}

namespace {

// out = self with `src` written over the part that `narrow` makes of out's layout.
template <class F>
Tensor& scatter_part(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                     const Tensor& src, Tensor& out, F&& narrow) {
  ET_REQUIRE(ctx, convertible(src.scalar_type(), out.scalar_type()), InvalidArgument, out,
             "%s: cannot convert dtype %s to %s", op, toString(src.scalar_type()),
             toString(out.scalar_type()));
  Layout part(self);  // checks come before out is written
  if (!narrow(part)) return out;
  ET_REQUIRE(ctx, part.shape.equals(src.sizes()), InvalidArgument, out,
             "%s: src has shape %s; the part it replaces has shape %s", op, ShapeText(src).c_str(),
             ShapeText(part.shape.ref()).c_str());
  if (self.const_data_ptr() != out.const_data_ptr() || !same_layout(self, out)) {
    if (!copy_view(ctx, op, self, Layout(self), out)) return out;
  }
  part = Layout(out);
  if (narrow(part)) copy_into(src, out, part);
  return out;
}

}  // namespace

Tensor& select_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                           int64_t dim, int64_t index, Tensor& out) {
  constexpr const char* kOp = "select_scatter.out";
  return scatter_part(ctx, kOp, self, src, out,
                      [&](Layout& part) { return select_in(ctx, kOp, dim, index, part); });
}

Tensor& slice_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                          int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                          int64_t step, Tensor& out) {
  constexpr const char* kOp = "slice_scatter.out";
  return scatter_part(ctx, kOp, self, src, out, [&](Layout& part) {
    return slice_in(ctx, kOp, dim, start, end, step, part);
  });
}

namespace {
constexpr Kernel kCatOps[] = {
    ET_OP("aten::cat.out", cat_out),
    ET_OP("aten::repeat.out", repeat_out),
    ET_OP("aten::roll.out", roll_out),
    ET_OP("aten::select_scatter.out", select_scatter_out),
    ET_OP("aten::slice_scatter.out", slice_scatter_out),
    ET_OP("aten::split_copy.Tensor_out", split_copy_Tensor_out, select),
    ET_OP("aten::split_with_sizes_copy.out", split_with_sizes_copy_out, select),
    ET_OP("aten::stack.out", stack_out),
    ET_OP("aten::unbind_copy.int_out", unbind_copy_int_out, select),
};
}  // namespace

Span<const Kernel> cat_ops() {
  return kCatOps;
}

}  // namespace torch::executor::native
