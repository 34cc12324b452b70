#include <executorch/extension/training/optimizer/sgd.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

#include <type_traits>
#include <utility>

// What is experimental warns its users, not itself.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training::optimizer {

using aten::Tensor;
using runtime::Error;
using NamedTensors = std::map<std::string_view, Tensor>;

/// One parameter's part of a step.
struct SGD::Update {
  const SGDOptions* options;
  internal::Elements elements;
  Momentum* momentum;
};

namespace {

/// `momentum` is null without one; `begun` says whether it holds that of an earlier step.
template <typename T>
void apply(const SGDOptions& options, size_t count, T* parameter, const T* gradient, T* momentum,
           bool begun) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto lr = static_cast<Real>(options.lr());
  const auto decay = static_cast<Real>(options.weight_decay());
  const auto kept = static_cast<Real>(options.momentum());
  const auto taken = static_cast<Real>(1 - options.dampening());
  for (size_t i = 0; i < count; ++i) {
    const Real p = static_cast<Real>(parameter[i]);
    Real g = static_cast<Real>(gradient[i]);
    if (decay != 0) g += decay * p;
    if (momentum != nullptr) {
      const Real b = begun ? kept * static_cast<Real>(momentum[i]) + taken * g : g;
      momentum[i] = static_cast<T>(b);
      g = options.nesterov() ? g + kept * b : b;
    }
    parameter[i] = static_cast<T>(p - lr * g);
  }
}

}  // namespace

void SGD::add_param_group(const SGDParamGroup& param_group) {
  param_groups_.push_back(param_group);
  momenta_.resize(momenta_.size() + param_group.named_parameters().size());
  if (!param_group.has_options()) param_groups_.back().set_options(defaults_.clone());
}

Error SGD::prepare(std::string_view name, const Tensor& parameter, const Tensor& gradient,
                   Update& update) {
  ET_ASSIGN_OR_RETURN(update.elements, internal::elements_of("SGD", name, parameter, gradient));
  if (update.options->momentum() == 0) return Error::Ok;
  TensorPtr& buffer = update.momentum->buffer;
  if (buffer == nullptr) buffer = clone_tensor_ptr(parameter);  // which the first step overwrites
  ET_CHECK_OR_RETURN_ERROR(buffer->nbytes() == parameter.nbytes(), InvalidState,
                           "SGD: '%.*s' has %zu bytes now; expected %zu, those of its momentum",
                           static_cast<int>(name.size()), name.data(), parameter.nbytes(),
                           buffer->nbytes());
  return Error::Ok;
}

void SGD::run(const Update& update) {
  internal::with_elements(update.elements, [&](auto* parameter, const auto* gradient) {
    using T = std::remove_pointer_t<decltype(parameter)>;
    T* momentum = nullptr;
    bool begun = false;
    if (update.options->momentum() != 0) {
      momentum = static_cast<T*>(update.momentum->buffer->mutable_data_ptr());
      begun = std::exchange(update.momentum->begun, true);
    }
    apply(*update.options, update.elements.count, parameter, gradient, momentum, begun);
  });
}

Error SGD::step(const NamedTensors& named_gradients) {
  return runtime::catch_allocation_failure("SGD", [&]() -> Error {
    std::vector<Update> updates;
    ET_CHECK_OK_OR_RETURN_ERROR(
        internal::each_gradient(param_groups_, named_gradients,
                                [&](size_t place, const SGDOptions& options, std::string_view name,
                                    const Tensor& parameter, const Tensor& gradient) {
                                  Update& update = updates.emplace_back();
                                  update.options = &options;
                                  update.momentum = &momenta_[place];
                                  return prepare(name, parameter, gradient, update);
                                }));
    for (const Update& update : updates) run(update);
    return Error::Ok;
  });
}

}  // namespace executorch::extension::training::optimizer
