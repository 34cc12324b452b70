#pragma once

#include <executorch/devtools/bundled_program/bundled_program_generated.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

namespace executorch::bundled_program::internal {

/// A tensor of a bundled program; its bytes lie in the file.
struct StoredTensor {
  aten::ScalarType type;
  ssize_t rank;
  aten::SizesType sizes[runtime::kTensorDimensionLimit];
  aten::DimOrderType dim_order[runtime::kTensorDimensionLimit];
  aten::StridesType strides[runtime::kTensorDimensionLimit];
  const void* data;
  size_t nbytes;

  /// InvalidArgument, and a line in the log, where the parts do not fit together.
  static runtime::Result<StoredTensor> read(const bundled_program_flatbuffer::Tensor& tensor);
};

}  // namespace executorch::bundled_program::internal
