#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace executorch::extension {

/// A tensor that owns its sizes, dim order and strides, and where said so its data.
///
/// Everywhere below:
///   sizes      one entry per dimension, none negative
///   dim_order  a permutation of the dimensions, outermost first; when empty it follows the
///              strides, and without strides it is the identity
///   strides    in elements; when given they must be those that sizes and dim order imply,
///              except at dimensions of size 1
///   type       of the elements in memory
///   dynamism   whether resize_tensor_ptr may change the sizes; tensors of rank 0 are STATIC
/// A caller that breaks these rules, or gives a null TensorPtr, is stopped with a message: they are
/// mistakes in the program, not properties of its data.
using TensorPtr = std::shared_ptr<aten::Tensor>;

namespace internal {

/// For sizes and a dim order that come from outside: InvalidArgument, which is logged, where no
/// tensor has them. Strides are those that they imply. `owner` keeps `data` alive, and may be null.
runtime::Result<TensorPtr> try_make_tensor_ptr(
    std::shared_ptr<void> owner, void* data, std::vector<aten::SizesType> sizes,
    std::vector<aten::DimOrderType> dim_order, aten::ScalarType type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    aten::Device device = aten::Device(aten::DeviceType::CPU));

/// What is behind all overloads.
TensorPtr make_tensor_ptr_owned_by(std::shared_ptr<void> owner, void* data,
                                   std::vector<aten::SizesType> sizes,
                                   std::vector<aten::DimOrderType> dim_order,
                                   std::vector<aten::StridesType> strides, aten::ScalarType type,
                                   aten::TensorShapeDynamism dynamism,
                                   aten::Device device = aten::Device(aten::DeviceType::CPU));

/// Copies `count` elements of type `from` into new memory as elements of type `to`.
std::shared_ptr<void> copy_as(const void* data, size_t count, aten::ScalarType from,
                              aten::ScalarType to);

/// The tensor of a TensorPtr. Stops for a null one; `function` is the name of what it was given to.
const aten::Tensor& tensor_of(const TensorPtr& tensor, const char* function);

/// Stops unless the sizes describe `count` elements.
void check_element_count(const std::vector<aten::SizesType>& sizes, size_t count);

template <typename T>
using deduced_scalar_type = runtime::CppTypeToScalarType<T>;

/// Storage for `data` as elements of `type`: the vector itself when it has that type already.
template <typename T>
std::pair<std::shared_ptr<void>, void*> own(std::vector<T> data, aten::ScalarType type) {
  constexpr auto given = deduced_scalar_type<T>::value;
  if constexpr (std::is_same_v<T, bool>) {
    const auto unpacked = std::make_unique<bool[]>(data.size());
    size_t i = 0;
    for (const bool value : data) unpacked[i++] = value;
    auto owner = copy_as(unpacked.get(), data.size(), given, type);
    return {owner, owner.get()};
  } else {
    if (type != given) {
      auto owner = copy_as(data.data(), data.size(), given, type);
      return {owner, owner.get()};
    }
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    return {owner, owner->data()};
  }
}

}  // namespace internal

// Over memory of the caller, who keeps it alive; `deleter(data)` runs when the last owner goes. The
// memory lies on `device` already, the CPU where none is named: nothing is copied.

TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, std::vector<aten::DimOrderType> dim_order,
    std::vector<aten::StridesType> strides, aten::ScalarType type, aten::Device device,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr);

inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, std::vector<aten::DimOrderType> dim_order,
    std::vector<aten::StridesType> strides, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return make_tensor_ptr(std::move(sizes), data, std::move(dim_order), std::move(strides), type,
                         aten::Device(aten::DeviceType::CPU), dynamism, std::move(deleter));
}

inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, aten::ScalarType type, aten::Device device,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return make_tensor_ptr(std::move(sizes), data, {}, {}, type, device, dynamism,
                         std::move(deleter));
}

inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return make_tensor_ptr(std::move(sizes), data, {}, {}, type, dynamism, std::move(deleter));
}

