#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/assert.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <type_traits>

namespace executorch::extension {

using aten::Device;
using aten::DeviceType;
using aten::DimOrderType;
using aten::ScalarType;
using aten::SizesType;
using aten::StridesType;
using aten::Tensor;
using aten::TensorImpl;
using aten::TensorShapeDynamism;
using runtime::Result;

namespace {

/// What one TensorPtr owns, in one shared block.
struct TensorBlock {
  TensorBlock(std::shared_ptr<void> owner_, void* data, std::vector<SizesType> sizes_,
              std::vector<DimOrderType> dim_order_, std::vector<StridesType> strides_,
              ScalarType type, TensorShapeDynamism dynamism, Device device)
      : sizes(std::move(sizes_)),
        dim_order(std::move(dim_order_)),
        strides(std::move(strides_)),
        owner(std::move(owner_)),
        impl(type, static_cast<ssize_t>(sizes.size()), sizes.data(), data, dim_order.data(),
             strides.data(), sizes.empty() ? TensorShapeDynamism::STATIC : dynamism, device.type(),
             device.index()),
        tensor(&impl) {}

  std::vector<SizesType> sizes;
  std::vector<DimOrderType> dim_order;
  std::vector<StridesType> strides;
  std::shared_ptr<void> owner;
  TensorImpl impl;
  Tensor tensor;
};

/// InvalidArgument for sizes that no tensor has.
Result<size_t> element_count(const std::vector<SizesType>& sizes) {
  ET_CHECK_OR_RETURN_ERROR(sizes.size() <= runtime::kTensorDimensionLimit, InvalidArgument,
                           "make_tensor_ptr: %zu dimensions, at most %zu are supported",
                           sizes.size(), runtime::kTensorDimensionLimit);
  for (const SizesType size : sizes) {
    ET_CHECK_OR_RETURN_ERROR(size >= 0, InvalidArgument, "make_tensor_ptr: negative size %d",
                             static_cast<int>(size));
  }
  ET_ASSIGN_OR_RETURN(const ssize_t numel,
                      aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size())),
                      "make_tensor_ptr: the number of elements overflows");
  return static_cast<size_t>(numel);
}

size_t count_elements(const std::vector<SizesType>& sizes) {
  const auto count = element_count(sizes);
  ET_CHECK_MSG(count.ok(), "make_tensor_ptr: no tensor has these sizes");
  return *count;
}

std::vector<DimOrderType> order_of(const std::vector<SizesType>& sizes,
                                   const std::vector<StridesType>& strides) {
  std::vector<DimOrderType> order(sizes.size());
  std::iota(order.begin(), order.end(), DimOrderType(0));
  if (!strides.empty()) {
    // Of equal strides, the dimension with several entries is the outermost: others, and empty
    // ones, do not make the next stride larger.
    std::stable_sort(order.begin(), order.end(), [&](DimOrderType a, DimOrderType b) {
      if (strides[a] != strides[b]) return strides[a] > strides[b];
      return sizes[a] > 1 && sizes[b] <= 1;
    });
  }
  return order;
}

// Floats become UInt16, UInt32 and UInt64 where the caller names these types, not in results.
constexpr bool is_convertible(ScalarType from, ScalarType to) {
  return runtime::canCast(from, to) ||
         (runtime::isFloatingType(from) && runtime::isBarebonesUnsignedType(to));
}

template <typename From, typename To>
void convert_elements(const void* from, void* to, size_t count) {
  if constexpr (is_convertible(runtime::CppTypeToScalarType<From>::value,
                               runtime::CppTypeToScalarType<To>::value)) {
    using Value = std::conditional_t<std::is_class_v<From>, float, From>;  // of halves, floats
    const From* const source = static_cast<const From*>(from);
    To* const target = static_cast<To*>(to);
    for (size_t i = 0; i < count; ++i) {
      target[i] = runtime::convert<To, Value>(static_cast<Value>(source[i]));
    }
  }
}

