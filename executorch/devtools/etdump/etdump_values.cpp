#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/devtools/etdump/etdump_generated.h>
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/platform/log.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace executorch::etdump {
namespace {

namespace fb = etdump_flatbuffer;
using aten::ScalarType;
using internal::DumpBuilder;
using runtime::DelegateDebugIdType;
using runtime::Error;
using Field = DumpBuilder::Field;
using Ref = DumpBuilder::Ref;
using Shape = DumpBuilder::Shape;

constexpr size_t kTableBytes = DumpBuilder::kMostTableBytes;
constexpr size_t kHeadBytes = DumpBuilder::kMostHeadBytes;
constexpr size_t kTensorBytes =
    kTableBytes + 2 * (kHeadBytes + sizeof(int64_t) * runtime::kTensorDimensionLimit);
// A value other than a tensor: its table, Value, the mark of outputs, DebugEvent.
constexpr size_t kValueBytes = 4 * kTableBytes;

// The element types that readers of debug buffers know. BFloat16 is not one of them, but every
// value of it is a float.
bool is_readable(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double:
    case ScalarType::Bool:
    case ScalarType::Bits16:
    case ScalarType::UInt16:
      return true;
    default:
      return false;
  }
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

// Null if there is no memory.
Memory allocate(size_t bytes) {
  return Memory(std::malloc(bytes + 1));
}

// Null if there is no memory.
Memory as_floats(const void* data, size_t n) {
  Memory memory = allocate(n * sizeof(float));
  auto* const floats = static_cast<float*>(memory.get());
  const auto* const from = static_cast<const aten::BFloat16*>(data);
  for (size_t i = 0; floats != nullptr && i < n; ++i) floats[i] = static_cast<float>(from[i]);
  return memory;
}

// What the memory of a device holds; null where it cannot be copied.
Memory on_host(const aten::Tensor& tensor) {
  const aten::Device device = tensor.device();
  auto* const allocator = runtime::get_device_allocator(device.type());
  Memory memory = allocator == nullptr ? nullptr : allocate(tensor.nbytes());
  if (memory != nullptr &&
      allocator->copy_device_to_host(memory.get(), tensor.const_data_ptr(), tensor.nbytes(),
                                     device.index()) != Error::Ok) {
    memory.reset();
  }
  return memory;
}

// A Value of the one field given, marked where it is an output of the program. The shapes of
// outputs follow those of other values in the same order.
Ref write_value(DumpBuilder& builder, Shape shape, fb::ValueType kind, uint16_t field, Ref content,
                bool is_output) {
  const Field val =
      Field::number(fb::Value::VT_VAL, static_cast<uint64_t>(static_cast<int8_t>(kind)), 1);
  const Field object = Field::object(field, content);
  if (!is_output) return builder.table(shape, {val, object});
  const Ref mark = builder.table(Shape::kBool, {Field::number(fb::Bool::VT_BOOL_VAL, 1, 1)});
  const auto marked =
      static_cast<Shape>(static_cast<int>(shape) + static_cast<int>(Shape::kOutputTensor) -
                         static_cast<int>(Shape::kValueTensor));
  return builder.table(marked, {val, object, Field::object(fb::Value::VT_OUTPUT, mark)});
}

}  // namespace

Result<size_t> ETDumpGen::write_elements(const aten::Tensor& tensor, ScalarType type) {
  // Null where the tensor has no memory: that is recorded as zeros.
  const void* data = tensor.const_data_ptr();
  Memory host;
  if (data != nullptr && !tensor.device().is_cpu()) {
    host = on_host(tensor);
    if (host == nullptr) {
      return lose(Error::NotSupported, "a tensor, which cannot be copied from its device,");
    }
    data = host.get();
  }
  const auto n = static_cast<size_t>(tensor.numel());
  size_t bytes = tensor.nbytes();
  Memory wide;
  if (type != tensor.scalar_type()) {
    bytes = n * sizeof(float);
    wide = data == nullptr ? nullptr : as_floats(data, n);
    if (wide == nullptr && data != nullptr) return lose(Error::MemoryAllocationFailed, "a tensor");
    data = wide.get();
  }
  if (bytes == 0) return static_cast<size_t>(-1);
  const auto written = sink_->write(data, bytes);
  return written.ok() ? *written : Result<size_t>(lose(written.error(), "a tensor"));
}

Result<Ref> ETDumpGen::add_tensor(const aten::Tensor& tensor) {
  const ScalarType type =
      tensor.scalar_type() == ScalarType::BFloat16 ? ScalarType::Float : tensor.scalar_type();
  if (!is_readable(type)) {
    ET_LOG(Error, "ETDump: readers know no tensors of type %s", runtime::toString(type));
    return lose(Error::InvalidArgument, "a tensor");
  }
  if (sink_ == nullptr) {
    return lose(Error::InvalidArgument, "a tensor, for whose bytes no place was set,");
  }
  int64_t dims[runtime::kTensorDimensionLimit];
  const auto n_dims = static_cast<size_t>(tensor.dim());
  if (n_dims > runtime::kTensorDimensionLimit) {
    return lose(Error::InvalidArgument, "a tensor of too many dimensions");
  }
  aten::StridesType room[runtime::kTensorDimensionLimit];
  const auto of_tensor = runtime::internal::strides_of(tensor, room);
  if (!of_tensor.ok()) return lose(of_tensor.error(), "a tensor without strides");
  ET_ASSIGN_OR_RETURN(const size_t offset, write_elements(tensor, type));
  for (size_t d = 0; d < n_dims; ++d) dims[d] = tensor.sizes()[d];
  const Ref sizes = builder_.int64s(dims, n_dims);
  for (size_t d = 0; d < n_dims; ++d) dims[d] = (*of_tensor)[d];
  const Ref strides = builder_.int64s(dims, n_dims);
  return builder_.table(
      Shape::kTensor,
      {Field::number(fb::Tensor::VT_SCALAR_TYPE, static_cast<uint64_t>(type), 1),
       Field::object(fb::Tensor::VT_SIZES, sizes), Field::object(fb::Tensor::VT_STRIDES, strides),
       Field::int64(fb::Tensor::VT_OFFSET, static_cast<int64_t>(offset))});
}

Result<Ref> ETDumpGen::add_value(const aten::Tensor& tensor, bool is_output) {
  ET_ASSIGN_OR_RETURN(const Ref content, add_tensor(tensor));
  return write_value(builder_, Shape::kValueTensor, fb::ValueType::Tensor, fb::Value::VT_TENSOR,
                     content, is_output);
}

Result<Ref> ETDumpGen::add_value(runtime::ArrayRef<aten::Tensor> tensors, bool is_output) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Error error = begin_event("a list of tensors", kTensorBytes + kValueBytes);
    const auto content = error == Error::Ok ? add_tensor(tensors[i]) : Result<Ref>(error);
    if (!content.ok()) {
      builder_.drop(i);
      return content.error();
    }
    builder_.push(*content);
  }
  const Ref items = builder_.pop_vector(tensors.size());
  const Ref content =
      builder_.table(Shape::kTensorList, {Field::object(fb::TensorList::VT_TENSORS, items)});
  return write_value(builder_, Shape::kValueTensorList, fb::ValueType::TensorList,
                     fb::Value::VT_TENSOR_LIST, content, is_output);
}

