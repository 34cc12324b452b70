// An operator whose kernel is wrong where kernels often are: in the elements behind the last whole
// vector. The parity gate has to find it.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;

Tensor& twice_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& out) {
  ET_KERNEL_CHECK(
      ctx, executorch::runtime::resize_tensor(out, x.sizes()) == executorch::runtime::Error::Ok,
      InvalidArgument, out);
  const float* const from = x.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  const ssize_t n = x.numel();
  const ssize_t whole = n - n % 8;
  for (ssize_t i = 0; i < n; ++i) to[i] = i < whole ? 2 * from[i] : 2 * from[i] + 1e-3f;
  return out;
}

EXECUTORCH_LIBRARY(parity_test, "twice.out", twice_out);
