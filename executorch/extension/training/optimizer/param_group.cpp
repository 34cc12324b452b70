#include <executorch/extension/training/optimizer/param_group.h>

#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::extension::training::optimizer {

using aten::DeviceType;
using aten::ScalarType;
using aten::Tensor;

namespace {

auto shape_of(const Tensor& tensor) {
  return runtime::tensor_shape_to_c_string({tensor.sizes().data(), tensor.sizes().size()});
}

bool is_supported(ScalarType type) {
  return type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::Half ||
         type == ScalarType::BFloat16;
}

/// Whether elements of the same indices lie at the same places; shapes are equal.
bool same_layout(const Tensor& a, const Tensor& b) {
  aten::StridesType room_a[runtime::kTensorDimensionLimit], room_b[runtime::kTensorDimensionLimit];
  const auto of_a = runtime::internal::strides_of(a, room_a);
  const auto of_b = runtime::internal::strides_of(b, room_b);
  if (!of_a.ok() || !of_b.ok()) return false;
  for (size_t d = 0; d < of_a->size(); ++d) {
    if (a.sizes()[d] > 1 && (*of_a)[d] != (*of_b)[d]) return false;
  }
  return true;
}

}  // namespace

namespace internal {

runtime::Result<Elements> elements_of(const char* optimizer, std::string_view name,
                                      const Tensor& parameter, const Tensor& gradient) {
  const int length = static_cast<int>(name.size());
  ET_CHECK_OR_RETURN_ERROR(
      gradient.unsafeGetTensorImpl() != nullptr && parameter.unsafeGetTensorImpl() != nullptr,
      InvalidArgument, "%s: '%.*s', or its gradient, is an undefined tensor", optimizer, length,
      name.data());
  ET_CHECK_OR_RETURN_ERROR(
      gradient.scalar_type() == parameter.scalar_type() && gradient.sizes() == parameter.sizes(),
      InvalidArgument, "%s: the gradient of '%.*s' is %s %s; expected %s %s, as the parameter is",
      optimizer, length, name.data(), runtime::toString(gradient.scalar_type()),
      shape_of(gradient).data(), runtime::toString(parameter.scalar_type()),
      shape_of(parameter).data());
  ET_CHECK_OR_RETURN_ERROR(same_layout(parameter, gradient), InvalidArgument,
                           "%s: the gradient of '%.*s' has another order of dimensions than the "
                           "parameter",
                           optimizer, length, name.data());
  ET_CHECK_OR_RETURN_ERROR(
      is_supported(parameter.scalar_type()) && parameter.device_type() == DeviceType::CPU &&
          gradient.device_type() == DeviceType::CPU,
      NotSupported, "%s: '%.*s' has elements of type %s%s; expected floating point, on the CPU",
      optimizer, length, name.data(), runtime::toString(parameter.scalar_type()),
      parameter.device_type() == DeviceType::CPU ? "" : " on a device");
  ET_CHECK_OR_RETURN_ERROR(gradient.const_data_ptr() != nullptr || parameter.numel() == 0,
                           InvalidState, "%s: the gradient of '%.*s' has no memory", optimizer,
                           length, name.data());
  ET_ASSIGN_OR_RETURN(void* const data, runtime::internal::writable_data(parameter),
                      "%s: '%.*s' cannot be updated", optimizer, length, name.data());
  return Elements{parameter.scalar_type(), static_cast<size_t>(parameter.numel()), data,
                  gradient.const_data_ptr()};
}

}  // namespace internal
}  // namespace executorch::extension::training::optimizer
