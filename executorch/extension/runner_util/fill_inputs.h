/// How releases 0.1 to 0.3 prepared inputs, there in <executorch/util/util.h>. New code uses
/// prepare_input_tensors, which reports errors and frees by itself.
#pragma once

#include <executorch/extension/runner_util/inputs.h>
#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/platform/assert.h>

#include <cstdlib>
#include <new>

namespace torch::executor::util {

/// Stops when the type of the tensor has no numbers.
inline void FillOnes(::executorch::aten::Tensor tensor) {
  ET_CHECK_MSG(
      ::executorch::extension::internal::fill_ones(tensor) == ::executorch::runtime::Error::Ok,
      "FillOnes failed");
}

/// Sets all inputs to ones; hand the result to FreeInputs after the run. Stops on failure.
inline ::executorch::runtime::ArrayRef<void*> PrepareInputTensors(
    ::executorch::runtime::Method& method) {
  auto owner = ::executorch::extension::prepare_input_tensors(method);
  ET_CHECK_MSG(owner.ok(), "PrepareInputTensors failed");
  void* const kept = new BufferCleanup(std::move(owner.get()));
  return {new void*(kept), 1};
}

inline void FreeInputs(::executorch::runtime::ArrayRef<void*> inputs) {
  for (void* owner : inputs) delete static_cast<BufferCleanup*>(owner);
  delete inputs.data();
}

}  // namespace torch::executor::util