// Conversions exist between these types; any type can be copied as itself.
#define ET_FORALL_CONVERTIBLE_TYPES(_) \
  ET_FORALL_REALHBBF16_TYPES(_)        \
  _(uint16_t, UInt16)                  \
  _(uint32_t, UInt32)                  \
  _(uint64_t, UInt64)

template <typename From>
void convert_from(const void* from, void* to, ScalarType to_type, size_t count) {
  switch (to_type) {
#define CONVERT_TO(ctype, name) \
  case ScalarType::name:        \
    return convert_elements<From, ctype>(from, to, count);
    ET_FORALL_CONVERTIBLE_TYPES(CONVERT_TO)
#undef CONVERT_TO
    default:
      ET_CHECK_MSG(false, "make_tensor_ptr: no conversion to %s", runtime::toString(to_type));
  }
}

void convert(const void* from, ScalarType from_type, void* to, ScalarType to_type, size_t count) {
  switch (from_type) {
#define CONVERT_FROM(ctype, name) \
  case ScalarType::name:          \
    return convert_from<ctype>(from, to, to_type, count);
    ET_FORALL_CONVERTIBLE_TYPES(CONVERT_FROM)
#undef CONVERT_FROM
    default:
      ET_CHECK_MSG(false, "make_tensor_ptr: no conversion from %s", runtime::toString(from_type));
  }
}

/// Calls `deleter` with `data` at its end; null where there is none.
std::shared_ptr<void> owner_of(void* data, std::function<void(void*)> deleter) {
  return deleter ? std::shared_ptr<void>(data, std::move(deleter)) : nullptr;
}

std::vector<SizesType> sizes_of(const Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

/// Empty, which means the identity, where the tensor was made without.
std::vector<DimOrderType> dim_order_of(const Tensor& tensor) {
  const auto order = tensor.dim_order();
  if (order.data() == nullptr) return {};
  return {order.begin(), order.end()};
}

TensorPtr make_view(std::shared_ptr<void> owner, const Tensor& source, std::vector<SizesType> sizes,
                    std::vector<DimOrderType> dim_order, std::vector<StridesType> strides) {
  const auto rank = static_cast<size_t>(source.dim());
  if (sizes.empty()) sizes = sizes_of(source);
  const size_t count = count_elements(sizes);
  ET_CHECK_MSG(count <= static_cast<size_t>(source.numel()),
               "make_tensor_ptr: a view of %zu elements over a tensor of %zd", count,
               static_cast<ssize_t>(source.numel()));
  if (sizes.size() == rank && dim_order.empty() && strides.empty()) {
    dim_order = dim_order_of(source);
  }
  TensorPtr view = internal::make_tensor_ptr_owned_by(
      std::move(owner), source.mutable_data_ptr(), std::move(sizes), std::move(dim_order),
      std::move(strides), source.scalar_type(), source.shape_dynamism(),
      Device(source.device_type(), source.device_index()));
  runtime::internal::keep_read_only(source, *view);
  return view;
}

}  // namespace

