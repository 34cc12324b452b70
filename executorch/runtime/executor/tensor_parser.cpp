#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/executor/tensor_parser.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace executorch::runtime::deserialization {
namespace {

namespace fb = executorch_flatbuffer;
using aten::ScalarType;
using aten::TensorImpl;

// Elements are read at addresses that are multiples of their size; complex ones of their parts'.
constexpr size_t kMaxElementAlignment = 8;
constexpr int64_t kMaxElementBytes = 16;

bool is_external(const fb::Tensor& tensor) {
  const auto* extra = tensor.extra_tensor_info();
  return extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL;
}

// Ends with a zero byte, as all strings of a flatbuffer.
std::string_view external_key(const fb::Tensor& tensor) {
  return tensor.extra_tensor_info()->fully_qualified_name()->string_view();
}

template <typename T>
bool equal(const flatbuffers::Vector<T>& a, Span<const T> b) {
  return a.size() == b.size() &&
         (b.size() == 0 || std::memcmp(a.data(), b.data(), b.size() * sizeof(T)) == 0);
}

}  // namespace

// Sizes change at run time, from the upper bounds. A bound without memory may be too large for
// strides and counts (see validate_tensor); it is cut to what they can hold.
Result<int32_t*> TensorParser::copy_sizes(const fb::Tensor& tensor) {
  const uint32_t rank = tensor.sizes()->size();
  auto* copy = memory_.method_allocator()->allocateList<int32_t>(rank + 1);
  ET_CHECK_OR_RETURN_ERROR(copy != nullptr, MemoryAllocationFailed,
                           "%s: no memory for a tensor's sizes", plan_.name()->c_str());
  int64_t numel = 1;  // a size of 0 counts as 1
  for (uint32_t i = rank; i-- > 0;) {
    const int64_t limit = i > 0 ? INT32_MAX : INT64_MAX / kMaxElementBytes;
    const uint32_t dim = tensor.dim_order()->Get(i);
    const int64_t size = tensor.sizes()->Get(dim);
    copy[dim] = static_cast<int32_t>(size < limit / numel ? size : limit / numel);
    numel *= copy[dim] > 0 ? copy[dim] : 1;
  }
  return copy;
}

Result<aten::Tensor> TensorParser::parse(uint32_t index) {
  const fb::Tensor& tensor = *plan_.values()->Get(index)->val_as_Tensor();
  const auto dynamism = static_cast<TensorShapeDynamism>(tensor.shape_dynamism());
  ET_CHECK_OR_RETURN_ERROR(dynamism != TensorShapeDynamism::DYNAMIC_UNBOUND, NotSupported,
                           "%s: value %" PRIu32 ": a Tensor without upper bound is not supported",
                           plan_.name()->c_str(), index);
  const uint32_t rank = tensor.sizes()->size();
  // Never written to while the shape is static.
  auto* sizes = const_cast<int32_t*>(tensor.sizes()->data());
  auto* dim_order = const_cast<uint8_t*>(tensor.dim_order()->data());
  if (dynamism != TensorShapeDynamism::STATIC) {
    ET_ASSIGN_OR_RETURN(sizes, copy_sizes(tensor));
  }
  auto* allocator = memory_.method_allocator();
  auto* strides = allocator->allocateList<int32_t>(rank + 1);
  auto* impl = allocator->allocateInstance<TensorImpl>();
  ET_CHECK_OR_RETURN_ERROR(strides != nullptr && impl != nullptr, MemoryAllocationFailed,
                           "%s: value %" PRIu32 ": no memory for a Tensor of rank %" PRIu32,
                           plan_.name()->c_str(), index, rank);
  dim_order_to_stride_nocheck(sizes, dim_order, rank, strides);
  const auto* extra = tensor.extra_tensor_info();
  const auto device = extra == nullptr ? aten::DeviceType::CPU
                                       : static_cast<aten::DeviceType>(extra->device_type());
  new (impl)
      TensorImpl(static_cast<ScalarType>(tensor.scalar_type()), rank, sizes, nullptr, dim_order,
                 strides, dynamism, device, extra == nullptr ? int8_t{0} : extra->device_index());
  ET_ASSIGN_OR_RETURN(void* const data, find_data(tensor, impl->nbytes()),
                      "%s: value %" PRIu32 ": no data for %s", plan_.name()->c_str(), index,
                      tensor_shape_to_c_string({impl->sizes().data(), rank}).data());
  const size_t element = elementSize(impl->scalar_type());
  const size_t alignment = element < kMaxElementAlignment ? element : kMaxElementAlignment;
  ET_CHECK_OR_RETURN_ERROR(reinterpret_cast<uintptr_t>(data) % alignment == 0, InvalidProgram,
                           "%s: value %" PRIu32 ": data at %p, expected a multiple of %zu",
                           plan_.name()->c_str(), index, data, alignment);
  // Constants lie in the program's memory, which may be mapped for reading only.
  const bool read_only = tensor.allocation_info() == nullptr && data != nullptr;
  impl->borrow_data(data, SIZE_MAX, read_only);
  return aten::Tensor(impl);
}

