#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>

// Reading and writing along one dim at positions given by an index tensor.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

bool require_same_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                        const Tensor& other, const char* what) {
  ET_REQUIRE(ctx, self.scalar_type() == other.scalar_type(), InvalidArgument, false,
             "%s: %s has dtype %s; that of the input, %s, was expected", op, what,
             toString(other.scalar_type()), toString(self.scalar_type()));
  return true;
}

// Copies `from` (at src + part offset) to `to`, as one memcpy where both are one run.
void copy_part(const Tensor& src, const Layout& from, Tensor& dst, const Layout& to) {
  copy_layout(src.const_data_ptr(), src.scalar_type(), from, dst.mutable_data_ptr(),
              dst.scalar_type(), to);
}

}  // namespace

Tensor& embedding_out(KernelRuntimeContext& ctx, const Tensor& weight, const Tensor& indices,
                      int64_t padding_idx, bool scale_grad_by_freq, bool sparse, Tensor& out) {
  constexpr const char* kOp = "embedding.out";
  (void)padding_idx, (void)scale_grad_by_freq, (void)sparse;  // matter to gradients only
  ET_REQUIRE(ctx, weight.dim() == 2 && indices.dim() < kMaxDims, InvalidArgument, out,
             "%s: weight [n, d] was expected; its shape is %s", kOp, ShapeText(weight).c_str());
  if (!require_index_dtype(ctx, kOp, indices)) return out;
  if (!require_same_dtype(ctx, kOp, weight, out, "out")) return out;
  Shape shape(indices);
  shape.push(weight.size(1));
  if (!resize_out(ctx, kOp, out, shape)) return out;
  const Layout table(weight), target(out);
  const int64_t last = out.dim() - 1;
  Layout from, to;
  from.push(weight.size(1), table.strides[1]);
  to.push(weight.size(1), target.strides[last]);
  const bool dense = from.strides[0] == 1 && to.strides[0] == 1;
  const size_t size = static_cast<size_t>(out.element_size());
  const size_t row_bytes = static_cast<size_t>(weight.size(1)) * size;
  const char* src = static_cast<const char*>(weight.const_data_ptr());
  char* dst = static_cast<char*>(out.mutable_data_ptr());
  const IndexValues values(indices);
  Loop loop(indices.sizes());
  loop.add(Layout(indices).strides).add(target.strides);
  int64_t position = 0;
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    const int64_t index_step = loop.ndim > 0 ? loop.strides[0][loop.ndim - 1] : 0;
    const int64_t out_step = loop.ndim > 0 ? loop.strides[1][loop.ndim - 1] : 0;
    for (int64_t i = 0; i < n; ++i, ++position) {
      const int64_t row = values[offsets[0] + i * index_step];
      if (row < 0 || row >= weight.size(0)) [[unlikely]] {
        if (ctx.failure_state() == executorch::runtime::Error::Ok) {
          fail_index(ctx, kOp, row, position, 0, weight.size(0), 0);
        }
        return;
      }
      from.offset = row * table.strides[0];
      to.offset = offsets[1] + i * out_step;
      if (dense) {
        std::memmove(dst + to.offset * static_cast<int64_t>(size),
                     src + from.offset * static_cast<int64_t>(size), row_bytes);
      } else {
        copy_part(weight, from, out, to);
      }
    }
  });
  return out;
}

Tensor& index_select_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                         const Tensor& index, Tensor& out) {
  constexpr const char* kOp = "index_select.out";
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  ET_REQUIRE(ctx, index.dim() <= 1 && (self.dim() > 0 || index.numel() == 1), InvalidArgument, out,
             "%s: a 1-d index was expected (of one element for a 0-d tensor); found shapes %s and "
             "%s",
             kOp, ShapeText(index).c_str(), ShapeText(self).c_str());
  if (!require_index_dtype(ctx, kOp, index)) return out;
  if (!require_same_dtype(ctx, kOp, self, out, "out")) return out;
  Shape shape(self);
  if (self.dim() > 0) shape.sizes[dim] = static_cast<SizesType>(index.numel());
  if (!resize_out(ctx, kOp, out, shape)) return out;
  Layout from = at_least_1d(self), to = at_least_1d(out);
  const int64_t extent = from.shape.sizes[dim];
  const int64_t from_step = from.strides[dim], to_step = to.strides[dim];
  from.erase(dim);
  to.erase(dim);
  const IndexValues values(index);
  const int64_t index_step = at_least_1d(index).strides[0];
  for (int64_t i = 0; i < index.numel(); ++i) {
    const int64_t at = values[i * index_step];
    if (at < 0 || at >= extent) {
      fail_index(ctx, kOp, at, i, 0, extent, dim);
      return out;
    }
    from.offset = at * from_step;
    to.offset = i * to_step;
    copy_part(self, from, out, to);
  }
  return out;
}

