#include <executorch/runtime/core/tensor_layout.h>

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

Result<const TensorLayout> TensorLayout::create(Span<const int32_t> sizes,
                                                Span<const uint8_t> dim_order,
                                                aten::ScalarType scalar_type) {
  ET_CHECK_OR_RETURN_ERROR(isValid(scalar_type), InvalidArgument,
                           "TensorLayout: %d is not an element type",
                           static_cast<int>(scalar_type));
  ET_CHECK_OR_RETURN_ERROR(
      dim_order.size() == sizes.size() && validate_dim_order(dim_order.data(), dim_order.size()),
      InvalidArgument, "TensorLayout: dim order is no permutation of %zu dimensions", sizes.size());
  ET_ASSIGN_OR_RETURN(const ssize_t numel,
                      aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size())));
  size_t nbytes;
  ET_CHECK_OR_RETURN_ERROR(
      !__builtin_mul_overflow(static_cast<size_t>(numel), elementSize(scalar_type), &nbytes),
      InvalidArgument, "TensorLayout: bytes of %zd elements overflow", numel);
  return TensorLayout(sizes, dim_order, scalar_type, nbytes);
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE
