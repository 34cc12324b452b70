/// Kernels for hostile programs, and how long something takes.
#pragma once

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

namespace executorch::runtime::testing {

/// Calls of test::copy, and the steps that each tells of.
inline size_t n_copies = 0;
inline uint64_t steps_of_copy = 0;

/// test::copy (a, out): out = a, with a's shape.
inline void copy(KernelRuntimeContext& context, Span<EValue*> args) {
  ++n_copies;
  context.add_steps(steps_of_copy);
  const aten::Tensor& a = args[0]->toTensor();
  const aten::Tensor& out = args[1]->toTensor();
  if (resize_tensor(out, a.sizes()) != Error::Ok) return context.fail(Error::InvalidArgument);
  if (a.nbytes() > 0) std::memmove(out.mutable_data_ptr(), a.const_data_ptr(), a.nbytes());
}

/// et_view (a, size, out): out borrows a's bytes and takes its shape.
inline void view(KernelRuntimeContext& context, Span<EValue*> args) {
  if (args.size() != 3) return context.fail(Error::InvalidProgram);
  const auto& base = *args[0]->toTensor().unsafeGetTensorImpl();
  const aten::Tensor& out = args[2]->toTensor();
  out.unsafeGetTensorImpl()->borrow_data(base.mutable_data(), base.capacity(), base.is_read_only());
  if (resize_tensor(out, base.sizes()) != Error::Ok) context.fail(Error::InvalidArgument);
}

/// test::overwrite: a kernel of a user's that puts a number where a tensor was.
inline void overwrite(KernelRuntimeContext&, Span<EValue*> args) {
  *args[0] = EValue(int64_t{1});
}

inline const std::vector<Kernel> kKernels = {Kernel("test::copy", copy),
                                             Kernel("test::overwrite", overwrite),
                                             Kernel("executorch_prim::et_view.default", view)};

inline LoadedMethod load(ProgramBuilder& builder) {
  return LoadedMethod(builder.build(), "forward", nullptr, nullptr, kKernels);
}

inline double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace executorch::runtime::testing
