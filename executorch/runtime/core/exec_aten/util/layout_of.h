#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch {
namespace ET_RUNTIME_NAMESPACE {
namespace internal {

/// What a dim order that is null means.
inline constexpr aten::DimOrderType kIdentityDimOrder[kTensorDimensionLimit] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static_assert(kIdentityDimOrder[kTensorDimensionLimit - 1] == kTensorDimensionLimit - 1);

// Every tensor of a program has a dim order and strides; one that a user made may have neither.
// Who is given tensors by users asks for them here.

/// The tensor's dim order, or the identity. InvalidArgument where it was made without, and has more
/// dimensions than kTensorDimensionLimit.
ET_NODISCARD Result<aten::ArrayRef<aten::DimOrderType>> dim_order_of(const aten::Tensor& tensor);

/// The tensor's strides, or those that its sizes and its dim order give, which are written to
/// `room`. InvalidArgument where they give none.
ET_NODISCARD Result<aten::ArrayRef<aten::StridesType>> strides_of(
    const aten::Tensor& tensor, aten::StridesType (&room)[kTensorDimensionLimit]);

}  // namespace internal
}  // namespace ET_RUNTIME_NAMESPACE
}  // namespace executorch
