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

// What is experimental warns its users, not itself.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/// What optimizers share: groups of parameters with their options, and a State for each parameter,
/// which is State() before its first step.
template <typename Options, typename State>
class Optimizer {
 public:
  explicit Optimizer(const std::vector<ParamGroup<Options>>& param_groups, Options defaults)
      : defaults_(std::move(defaults)) {
    for (const auto& group : param_groups) add_param_group(group);
  }
  explicit Optimizer(const std::map<std::string_view, aten::Tensor>& named_parameters,
                     Options defaults)
      : Optimizer(std::vector{ParamGroup<Options>(named_parameters)}, std::move(defaults)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// A group without options gets those of the optimizer.
  void add_param_group(const ParamGroup<Options>& param_group) {
    param_groups_.push_back(param_group);
    states_.resize(states_.size() + param_group.named_parameters().size());
    if (!param_group.has_options()) param_groups_.back().set_options(defaults_.clone());
  }

 protected:
  /// One parameter's part of a step.
  struct Update {
    const Options* options;
    State* state;
    Elements elements;
  };

  ~Optimizer() = default;

  /// Calls prepare(name, parameter, gradient, update) for the parameters that have gradients, until
  /// it returns an error; without one then run(update) for all of them.
  template <typename Prepare, typename Run>
  runtime::Error step_with(const std::map<std::string_view, aten::Tensor>& named_gradients,
                           const Prepare& prepare, const Run& run) {
    std::vector<Update> updates;
    size_t next = 0;
    for (const auto& group : param_groups_) {
      for (const auto& [name, parameter] : group.named_parameters()) {
        State& state = states_[next++];
        const auto gradient = named_gradients.find(name);
        if (gradient == named_gradients.end()) continue;
        Update& update = updates.emplace_back(Update{&group.options(), &state, {}});
        ET_CHECK_OK_OR_RETURN_ERROR(prepare(name, parameter, gradient->second, update));
      }
    }
    for (const Update& update : updates) run(update);
    return runtime::Error::Ok;
  }

 private:
  Options defaults_;
  std::vector<ParamGroup<Options>> param_groups_;
  std::vector<State> states_;  // of all parameters, group by group
};

#pragma GCC diagnostic pop

}  // namespace internal
}  // namespace executorch::extension::training::optimizer
