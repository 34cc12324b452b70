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

Error SGD::prepare(std::string_view name, const Tensor& parameter, const Tensor& gradient,
                   Update& update) {
  ET_ASSIGN_OR_RETURN(update.elements, internal::elements_of("SGD", name, parameter, gradient));
  if (update.options->momentum() == 0) return Error::Ok;
  TensorPtr& buffer = update.state->buffer;
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
      momentum = static_cast<T*>(update.state->buffer->mutable_data_ptr());
      begun = std::exchange(update.state->begun, true);
    }
    apply(*update.options, update.elements.count, parameter, gradient, momentum, begun);
  });
}

Error SGD::step(const NamedTensors& named_gradients) {
  return runtime::catch_allocation_failure(
      "SGD", [&] { return step_with(named_gradients, prepare, run); });
}

}  // namespace executorch::extension::training::optimizer
