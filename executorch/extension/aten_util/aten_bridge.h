/// Tensors and element types between PyTorch (at::Tensor) and the runtime. Header only; compile
/// with torch's headers, exceptions and RTTI. Wrong arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace executorch::extension {

/// Both sides number the element types alike; throws for one that only torch has.
inline torch::executor::ScalarType torch_to_executorch_scalar_type(c10::ScalarType type) {
  const auto number = static_cast<int>(type);
  TORCH_CHECK(number < static_cast<int>(torch::executor::ScalarType::Undefined),
              "ExecuTorch has no element type ", type);
  return static_cast<torch::executor::ScalarType>(number);
}

inline torch::executor::ScalarType torch_to_executorch_scalar_type(caffe2::TypeMeta type) {
  return torch_to_executorch_scalar_type(c10::typeMetaToScalarType(type));
}

inline c10::ScalarType executorch_to_torch_scalar_type(torch::executor::ScalarType type) {
  return static_cast<c10::ScalarType>(type);
}

/// Torch has no index for the processor's memory, which the runtime counts as device 0.
inline c10::Device executorch_to_torch_device(runtime::etensor::Device device) {
  return device.is_cpu() ? c10::Device(c10::DeviceType::CPU)
                         : c10::Device(c10::DeviceType::CUDA, device.index());
}

/// None for a device that the runtime does not know.
inline std::optional<runtime::etensor::Device> torch_to_executorch_device(c10::Device device) {
  using runtime::etensor::DeviceType;
  if (!device.is_cpu() && !device.is_cuda()) return std::nullopt;
  return runtime::etensor::Device(device.is_cpu() ? DeviceType::CPU : DeviceType::CUDA,
                                  device.is_cpu() ? 0 : device.index());
}

/// The same memory as a tensor of the runtime, with the same sizes, strides and element type.
/// Throws unless the elements lie densely in some order of the dimensions, and for more dimensions
/// or larger sizes than the runtime has. Keeps `t`'s memory alive.
inline TensorPtr alias_tensor_ptr_to_attensor(at::Tensor& t) {
  const auto device = torch_to_executorch_device(t.device());
  TORCH_CHECK(device.has_value(), "ExecuTorch has no device ", t.device());
  TORCH_CHECK(t.is_non_overlapping_and_dense(), "a tensor of ExecuTorch is dense; strides are ",
              t.strides());
  constexpr int64_t kMost = std::numeric_limits<torch::executor::Tensor::SizesType>::max();
  const auto fits = [](int64_t n) { return n <= kMost; };
  TORCH_CHECK(t.dim() <= static_cast<int64_t>(runtime::kTensorDimensionLimit) &&
                  std::all_of(t.sizes().begin(), t.sizes().end(), fits) &&
                  std::all_of(t.strides().begin(), t.strides().end(), fits),
              "a tensor of ExecuTorch has at most ", runtime::kTensorDimensionLimit,
              " dimensions, and sizes and strides of at most ", kMost, "; found sizes ", t.sizes());
  return for_blob(t.mutable_data_ptr(), {t.sizes().begin(), t.sizes().end()},
                  torch_to_executorch_scalar_type(t.scalar_type()))
      .strides({t.strides().begin(), t.strides().end()})
      .device(*device)
      .deleter([owner = t](void*) {})
      .make_tensor_ptr();
}

/// The same memory as a tensor of torch. Valid as long as `et`'s memory. Throws for a tensor made
/// without strides whose sizes and dim order give none.
inline at::Tensor alias_attensor_to_etensor(const torch::executor::Tensor& et) {
  const std::vector<int64_t> sizes(et.sizes().begin(), et.sizes().end());
  torch::executor::Tensor::StridesType room[runtime::kTensorDimensionLimit];
  const auto found = runtime::internal::strides_of(et, room);
  TORCH_CHECK(found.ok(), "the tensor has no strides: ", runtime::to_string(found.error()));
  const std::vector<int64_t> strides(found->begin(), found->end());
  const auto options = at::TensorOptions(executorch_to_torch_device(et.device()))
                           .dtype(executorch_to_torch_scalar_type(et.scalar_type()));
  return at::from_blob(et.mutable_data_ptr(), sizes, strides, options);
}

/// Points `et` at the memory of `at`, which is contiguous and has et's sizes and element type.
inline void alias_etensor_to_attensor(at::Tensor& at, torch::executor::Tensor& et) {
  TORCH_CHECK(at.is_contiguous(), "not contiguous: strides are ", at.strides());
  TORCH_CHECK(torch_to_executorch_scalar_type(at.scalar_type()) == et.scalar_type(),
              "element types differ: ", at.scalar_type(), " and ",
              executorch_to_torch_scalar_type(et.scalar_type()));
  const std::vector<int64_t> sizes(et.sizes().begin(), et.sizes().end());
  TORCH_CHECK(at.sizes() == at::IntArrayRef(sizes), "sizes differ: ", at.sizes(), " and ",
              at::IntArrayRef(sizes));
  et.unsafeGetTensorImpl()->set_data(at.mutable_data_ptr());
}

}  // namespace executorch::extension

namespace torch {
namespace executor::util {
using ::executorch::extension::alias_attensor_to_etensor;
using ::executorch::extension::alias_etensor_to_attensor;

inline ScalarType torchToExecuTorchScalarType(caffe2::TypeMeta type) {
  return ::executorch::extension::torch_to_executorch_scalar_type(type);
}
inline c10::ScalarType execuTorchtoTorchScalarType(ScalarType type) {
  return ::executorch::extension::executorch_to_torch_scalar_type(type);
}
}  // namespace executor::util

namespace util {
using executor::util::alias_attensor_to_etensor;
using executor::util::alias_etensor_to_attensor;
using executor::util::execuTorchtoTorchScalarType;
using executor::util::torchToExecuTorchScalarType;
}  // namespace util
}  // namespace torch