Result<void*> TensorParser::find_data(const fb::Tensor& tensor, size_t nbytes) {
  if (is_external(tensor)) return find_external(tensor, nbytes);
  if (tensor.allocation_info() == nullptr) {
    if (tensor.data_buffer_idx() == 0) return static_cast<void*>(nullptr);
    ET_ASSIGN_OR_RETURN(const void* const data,
                        program_.get_constant_buffer_data(tensor.data_buffer_idx(), nbytes));
    return const_cast<void*>(data);
  }
  ET_ASSIGN_OR_RETURN(void* const data, find_planned(tensor, nbytes));
  if (tensor.data_buffer_idx() > 0) {
    ET_CHECK_OK_OR_RETURN_ERROR(
        program_.load_initial_state(tensor.data_buffer_idx(), nbytes, data));
  }
  return data;
}

Result<void*> TensorParser::find_planned(const fb::Tensor& tensor, size_t nbytes) {
  const auto& allocation = *tensor.allocation_info();
  ET_CHECK_OR_RETURN_ERROR(memory_.planned_memory() != nullptr, MemoryAllocationFailed,
                           "%s needs planned memory, the memory manager has none",
                           plan_.name()->c_str());
  const uint64_t offset =
      uint64_t{allocation.memory_offset_high()} << 32 | allocation.memory_offset_low();
  ET_CHECK_OR_RETURN_ERROR(offset <= SIZE_MAX, NotSupported,
                           "%s: offset %" PRIu64
                           " of planned memory is out of this machine's "
                           "address space",
                           plan_.name()->c_str(), offset);
  return memory_.planned_memory()->get_offset_address(allocation.memory_id() - 1,
                                                      static_cast<size_t>(offset), nbytes);
}

Error TensorParser::check_external_layout(const fb::Tensor& tensor) const {
  const std::string_view key = external_key(tensor);
  ET_CHECK_OR_RETURN_ERROR(external_data_ != nullptr, InvalidExternalData,
                           "%s: data of %s is in an external file, none was given",
                           plan_.name()->c_str(), key.data());
  auto layout = external_data_->get_tensor_layout(key);
  ET_CHECK_OK_OR_RETURN_ERROR(layout.error(), "%s: the external data has no tensor %s",
                              plan_.name()->c_str(), key.data());
  ET_CHECK_OR_RETURN_ERROR(
      layout->scalar_type() == static_cast<ScalarType>(tensor.scalar_type()) &&
          equal(*tensor.sizes(), layout->sizes()) &&
          equal(*tensor.dim_order(), layout->dim_order()),
      InvalidExternalData,
      "%s: external data %s is %s %s, expected %s %s (or the dim orders differ)",
      plan_.name()->c_str(), key.data(), toString(layout->scalar_type()),
      tensor_shape_to_c_string(layout->sizes()).data(),
      toString(static_cast<ScalarType>(tensor.scalar_type())),
      tensor_shape_to_c_string({tensor.sizes()->data(), tensor.sizes()->size()}).data());
  return Error::Ok;
}

Result<void*> TensorParser::find_external(const fb::Tensor& tensor, size_t nbytes) {
  ET_CHECK_OK_OR_RETURN_ERROR(check_external_layout(tensor));
  const std::string_view key = external_key(tensor);
  if (tensor.allocation_info() != nullptr) {
    ET_ASSIGN_OR_RETURN(void* const data, find_planned(tensor, nbytes));
    ET_CHECK_OK_OR_RETURN_ERROR(external_data_->load_data_into(key, data, nbytes));
    return data;
  }
  auto* const constant =
      std::lower_bound(external_constants_.begin(), external_constants_.end(), key,
                       [](const NamedData& a, std::string_view b) { return a.key < b; });
  ET_CHECK_OR_RETURN_ERROR(constant != external_constants_.end() && constant->key == key, Internal,
                           "%s: external data %s is not listed", plan_.name()->c_str(), key.data());
  if (constant->buffer.data() == nullptr) {
    auto loaded = external_data_->get_data(key);
    ET_CHECK_OK_OR_RETURN_ERROR(loaded.error());
    constant->buffer.~FreeableBuffer();
    new (&constant->buffer) FreeableBuffer(std::move(*loaded));
  }
  const size_t n_loaded = constant->buffer.size();
  ET_CHECK_OR_RETURN_ERROR(n_loaded >= nbytes, InvalidExternalData,
                           "%s: external data %s has %zu bytes, expected %zu",
                           plan_.name()->c_str(), key.data(), n_loaded, nbytes);
  return const_cast<void*>(constant->buffer.data());
}

}  // namespace executorch::runtime::deserialization
