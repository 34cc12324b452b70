/// Calling kernels by the names of their operators: <executorch/kernels/portable/Functions.h>,
/// which the build writes from the operator tables, declares for aten::add.out and
/// aten::add.Scalar_out
///
///   torch::executor::aten::add_outf(ctx, self, other, alpha, out)
///
/// and alike for other namespaces of operators; an operator that changes `self`, such as
/// aten::copy_, keeps its name. Parameters, results and errors are those of the kernels
/// (functions.h).
#pragma once

namespace torch::executor::native {

template <auto kKernel>
struct Overload;

template <class Result, class... Parameters, Result (*kKernel)(Parameters...)>
struct Overload<kKernel> {
  Result operator()(Parameters... parameters) const {
    return kKernel(static_cast<Parameters&&>(parameters)...);
  }
};

/// A single name for all kernels of an operator. The arguments select the kernel, as with
/// overloaded functions.
template <auto... kKernels>
struct Overloads : Overload<kKernels>... {
  using Overload<kKernels>::operator()...;
};

}  // namespace torch::executor::native
