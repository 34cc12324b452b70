#include <executorch/extension/training/module/training_module.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::extension::training {

using internal::NamedTensors;
using runtime::EValue;
using runtime::Result;

namespace {

template <class F>
auto guarded(const F& f) {
  return runtime::catch_allocation_failure("TrainingModule", f);
}

}  // namespace

auto TrainingModule::know(const std::string& method_name) -> Result<Known*> {
  auto known = known_.find(method_name);
  if (known == known_.end()) {
    ET_ASSIGN_OR_RETURN(auto joint, internal::JointOutputs::of(*this, method_name));
    known = known_.emplace(method_name, Known{std::move(joint)}).first;
  }
  return &known->second;
}

Result<std::vector<EValue>> TrainingModule::execute_forward_backward(
    const std::string& method_name, const std::vector<EValue>& input) {
  return guarded([&]() -> Result<std::vector<EValue>> {
    ET_ASSIGN_OR_RETURN(Known* const known, know(method_name));
    known->has_gradients = false;
    ET_ASSIGN_OR_RETURN(auto outputs, execute(method_name, input));
    known->has_gradients = true;
    outputs.resize(known->joint.first_gradient());
    return outputs;
  });
}

Result<const NamedTensors> TrainingModule::named_parameters(const std::string& method_name) {
  return guarded([&]() -> Result<const NamedTensors> {
    ET_ASSIGN_OR_RETURN(const Known* const known, know(method_name));
    ET_ASSIGN_OR_RETURN(const auto outputs, get_outputs(method_name));
    ET_ASSIGN_OR_RETURN(auto found, known->joint.parameters(outputs));
    return found;
  });
}

Result<const NamedTensors> TrainingModule::named_gradients(const std::string& method_name) {
  return guarded([&]() -> Result<const NamedTensors> {
    ET_ASSIGN_OR_RETURN(const Known* const known, know(method_name));
    ET_CHECK_OR_RETURN_ERROR(
        known->has_gradients && is_method_loaded(method_name), InvalidArgument,
        "there are no gradients of '%s': execute_forward_backward() was not called, or failed",
        method_name.c_str());
    ET_ASSIGN_OR_RETURN(const auto outputs, get_outputs(method_name));
    ET_ASSIGN_OR_RETURN(auto found, known->joint.gradients(outputs));
    return found;
  });
}

Result<const NamedTensors> TrainingModule::named_attributes(const std::string& method_name) {
  return guarded([&]() -> Result<const NamedTensors> {
    ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
    auto& method = *methods_.at(method_name).method;
    const auto meta = method.method_meta();
    NamedTensors found;
    for (size_t i = 0; i < meta.num_attributes(); ++i) {
      ET_ASSIGN_OR_RETURN(const auto info, meta.attribute_tensor_meta(i));
      ET_ASSIGN_OR_RETURN(const auto tensor, method.get_attribute(info.name()));
      found.emplace(info.name(), tensor);
    }
    return found;
  });
}

}  // namespace executorch::extension::training