namespace {

// `data` along `dim` at the elements of `index`; `other` runs beside the index.
struct AlongDim {
  Loop loop;
  int64_t dim = 0;
  int64_t extent = 0;
  int64_t step = 0;

  AlongDim(const Tensor& index, int64_t along, const Layout& data, const Layout& other)
      : loop(at_least_1d(index).shape),
        dim(along),
        extent(data.shape.sizes[along]),
        step(data.strides[along]) {
    Layout fixed = data;
    fixed.strides[dim] = 0;
    loop.add(at_least_1d(index).strides).add(fixed.strides).add(other.strides);
  }

  // f(offset into data, offset into other) for every element of the index; false at a bad one.
  template <class F>
  bool visit(KernelRuntimeContext& ctx, const char* op, const Tensor& index, F&& f) const {
    const IndexValues values(index);
    const int inner = loop.ndim - 1;
    const int64_t step0 = loop.strides[0][inner], step1 = loop.strides[1][inner];
    const int64_t step2 = loop.strides[2][inner];
    bool valid = true;
    int64_t position = 0;
    for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
      for (int64_t i = 0; valid && i < n; ++i, ++position) {
        const int64_t at = values[offsets[0] + i * step0];
        if (at < 0 || at >= extent) [[unlikely]] {
          fail_index(ctx, op, at, position, 0, extent, dim);
          valid = false;
          return;
        }
        f(offsets[1] + i * step1 + at * step, offsets[2] + i * step2);
      }
    });
    return valid;
  }
};

// The index has the rank of `self` and is nowhere larger, except along `dim` where `any_along`.
bool require_index_shape(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                         const char* what, const Tensor& index, int64_t dim, bool any_along) {
  const Shape a = at_least_1d(self).shape, b = at_least_1d(index).shape;
  bool fits = a.ndim == b.ndim;
  for (int64_t d = 0; fits && d < a.ndim; ++d) {
    fits = (any_along && d == dim) || b.sizes[d] <= a.sizes[d];
  }
  ET_REQUIRE(ctx, fits, InvalidArgument, false,
             "%s: index of shape %s does not fit %s of shape %s along dim %" PRId64, op,
             ShapeText(index).c_str(), what, ShapeText(self).c_str(), dim);
  return true;
}

}  // namespace

Tensor& gather_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, const Tensor& index,
                   bool sparse_grad, Tensor& out) {
  constexpr const char* kOp = "gather.out";
  (void)sparse_grad;
  if (!normalize_dim(ctx, kOp, dim, self.dim()) || !require_index_dtype(ctx, kOp, index))
    return out;
  if (!require_same_dtype(ctx, kOp, self, out, "out")) return out;
  if (index.numel() > 0 && !require_index_shape(ctx, kOp, self, "the input", index, dim, true)) {
    return out;
  }
  if (!resize_out(ctx, kOp, out, index.sizes()) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(self), at_least_1d(out));
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* src = static_cast<const T*>(self.const_data_ptr());
    T* dst = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index, [=](int64_t from, int64_t to) { dst[to] = src[from]; });
  });
  return out;
}

