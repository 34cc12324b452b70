#include <executorch/devtools/etdump/etdump_generated.h>
#include <executorch/devtools/native/etdump.h>
#include <executorch/exir/native/python_fields.h>

#include <string>

namespace nb = nanobind;
namespace fb = etdump_flatbuffer;

namespace executorch::devtools {
namespace {

using exir::add_string;
using exir::to_bool;
using exir::to_double;
using exir::to_int;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

class EtdumpWriter {
 public:
  nb::bytes dump(nb::handle d, bool size_prefixed) {
    const auto runs = tables(d.attr("run_data"), &EtdumpWriter::run);
    const auto root = fb::CreateETDump(
        builder_, to_int<uint32_t>(d.attr("version"), "ETDumpFlatCC.version"), runs);
    if (size_prefixed) {
      builder_.FinishSizePrefixed(root, fb::ETDumpIdentifier());
    } else {
      builder_.Finish(root, fb::ETDumpIdentifier());
    }
    return nb::bytes(builder_.GetBufferPointer(), builder_.GetSize());
  }

 private:
  template <typename T>
  Offset<Vector<Offset<T>>> tables(nb::handle items,
                                   Offset<T> (EtdumpWriter::*convert)(nb::handle)) {
    if (items.is_none()) return 0;
    return builder_.CreateVector(
        exir::to_vector(items, [&](nb::handle item) { return (this->*convert)(item); }));
  }

  template <typename T>
  Offset<T> optional(nb::handle item, Offset<T> (EtdumpWriter::*convert)(nb::handle)) {
    return item.is_none() ? Offset<T>(0) : (this->*convert)(item);
  }

  Offset<String> text(nb::handle value) {
    return value.is_none() ? Offset<String>(0) : add_string(builder_, value);
  }

  static int32_t id(nb::handle value, const char* field) {
    return value.is_none() ? -1 : to_int<int32_t>(value, field);
  }

  // The chain of what belongs to none is the largest number, which Python reads as 2**64 - 1.
  static uint64_t to_uint64(nb::handle value, const char* field) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(value.ptr());
    if (number == ~0ull && PyErr_Occurred()) {
      PyErr_Clear();
      PyErr_Format(PyExc_OverflowError, "%s: %S does not fit into 64 bits", field, value.ptr());
      throw nb::python_error();
    }
    return number;
  }

  Offset<fb::RunData> run(nb::handle r) {
    const auto name = text(r.attr("name"));
    const auto allocators = tables(r.attr("allocators"), &EtdumpWriter::allocator);
    const auto events = tables(r.attr("events"), &EtdumpWriter::event);
    return fb::CreateRunData(builder_, name,
                             id(r.attr("bundled_input_index"), "RunData.bundled_input_index"),
                             allocators, events);
  }

  Offset<fb::Allocator> allocator(nb::handle a) {
    return fb::CreateAllocator(builder_, text(a.attr("name")));
  }

  Offset<fb::Event> event(nb::handle e) {
    const auto profile = optional(e.attr("profile_event"), &EtdumpWriter::profile_event);
    const auto allocation = optional(e.attr("allocation_event"), &EtdumpWriter::allocation_event);
    const auto debug = optional(e.attr("debug_event"), &EtdumpWriter::debug_event);
    return fb::CreateEvent(builder_, profile, allocation, debug);
  }

  Offset<fb::ProfileEvent> profile_event(nb::handle e) {
    const auto name = text(e.attr("name"));
    const auto id_str = text(e.attr("delegate_debug_id_str"));
    Offset<Vector<uint8_t>> metadata = 0;
    const nb::object bytes = e.attr("delegate_debug_metadata");
    if (!bytes.is_none()) {
      const auto data = nb::cast<nb::bytes>(bytes);
      metadata = builder_.CreateVector(reinterpret_cast<const uint8_t*>(data.c_str()), data.size());
    }
    return fb::CreateProfileEvent(
        builder_, name, to_int<int32_t>(e.attr("chain_index"), "ProfileEvent.chain_index"),
        id(e.attr("instruction_id"), "ProfileEvent.instruction_id"),
        id(e.attr("delegate_debug_id_int"), "ProfileEvent.delegate_debug_id_int"), id_str, metadata,
        to_uint64(e.attr("start_time"), "ProfileEvent.start_time"),
        to_uint64(e.attr("end_time"), "ProfileEvent.end_time"));
  }

