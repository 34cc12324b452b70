#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/assert.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace executorch::extension {

/// The form in which release 0.4 named what TensorPtr owns. It shares the block of a TensorPtr and
/// follows its rules.
using TensorImplPtr = std::shared_ptr<aten::TensorImpl>;

namespace internal {

inline TensorImplPtr impl_of(TensorPtr tensor) {
  auto* const impl = tensor->unsafeGetTensorImpl();
  return TensorImplPtr(std::move(tensor), impl);
}

}  // namespace internal

inline TensorImplPtr make_tensor_impl_ptr(
    std::vector<aten::SizesType> sizes, void* data, std::vector<aten::DimOrderType> dim_order,
    std::vector<aten::StridesType> strides, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return internal::impl_of(make_tensor_ptr(std::move(sizes), data, std::move(dim_order),
                                           std::move(strides), type, dynamism, std::move(deleter)));
}

inline TensorImplPtr make_tensor_impl_ptr(
    std::vector<aten::SizesType> sizes, void* data, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return internal::impl_of(
      make_tensor_ptr(std::move(sizes), data, type, dynamism, std::move(deleter)));
}

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorImplPtr make_tensor_impl_ptr(
    std::vector<aten::SizesType> sizes, std::vector<T> data,
    std::vector<aten::DimOrderType> dim_order = {}, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return internal::impl_of(make_tensor_ptr<T>(
      std::move(sizes), std::move(data), std::move(dim_order), std::move(strides), type, dynamism));
}

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorImplPtr make_tensor_impl_ptr(
    std::vector<aten::SizesType> sizes, std::initializer_list<T> list,
    std::vector<aten::DimOrderType> dim_order = {}, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_impl_ptr<T>(std::move(sizes), std::vector<T>(list), std::move(dim_order),
                                 std::move(strides), type, dynamism);
}

inline TensorPtr make_tensor_ptr(TensorImplPtr tensor_impl) {
  struct Handle {
    TensorImplPtr impl;
    aten::Tensor tensor;
  };
  ET_CHECK_MSG(tensor_impl != nullptr, "make_tensor_ptr: the TensorImplPtr is null");
  aten::Tensor tensor(tensor_impl.get());
  auto handle = std::make_shared<Handle>(Handle{std::move(tensor_impl), tensor});
  return TensorPtr(handle, &handle->tensor);
}

ET_NODISCARD inline runtime::Error resize_tensor_impl_ptr(
    TensorImplPtr& tensor_impl, const std::vector<aten::SizesType>& sizes) {
  ET_CHECK_OR_RETURN_ERROR(tensor_impl != nullptr, InvalidArgument,
                           "resize_tensor_impl_ptr: the TensorImplPtr is null");
  auto tensor = make_tensor_ptr(tensor_impl);
  return resize_tensor_ptr(tensor, sizes);
}

}  // namespace executorch::extension