namespace {

// Checks a scatter and makes out a copy of self.
bool begin_scatter(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t& dim,
                   const Tensor& index, const Tensor* src, Tensor& out) {
  if (!normalize_dim(ctx, op, dim, self.dim()) || !require_index_dtype(ctx, op, index))
    return false;
  if (index.numel() > 0 && !require_index_shape(ctx, op, self, "the input", index, dim, true)) {
    return false;
  }
  if (src != nullptr) {
    if (!require_same_dtype(ctx, op, self, *src, "src")) return false;
    if (index.numel() > 0 && !require_index_shape(ctx, op, *src, "src", index, dim, false)) {
      return false;
    }
  }
  if (self.const_data_ptr() == out.const_data_ptr() && same_layout(self, out)) return true;
  return copy_view(ctx, op, self, Layout(self), out);
}

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a + b);
  }
}

}  // namespace

Tensor& scatter_src_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                        const Tensor& index, const Tensor& src, Tensor& out) {
  constexpr const char* kOp = "scatter.src_out";
  if (!begin_scatter(ctx, kOp, self, dim, index, &src, out) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(out), at_least_1d(src));
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(src.const_data_ptr());
    T* to = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index, [=](int64_t at, int64_t source) { to[at] = from[source]; });
  });
  return out;
}

Tensor& scatter_value_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                          const Tensor& index, const Scalar& value, Tensor& out) {
  constexpr const char* kOp = "scatter.value_out";
  if (!begin_scatter(ctx, kOp, self, dim, index, nullptr, out) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(out), Layout());
  const bool known = with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    T written;
    if (value.isFloatingPoint()) {
      store_one(scalar_as<double>(value), &written, out.scalar_type());
    } else {
      store_one(scalar_as<int64_t>(value), &written, out.scalar_type());
    }
    T* to = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index, [=](int64_t at, int64_t) { to[at] = written; });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(out.scalar_type()));
  return out;
}

Tensor& scatter_add_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                        const Tensor& index, const Tensor& src, Tensor& out) {
  constexpr const char* kOp = "scatter_add.out";
  if (!begin_scatter(ctx, kOp, self, dim, index, &src, out) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(out), at_least_1d(src));
  const bool known = with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(src.const_data_ptr());
    T* to = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index,
                [=](int64_t at, int64_t source) { to[at] = sum<T>(to[at], from[source]); });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(out.scalar_type()));
  return out;
}

Tensor& repeat_interleave_Tensor_out(KernelRuntimeContext& ctx, const Tensor& repeats,
                                     std::optional<int64_t> output_size, Tensor& out) {
  constexpr const char* kOp = "repeat_interleave.Tensor_out";
  if (!require_index_dtype(ctx, kOp, repeats)) return out;
  if (!require_same_dtype(ctx, kOp, repeats, out, "out")) return out;
  ET_REQUIRE(ctx, repeats.dim() == 1, InvalidArgument, out,
             "%s: repeats must have rank 1; its shape is %s", kOp, ShapeText(repeats).c_str());
  const IndexValues values(repeats);
  int64_t total = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    ET_REQUIRE(ctx, values[i] >= 0 && values[i] <= INT32_MAX - total, InvalidArgument, out,
               "%s: %" PRId64 " at position %" PRId64 " is not a number of repeats", kOp, values[i],
               i);
    total += values[i];
  }
  ET_REQUIRE(ctx, output_size.value_or(total) == total, InvalidArgument, out,
             "%s: output_size is %" PRId64 "; the repeats add up to %" PRId64, kOp, *output_size,
             total);
  Shape shape;
  shape.push(total);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    T* at = static_cast<T*>(out.mutable_data_ptr());
    for (int64_t i = 0; i < repeats.numel(); ++i)
      at = std::fill_n(at, values[i], static_cast<T>(i));
  });
  return out;
}

namespace {
constexpr Kernel kGatherOps[] = {
    ET_OP("aten::embedding.out", embedding_out),
    ET_OP("aten::gather.out", gather_out),
    ET_OP("aten::index_select.out", index_select_out),
    ET_OP("aten::repeat_interleave.Tensor_out", repeat_interleave_Tensor_out),
    ET_OP("aten::scatter.src_out", scatter_src_out),
    ET_OP("aten::scatter.value_out", scatter_value_out),
    ET_OP("aten::scatter_add.out", scatter_add_out),
};
}  // namespace

Span<const Kernel> gather_ops() {
  return kGatherOps;
}

}  // namespace torch::executor::native