Result<Ref> ETDumpGen::add_value(int64_t value, bool is_output) {
  const Ref content = builder_.table(Shape::kInt, {Field::int64(fb::Int::VT_INT_VAL, value)});
  return write_value(builder_, Shape::kValueInt, fb::ValueType::Int, fb::Value::VT_INT_VALUE,
                     content, is_output);
}

Result<Ref> ETDumpGen::add_value(bool value, bool is_output) {
  const Ref content =
      builder_.table(Shape::kBool, {Field::number(fb::Bool::VT_BOOL_VAL, value ? 1 : 0, 1)});
  return write_value(builder_, Shape::kValueBool, fb::ValueType::Bool, fb::Value::VT_BOOL_VALUE,
                     content, is_output);
}

Result<Ref> ETDumpGen::add_value(double value, bool is_output) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const Ref content =
      builder_.table(Shape::kDouble, {Field::number(fb::Double::VT_DOUBLE_VAL, bits, 8)});
  return write_value(builder_, Shape::kValueDouble, fb::ValueType::Double,
                     fb::Value::VT_DOUBLE_VALUE, content, is_output);
}

template <typename T>
Result<bool> ETDumpGen::add_debug_event(const T& value, bool is_output, const char* name,
                                        const DelegateId& id) {
  const size_t name_bytes = kHeadBytes + (name == nullptr ? 0 : std::strlen(name));
  ET_CHECK_OK_OR_RETURN_ERROR(begin_event("a value", name_bytes + kTensorBytes + kValueBytes));
  ET_ASSIGN_OR_RETURN(const Ref entry, add_value(value, is_output));
  // Writing a list may have used the reserved room.
  ET_CHECK_OK_OR_RETURN_ERROR(begin_event("a value", name_bytes + kTableBytes));
  state_ = State::kAddingEvents;
  // Readers see the chain of an event outside of chains, -1, as the largest unsigned number.
  const Field chain = Field::int64(fb::DebugEvent::VT_CHAIN_INDEX, chain_id_);
  const Field instruction =
      Field::int32(fb::DebugEvent::VT_INSTRUCTION_ID, static_cast<int32_t>(debug_handle_));
  const Field content = Field::object(fb::DebugEvent::VT_DEBUG_ENTRY, entry);
  Ref event;
  if (id.type == DelegateDebugIdType::kNone) {
    event = builder_.table(Shape::kDebug, {chain, instruction, content});
  } else {
    const Field delegate =
        id.type == DelegateDebugIdType::kInt
            ? Field::int32(fb::DebugEvent::VT_DELEGATE_DEBUG_ID_INT, id.number)
            : Field::object(fb::DebugEvent::VT_DELEGATE_DEBUG_ID_STR, text(name));
    event = builder_.table(internal::with_delegate(Shape::kDebug, id.type),
                           {chain, instruction, content, delegate});
  }
  builder_.push(
      builder_.table(Shape::kEventOfDebug, {Field::object(fb::Event::VT_DEBUG_EVENT, event)}));
  ++n_events_;
  return true;
}

