#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/along_dim.h>
#include <executorch/kernels/portable/internal/cast.h>
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

Tensor& gather_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, const Tensor& index,
                   bool sparse_grad, Tensor& out) {
  constexpr const char* kOp = "gather.out";
  (void)sparse_grad;
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  if (!require_same_dtype(ctx, kOp, self, out, "out")) return out;
  if (index.numel() > 0 && !require_index_dtype(ctx, kOp, index)) return out;
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
};
}  // namespace

Span<const Kernel> gather_ops() {
  return kGatherOps;
}

}  // namespace torch::executor::native
