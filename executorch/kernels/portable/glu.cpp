#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace torch::executor::native {

using namespace internal;

namespace {

// out = a * sigmoid(b), computed in C, where a and b are the halves of `self`: b lies `half`
// elements behind a. Operands 0 and 1 of the loop are out and a.
template <class C>
void gate(const Loop& loop, const Tensor& self, int64_t half, Tensor& out) {
  constexpr int64_t kChunk = 256;
  C a[kChunk], b[kChunk];
  const ScalarType in_type = self.scalar_type(), out_type = out.scalar_type();
  const int64_t in_size = static_cast<int64_t>(self.element_size());
  const int64_t out_size = static_cast<int64_t>(out.element_size());
  const int inner = loop.ndim - 1;
  const int64_t out_step = inner < 0 ? 0 : loop.strides[0][inner];
  const int64_t in_step = inner < 0 ? 0 : loop.strides[1][inner];
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = std::min(kChunk, n - i);
      const char* src =
          static_cast<const char*>(self.const_data_ptr()) + (offsets[1] + i * in_step) * in_size;
      load(src, in_type, in_step, m, a);
      load(src + half * in_size, in_type, in_step, m, b);
      for (int64_t j = 0; j < m; ++j) a[j] *= C(1) / (C(1) + std::exp(-b[j]));
      char* dst =
          static_cast<char*>(out.mutable_data_ptr()) + (offsets[0] + i * out_step) * out_size;
      store(a, m, dst, out_type, out_step);
    }
  });
}

}  // namespace

Tensor& glu_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& out) {
  constexpr const char* kOp = "glu.out";
  ET_REQUIRE(ctx, self.dim() > 0, InvalidArgument, out, "%s: a 0-d tensor has no halves", kOp);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  ET_REQUIRE(ctx, self.size(dim) % 2 == 0, InvalidArgument, out,
             "%s: dim %" PRId64 " of shape %s does not have two halves", kOp, dim,
             ShapeText(self).c_str());
  ET_REQUIRE(ctx, is_float(self.scalar_type()) && is_float(out.scalar_type()), InvalidArgument, out,
             "%s: floating dtypes were expected; found %s and, for out, %s", kOp,
             toString(self.scalar_type()), toString(out.scalar_type()));
  Layout half(self);
  half.shape.set(dim, half.shape[dim] / 2);
  if (!resize_out(ctx, kOp, out, half.shape)) return out;
  const int64_t distance = half.shape[dim] * half.strides[dim];
  Loop loop(half.shape);
  loop.add(Layout(out).strides).add(half.strides);
  loop.order_by(0);
  loop.collapse();
  with_float_compute(compute_of(self.scalar_type()),
                     [&](auto tag) { gate<decltype(tag)>(loop, self, distance, out); });
  return out;
}

namespace {
constexpr Kernel kGluOps[] = {ET_OP("aten::glu.out", glu_out)};
}  // namespace

Span<const Kernel> glu_ops() {
  return kGluOps;
}

}  // namespace torch::executor::native
