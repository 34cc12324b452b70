#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/program_reader.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>
#include <executorch/schema/program_generated.h>

#include <string>

namespace nb = nanobind;
namespace fb = executorch_flatbuffer;
namespace ft = flat_tensor_flatbuffer;

namespace executorch::exir {
namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw nb::value_error(what.c_str());
}

nb::object text(const flatbuffers::String* s) {
  const char* data = s == nullptr ? "" : s->c_str();
  const Py_ssize_t size = s == nullptr ? 0 : static_cast<Py_ssize_t>(s->size());
  nb::object result = nb::steal(PyUnicode_DecodeUTF8(data, size, nullptr));
  if (!result.is_valid()) {
    PyErr_Clear();
    const nb::object shown = nb::steal(PyUnicode_DecodeUTF8(data, size, "backslashreplace"));
    if (!shown.is_valid()) throw nb::python_error();
    damaged(std::string("a text in it is not UTF-8: ") + PyUnicode_AsUTF8(shown.ptr()));
  }
  return result;
}

template <typename T>
nb::list numbers(const flatbuffers::Vector<T>* items) {
  nb::list result;
  for (size_t i = 0; items != nullptr && i < items->size(); ++i) {
    result.append(items->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }
  return result;
}

nb::list truths(const flatbuffers::Vector<uint8_t>* items) {
  nb::list result;
  for (size_t i = 0; items != nullptr && i < items->size(); ++i) {
    result.append(items->Get(static_cast<flatbuffers::uoffset_t>(i)) != 0);
  }
  return result;
}

nb::bytes octets(const flatbuffers::Vector<uint8_t>* items) {
  return items == nullptr ? nb::bytes("", 0) : nb::bytes(items->data(), items->size());
}

class ProgramReader {
 public:
  nb::object program(const fb::Program& p) {
    const auto* segment = p.constant_segment();
    return make(
        "Program", p.version(), list_of(p.execution_plan(), &ProgramReader::plan),
        list_of(p.constant_buffer(), &ProgramReader::buffer),
        list_of(p.backend_delegate_data(), &ProgramReader::delegate_data),
        list_of(p.segments(), &ProgramReader::data_segment),
        segment == nullptr ? make("SubsegmentOffsets", 0, nb::list()) : subsegment(*segment),
        optional_list_of(p.mutable_data_segments(), &ProgramReader::subsegment),
        optional_list_of(p.named_data(), &ProgramReader::named_data));
  }

 private:
  template <typename... Args>
  nb::object make(const char* type, Args&&... args) {
    return schema_.attr(type)(std::forward<Args>(args)...);
  }

  template <typename T>
  nb::list list_of(const flatbuffers::Vector<flatbuffers::Offset<T>>* items,
                   nb::object (ProgramReader::*convert)(const T&)) {
    nb::list result;
    for (size_t i = 0; items != nullptr && i < items->size(); ++i) {
      result.append((this->*convert)(*items->Get(static_cast<flatbuffers::uoffset_t>(i))));
    }
    return result;
  }

  template <typename T>
  nb::object optional_list_of(const flatbuffers::Vector<flatbuffers::Offset<T>>* items,
                              nb::object (ProgramReader::*convert)(const T&)) {
    return items == nullptr ? nb::none() : nb::object(list_of(items, convert));
  }

  template <typename E>
  nb::object enumerator(const char* type, E value) {
    return make(type, static_cast<int>(value));
  }

  nb::object tensor(const fb::Tensor& t) {
    nb::object allocation = nb::none();
    if (const auto* a = t.allocation_info()) {
      allocation = make("AllocationDetails", a->memory_id(), a->memory_offset_low(),
                        a->memory_offset_high());
    }
    nb::object extra = nb::none();
    if (const auto* e = t.extra_tensor_info()) {
      const auto* name = e->fully_qualified_name();
      extra = make("ExtraTensorInfo", e->mutable_data_segments_idx(),
                   name == nullptr ? nb::none() : text(name),
                   enumerator("TensorDataLocation", e->location()),
                   enumerator("DeviceType", e->device_type()), e->device_index());
    }
    return make("Tensor", enumerator("ScalarType", t.scalar_type()), t.storage_offset(),
                numbers(t.sizes()), numbers(t.dim_order()), t.requires_grad(), t.layout(),
                t.data_buffer_idx(), allocation,
                enumerator("TensorShapeDynamism", t.shape_dynamism()), extra);
  }

  nb::object value_body(const fb::EValue& v) {
    switch (v.val_type()) {
      case fb::KernelTypes::Null:
        return make("Null");
      case fb::KernelTypes::Int:
        return make("Int", v.val_as_Int()->int_val());
      case fb::KernelTypes::Bool:
        return make("Bool", v.val_as_Bool()->bool_val());
      case fb::KernelTypes::Double:
        return make("Double", v.val_as_Double()->double_val());
      case fb::KernelTypes::Tensor:
        return tensor(*v.val_as_Tensor());
      case fb::KernelTypes::String:
        return make("String", text(v.val_as_String()->string_val()));
      case fb::KernelTypes::IntList:
        return make("IntList", numbers(v.val_as_IntList()->items()));
      case fb::KernelTypes::DoubleList:
        return make("DoubleList", numbers(v.val_as_DoubleList()->items()));
      case fb::KernelTypes::BoolList:
        return make("BoolList", truths(v.val_as_BoolList()->items()));
      case fb::KernelTypes::TensorList:
        return make("TensorList", numbers(v.val_as_TensorList()->items()));
      case fb::KernelTypes::OptionalTensorList:
        return make("OptionalTensorList", numbers(v.val_as_OptionalTensorList()->items()));
      default:
        damaged("a value has the unknown type " + std::to_string(static_cast<int>(v.val_type())));
    }
  }

  nb::object value(const fb::EValue& v) {
    if (v.val() == nullptr && v.val_type() != fb::KernelTypes::Null) {
      damaged("a value has a type but no content");
    }
    return make("EValue", value_body(v));
  }

  nb::object call_body(const fb::Instruction& i) {
    if (i.instr_args() == nullptr) damaged("an instruction is empty");
    switch (i.instr_args_type()) {
      case fb::InstructionArguments::KernelCall: {
        const auto* call = i.instr_args_as_KernelCall();
        return make("KernelCall", call->op_index(), numbers(call->args()));
      }
      case fb::InstructionArguments::DelegateCall: {
        const auto* call = i.instr_args_as_DelegateCall();
        return make("DelegateCall", call->delegate_index(), numbers(call->args()));
      }
      case fb::InstructionArguments::MoveCall: {
        const auto* call = i.instr_args_as_MoveCall();
        return make("MoveCall", call->move_from(), call->move_to());
      }
      case fb::InstructionArguments::JumpFalseCall: {
        const auto* call = i.instr_args_as_JumpFalseCall();
        return make("JumpFalseCall", call->cond_value_index(), call->destination_instruction());
      }
      case fb::InstructionArguments::FreeCall:
        return make("FreeCall", i.instr_args_as_FreeCall()->value_index());
      default:
        damaged("an instruction has the unknown type " +
                std::to_string(static_cast<int>(i.instr_args_type())));
    }
  }

  nb::object instruction(const fb::Instruction& i) { return make("Instruction", call_body(i)); }

  nb::object frame(const fb::Frame& f) {
    return make("Frame", text(f.filename()), f.lineno(), text(f.name()), text(f.context()));
  }

  nb::object frames(const fb::FrameList& f) {
    return make("FrameList", list_of(f.items(), &ProgramReader::frame));
  }

  nb::object chain(const fb::Chain& c) {
    return make("Chain", numbers(c.inputs()), numbers(c.outputs()),
                list_of(c.instructions(), &ProgramReader::instruction),
                optional_list_of(c.stacktrace(), &ProgramReader::frames));
  }

  nb::object op(const fb::Operator& o) {
    return make("Operator", text(o.name()), text(o.overload()));
  }

  nb::object compile_spec(const fb::CompileSpec& s) {
    return make("CompileSpec", text(s.key()), octets(s.value()));
  }

  nb::object delegate(const fb::BackendDelegate& d) {
    const auto* processed = d.processed();
    if (processed == nullptr) damaged("a delegate has no data reference");
    return make("BackendDelegate", text(d.id()),
                make("BackendDelegateDataReference",
                     enumerator("DataLocation", processed->location()), processed->index()),
                list_of(d.compile_specs(), &ProgramReader::compile_spec));
  }

  nb::object buffer_device(const fb::NonConstBufferDevice& d) {
    return make("NonConstBufferDevice", d.buffer_idx(), enumerator("DeviceType", d.device_type()),
                d.device_index());
  }

  nb::object plan(const fb::ExecutionPlan& p) {
    const auto* tree = p.container_meta_type();
    return make(
        "ExecutionPlan", text(p.name()),
        make("ContainerMetadata", text(tree ? tree->encoded_inp_str() : nullptr),
             text(tree ? tree->encoded_out_str() : nullptr)),
        list_of(p.values(), &ProgramReader::value), numbers(p.inputs()), numbers(p.outputs()),
        list_of(p.chains(), &ProgramReader::chain), list_of(p.operators(), &ProgramReader::op),
        list_of(p.delegates(), &ProgramReader::delegate), numbers(p.non_const_buffer_sizes()),
        optional_list_of(p.non_const_buffer_device(), &ProgramReader::buffer_device));
  }

  nb::object buffer(const fb::Buffer& b) { return make("Buffer", octets(b.storage())); }
  nb::object delegate_data(const fb::BackendDelegateInlineData& d) {
    return make("BackendDelegateInlineData", octets(d.data()));
  }
  nb::object data_segment(const fb::DataSegment& s) {
    return make("DataSegment", s.offset(), s.size());
  }
  nb::object subsegment(const fb::SubsegmentOffsets& s) {
    return make("SubsegmentOffsets", s.segment_index(), numbers(s.offsets()));
  }
  nb::object named_data(const fb::NamedData& n) {
    return make("NamedData", text(n.key()), n.segment_index());
  }

  nb::module_ schema_ = nb::module_::import_("executorch.exir.schema");
};

void check_identifier(const BorrowedBytes& file, const char* expected) {
  if (file.size() < schema::kHeadBytes ||
      schema::check_identifier(file.data(), expected) != schema::Identifier::Match) {
    damaged("expected a file of " + std::to_string(schema::kHeadBytes) +
            " bytes or more with the identifier " + expected);
  }
}

}  // namespace

