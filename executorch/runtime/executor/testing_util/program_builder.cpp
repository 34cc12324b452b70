#include <executorch/runtime/executor/testing_util/program_builder.h>

#include <algorithm>
#include <numeric>

namespace executorch::runtime::testing {

namespace fb = executorch_flatbuffer;
using Type = fb::KernelTypes;
using Call = fb::InstructionArguments;

int32_t PlanBuilder::tensor(const TensorSpec& spec) {
  std::vector<uint8_t> order = spec.dim_order;
  if (order.empty()) {
    order.resize(spec.sizes.size());
    std::iota(order.begin(), order.end(), uint8_t{0});
  }
  flatbuffers::Offset<fb::AllocationDetails> allocation;
  if (spec.memory_id > 0) {
    allocation =
        fb::CreateAllocationDetails(fbb_, spec.memory_id, static_cast<uint32_t>(spec.offset),
                                    static_cast<uint32_t>(spec.offset >> 32));
  }
  flatbuffers::Offset<fb::ExtraTensorInfo> extra;
  if (!spec.name.empty() || spec.external) {
    const auto name = spec.name.empty() ? 0 : fbb_.CreateString(spec.name);
    extra = fb::CreateExtraTensorInfo(
        fbb_, 0, name,
        spec.external ? fb::TensorDataLocation::EXTERNAL : fb::TensorDataLocation::SEGMENT);
  }
  const auto sizes = fbb_.CreateVector(spec.sizes);
  const auto dim_order = fbb_.CreateVector(order);
  return add(Type::Tensor,
             fb::CreateTensor(fbb_, static_cast<fb::ScalarType>(spec.dtype), spec.storage_offset,
                              sizes, dim_order, false, spec.data, allocation, spec.layout,
                              static_cast<fb::TensorShapeDynamism>(spec.dynamism), extra));
}

int32_t PlanBuilder::integer(int64_t value) {
  return add(Type::Int, fb::CreateInt(fbb_, value));
}
int32_t PlanBuilder::boolean(bool value) {
  return add(Type::Bool, fb::CreateBool(fbb_, value));
}
int32_t PlanBuilder::number(double value) {
  return add(Type::Double, fb::CreateDouble(fbb_, value));
}
int32_t PlanBuilder::text(const std::string& value) {
  return add(Type::String, fb::CreateString(fbb_, fbb_.CreateString(value)));
}
int32_t PlanBuilder::none() {
  return add(Type::Null, fb::CreateNull(fbb_));
}
int32_t PlanBuilder::integers(const std::vector<int64_t>& items) {
  return add(Type::IntList, fb::CreateIntListDirect(fbb_, &items));
}
int32_t PlanBuilder::numbers(const std::vector<double>& items) {
  return add(Type::DoubleList, fb::CreateDoubleListDirect(fbb_, &items));
}
int32_t PlanBuilder::booleans(const std::vector<uint8_t>& items) {
  return add(Type::BoolList, fb::CreateBoolListDirect(fbb_, &items));
}
int32_t PlanBuilder::tensors(const std::vector<int32_t>& items) {
  return add(Type::TensorList, fb::CreateTensorListDirect(fbb_, &items));
}
int32_t PlanBuilder::optional_tensors(const std::vector<int32_t>& items) {
  return add(Type::OptionalTensorList, fb::CreateOptionalTensorListDirect(fbb_, &items));
}

void PlanBuilder::kernel(const std::string& op, const std::vector<int32_t>& args) {
  const auto known = std::find(operators_.begin(), operators_.end(), op);
  const auto index = static_cast<int32_t>(known - operators_.begin());
  if (known == operators_.end()) operators_.push_back(op);
  emit(Call::KernelCall, fb::CreateKernelCallDirect(fbb_, index, &args));
}
void PlanBuilder::call_delegate(int32_t index, const std::vector<int32_t>& args) {
  emit(Call::DelegateCall, fb::CreateDelegateCallDirect(fbb_, index, &args));
}
void PlanBuilder::move(int32_t from, int32_t to) {
  emit(Call::MoveCall, fb::CreateMoveCall(fbb_, from, to));
}
void PlanBuilder::jump_if_false(int32_t condition, int32_t destination) {
  emit(Call::JumpFalseCall, fb::CreateJumpFalseCall(fbb_, condition, destination));
}
void PlanBuilder::free(int32_t value) {
  emit(Call::FreeCall, fb::CreateFreeCall(fbb_, value));
}

uint32_t ProgramBuilder::add_segment(const std::vector<uint8_t>& data) {
  segment_data_.resize((segment_data_.size() + 127) / 128 * 128);
  segments_.push_back(fb::CreateDataSegment(fbb_, segment_data_.size(), data.size()));
  segment_data_.insert(segment_data_.end(), data.begin(), data.end());
  return static_cast<uint32_t>(segments_.size()) - 1;
}

flatbuffers::Offset<fb::SubsegmentOffsets> ProgramBuilder::add_blobs(
    const std::vector<std::vector<uint8_t>>& blobs) {
  std::vector<uint8_t> data;
  std::vector<uint64_t> offsets;
  for (const auto& blob : blobs) {
    data.resize((data.size() + 15) / 16 * 16);
    offsets.push_back(data.size());
    data.insert(data.end(), blob.begin(), blob.end());
  }
  return fb::CreateSubsegmentOffsetsDirect(fbb_, add_segment(data), &offsets);
}

flatbuffers::Offset<fb::ExecutionPlan> ProgramBuilder::finish_plan(PlanBuilder& plan) {
  std::vector<flatbuffers::Offset<fb::Operator>> operators;
  for (const std::string& op : plan.operators_) {
    const size_t dot = op.find('.');
    operators.push_back(
        fb::CreateOperatorDirect(fbb_, op.substr(0, dot).c_str(),
                                 dot == std::string::npos ? "" : op.substr(dot + 1).c_str()));
  }
  std::vector<flatbuffers::Offset<fb::BackendDelegate>> delegates;
  for (const DelegateSpec& spec : plan.delegates) {
    std::vector<flatbuffers::Offset<fb::CompileSpec>> specs;
    for (const auto& [key, value] : spec.compile_specs) {
      const std::vector<uint8_t> bytes(value.begin(), value.end());
      specs.push_back(fb::CreateCompileSpecDirect(fbb_, key.c_str(), &bytes));
    }
    uint32_t index = 0;
    if (spec.in_segment) {
      index = add_segment(spec.blob);
    } else {
      index = static_cast<uint32_t>(inline_data_.size());
      inline_data_.push_back(fb::CreateBackendDelegateInlineDataDirect(fbb_, &spec.blob));
    }
    const auto data = fb::CreateBackendDelegateDataReference(
        fbb_, spec.in_segment ? fb::DataLocation::SEGMENT : fb::DataLocation::INLINE, index);
    delegates.push_back(fb::CreateBackendDelegateDirect(fbb_, spec.id.c_str(), data, &specs));
  }
  const std::vector<int32_t> nothing;
  const std::vector<flatbuffers::Offset<fb::Chain>> chains = {
      fb::CreateChainDirect(fbb_, &nothing, &nothing, &plan.instructions_)};
  flatbuffers::Offset<fb::ContainerMetadata> meta;
  if (plan.arranged) meta = fb::CreateContainerMetadataDirect(fbb_, "", "outputs");
  return fb::CreateExecutionPlanDirect(fbb_, plan.name_.c_str(), meta, &plan.values_, &plan.inputs,
                                       &plan.outputs, &chains, &operators, &delegates,
                                       &plan.arenas);
}

std::vector<uint8_t> ProgramBuilder::build() {
  flatbuffers::Offset<fb::SubsegmentOffsets> constant_segment;
  std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
  if (constants_inline) {
    for (const auto& constant : constants) {
      fbb_.ForceVectorAlignment(constant.size(), 1, 16);
      buffers.push_back(fb::CreateBuffer(fbb_, fbb_.CreateVector(constant)));
    }
  } else {
    constant_segment = add_blobs(constants);
  }
  std::vector<flatbuffers::Offset<fb::SubsegmentOffsets>> mutable_segments;
  if (states.size() > 1) mutable_segments.push_back(add_blobs(states));
  std::vector<flatbuffers::Offset<fb::ExecutionPlan>> plans;
  for (PlanBuilder& plan : plans_) plans.push_back(finish_plan(plan));
  std::vector<flatbuffers::Offset<fb::NamedData>> named;
  for (const auto& [key, data] : named_data) {
    named.push_back(fb::CreateNamedDataDirect(fbb_, key.c_str(), add_segment(data)));
  }
  fb::FinishProgramBuffer(
      fbb_, fb::CreateProgramDirect(fbb_, version, &plans, &buffers, &inline_data_, &segments_,
                                    constant_segment, &mutable_segments, &named));

  const size_t spliced = schema::kProgramHeaderLength;
  const uint8_t* flatbuffer = fbb_.GetBufferPointer();
  const size_t program_size = fbb_.GetSize() + spliced;
  const size_t base = (program_size + 127) / 128 * 128;
  std::vector<uint8_t> file(base + segment_data_.size());
  schema::write_head(flatbuffer, spliced,
                     schema::ProgramHeader{program_size, base, segment_data_.size()}, file.data());
  std::memcpy(file.data() + 8 + spliced, flatbuffer + 8, fbb_.GetSize() - 8);
  if (!segment_data_.empty()) {
    std::memcpy(file.data() + base, segment_data_.data(), segment_data_.size());
  }
  return file;
}

}  // namespace executorch::runtime::testing