namespace internal {

Result<TensorPtr> try_make_tensor_ptr(std::shared_ptr<void> owner, void* data,
                                      std::vector<SizesType> sizes,
                                      std::vector<DimOrderType> dim_order, ScalarType type,
                                      TensorShapeDynamism dynamism, Device device) {
  ET_CHECK_OK_OR_RETURN_ERROR(element_count(sizes).error());
  ET_CHECK_OR_RETURN_ERROR(dim_order.size() == sizes.size(), InvalidArgument,
                           "make_tensor_ptr: dim order has %zu entries for %zu sizes",
                           dim_order.size(), sizes.size());
  std::vector<StridesType> strides(sizes.size());
  ET_CHECK_OK_OR_RETURN_ERROR(
      runtime::dim_order_to_stride(sizes.data(), dim_order.data(), sizes.size(), strides.data()));
  auto block =
      std::make_shared<TensorBlock>(std::move(owner), data, std::move(sizes), std::move(dim_order),
                                    std::move(strides), type, dynamism, device);
  return TensorPtr(block, &block->tensor);
}

TensorPtr make_tensor_ptr_owned_by(std::shared_ptr<void> owner, void* data,
                                   std::vector<SizesType> sizes,
                                   std::vector<DimOrderType> dim_order,
                                   std::vector<StridesType> strides, ScalarType type,
                                   TensorShapeDynamism dynamism, Device device) {
  ET_CHECK_MSG(strides.empty() || strides.size() == sizes.size(),
               "make_tensor_ptr: %zu strides for %zu sizes", strides.size(), sizes.size());
  if (dim_order.empty()) dim_order = order_of(sizes, strides);
  auto made = try_make_tensor_ptr(std::move(owner), data, std::move(sizes), std::move(dim_order),
                                  type, dynamism, device);
  ET_CHECK_MSG(made.ok(), "make_tensor_ptr: no tensor has these sizes and this dim order");
  const auto true_sizes = (*made)->sizes();
  const auto true_strides = (*made)->strides();
  for (size_t i = 0; i < strides.size(); ++i) {
    ET_CHECK_MSG(strides[i] == true_strides[i] || true_sizes[i] == 1,
                 "make_tensor_ptr: stride %d of dimension %zu, sizes and dim order imply %d",
                 static_cast<int>(strides[i]), i, static_cast<int>(true_strides[i]));
  }
  return std::move(*made);
}

std::shared_ptr<void> copy_as(const void* data, size_t count, ScalarType from, ScalarType to) {
  ET_CHECK_MSG(is_convertible(from, to), "make_tensor_ptr: %s cannot be cast to %s",
               runtime::toString(from), runtime::toString(to));
  const size_t bytes = count * runtime::elementSize(to);
  std::shared_ptr<void> copy(::operator new(bytes), [](void* p) { ::operator delete(p); });
  if (from != to) {
    convert(data, from, copy.get(), to, count);
  } else if (bytes != 0) {
    std::memcpy(copy.get(), data, bytes);
  }
  return copy;
}

const Tensor& tensor_of(const TensorPtr& tensor, const char* function) {
  ET_CHECK_MSG(tensor != nullptr, "%s: the TensorPtr is null", function);
  return *tensor;
}

void check_element_count(const std::vector<SizesType>& sizes, size_t count) {
  ET_CHECK_MSG(count_elements(sizes) == count, "make_tensor_ptr: %zu values for %zu elements",
               count, count_elements(sizes));
}

}  // namespace internal

TensorPtr make_tensor_ptr(std::vector<SizesType> sizes, void* data,
                          std::vector<DimOrderType> dim_order, std::vector<StridesType> strides,
                          ScalarType type, Device device, TensorShapeDynamism dynamism,
                          std::function<void(void*)> deleter) {
  return internal::make_tensor_ptr_owned_by(owner_of(data, std::move(deleter)), data,
                                            std::move(sizes), std::move(dim_order),
                                            std::move(strides), type, dynamism, device);
}

TensorPtr make_tensor_ptr(std::vector<SizesType> sizes, std::vector<uint8_t> data,
                          std::vector<DimOrderType> dim_order, std::vector<StridesType> strides,
                          ScalarType type, TensorShapeDynamism dynamism) {
  const size_t expected = count_elements(sizes) * runtime::elementSize(type);
  ET_CHECK_MSG(data.size() == expected, "make_tensor_ptr: %zu bytes for a tensor of %zu bytes",
               data.size(), expected);
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(data));
  void* const bytes = owner->data();
  return internal::make_tensor_ptr_owned_by(std::move(owner), bytes, std::move(sizes),
                                            std::move(dim_order), std::move(strides), type,
                                            dynamism);
}

