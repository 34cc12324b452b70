#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>

namespace executorch::ET_RUNTIME_NAMESPACE::internal {

Result<void*> writable_data(const aten::Tensor& tensor) {
  const auto sizes = tensor.sizes();
  ET_CHECK_OR_RETURN_ERROR(
      !tensor.unsafeGetTensorImpl()->is_read_only(), InvalidProgram,
      "a tensor of shape %s is written, but it is a constant or may only be read",
      tensor_shape_to_c_string({sizes.data(), sizes.size()}).data());
  void* const data = tensor.mutable_data_ptr();
  ET_CHECK_OR_RETURN_ERROR(data != nullptr || tensor.numel() == 0, InvalidState,
                           "a tensor of shape %s is written, but it has no memory",
                           tensor_shape_to_c_string({sizes.data(), sizes.size()}).data());
  return data;
}

void keep_read_only(const aten::Tensor& source, const aten::Tensor& view) {
  auto& impl = *view.unsafeGetTensorImpl();
  if (source.unsafeGetTensorImpl()->is_read_only()) {
    impl.borrow_data(impl.mutable_data(), impl.capacity(), true);
  }
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE::internal