// Owning: from a vector, which is moved in, or converted when `type` is another type than T; the
// conversion must be one that canCast() allows, or of floats to UInt16, UInt32 or UInt64. One
// element per element of `sizes`.

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<T> data,
    std::vector<aten::DimOrderType> dim_order, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  internal::check_element_count(sizes, data.size());
  auto [owner, elements] = internal::own(std::move(data), type);
  return internal::make_tensor_ptr_owned_by(std::move(owner), elements, std::move(sizes),
                                            std::move(dim_order), std::move(strides), type,
                                            dynamism);
}

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<T> data, aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::move(sizes), std::move(data), std::vector<aten::DimOrderType>(),
                            std::vector<aten::StridesType>(), type, dynamism);
}

/// 1-d, as long as the vector.
template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<T> data, aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  std::vector<aten::SizesType> sizes{static_cast<aten::SizesType>(data.size())};
  return make_tensor_ptr<T>(std::move(sizes), std::move(data), type, dynamism);
}

// The same three from braced lists.

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::initializer_list<T> list,
    std::vector<aten::DimOrderType> dim_order, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::move(sizes), std::vector<T>(list), std::move(dim_order),
                            std::move(strides), type, dynamism);
}

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::initializer_list<T> list,
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::move(sizes), std::vector<T>(list), type, dynamism);
}

template <typename T = float,
          aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(
    std::initializer_list<T> list, aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::vector<T>(list), type, dynamism);
}

/// 0-d, holding `value`.
template <typename T, aten::ScalarType deduced_type = internal::deduced_scalar_type<T>::value>
TensorPtr make_tensor_ptr(T value) {
  return make_tensor_ptr<T>(std::vector<aten::SizesType>(), std::vector<T>(1, value));
}

// Owning: from raw bytes that hold exactly the elements of the tensor.

TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<uint8_t> data,
    std::vector<aten::DimOrderType> dim_order, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);

inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<uint8_t> data,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr(std::move(sizes), std::move(data), std::vector<aten::DimOrderType>(),
                         std::vector<aten::StridesType>(), type, dynamism);
}

// Views of the memory of another tensor. Empty sizes mean those of the source; with neither dim
// order nor strides, a view of the same rank has the dim order of its source and any other is
// contiguous. A view has at most as many elements as its source.

/// The caller keeps the memory alive, or `deleter`, which is called with it at the view's end.
TensorPtr make_tensor_ptr(const aten::Tensor& tensor, std::vector<aten::SizesType> sizes = {},
                          std::vector<aten::DimOrderType> dim_order = {},
                          std::vector<aten::StridesType> strides = {},
                          std::function<void(void*)> deleter = nullptr);

/// The view keeps its source alive.
TensorPtr make_tensor_ptr(const TensorPtr& tensor_ptr, std::vector<aten::SizesType> sizes = {},
                          std::vector<aten::DimOrderType> dim_order = {},
                          std::vector<aten::StridesType> strides = {});

// Copies with memory of their own, elements converted to `type` where canCast() allows it.

TensorPtr clone_tensor_ptr(const aten::Tensor& tensor, aten::ScalarType type);

inline TensorPtr clone_tensor_ptr(const aten::Tensor& tensor) {
  return clone_tensor_ptr(tensor, tensor.scalar_type());
}

inline TensorPtr clone_tensor_ptr(const TensorPtr& tensor, aten::ScalarType type) {
  return clone_tensor_ptr(internal::tensor_of(tensor, "clone_tensor_ptr"), type);
}

inline TensorPtr clone_tensor_ptr(const TensorPtr& tensor) {
  return clone_tensor_ptr(internal::tensor_of(tensor, "clone_tensor_ptr"));
}

/// A copy on another device, through the DeviceAllocator registered for it. One of the two devices
/// is the CPU.
TensorPtr clone_tensor_ptr_to(const TensorPtr& tensor, aten::Device device);

/// Changes the sizes in place. NotSupported when the dynamism forbids them, InvalidArgument for a
/// null TensorPtr.
ET_NODISCARD runtime::Error resize_tensor_ptr(TensorPtr& tensor,
                                              const std::vector<aten::SizesType>& sizes);

}  // namespace executorch::extension
