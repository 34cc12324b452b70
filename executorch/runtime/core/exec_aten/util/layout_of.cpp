#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>

namespace executorch::ET_RUNTIME_NAMESPACE::internal {

Result<aten::ArrayRef<aten::DimOrderType>> dim_order_of(const aten::Tensor& tensor) {
  const aten::ArrayRef<aten::DimOrderType> order = tensor.dim_order();
  if (order.data() != nullptr) return order;
  ET_CHECK_OR_RETURN_ERROR(order.size() <= kTensorDimensionLimit, InvalidArgument,
                           "a tensor of %zu dimensions has no dim order; at most %zu are supported",
                           order.size(), kTensorDimensionLimit);
  return aten::ArrayRef<aten::DimOrderType>(kIdentityDimOrder, order.size());
}

Result<aten::ArrayRef<aten::StridesType>> strides_of(
    const aten::Tensor& tensor, aten::StridesType (&room)[kTensorDimensionLimit]) {
  const aten::ArrayRef<aten::StridesType> strides = tensor.strides();
  if (strides.data() != nullptr) return strides;
  ET_ASSIGN_OR_RETURN(const aten::ArrayRef<aten::DimOrderType> order, dim_order_of(tensor));
  ET_CHECK_OK_OR_RETURN_ERROR(
      dim_order_to_stride(tensor.sizes().data(), order.data(), order.size(), room));
  return aten::ArrayRef<aten::StridesType>(room, order.size());
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE::internal
