#include <executorch/extension/pybindings/outputs.h>

#include <executorch/extension/pybindings/dtype.h>
#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/text.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>

#include <nanobind/ndarray.h>

#include <cstring>
#include <stdexcept>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
using aten::ScalarType;
using runtime::EValue;

namespace {

/// Whether a tensor may be aliased: Python may write to every array, but a constant may be mapped
/// read-only.
bool may_be_aliased(const aten::Tensor& tensor) {
  const LogCapture quiet(LogCapture::kDropped);
  return runtime::internal::writable_data(tensor).ok();
}

/// Copies a tensor. Bytes of type Bool become 0 or 1, which Python relies on.
AlignedBytes copy_elements(const aten::Tensor& tensor) {
  const auto* const from = static_cast<const std::byte*>(tensor.const_data_ptr());
  const size_t n_bytes = tensor.nbytes();
  AlignedBytes copy = aligned_bytes(n_bytes);
  if (tensor.scalar_type() == ScalarType::Bool) {
    for (size_t i = 0; i < n_bytes; ++i) copy[i] = std::byte{from[i] != std::byte{0}};
  } else if (n_bytes > 0) {
    std::memcpy(copy.get(), from, n_bytes);
  }
  return copy;
}

Output detach_tensor(const aten::Tensor& tensor, bool clone) {
  if (tensor.const_data_ptr() == nullptr && tensor.nbytes() > 0) {
    throw std::runtime_error("a tensor among the results has no memory, or no longer");
  }
  TensorOutput out{tensor.scalar_type(),
                   {tensor.sizes().begin(), tensor.sizes().end()},
                   {tensor.strides().begin(), tensor.strides().end()},
                   static_cast<std::byte*>(tensor.mutable_data_ptr()),
                   nullptr};
  if (clone || !may_be_aliased(tensor)) {
    out.owned = copy_elements(tensor);
    out.data = out.owned.get();
  }
  return {std::move(out)};
}

template <typename List>
Output detach_list(const runtime::Result<List>& list, bool clone) {
  if (!list.ok()) throw std::runtime_error("an output list has an element that was never set");
  std::vector<Output> items;
  for (const auto& item : *list) items.push_back(detach(EValue(item), clone));
  return {std::move(items)};
}

Output detach_optional_tensors(const EValue& value, bool clone) {
  const auto list = value.tryToListOptionalTensor();
  if (!list.ok()) throw std::runtime_error("an output list has an element that was never set");
  std::vector<Output> items;
  for (const auto& item : *list) items.push_back(item ? detach_tensor(*item, clone) : Output{});
  return {std::move(items)};
}

bool torch_is_imported() {
  nb::object torch = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  if (!torch.is_valid()) {
    PyErr_Clear();
    return false;
  }
  return nb::hasattr(torch, "from_dlpack");
}

bool numpy_is_available() {
  static const bool available = [] {
    nb::object numpy = nb::steal(PyImport_ImportModule("numpy"));
    PyErr_Clear();
    return numpy.is_valid();
  }();
  return available;
}

void widen_bfloat16(TensorOutput& tensor) {
  size_t count = 1;
  for (size_t size : tensor.sizes) count *= size;
  AlignedBytes wide = aligned_bytes(count * sizeof(uint32_t));
  const auto* from = reinterpret_cast<const uint16_t*>(tensor.data);
  auto* to = reinterpret_cast<uint32_t*>(wide.get());
  for (size_t i = 0; i < count; ++i) {
    to[i] = uint32_t{from[i]} << 16;  // bfloat16 is the upper half of a float32
  }
  tensor.type = ScalarType::Float;
  tensor.owned = std::move(wide);
  tensor.data = tensor.owned.get();
}

template <typename Framework>
nb::object export_array(TensorOutput tensor, nb::dlpack::dtype dtype, nb::handle owner) {
  nb::object keeper = nb::borrow(owner);
  std::byte* data = tensor.data;
  if (tensor.owned) {
    keeper = nb::capsule(tensor.owned.release(),
                         [](void* p) noexcept { AlignedDelete()(static_cast<std::byte*>(p)); });
  }
  return nb::cast(nb::ndarray<Framework>(data, tensor.sizes.size(), tensor.sizes.data(), keeper,
                                         tensor.strides.data(), dtype, nb::device::cpu::value));
}

nb::object tensor_to_python(TensorOutput tensor, nb::handle owner) {
  const bool torch = torch_is_imported();
  const bool numpy = !torch && numpy_is_available();
  if (numpy && tensor.type == ScalarType::BFloat16) widen_bfloat16(tensor);
  const auto dtype = to_dlpack(tensor.type);
  if (!dtype) {
    const std::string name = runtime::toString(tensor.type);
    throw nb::type_error(("a tensor of dtype " + name + " has no form in Python").c_str());
  }
  if (torch) return export_array<nb::pytorch>(std::move(tensor), *dtype, owner);
  if (numpy && !runtime::isFloat8Type(tensor.type)) {
    return export_array<nb::numpy>(std::move(tensor), *dtype, owner);
  }
  return export_array<nb::array_api>(std::move(tensor), *dtype, owner);
}

}  // namespace

Output detach(const EValue& value, bool clone) {
  switch (value.tag) {
    case runtime::Tag::Tensor:
      return detach_tensor(value.toTensor(), clone);
    case runtime::Tag::Int:
      return {value.toInt()};
    case runtime::Tag::Double:
      return {value.toDouble()};
    case runtime::Tag::Bool:
      return {value.toBool()};
    case runtime::Tag::String:
      return {std::string(value.toString())};
    case runtime::Tag::ListInt:
      return detach_list(value.tryToIntList(), clone);
    case runtime::Tag::ListDouble:
      return detach_list(value.tryToDoubleList(), clone);
    case runtime::Tag::ListBool:
      return detach_list(value.tryToBoolList(), clone);
    case runtime::Tag::ListTensor:
      return detach_list(value.tryToTensorList(), clone);
    case runtime::Tag::ListOptionalTensor:
      return detach_optional_tensors(value, clone);
    default:
      return {};
  }
}

nb::object to_python(Output output, nb::handle owner) {
  if (auto* tensor = std::get_if<TensorOutput>(&output.value)) {
    return tensor_to_python(std::move(*tensor), owner);
  }
  if (auto* items = std::get_if<std::vector<Output>>(&output.value)) {
    nb::list list;
    for (Output& item : *items) list.append(to_python(std::move(item), owner));
    return list;
  }
  if (const auto* flag = std::get_if<bool>(&output.value)) return nb::bool_(*flag);
  if (const auto* integer = std::get_if<int64_t>(&output.value)) return nb::int_(*integer);
  if (const auto* number = std::get_if<double>(&output.value)) return nb::float_(*number);
  if (const auto* text = std::get_if<std::string>(&output.value)) return nb::cast(*text);
  return nb::none();
}

}  // namespace executorch::extension::pybindings
