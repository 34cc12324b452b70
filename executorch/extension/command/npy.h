#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <string>
#include <string_view>
#include <vector>

/// NumPy's file format: one array, here always little endian and in C order.
namespace executorch::extension::command {

struct NpyArray {
  aten::ScalarType dtype;
  std::vector<aten::SizesType> sizes;
  /// In C order; a part of the file's bytes.
  std::string_view data;
};

bool is_npy(std::string_view file);
/// Versions 1 to 3. Throws Failure, which begins with `path`. Two-byte void elements are BFloat16.
NpyArray read_npy(std::string_view file, const std::string& path);
/// A whole file for the tensor.
std::string write_npy(const aten::Tensor& tensor);

/// The same elements in another order: from C order to `dim_order`, or back.
std::string reorder(std::string_view bytes, const std::vector<aten::SizesType>& sizes,
                    aten::ArrayRef<aten::DimOrderType> dim_order, size_t element_size,
                    bool to_dim_order);

}  // namespace executorch::extension::command