TensorPtr make_tensor_ptr(const Tensor& tensor, std::vector<SizesType> sizes,
                          std::vector<DimOrderType> dim_order, std::vector<StridesType> strides,
                          std::function<void(void*)> deleter) {
  return make_view(owner_of(tensor.mutable_data_ptr(), std::move(deleter)), tensor,
                   std::move(sizes), std::move(dim_order), std::move(strides));
}

TensorPtr make_tensor_ptr(const TensorPtr& tensor_ptr, std::vector<SizesType> sizes,
                          std::vector<DimOrderType> dim_order, std::vector<StridesType> strides) {
  return make_view(tensor_ptr, internal::tensor_of(tensor_ptr, "make_tensor_ptr"), std::move(sizes),
                   std::move(dim_order), std::move(strides));
}

TensorPtr clone_tensor_ptr(const Tensor& tensor, ScalarType type) {
  ET_CHECK_MSG(tensor.device_type() == DeviceType::CPU,
               "clone_tensor_ptr: the tensor is not in CPU memory; use clone_tensor_ptr_to");
  std::shared_ptr<void> owner;
  if (tensor.const_data_ptr() != nullptr) {
    owner = internal::copy_as(tensor.const_data_ptr(), static_cast<size_t>(tensor.numel()),
                              tensor.scalar_type(), type);
  }
  void* const data = owner.get();
  return internal::make_tensor_ptr_owned_by(std::move(owner), data, sizes_of(tensor),
                                            dim_order_of(tensor), {}, type,
                                            tensor.shape_dynamism());
}

TensorPtr clone_tensor_ptr_to(const TensorPtr& tensor, Device device) {
  const Device source = internal::tensor_of(tensor, "clone_tensor_ptr_to").device();
  if (device.is_cpu() && source.is_cpu()) return clone_tensor_ptr(tensor);
  ET_CHECK_MSG(device.is_cpu() != source.is_cpu(),
               "clone_tensor_ptr_to: one of the two devices must be the CPU");
  const Device remote = device.is_cpu() ? source : device;
  auto* const allocator = runtime::get_device_allocator(remote.type());
  ET_CHECK_MSG(allocator != nullptr, "clone_tensor_ptr_to: no allocator for device type %d",
               static_cast<int>(remote.type()));
  const size_t bytes = tensor->nbytes();
  std::shared_ptr<void> owner;
  runtime::Error error = runtime::Error::Ok;
  if (device.is_cpu()) {
    owner = std::shared_ptr<void>(::operator new(bytes), [](void* p) { ::operator delete(p); });
    error = allocator->copy_device_to_host(owner.get(), tensor->const_data_ptr(), bytes,
                                           remote.index());
  } else {
    const auto memory = allocator->allocate(bytes, remote.index());
    ET_CHECK_MSG(memory.ok(), "clone_tensor_ptr_to: no memory for %zu bytes on the device", bytes);
    owner = std::shared_ptr<void>(
        memory.get(), [allocator, remote](void* p) { allocator->deallocate(p, remote.index()); });
    error = allocator->copy_host_to_device(owner.get(), tensor->const_data_ptr(), bytes,
                                           remote.index());
  }
  ET_CHECK_MSG(error == runtime::Error::Ok, "clone_tensor_ptr_to: cannot copy %zu bytes: %s", bytes,
               runtime::to_string(error));
  void* const data = owner.get();
  return internal::make_tensor_ptr_owned_by(std::move(owner), data, sizes_of(*tensor),
                                            dim_order_of(*tensor), {}, tensor->scalar_type(),
                                            tensor->shape_dynamism(), device);
}

runtime::Error resize_tensor_ptr(TensorPtr& tensor, const std::vector<SizesType>& sizes) {
  ET_CHECK_OR_RETURN_ERROR(tensor != nullptr, InvalidArgument,
                           "resize_tensor_ptr: the TensorPtr is null");
  return runtime::resize_tensor(*tensor, aten::ArrayRef<SizesType>(sizes.data(), sizes.size()));
}

}  // namespace executorch::extension
