#include <executorch/extension/training/module/joint_outputs.h>

#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

#include <cinttypes>

namespace executorch::extension::training::internal {

using runtime::EValue;
using runtime::Result;

namespace {

constexpr char kGradients[] = "__et_training_gradients_index_";
constexpr char kParameters[] = "__et_training_parameters_index_";
constexpr char kNames[] = "__et_training_fqn_";

/// What the method `prefix` + `method_name` returns.
Result<std::vector<EValue>> ask(Module& module, const char* prefix,
                                const std::string& method_name) {
  auto answer = module.execute(prefix + method_name);
  ET_CHECK_OK_OR_RETURN_ERROR(answer.error(), "'%s' is no method for training: no answer of %s%s",
                              method_name.c_str(), prefix, method_name.c_str());
  return answer;
}

/// The place that it says, one of 0 ... `last`.
Result<size_t> ask_place(Module& module, const char* prefix, const std::string& method_name,
                         size_t last) {
  ET_ASSIGN_OR_RETURN(const auto answer, ask(module, prefix, method_name));
  ET_CHECK_OR_RETURN_ERROR(answer.size() == 1 && answer[0].isInt(), InvalidProgram,
                           "%s%s returns %zu values%s; expected one integer", prefix,
                           method_name.c_str(), answer.size(),
                           answer.size() == 1 ? " of another type" : "");
  const int64_t place = answer[0].toInt();
  ET_CHECK_OR_RETURN_ERROR(place >= 0 && static_cast<uint64_t>(place) <= last, InvalidProgram,
                           "%s%s is %" PRId64 "; expected 0 to %zu, the outputs of '%s'", prefix,
                           method_name.c_str(), place, last, method_name.c_str());
  return static_cast<size_t>(place);
}

}  // namespace

Result<JointOutputs> JointOutputs::of(Module& module, const std::string& method_name) {
  const auto meta = module.method_meta(method_name);
  ET_CHECK_OK_OR_RETURN_ERROR(meta.error(), "there is no method '%s' to train",
                              method_name.c_str());
  const size_t n_outputs = meta->num_outputs();
  ET_ASSIGN_OR_RETURN(const size_t gradients,
                      ask_place(module, kGradients, method_name, n_outputs));
  ET_ASSIGN_OR_RETURN(const size_t parameters,
                      ask_place(module, kParameters, method_name, n_outputs));
  ET_ASSIGN_OR_RETURN(const auto names, ask(module, kNames, method_name));
  ET_CHECK_OR_RETURN_ERROR(
      gradients <= parameters && parameters - gradients == names.size() &&
          n_outputs - parameters == names.size(),
      InvalidProgram,
      "'%s' has %zu outputs, with gradients from %zu on and parameters from %zu on, and %zu names "
      "of parameters; expected one gradient and one parameter for each name",
      method_name.c_str(), n_outputs, gradients, parameters, names.size());
  JointOutputs joint;
  joint.first_gradient_ = gradients;
  for (size_t i = 0; i < names.size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(names[i].isString(), InvalidProgram, "%s%s: value %zu is no string",
                             kNames, method_name.c_str(), i);
    joint.names_.push_back(names[i].toString());
  }
  return joint;
}

Result<NamedTensors> JointOutputs::named(const std::vector<EValue>& outputs, size_t first,
                                         const char* what) const {
  ET_CHECK_OR_RETURN_ERROR(outputs.size() == first_parameter() + names_.size(), InvalidArgument,
                           "%zu outputs; expected %zu", outputs.size(),
                           first_parameter() + names_.size());
  NamedTensors tensors;
  for (size_t i = 0; i < names_.size(); ++i) {
    const EValue& output = outputs[first + i];
    ET_CHECK_OR_RETURN_ERROR(output.isTensor(), InvalidProgram,
                             "the %s '%.*s', output %zu, is no tensor", what,
                             static_cast<int>(names_[i].size()), names_[i].data(), first + i);
    ET_CHECK_OR_RETURN_ERROR(tensors.emplace(names_[i], output.toTensor()).second, InvalidProgram,
                             "two parameters are called '%.*s'", static_cast<int>(names_[i].size()),
                             names_[i].data());
  }
  return tensors;
}

Result<NamedTensors> JointOutputs::gradients(const std::vector<EValue>& outputs) const {
  return named(outputs, first_gradient_, "gradient of");
}

Result<NamedTensors> JointOutputs::parameters(const std::vector<EValue>& outputs) const {
  ET_ASSIGN_OR_RETURN(auto tensors, named(outputs, first_parameter(), "parameter"));
  for (const auto& [name, tensor] : tensors) {
    ET_CHECK_OK_OR_RETURN_ERROR(runtime::internal::writable_data(tensor).error(),
                                "the parameter '%.*s' cannot be trained",
                                static_cast<int>(name.size()), name.data());
  }
  return tensors;
}

}  // namespace executorch::extension::training::internal
