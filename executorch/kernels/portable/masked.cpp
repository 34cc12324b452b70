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

// Calls f(truth, offsets) for every position of the loop, in row-major order: whether the element
// of `t` there, which is operand `operand` of the loop, is not zero, and the offsets of the
// elements of all operands.
template <class F>
void for_each_truth(const Loop& loop, int operand, const Tensor& t, F&& f) {
  const char* data = static_cast<const char*>(t.const_data_ptr());
  const int64_t size = static_cast<int64_t>(t.element_size());
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    constexpr int64_t kChunk = 256;
    bool truth[kChunk];
    const int inner = loop.ndim - 1;
    int64_t at[kMaxOperands], step[kMaxOperands];
    for (int k = 0; k < loop.n_operands; ++k) {
      at[k] = offsets[k];
      step[k] = inner < 0 ? 0 : loop.strides[k][inner];
    }
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = std::min(kChunk, n - i);
      load(data + at[operand] * size, t.scalar_type(), step[operand], m, truth);
      for (int64_t j = 0; j < m; ++j) {
        f(truth[j], at);
        for (int k = 0; k < loop.n_operands; ++k) at[k] += step[k];
      }
    }
  });
}

int64_t count_true(const Loop& loop, int operand, const Tensor& t) {
  int64_t n = 0;
  for_each_truth(loop, operand, t, [&](bool truth, const int64_t*) { n += truth; });
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
  Loop loop(self.sizes());
  loop.add(Layout(self).strides);
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
  for_each_truth(loop, 0, self, [&](bool truth, const int64_t*) {
    if (truth) {
      for (int64_t d = 0; d < self.dim(); ++d) row[d * target.strides[1]] = position[d];
      row += target.strides[0];
    }
    for (int64_t d = self.dim() - 1; d >= 0 && ++position[d] == self.size(d); --d) position[d] = 0;
  });
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
