/// Comparisons, and tests of one operand; the result is Bool.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

namespace torch::executor::native {

using namespace internal;

#define ET_COMPARISON(name, operation)                                                          \
  Tensor& name##_tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, \
                            Tensor& out) {                                                      \
    return elementwise(                                                                         \
        ctx, {.op = #name ".Tensor_out", .to_bool = true}, out,                                 \
        [](auto a, auto b) { return a operation b; }, self, other);                             \
  }                                                                                             \
  Tensor& name##_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other, \
                            Tensor& out) {                                                      \
    return elementwise(                                                                         \
        ctx, {.op = #name ".Scalar_out", .to_bool = true}, out,                                 \
        [](auto a, auto b) { return a operation b; }, self, other);                             \
  }
ET_COMPARISON(eq, ==)
ET_COMPARISON(ne, !=)
ET_COMPARISON(lt, <)
ET_COMPARISON(le, <=)
ET_COMPARISON(gt, >)
ET_COMPARISON(ge, >=)
#undef ET_COMPARISON

Tensor& isnan_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return elementwise(
      ctx, {.op = "isnan.out", .to_bool = true, .exact_out = true}, out,
      [](auto x) { return is_nan(x); }, self);
}

Tensor& isinf_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return elementwise(
      ctx, {.op = "isinf.out", .to_bool = true, .exact_out = true}, out,
      [](auto x) {
        if constexpr (kIsInt<decltype(x)>) {
          return false;
        } else {
          return std::isinf(x);
        }
      },
      self);
}

namespace {

constexpr Kernel kCompareOps[] = {
    ET_OP("aten::eq.Tensor_out", eq_tensor_out), ET_OP("aten::eq.Scalar_out", eq_scalar_out),
    ET_OP("aten::ne.Tensor_out", ne_tensor_out), ET_OP("aten::ne.Scalar_out", ne_scalar_out),
    ET_OP("aten::lt.Tensor_out", lt_tensor_out), ET_OP("aten::lt.Scalar_out", lt_scalar_out),
    ET_OP("aten::le.Tensor_out", le_tensor_out), ET_OP("aten::le.Scalar_out", le_scalar_out),
    ET_OP("aten::gt.Tensor_out", gt_tensor_out), ET_OP("aten::gt.Scalar_out", gt_scalar_out),
    ET_OP("aten::ge.Tensor_out", ge_tensor_out), ET_OP("aten::ge.Scalar_out", ge_scalar_out),
    ET_OP("aten::isnan.out", isnan_out),         ET_OP("aten::isinf.out", isinf_out),
};

}  // namespace

Span<const Kernel> compare_ops() {
  return kCompareOps;
}

}  // namespace torch::executor::native
