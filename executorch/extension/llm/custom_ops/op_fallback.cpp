#include <executorch/extension/llm/custom_ops/op_fallback.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <cstring>

namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

Tensor& fallback_out(KernelRuntimeContext& ctx, const Tensor& in, Tensor& out) {
  constexpr const char* kOp = "fallback.out";
  ET_REQUIRE(ctx, out.scalar_type() == in.scalar_type(), InvalidArgument, out,
             "%s: an out of %s was expected; found %s", kOp,
             executorch::runtime::toString(in.scalar_type()),
             executorch::runtime::toString(out.scalar_type()));
  if (!resize_out(ctx, kOp, out, in.sizes())) return out;
  ET_REQUIRE(ctx, same_layout(in, out), InvalidArgument, out,
             "%s: an out of the same dim order was expected", kOp);
  if (in.numel() > 0) std::memmove(out.mutable_data_ptr(), in.const_data_ptr(), in.nbytes());
  return out;
}

namespace {

constexpr Kernel kFallbackOps[] = {
    ET_OP("llama::fallback.out", fallback_out),
};

}  // namespace

Span<const Kernel> fallback_ops() {
  return kFallbackOps;
}

}  // namespace torch::executor::native
