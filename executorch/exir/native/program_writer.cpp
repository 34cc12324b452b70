#include <executorch/exir/native/program_writer.h>
#include <executorch/exir/native/python_fields.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

namespace nb = nanobind;
namespace fb = executorch_flatbuffer;

namespace executorch::exir {
namespace {

using flatbuffers::Offset;

// Flatbuffer offsets are 32 bit; the builder aborts beyond, so data is counted before it is added.
constexpr uint64_t kMaxFlatbufferBytes = uint64_t{1} << 31;

class ProgramBuilder {
 public:
  ProgramBuilder(uint64_t constant_alignment, uint64_t delegate_alignment)
      : constant_alignment_(constant_alignment), delegate_alignment_(delegate_alignment) {
    const nb::module_ schema = nb::module_::import_("executorch.exir.schema");
    static constexpr const char* kValueNames[] = {"Null",
                                                  "Int",
                                                  "Bool",
                                                  "Double",
                                                  "Tensor",
                                                  "String",
                                                  "IntList",
                                                  "DoubleList",
                                                  "BoolList",
                                                  "TensorList",
                                                  "OptionalTensorList"};
    static constexpr const char* kCallNames[] = {"KernelCall", "DelegateCall", "MoveCall",
                                                 "JumpFalseCall", "FreeCall"};
    number_types(schema, kValueNames);
    number_types(schema, kCallNames);
  }

