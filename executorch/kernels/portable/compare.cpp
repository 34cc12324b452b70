/// Comparisons, and tests of one operand; the result is Bool.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <functional>

namespace torch::executor::native {

using namespace internal;

namespace {

/// self compared with other, a tensor or a number, by one of the functions of <functional>.
template <class F, class B>
Tensor& compare(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const B& other,
                Tensor& out) {
  return elementwise<Kinds::AllAndNarrow>(ctx, {.op = op, .to_bool = true}, out, F(), self, other);
}

}  // namespace

#define ET_COMPARISON(name, function)                                                           \
  Tensor& name##_tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, \
                            Tensor& out) {                                                      \
    return compare<function>(ctx, #name ".Tensor_out", self, other, out);                       \
  }                                                                                             \
  Tensor& name##_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other, \
                            Tensor& out) {                                                      \
    return compare<function>(ctx, #name ".Scalar_out", self, other, out);                       \
  }
ET_COMPARISON(eq, std::equal_to<>)
ET_COMPARISON(ne, std::not_equal_to<>)
ET_COMPARISON(lt, std::less<>)
ET_COMPARISON(le, std::less_equal<>)
ET_COMPARISON(gt, std::greater<>)
ET_COMPARISON(ge, std::greater_equal<>)
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
