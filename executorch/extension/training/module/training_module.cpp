#include <executorch/extension/training/module/training_module.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

namespace executorch {
namespace extension {
namespace training {

using internal::JointOutputs;
using internal::NamedTensors;
using runtime::Error;
using runtime::EValue;
using runtime::Result;

namespace {

template <class F>
auto guarded(const F& f) {
  return runtime::catch_allocation_failure("TrainingModule", f);
}

}  // namespace

Result<const JointOutputs*> TrainingModule::joint_outputs(const std::string& method_name) {
  auto known = joint_outputs_.find(method_name);
  if (known == joint_outputs_.end()) {
    ET_ASSIGN_OR_RETURN(auto found, JointOutputs::of(*this, method_name));
    known = joint_outputs_.emplace(method_name, std::move(found)).first;
  }
  return &known->second;
}

Result<std::vector<EValue>> TrainingModule::execute_forward_backward(
    const std::string& method_name, const std::vector<EValue>& input) {
  return guarded([&]() -> Result<std::vector<EValue>> {
    ET_ASSIGN_OR_RETURN(const auto* const joint, joint_outputs(method_name));
    executed_.erase(method_name);
    ET_ASSIGN_OR_RETURN(auto outputs, execute(method_name, input));
    outputs.resize(joint->first_gradient());
    executed_.insert(method_name);
    return outputs;
  });
}

Result<const NamedTensors> TrainingModule::named_parameters(const std::string& method_name) {
  return guarded([&]() -> Result<const NamedTensors> {
    ET_ASSIGN_OR_RETURN(const auto* const joint, joint_outputs(method_name));
    ET_ASSIGN_OR_RETURN(const auto outputs, get_outputs(method_name));
    ET_ASSIGN_OR_RETURN(auto found, joint->parameters(outputs));
    return found;
  });
}

Result<const NamedTensors> TrainingModule::named_gradients(const std::string& method_name) {
  return guarded([&]() -> Result<const NamedTensors> {
    ET_CHECK_OR_RETURN_ERROR(
        executed_.count(method_name) != 0 && is_method_loaded(method_name), InvalidArgument,
        "there are no gradients of '%s': execute_forward_backward() was not called, or failed",
        method_name.c_str());
    ET_ASSIGN_OR_RETURN(const auto* const joint, joint_outputs(method_name));
    ET_ASSIGN_OR_RETURN(const auto outputs, get_outputs(method_name));
    ET_ASSIGN_OR_RETURN(auto found, joint->gradients(outputs));
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

}  // namespace training
}  // namespace extension
}  // namespace executorch
