#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Operators that visit a tensor's elements in row-major order and select some of them: those that a
// mask marks, or those that are not zero.
namespace torch::executor::native {

using namespace internal;

namespace {

// Calls f(truth, n, offsets, steps) for runs of positions of the loop, in row-major order: which of
// the n elements of `t` there, which is operand `operand` of the loop, are not zero, the offset of
// the first element of each operand, and from one to the next.
template <class F>
void for_each_chunk(const Loop& loop, int operand, const Tensor& t, F&& f) {
  const char* data = static_cast<const char*>(t.const_data_ptr());
  const int64_t size = static_cast<int64_t>(t.element_size());
  int64_t step[kMaxOperands];
  for (int k = 0; k < loop.n_operands; ++k) step[k] = loop.inner_stride(k);
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    constexpr int64_t kChunk = 256;
    bool truth[kChunk];
    int64_t at[kMaxOperands];
    std::copy_n(offsets, loop.n_operands, at);
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = std::min(kChunk, n - i);
      load(data + at[operand] * size, t.scalar_type(), step[operand], m, truth);
      f(truth, m, at, step);
      for (int k = 0; k < loop.n_operands; ++k) at[k] += m * step[k];
    }
  });
}

// Calls f(truth, offsets) for each position.
template <class F>
void for_each_truth(const Loop& loop, int operand, const Tensor& t, F&& f) {
  for_each_chunk(loop, operand, t,
                 [&](const bool* truth, int64_t n, const int64_t* offsets, const int64_t* steps) {
                   int64_t at[kMaxOperands];
                   std::copy_n(offsets, loop.n_operands, at);
                   for (int64_t j = 0; j < n; ++j) {
                     f(truth[j], at);
                     for (int k = 0; k < loop.n_operands; ++k) at[k] += steps[k];
                   }
                 });
}

int64_t count_true(const Loop& loop, int operand, const Tensor& t) {
  int64_t n = 0;
  for_each_chunk(loop, operand, t,
                 [&](const bool* truth, int64_t m, const int64_t*, const int64_t*) {
                   for (int64_t j = 0; j < m; ++j) n += truth[j];
                 });
  return n;
}

bool require_mask(KernelRuntimeContext& ctx, const char* op, const Tensor& mask) {
  ET_REQUIRE(ctx, mask.scalar_type() == ScalarType::Bool, InvalidArgument, false,
             "%s: the mask has dtype %s; Bool was expected", op, toString(mask.scalar_type()));
  return true;
}

bool require_same_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                        const Tensor& other) {
  ET_REQUIRE(ctx, self.scalar_type() == other.scalar_type(), InvalidArgument, false,
             "%s: dtypes %s and %s differ", op, toString(self.scalar_type()),
             toString(other.scalar_type()));
  return true;
}

}  // namespace

Tensor& nonzero_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "nonzero.out";
  ET_REQUIRE(ctx, out.scalar_type() == ScalarType::Long && is_real(self.scalar_type()),
             InvalidArgument, out, "%s: dtypes %s and, for out, Long were expected; out has %s",
             kOp, toString(self.scalar_type()), toString(out.scalar_type()));
  Loop rows(self.sizes());
  rows.add(Layout(self).strides);
  Loop loop = rows;
  loop.collapse();
  // The tensor is read twice, to count and to list its nonzero elements, so writing `out` must not
  // change it.
  if (!require_apart(ctx, kOp, self, out) ||
      !resize_out(ctx, kOp, out, Shape{count_true(loop, 0, self), self.dim()})) {
    return out;
  }
  const Layout target(out);
  int64_t position[kTensorDimensionLimit] = {};
  int64_t* row = out.mutable_data_ptr<int64_t>();
  const int64_t last = self.dim() - 1, row_step = target.strides[0], step = target.strides[1];
  const auto list = [&](const bool* truth, int64_t n, const int64_t*, const int64_t*) {
    for (int64_t j = 0; j < n; ++j) {
      if (!truth[j]) continue;
      for (int64_t d = 0; d < last; ++d) row[d * step] = position[d];
      if (last >= 0) row[last * step] = position[last] + j;
      row += row_step;
    }
    if (last < 0) return;
    position[last] += n;
    for (int64_t d = last; d > 0 && position[d] == self.size(d); --d) {
      position[d] = 0;
      ++position[d - 1];
    }
  };
  for_each_chunk(rows, 0, self, list);
  return out;
}

Tensor& masked_select_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mask,
                          Tensor& out) {
  constexpr const char* kOp = "masked_select.out";
  if (!require_mask(ctx, kOp, mask) || !require_same_dtype(ctx, kOp, self, out)) return out;
  Shape common(self);
  if (!broadcast_with(ctx, kOp, mask, common)) return out;
  Loop loop(common);
  loop.add(self).add(mask);
  loop.collapse();
  if (!require_affordable(ctx, kOp, Size(loop.numel) * 4, elements_of(self, mask))) return out;
  // A mask that is broadcast selects the same number in every repetition, so the trues of the mask
  // itself are counted. If `out` is too small, that is known before the large loop.
  Loop once(mask.sizes());
  once.add(mask).collapse();
  const int64_t repetitions = loop.numel / std::max<int64_t>(mask.numel(), 1);
  const int64_t n = count_true(once, 0, mask) * repetitions;
  if (!require_apart(ctx, kOp, mask, out) || !resize_out(ctx, kOp, out, Shape{n}) || n == 0) {
    return out;
  }
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* src = static_cast<const T*>(self.const_data_ptr());
    T* dst = static_cast<T*>(out.mutable_data_ptr());
    for_each_truth(loop, 1, mask, [&](bool truth, const int64_t* at) {
      if (truth) *dst++ = src[at[0]];
    });
  });
  return out;
}

Tensor& masked_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mask,
                           const Tensor& source, Tensor& out) {
  constexpr const char* kOp = "masked_scatter.out";
  if (!require_mask(ctx, kOp, mask) || !require_same_dtype(ctx, kOp, self, source) ||
      !require_same_dtype(ctx, kOp, self, out)) {
    return out;
  }
  Shape common(self);
  if (!broadcast_with(ctx, kOp, mask, common) || !resize_out(ctx, kOp, out, common) ||
      !require_apart(ctx, kOp, mask, out)) {
    return out;
  }
  Loop loop(common);
  loop.add(out).add(self).add(mask);
  loop.collapse();
  const int64_t n = count_true(loop, 2, mask);
  ET_REQUIRE(ctx, n <= source.numel(), InvalidArgument, out,
             "%s: the mask selects %" PRId64 " elements; source of shape %s has fewer", kOp, n,
             ShapeText(source).c_str());
  Loop sources(source.sizes());
  sources.add(source);
  sources.collapse();
  int64_t next = 0;
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* src = static_cast<const T*>(source.const_data_ptr());
    const T* kept = static_cast<const T*>(self.const_data_ptr());
    T* dst = static_cast<T*>(out.mutable_data_ptr());
    for_each_truth(loop, 2, mask, [&](bool truth, const int64_t* at) {
      dst[at[0]] = truth ? src[sources.offset(0, next++)] : kept[at[1]];
    });
  });
  return out;
}

namespace {
constexpr Kernel kMaskedOps[] = {
    ET_OP("aten::masked_scatter.out", masked_scatter_out),
    ET_OP("aten::masked_select.out", masked_select_out, select),
    ET_OP("aten::nonzero.out", nonzero_out),
};
}  // namespace

Span<const Kernel> masked_ops() {
  return kMaskedOps;
}

}  // namespace torch::executor::native