  std::string build(nb::handle program, const std::vector<SegmentRange>& ranges) {
    const auto plans = vector_of(program.attr("execution_plan"), &ProgramBuilder::plan);
    const auto constants = vector_of(program.attr("constant_buffer"), &ProgramBuilder::buffer);
    const auto delegate_data =
        vector_of(program.attr("backend_delegate_data"), &ProgramBuilder::delegate_data);
    std::vector<Offset<fb::DataSegment>> segments;
    for (const SegmentRange& range : ranges) {
      segments.push_back(fb::CreateDataSegment(builder_, range.offset, range.size));
    }
    const auto segment_table = builder_.CreateVector(segments);
    const auto constant_segment = subsegment(program.attr("constant_segment"));
    const auto mutable_segments =
        optional_vector_of(program.attr("mutable_data_segments"), &ProgramBuilder::subsegment);
    const auto named = optional_vector_of(program.attr("named_data"), &ProgramBuilder::named_data);
    builder_.Finish(
        fb::CreateProgram(builder_, to_int<uint32_t>(program.attr("version"), "Program.version"),
                          plans, constants, delegate_data, segment_table, constant_segment,
                          mutable_segments, named),
        schema::kProgramIdentifier);
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  template <size_t N>
  void number_types(const nb::module_& schema, const char* const (&names)[N]) {
    for (size_t i = 0; i < N; ++i) {
      const nb::object type = schema.attr(names[i]);
      types_[type.ptr()] = static_cast<uint8_t>(i + 1);  // discriminators start behind NONE
      keep_.push_back(type);
    }
  }

  uint8_t discriminator(nb::handle object, const char* field) const {
    const auto found = types_.find(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    if (found == types_.end()) {
      PyErr_Format(PyExc_TypeError, "%s: %R is no member of the union", field,
                   reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
      throw nb::python_error();
    }
    return found->second;
  }

  template <typename T>
  Offset<flatbuffers::Vector<Offset<T>>> vector_of(nb::handle items,
                                                   Offset<T> (ProgramBuilder::*make)(nb::handle)) {
    return builder_.CreateVector(
        to_vector(items, [&](nb::handle item) { return (this->*make)(item); }));
  }

  template <typename T>
  Offset<flatbuffers::Vector<Offset<T>>> optional_vector_of(
      nb::handle items, Offset<T> (ProgramBuilder::*make)(nb::handle)) {
    return items.is_none() ? 0 : vector_of(items, make);
  }

  Offset<flatbuffers::Vector<int32_t>> ints(nb::handle items, const char* field) {
    return builder_.CreateVector(to_ints<int32_t>(items, field));
  }

  Offset<flatbuffers::Vector<uint8_t>> bytes(nb::handle buffer, uint64_t alignment) {
    const BorrowedBytes source(buffer);
    data_bytes_ += source.size() + alignment;
    if (data_bytes_ + builder_.GetSize() > kMaxFlatbufferBytes) {
      throw std::invalid_argument(
          "the program holds more than 2 GiB of inline data: keep it in segments "
          "(extract_delegate_segments=True)");
    }
    builder_.ForceVectorAlignment(source.size(), 1, alignment);
    return builder_.CreateVector(source.data(), source.size());
  }

  Offset<fb::AllocationDetails> allocation(nb::handle h) {
    return fb::CreateAllocationDetails(
        builder_, to_int<uint32_t>(h.attr("memory_id"), "AllocationDetails.memory_id"),
        to_int<uint32_t>(h.attr("memory_offset_low"), "AllocationDetails.memory_offset_low"),
        to_int<uint32_t>(h.attr("memory_offset_high"), "AllocationDetails.memory_offset_high"));
  }

  Offset<fb::ExtraTensorInfo> extra_info(nb::handle h) {
    const nb::object name = h.attr("fully_qualified_name");
    const Offset<flatbuffers::String> fqn = name.is_none() ? 0 : add_string(builder_, name);
    return fb::CreateExtraTensorInfo(
        builder_,
        to_int<uint64_t>(h.attr("mutable_data_segments_idx"),
                         "ExtraTensorInfo.mutable_data_segments_idx"),
        fqn, fb::TensorDataLocation{to_int<int8_t>(h.attr("location"), "ExtraTensorInfo.location")},
        fb::DeviceType{to_int<int8_t>(h.attr("device_type"), "ExtraTensorInfo.device_type")},
        to_int<int8_t>(h.attr("device_index"), "ExtraTensorInfo.device_index"));
  }

  Offset<fb::Tensor> tensor(nb::handle h) {
    const auto sizes = ints(h.attr("sizes"), "Tensor.sizes");
    const auto dim_order =
        builder_.CreateVector(to_ints<uint8_t>(h.attr("dim_order"), "Tensor.dim_order"));
    const nb::object planned = h.attr("allocation_info");
    const Offset<fb::AllocationDetails> details = planned.is_none() ? 0 : allocation(planned);
    const nb::object extra = h.attr("extra_tensor_info");
    const Offset<fb::ExtraTensorInfo> info = extra.is_none() ? 0 : extra_info(extra);
    return fb::CreateTensor(
        builder_, fb::ScalarType{to_int<int8_t>(h.attr("scalar_type"), "Tensor.scalar_type")},
        to_int<int32_t>(h.attr("storage_offset"), "Tensor.storage_offset"), sizes, dim_order,
        to_bool(h.attr("requires_grad")),
        to_int<uint32_t>(h.attr("data_buffer_idx"), "Tensor.data_buffer_idx"), details,
        to_int<int8_t>(h.attr("layout"), "Tensor.layout"),
        fb::TensorShapeDynamism{to_int<int8_t>(h.attr("shape_dynamism"), "Tensor.shape_dynamism")},
        info);
  }

  Offset<void> value_body(nb::handle h, fb::KernelTypes type) {
    switch (type) {
      case fb::KernelTypes::Null:
        return fb::CreateNull(builder_).Union();
      case fb::KernelTypes::Int:
        return fb::CreateInt(builder_, to_int<int64_t>(h.attr("int_val"), "Int.int_val")).Union();
      case fb::KernelTypes::Bool:
        return fb::CreateBool(builder_, to_bool(h.attr("bool_val"))).Union();
      case fb::KernelTypes::Double:
        return fb::CreateDouble(builder_, to_double(h.attr("double_val"))).Union();
      case fb::KernelTypes::Tensor:
        return tensor(h).Union();
      case fb::KernelTypes::String:
        return fb::CreateString(builder_, add_string(builder_, h.attr("string_val"))).Union();
      default:
        break;
    }
    const nb::object items = h.attr("items");
    switch (type) {
      case fb::KernelTypes::IntList: {
        const auto list = builder_.CreateVector(to_ints<int64_t>(items, "IntList.items"));
        return fb::CreateIntList(builder_, list).Union();
      }
      case fb::KernelTypes::DoubleList: {
        const auto list = builder_.CreateVector(to_vector(items, to_double));
        return fb::CreateDoubleList(builder_, list).Union();
      }
      case fb::KernelTypes::BoolList: {
        const auto list = builder_.CreateVector(
            to_vector(items, [](nb::handle b) { return static_cast<uint8_t>(to_bool(b)); }));
        return fb::CreateBoolList(builder_, list).Union();
      }
      case fb::KernelTypes::TensorList:
        return fb::CreateTensorList(builder_, ints(items, "TensorList.items")).Union();
      default:
        return fb::CreateOptionalTensorList(builder_, ints(items, "OptionalTensorList.items"))
            .Union();
    }
  }

  Offset<fb::EValue> value(nb::handle h) {
    const nb::object val = h.attr("val");
    const fb::KernelTypes type{discriminator(val, "EValue.val")};
    return fb::CreateEValue(builder_, type, value_body(val, type));
  }

  Offset<void> call_body(nb::handle h, fb::InstructionArguments type) {
    switch (type) {
      case fb::InstructionArguments::KernelCall: {
        const auto args = ints(h.attr("args"), "KernelCall.args");
        const auto index = to_int<int32_t>(h.attr("op_index"), "KernelCall.op_index");
        return fb::CreateKernelCall(builder_, index, args).Union();
      }
      case fb::InstructionArguments::DelegateCall: {
        const auto args = ints(h.attr("args"), "DelegateCall.args");
        const auto index = to_int<int32_t>(h.attr("delegate_index"), "DelegateCall.delegate_index");
        return fb::CreateDelegateCall(builder_, index, args).Union();
      }
      case fb::InstructionArguments::MoveCall:
        return fb::CreateMoveCall(builder_,
                                  to_int<int32_t>(h.attr("move_from"), "MoveCall.move_from"),
                                  to_int<int32_t>(h.attr("move_to"), "MoveCall.move_to"))
            .Union();
      case fb::InstructionArguments::JumpFalseCall:
        return fb::CreateJumpFalseCall(
                   builder_, to_int<int32_t>(h.attr("cond_value_index"), "JumpFalseCall.cond"),
                   to_int<int32_t>(h.attr("destination_instruction"), "JumpFalseCall.destination"))
            .Union();
      default:
        return fb::CreateFreeCall(builder_,
                                  to_int<int32_t>(h.attr("value_index"), "FreeCall.value_index"))
            .Union();
    }
  }

  Offset<fb::Instruction> instruction(nb::handle h) {
    const nb::object call = h.attr("instr_args");
    const fb::InstructionArguments type{discriminator(call, "Instruction.instr_args")};
    return fb::CreateInstruction(builder_, type, call_body(call, type));
  }

  Offset<fb::Frame> frame(nb::handle h) {
    const auto filename = add_string(builder_, h.attr("filename"));
    const auto name = add_string(builder_, h.attr("name"));
    const auto context = add_string(builder_, h.attr("context"));
    return fb::CreateFrame(builder_, filename, to_int<int32_t>(h.attr("lineno"), "Frame.lineno"),
                           name, context);
  }

  Offset<fb::FrameList> frames(nb::handle h) {
    return fb::CreateFrameList(builder_, vector_of(h.attr("items"), &ProgramBuilder::frame));
  }

  Offset<fb::Chain> chain(nb::handle h) {
    const auto inputs = ints(h.attr("inputs"), "Chain.inputs");
    const auto outputs = ints(h.attr("outputs"), "Chain.outputs");
    const auto instructions = vector_of(h.attr("instructions"), &ProgramBuilder::instruction);
    const auto traces = optional_vector_of(h.attr("stacktrace"), &ProgramBuilder::frames);
    return fb::CreateChain(builder_, inputs, outputs, instructions, traces);
  }

  Offset<fb::Operator> op(nb::handle h) {
    const auto name = builder_.CreateSharedString(std::string(to_text(h.attr("name"))));
    const auto overload = builder_.CreateSharedString(std::string(to_text(h.attr("overload"))));
    return fb::CreateOperator(builder_, name, overload);
  }

  Offset<fb::CompileSpec> compile_spec(nb::handle h) {
    const auto key = add_string(builder_, h.attr("key"));
    return fb::CreateCompileSpec(builder_, key, bytes(h.attr("value"), 1));
  }

  Offset<fb::BackendDelegate> delegate(nb::handle h) {
    const auto id = add_string(builder_, h.attr("id"));
    const nb::object blob = h.attr("processed");
    const auto processed = fb::CreateBackendDelegateDataReference(
        builder_,
        fb::DataLocation{to_int<int8_t>(blob.attr("location"), "BackendDelegate.location")},
        to_int<uint32_t>(blob.attr("index"), "BackendDelegate.index"));
    const auto specs = vector_of(h.attr("compile_specs"), &ProgramBuilder::compile_spec);
    return fb::CreateBackendDelegate(builder_, id, processed, specs);
  }

  Offset<fb::NonConstBufferDevice> buffer_device(nb::handle h) {
    return fb::CreateNonConstBufferDevice(
        builder_, to_int<int32_t>(h.attr("buffer_idx"), "NonConstBufferDevice.buffer_idx"),
        fb::DeviceType{to_int<int8_t>(h.attr("device_type"), "NonConstBufferDevice.device_type")},
        to_int<int8_t>(h.attr("device_index"), "NonConstBufferDevice.device_index"));
  }

  Offset<fb::ExecutionPlan> plan(nb::handle h) {
    const auto name = add_string(builder_, h.attr("name"));
    const nb::object tree = h.attr("container_meta_type");
    const auto input_tree = add_string(builder_, tree.attr("encoded_inp_str"));
    const auto output_tree = add_string(builder_, tree.attr("encoded_out_str"));
    const auto container = fb::CreateContainerMetadata(builder_, input_tree, output_tree);
    const auto values = vector_of(h.attr("values"), &ProgramBuilder::value);
    const auto inputs = ints(h.attr("inputs"), "ExecutionPlan.inputs");
    const auto outputs = ints(h.attr("outputs"), "ExecutionPlan.outputs");
    const auto chains = vector_of(h.attr("chains"), &ProgramBuilder::chain);
    const auto operators = vector_of(h.attr("operators"), &ProgramBuilder::op);
    const auto delegates = vector_of(h.attr("delegates"), &ProgramBuilder::delegate);
    const auto sizes = builder_.CreateVector(
        to_ints<int64_t>(h.attr("non_const_buffer_sizes"), "ExecutionPlan.non_const_buffer_sizes"));
    const auto devices =
        optional_vector_of(h.attr("non_const_buffer_device"), &ProgramBuilder::buffer_device);
    return fb::CreateExecutionPlan(builder_, name, container, values, inputs, outputs, chains,
                                   operators, delegates, sizes, devices);
  }

  Offset<fb::Buffer> buffer(nb::handle h) {
    return fb::CreateBuffer(builder_, bytes(h.attr("storage"), constant_alignment_));
  }

  Offset<fb::BackendDelegateInlineData> delegate_data(nb::handle h) {
    return fb::CreateBackendDelegateInlineData(builder_,
                                               bytes(h.attr("data"), delegate_alignment_));
  }

  Offset<fb::SubsegmentOffsets> subsegment(nb::handle h) {
    const auto offsets =
        builder_.CreateVector(to_ints<uint64_t>(h.attr("offsets"), "SubsegmentOffsets.offsets"));
    const auto index = to_int<uint32_t>(h.attr("segment_index"), "SubsegmentOffsets.segment_index");
    return fb::CreateSubsegmentOffsets(builder_, index, offsets);
  }

  Offset<fb::NamedData> named_data(nb::handle h) {
    const auto key = add_string(builder_, h.attr("key"));
    return fb::CreateNamedData(builder_, key,
                               to_int<uint32_t>(h.attr("segment_index"), "NamedData.segment"));
  }

  flatbuffers::FlatBufferBuilder builder_{1 << 16};
  uint64_t constant_alignment_;
  uint64_t delegate_alignment_;
  uint64_t data_bytes_ = 0;
  std::unordered_map<PyObject*, uint8_t> types_;
  std::vector<nb::object> keep_;
};

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

Segment Segment::part_of(uint64_t whole, uint64_t offset, uint64_t size) {
  Segment part(1);
  part.whole_ = static_cast<int64_t>(whole);
  part.part_ = {offset, size};
  return part;
}

uint64_t Segment::append(nb::handle buffer, uint64_t alignment) {
  image_.align(alignment);
  const uint64_t offset = image_.size();
  image_.append(buffer);
  return offset;
}

std::vector<SegmentRange> lay_out(const std::vector<const Segment*>& segments,
                                  uint64_t segment_alignment) {
  std::vector<SegmentRange> ranges;
  uint64_t end = 0;
  for (const Segment* segment : segments) {
    if (segment->whole() >= 0) {
      const auto whole = static_cast<size_t>(segment->whole());
      const SegmentRange part = segment->part();
      if (whole >= ranges.size() || part.offset > ranges[whole].size ||
          part.size > ranges[whole].size - part.offset) {
        throw std::invalid_argument("a segment is a part of bytes that another does not have");
      }
      ranges.push_back({ranges[whole].offset + part.offset, part.size});
      continue;
    }
    const uint64_t offset = align_up(end, std::lcm(segment_alignment, segment->alignment()));
    ranges.push_back({offset, segment->size()});
    end = offset + segment->size();
  }
  return ranges;
}

void append_segments(FileImage& image, const std::vector<const Segment*>& segments,
                     const std::vector<SegmentRange>& ranges) {
  const uint64_t base = image.size();
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i]->image().size() > 0) {
      image.pad_to(base + ranges[i].offset);
      image.append(segments[i]->image());
    }
  }
}

FileImage write_program(nb::handle program, const std::vector<const Segment*>& segments,
                        uint64_t segment_alignment, uint64_t constant_alignment,
                        uint64_t delegate_alignment) {
  if (std::max(constant_alignment, delegate_alignment) > FLATBUFFERS_MAX_ALIGNMENT) {
    throw std::invalid_argument("alignments of constants and delegate data go up to " +
                                std::to_string(FLATBUFFERS_MAX_ALIGNMENT));
  }
  const std::vector<SegmentRange> ranges = lay_out(segments, segment_alignment);
  ProgramBuilder builder(constant_alignment, delegate_alignment);
  std::string flatbuffer = builder.build(program, ranges);

  FileImage image;
  uint64_t data_size = 0;  // up to the end of the last segment that has bytes
  for (const SegmentRange& range : ranges) {
    if (range.size > 0) data_size = std::max(data_size, range.offset + range.size);
  }
  if (data_size == 0) {
    image.append(std::move(flatbuffer));
    return image;
  }
  const uint64_t spliced =
      align_up(schema::kProgramHeaderLength,
               std::max({uint64_t{16}, constant_alignment, delegate_alignment}));
  schema::ProgramHeader header;
  header.program_size = flatbuffer.size() + spliced;
  header.segment_base_offset = align_up(header.program_size, segment_alignment);
  header.segment_data_size = data_size;
  std::string head(8 + spliced, '\0');
  schema::write_head(reinterpret_cast<const uint8_t*>(flatbuffer.data()), spliced, header,
                     reinterpret_cast<uint8_t*>(head.data()));
  image.append(std::move(head));
  image.append(flatbuffer.substr(8));
  image.pad_to(header.segment_base_offset);
  append_segments(image, segments, ranges);
  return image;
}

}  // namespace executorch::exir
