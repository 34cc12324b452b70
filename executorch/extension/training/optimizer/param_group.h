#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <map>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace executorch::extension::training::optimizer {

/// Parameters that are trained with the same options. Names and tensors are borrowed.
template <typename Options>
class ET_EXPERIMENTAL ParamGroup {
 public:
  ParamGroup(const ParamGroup& param_group)
      : ParamGroup(param_group.named_parameters_,
                   param_group.has_options() ? param_group.options().clone() : nullptr) {}
  ParamGroup& operator=(const ParamGroup& param_group) {
    named_parameters_ = param_group.named_parameters_;
    options_ = param_group.has_options() ? param_group.options().clone() : nullptr;
    return *this;
  }
  /// With the options of the optimizer that it is added to.
  ParamGroup(const std::map<std::string_view, aten::Tensor>& named_parameters)
      : named_parameters_(named_parameters) {}
  ParamGroup(const std::map<std::string_view, aten::Tensor>& named_parameters,
             std::unique_ptr<Options> options)
      : named_parameters_(named_parameters), options_(std::move(options)) {}

  bool has_options() const { return options_ != nullptr; }
  /// Only if has_options().
  Options& options() { return *options_; }
  const Options& options() const { return *options_; }
  void set_options(std::unique_ptr<Options> options) { options_ = std::move(options); }

  const std::map<std::string_view, aten::Tensor>& named_parameters() const {
    return named_parameters_;
  }

 private:
  std::map<std::string_view, aten::Tensor> named_parameters_;
  std::unique_ptr<Options> options_;
};

namespace internal {

/// The elements of a parameter and of its gradient: `count` of `type`, in the same order.
struct Elements {
  aten::ScalarType type;
  size_t count;
  void* parameter;  // null only if there are none
  const void* gradient;
};

/// What a step reads and writes. What is wrong with a parameter or its gradient is logged as
/// `optimizer`'s; SGD::step lists the errors.
runtime::Result<Elements> elements_of(const char* optimizer, std::string_view name,
                                      const aten::Tensor& parameter, const aten::Tensor& gradient);

/// Calls function(place, options, name, parameter, gradient) for the parameters that have gradients,
/// until it returns an error; `place` counts the parameters of all groups.
template <typename Group, typename Function>
runtime::Error each_gradient(const std::vector<Group>& groups,
                             const std::map<std::string_view, aten::Tensor>& named_gradients,
                             const Function& function) {
  size_t next = 0;
  for (const Group& group : groups) {
    for (const auto& [name, parameter] : group.named_parameters()) {
      const size_t place = next++;
      const auto gradient = named_gradients.find(name);
      if (gradient == named_gradients.end()) continue;
      ET_CHECK_OK_OR_RETURN_ERROR(
          function(place, group.options(), name, parameter, gradient->second));
    }
  }
  return runtime::Error::Ok;
}

/// Calls function(parameter, gradient) with pointers of the elements' type.
template <typename Function>
void with_elements(const Elements& elements, const Function& function) {
  const auto call = [&](auto* parameter) {
    using T = std::remove_pointer_t<decltype(parameter)>;
    function(parameter, static_cast<const T*>(elements.gradient));
  };
  switch (elements.type) {
    case aten::ScalarType::Double:
      return call(static_cast<double*>(elements.parameter));
    case aten::ScalarType::Half:
      return call(static_cast<aten::Half*>(elements.parameter));
    case aten::ScalarType::BFloat16:
      return call(static_cast<aten::BFloat16*>(elements.parameter));
    default:
      return call(static_cast<float*>(elements.parameter));
  }
}

}  // namespace internal
}  // namespace executorch::extension::training::optimizer
