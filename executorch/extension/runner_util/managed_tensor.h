#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/assert.h>

#include <sys/types.h>

#include <vector>

namespace executorch::extension {

/// A tensor of releases 0.2 to 0.4: keeps its shape, not its data, which the caller owns. New code
/// uses executorch::extension::from_blob.
class ManagedTensor {
 public:
  using SizesType = aten::SizesType;
  using DimOrderType = aten::DimOrderType;
  using StridesType = aten::StridesType;

  ManagedTensor(void* data, const std::vector<SizesType>& sizes, aten::ScalarType dtype)
      : tensor_(make_tensor_ptr(sizes, data, dtype)) {}

  /// `numel`, the number of elements, follows from the sizes.
  ManagedTensor(void* data, ssize_t /*numel*/, const std::vector<SizesType>& sizes,
                aten::ScalarType dtype)
      : ManagedTensor(data, sizes, dtype) {}

  /// Up to the number of elements it was made with, at the same rank; stops otherwise.
  void resize(const std::vector<SizesType>& new_sizes) {
    ET_CHECK_MSG(resize_tensor_ptr(tensor_, new_sizes) == runtime::Error::Ok,
                 "ManagedTensor: cannot take these sizes");
  }

  /// A handle that is good as long as this object.
  aten::Tensor get_aliasing_tensor() { return *tensor_; }
  aten::Tensor get_tensor() { return *tensor_; }

 private:
  TensorPtr tensor_;
};

}  // namespace executorch::extension

namespace torch::executor {
using ::executorch::extension::ManagedTensor;
}  // namespace torch::executor
