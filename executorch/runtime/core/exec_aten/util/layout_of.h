#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::ET_RUNTIME_NAMESPACE::internal {

/// The dim order that a null dim order stands for.
inline constexpr aten::DimOrderType kIdentityDimOrder[kTensorDimensionLimit] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static_assert(kIdentityDimOrder[kTensorDimensionLimit - 1] == kTensorDimensionLimit - 1);

// Every tensor of a program has a dim order and strides; one that a user made may have neither.
// Code that is given tensors by users must ask these functions for them.

/// The tensor's dim order, or the identity if it has none. InvalidArgument if it has none and more
/// dimensions than kTensorDimensionLimit.
ET_NODISCARD Result<aten::ArrayRef<aten::DimOrderType>> dim_order_of(const aten::Tensor& tensor);

/// The tensor's strides. If it has none, they are computed from its sizes and dim order and written
/// to `room`. InvalidArgument if these give no valid strides.
ET_NODISCARD Result<aten::ArrayRef<aten::StridesType>> strides_of(
    const aten::Tensor& tensor, aten::StridesType (&room)[kTensorDimensionLimit]);

}  // namespace executorch::ET_RUNTIME_NAMESPACE::internal