  Offset<fb::AllocationEvent> allocation_event(nb::handle e) {
    return fb::CreateAllocationEvent(
        builder_, to_int<int32_t>(e.attr("allocator_id"), "AllocationEvent.allocator_id"),
        to_uint64(e.attr("allocation_size"), "AllocationEvent.allocation_size"));
  }

  Offset<fb::DebugEvent> debug_event(nb::handle e) {
    const auto entry = value(e.attr("debug_entry"));
    const auto id_str = text(e.attr("delegate_debug_id_str"));
    const auto name = text(e.attr("name"));
    return fb::CreateDebugEvent(
        builder_, to_uint64(e.attr("chain_index"), "DebugEvent.chain_index"),
        id(e.attr("instruction_id"), "DebugEvent.instruction_id"), entry,
        id(e.attr("delegate_debug_id_int"), "DebugEvent.delegate_debug_id_int"), id_str, name);
  }

  static fb::ValueType kind(nb::handle name) {
    const std::string_view wanted = exir::to_text(name);
    for (const fb::ValueType kind : fb::EnumValuesValueType()) {
      if (wanted == fb::EnumNameValueType(kind)) return kind;
    }
    throw nb::value_error(("Value.val: unknown kind " + std::string(wanted)).c_str());
  }

  Offset<fb::Value> value(nb::handle v) {
    const auto tensor_value = optional(v.attr("tensor"), &EtdumpWriter::tensor);
    const auto list = optional(v.attr("tensor_list"), &EtdumpWriter::tensor_list);
    const auto integer = optional(v.attr("int_value"), &EtdumpWriter::integer);
    const auto single = optional(v.attr("float_value"), &EtdumpWriter::single);
    const auto real = optional(v.attr("double_value"), &EtdumpWriter::real);
    const auto boolean = optional(v.attr("bool_value"), &EtdumpWriter::truth);
    const auto output = optional(v.attr("output"), &EtdumpWriter::truth);
    return fb::CreateValue(builder_, kind(v.attr("val")), tensor_value, list, integer, single, real,
                           boolean, output);
  }

  Offset<fb::Tensor> tensor(nb::handle t) {
    const auto sizes = builder_.CreateVector(exir::to_ints<int64_t>(t.attr("sizes"), "sizes"));
    const auto strides =
        builder_.CreateVector(exir::to_ints<int64_t>(t.attr("strides"), "strides"));
    const auto type = to_int<int8_t>(t.attr("scalar_type"), "Tensor.scalar_type");
    const nb::object offset = t.attr("offset");
    return fb::CreateTensor(builder_, executorch_flatbuffer::ScalarType{type}, sizes, strides,
                            offset.is_none() ? -1 : to_int<int64_t>(offset, "Tensor.offset"));
  }

  Offset<fb::TensorList> tensor_list(nb::handle l) {
    return fb::CreateTensorList(builder_, tables(l.attr("tensors"), &EtdumpWriter::tensor));
  }
  Offset<fb::Int> integer(nb::handle v) {
    return fb::CreateInt(builder_, to_int<int64_t>(v.attr("int_val"), "Int.int_val"));
  }
  Offset<fb::Bool> truth(nb::handle v) {
    return fb::CreateBool(builder_, to_bool(v.attr("bool_val")));
  }
  Offset<fb::Float> single(nb::handle v) {
    return fb::CreateFloat(builder_, static_cast<float>(to_double(v.attr("float_val"))));
  }
  Offset<fb::Double> real(nb::handle v) {
    return fb::CreateDouble(builder_, to_double(v.attr("double_val")));
  }

  FlatBufferBuilder builder_;
};

}  // namespace

nb::bytes write_etdump(nb::handle etdump, bool size_prefixed) {
  return EtdumpWriter().dump(etdump, size_prefixed);
}

}  // namespace executorch::devtools