Result<bool> ETDumpGen::log_evalue(const runtime::EValue& evalue,
                                   runtime::LoggedEValueType evalue_type) {
  const bool is_output = evalue_type == runtime::LoggedEValueType::kProgramOutput;
  const DelegateId none{DelegateDebugIdType::kNone, 0};
  if (evalue.isTensor()) {
    ET_ASSIGN_OR_RETURN(const aten::Tensor tensor, evalue.tryToTensor());
    return add_debug_event(tensor, is_output, nullptr, none);
  }
  if (evalue.isTensorList()) {
    ET_ASSIGN_OR_RETURN(const auto tensors, evalue.tryToTensorList());
    return add_debug_event(tensors, is_output, nullptr, none);
  }
  if (evalue.isInt()) return add_debug_event(evalue.toInt(), is_output, nullptr, none);
  if (evalue.isDouble()) return add_debug_event(evalue.toDouble(), is_output, nullptr, none);
  if (evalue.isBool()) return add_debug_event(evalue.toBool(), is_output, nullptr, none);
  return lose(Error::InvalidArgument, "a value that is no tensor, list of tensors, number or bool");
}

template <typename T>
Result<bool> ETDumpGen::add_delegate_output(const char* name, DelegateDebugIntId number,
                                            const T& value) {
  const auto id = make_id(name, number);
  if (!id.ok()) {
    return lose(id.error(), "an output in a delegate, which has not exactly one of name and id,");
  }
  if (filter_ != nullptr) {
    ET_ASSIGN_OR_RETURN(const bool left_out, filter_->filter(name, number));
    if (left_out) return false;
  }
  return add_debug_event(value, false, name, *id);
}

Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name,
                                                         DelegateDebugIntId delegate_debug_index,
                                                         const aten::Tensor& output) {
  return add_delegate_output(name, delegate_debug_index, output);
}

Result<bool> ETDumpGen::log_intermediate_output_delegate(
    const char* name, DelegateDebugIntId delegate_debug_index,
    const runtime::ArrayRef<aten::Tensor> output) {
  return add_delegate_output(name, delegate_debug_index, output);
}

Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name,
                                                         DelegateDebugIntId delegate_debug_index,
                                                         const int& output) {
  return add_delegate_output(name, delegate_debug_index, static_cast<int64_t>(output));
}

Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name,
                                                         DelegateDebugIntId delegate_debug_index,
                                                         const bool& output) {
  return add_delegate_output(name, delegate_debug_index, output);
}

Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name,
                                                         DelegateDebugIntId delegate_debug_index,
                                                         const double& output) {
  return add_delegate_output(name, delegate_debug_index, output);
}

}  // namespace executorch::etdump