nb::tuple read_program(nb::handle source) {
  const BorrowedBytes file(source);
  check_identifier(file, schema::kProgramIdentifier);
  schema::ProgramHeader header;
  header.program_size = file.size();
  if (schema::parse_header(file.data(), file.size(), header) == schema::HeaderStatus::Corrupt) {
    damaged("the program's extended header is damaged");
  }
  const uint64_t end = header.segment_base_offset + header.segment_data_size;
  if (header.program_size > file.size() || end < header.segment_base_offset || end > file.size()) {
    damaged("the program is cut off: it has " + std::to_string(file.size()) + " bytes, not " +
            std::to_string(std::max(header.program_size, end)));
  }
  flatbuffers::Verifier verifier(file.data(), header.program_size, 128, 100'000'000);
  if (!verifier.VerifyBuffer<fb::Program>(schema::kProgramIdentifier)) {
    damaged("the program's flatbuffer is damaged");
  }
  return nb::make_tuple(ProgramReader().program(*fb::GetProgram(file.data())),
                        header.segment_base_offset);
}

nb::dict read_flat_tensor(nb::handle source) {
  const BorrowedBytes file(source);
  check_identifier(file, schema::kFlatTensorIdentifier);
  schema::FlatTensorHeader header;
  if (schema::parse_header(file.data(), file.size(), header) != schema::HeaderStatus::Found ||
      header.flatbuffer_offset > file.size() ||
      header.flatbuffer_size > file.size() - header.flatbuffer_offset ||
      header.segment_base_offset > file.size() ||
      header.segment_data_size > file.size() - header.segment_base_offset) {
    damaged("the external data file's header is damaged or the file is cut off");
  }
  flatbuffers::Verifier verifier(file.data(), header.flatbuffer_offset + header.flatbuffer_size,
                                 128, 100'000'000);
  if (!verifier.VerifyBuffer<ft::FlatTensor>(schema::kFlatTensorIdentifier)) {
    damaged("the external data file's flatbuffer is damaged");
  }
  const ft::FlatTensor& root = *ft::GetFlatTensor(file.data());
  if (root.segments() == nullptr || root.named_data() == nullptr) {
    damaged("the external data file has no segments or no named data");
  }
  nb::dict result;
  for (const ft::NamedData* entry : *root.named_data()) {
    if (entry->segment_index() >= root.segments()->size()) {
      damaged("a named blob refers to no segment");
    }
    const ft::DataSegment& segment = *root.segments()->Get(entry->segment_index());
    if (segment.offset() > header.segment_data_size ||
        segment.size() > header.segment_data_size - segment.offset()) {
      damaged("a segment reaches beyond the file");
    }
    nb::object layout = nb::none();
    if (const ft::TensorLayout* t = entry->tensor_layout()) {
      layout = nb::make_tuple(static_cast<int>(t->scalar_type()), numbers(t->sizes()),
                              numbers(t->dim_order()));
    }
    result[text(entry->key())] = nb::make_tuple(
        layout,
        nb::bytes(file.data() + header.segment_base_offset + segment.offset(), segment.size()));
  }
  return result;
}

}  // namespace executorch::exir
