#include <executorch/extension/training/optimizer/adamw.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

#include <cmath>

// What is experimental warns its users, not itself.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training::optimizer {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using NamedTensors = std::map<std::string_view, Tensor>;

namespace {

template <typename T>
void apply(const AdamWOptions& options, int64_t step, size_t count, T* parameter, const T* gradient,
           float* average, float* square_average) {
  const double n = static_cast<double>(step);
  const auto beta1 = static_cast<float>(options.beta1());
  const auto taken1 = static_cast<float>(1 - options.beta1());
  const auto beta2 = static_cast<float>(options.beta2());
  const auto taken2 = static_cast<float>(1 - options.beta2());
  const auto kept = static_cast<float>(1 - options.lr() * options.weight_decay());
  const auto rate = static_cast<float>(options.lr() / (1 - std::pow(options.beta1(), n)));
  const auto scale = static_cast<float>(std::sqrt(1 - std::pow(options.beta2(), n)));
  const auto eps = static_cast<float>(options.eps());
  for (size_t i = 0; i < count; ++i) {
    const auto g = static_cast<float>(gradient[i]);
    const float m = average[i] = beta1 * average[i] + taken1 * g;
    const float v = square_average[i] = beta2 * square_average[i] + taken2 * g * g;
    const float p = kept * static_cast<float>(parameter[i]);
    parameter[i] = static_cast<T>(p - rate * m / (std::sqrt(v) / scale + eps));
  }
}

TensorPtr zeros_of(const Tensor& parameter) {
  const auto sizes = parameter.sizes();
  return make_tensor_ptr({sizes.begin(), sizes.end()},
                         std::vector<float>(static_cast<size_t>(parameter.numel())));
}

}  // namespace

Error AdamW::prepare(std::string_view name, const Tensor& parameter, const Tensor& gradient,
                     Update& update) {
  const int length = static_cast<int>(name.size());
  ET_CHECK_OR_RETURN_ERROR(parameter.scalar_type() != ScalarType::Double, InvalidArgument,
                           "AdamW: '%.*s' has elements of type Double; expected Float, Half or "
                           "BFloat16",
                           length, name.data());
  ET_ASSIGN_OR_RETURN(update.elements, internal::elements_of("AdamW", name, parameter, gradient));
  std::unique_ptr<AdamWParamState>& state = *update.state;
  if (state == nullptr) {
    state = std::make_unique<AdamWParamState>(zeros_of(parameter), zeros_of(parameter));
  }
  ET_CHECK_OR_RETURN_ERROR(
      state->exp_avg().numel() == parameter.numel(), InvalidState,
      "AdamW: '%.*s' has %zd elements now; expected %zd, those of its averages", length,
      name.data(), static_cast<ssize_t>(parameter.numel()),
      static_cast<ssize_t>(state->exp_avg().numel()));
  return Error::Ok;
}

void AdamW::run(const Update& update) {
  AdamWParamState& state = **update.state;
  state.increment_step_count();
  internal::with_elements(update.elements, [&](auto* parameter, const auto* gradient) {
    apply(*update.options, state.step_count(), update.elements.count, parameter, gradient,
          state.exp_avg().mutable_data_ptr<float>(), state.exp_avg_sq().mutable_data_ptr<float>());
  });
}

Error AdamW::step(const NamedTensors& named_gradients) {
  return runtime::catch_allocation_failure(
      "AdamW", [&] { return step_with(named_gradients, prepare, run); });
}

}  // namespace executorch::extension::training::optimizer
