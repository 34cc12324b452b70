#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/schema/program_generated.h>

#include <cstdint>

namespace executorch::runtime::internal {

/// One method's plan during validation. The functions below are called in the order of their
/// declarations, and each relies on what the earlier ones have checked.
struct PlanScope {
  const executorch_flatbuffer::Program& program;
  const executorch_flatbuffer::ExecutionPlan& plan;
  const char* name;
  /// How many more items of lists may be looked at. A table that many others share would
  /// otherwise let a small file take quadratic time and memory.
  uint64_t& item_budget;

  uint32_t num_values() const { return plan.values()->size(); }
  executorch_flatbuffer::KernelTypes type(uint32_t index) const {
    return plan.values()->Get(index)->val_type();
  }
  const executorch_flatbuffer::Tensor* tensor(uint32_t index) const {
    return plan.values()->Get(index)->val_as_Tensor();
  }
  bool take(uint64_t items) const {
    const bool enough = items <= item_budget;
    item_budget -= enough ? items : 0;
    return enough;
  }
};

/// The value table and the arenas its tensors lie in.
ET_NODISCARD Error validate_values(const PlanScope& scope);
/// One Tensor value: shape, element type and where its bytes are.
ET_NODISCARD Error validate_tensor(const PlanScope& scope, uint32_t index);
/// Inputs, outputs and the tables of operators and delegates.
ET_NODISCARD Error validate_interface(const PlanScope& scope);
/// Chains and their instructions.
ET_NODISCARD Error validate_instructions(const PlanScope& scope);

template <typename T>
uint32_t size_of(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

/// True if the bytes of `tensor` are a constant of the program or of an external file.
inline bool is_constant(const executorch_flatbuffer::Tensor& tensor) {
  if (tensor.allocation_info() != nullptr) return false;
  const auto* extra = tensor.extra_tensor_info();
  return tensor.data_buffer_idx() > 0 ||
         (extra != nullptr &&
          extra->location() == executorch_flatbuffer::TensorDataLocation::EXTERNAL);
}

}  // namespace executorch::runtime::internal
