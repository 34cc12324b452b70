#include <executorch/schema/program_generated.h>
#include <executorch/schema/program_structure.h>

#include <cstring>

namespace executorch::schema {
namespace {

namespace fb = executorch_flatbuffer;

// Members of unions in the order of their types, which begin at 1.
enum Table : uint8_t {
  kNull,
  kInt,
  kBool,
  kDouble,
  kTensor,
  kString,
  kIntList,
  kDoubleList,
  kBoolList,
  kTensorList,
  kOptionalTensorList,
  kKernelCall,
  kDelegateCall,
  kMoveCall,
  kJumpFalseCall,
  kFreeCall,
  kAllocationDetails,
  kExtraTensorInfo,
  kEValue,
  kOperator,
  kInstruction,
  kFrame,
  kFrameList,
  kChain,
  kDataReference,
  kInlineData,
  kCompileSpec,
  kDelegate,
  kContainerMetadata,
  kBufferDevice,
  kPlan,
  kBuffer,
  kSegment,
  kSubsegments,
  kNamedData,
  kProgram,
  kTables,
};
static_assert(kOptionalTensorList + 1 == static_cast<int>(fb::KernelTypes::MAX) &&
              kFreeCall - kKernelCall + 1 == static_cast<int>(fb::InstructionArguments::MAX));

enum class Form : uint8_t {
  Scalar,  // of so many bytes
  Text,
  Items,   // scalars of so many bytes
  Child,   // a table
  Tables,  // a vector of tables
  Values,  // a union of as many tables as KernelTypes has, from this one on
  Calls,   // likewise InstructionArguments
};

struct Field {
  Table table;
  uint8_t entry;  // in the vtable
  Form form;
  uint8_t argument;
};

// By table, in the order of the enumerators. Fields without bytes to check are not there.
constexpr Field kFields[] = {
    {kInt, fb::Int::VT_INT_VAL, Form::Scalar, 8},
    {kBool, fb::Bool::VT_BOOL_VAL, Form::Scalar, 1},
    {kDouble, fb::Double::VT_DOUBLE_VAL, Form::Scalar, 8},
    {kTensor, fb::Tensor::VT_SCALAR_TYPE, Form::Scalar, 1},
    {kTensor, fb::Tensor::VT_STORAGE_OFFSET, Form::Scalar, 4},
    {kTensor, fb::Tensor::VT_SIZES, Form::Items, 4},
    {kTensor, fb::Tensor::VT_DIM_ORDER, Form::Items, 1},
    {kTensor, fb::Tensor::VT_REQUIRES_GRAD, Form::Scalar, 1},
    {kTensor, fb::Tensor::VT_DATA_BUFFER_IDX, Form::Scalar, 4},
    {kTensor, fb::Tensor::VT_ALLOCATION_INFO, Form::Child, kAllocationDetails},
    {kTensor, fb::Tensor::VT_LAYOUT, Form::Scalar, 1},
    {kTensor, fb::Tensor::VT_SHAPE_DYNAMISM, Form::Scalar, 1},
    {kTensor, fb::Tensor::VT_EXTRA_TENSOR_INFO, Form::Child, kExtraTensorInfo},
    {kString, fb::String::VT_STRING_VAL, Form::Text, 0},
    {kIntList, fb::IntList::VT_ITEMS, Form::Items, 8},
    {kDoubleList, fb::DoubleList::VT_ITEMS, Form::Items, 8},
    {kBoolList, fb::BoolList::VT_ITEMS, Form::Items, 1},
    {kTensorList, fb::TensorList::VT_ITEMS, Form::Items, 4},
    {kOptionalTensorList, fb::OptionalTensorList::VT_ITEMS, Form::Items, 4},
    {kKernelCall, fb::KernelCall::VT_OP_INDEX, Form::Scalar, 4},
    {kKernelCall, fb::KernelCall::VT_ARGS, Form::Items, 4},
    {kDelegateCall, fb::DelegateCall::VT_DELEGATE_INDEX, Form::Scalar, 4},
    {kDelegateCall, fb::DelegateCall::VT_ARGS, Form::Items, 4},
    {kMoveCall, fb::MoveCall::VT_MOVE_FROM, Form::Scalar, 4},
    {kMoveCall, fb::MoveCall::VT_MOVE_TO, Form::Scalar, 4},
    {kJumpFalseCall, fb::JumpFalseCall::VT_COND_VALUE_INDEX, Form::Scalar, 4},
    {kJumpFalseCall, fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION, Form::Scalar, 4},
    {kFreeCall, fb::FreeCall::VT_VALUE_INDEX, Form::Scalar, 4},
    {kAllocationDetails, fb::AllocationDetails::VT_MEMORY_ID, Form::Scalar, 4},
    {kAllocationDetails, fb::AllocationDetails::VT_MEMORY_OFFSET_LOW, Form::Scalar, 4},
    {kAllocationDetails, fb::AllocationDetails::VT_MEMORY_OFFSET_HIGH, Form::Scalar, 4},
    {kExtraTensorInfo, fb::ExtraTensorInfo::VT_MUTABLE_DATA_SEGMENTS_IDX, Form::Scalar, 8},
    {kExtraTensorInfo, fb::ExtraTensorInfo::VT_FULLY_QUALIFIED_NAME, Form::Text, 0},
    {kExtraTensorInfo, fb::ExtraTensorInfo::VT_LOCATION, Form::Scalar, 1},
    {kExtraTensorInfo, fb::ExtraTensorInfo::VT_DEVICE_TYPE, Form::Scalar, 1},
    {kExtraTensorInfo, fb::ExtraTensorInfo::VT_DEVICE_INDEX, Form::Scalar, 1},
    {kEValue, fb::EValue::VT_VAL_TYPE, Form::Scalar, 1},
    {kEValue, fb::EValue::VT_VAL, Form::Values, kNull},
    {kOperator, fb::Operator::VT_NAME, Form::Text, 0},
    {kOperator, fb::Operator::VT_OVERLOAD, Form::Text, 0},
    {kInstruction, fb::Instruction::VT_INSTR_ARGS_TYPE, Form::Scalar, 1},
    {kInstruction, fb::Instruction::VT_INSTR_ARGS, Form::Calls, kKernelCall},
    {kFrame, fb::Frame::VT_FILENAME, Form::Text, 0},
    {kFrame, fb::Frame::VT_LINENO, Form::Scalar, 4},
    {kFrame, fb::Frame::VT_NAME, Form::Text, 0},
    {kFrame, fb::Frame::VT_CONTEXT, Form::Text, 0},
    {kFrameList, fb::FrameList::VT_ITEMS, Form::Tables, kFrame},
    {kChain, fb::Chain::VT_INPUTS, Form::Items, 4},
    {kChain, fb::Chain::VT_OUTPUTS, Form::Items, 4},
    {kChain, fb::Chain::VT_INSTRUCTIONS, Form::Tables, kInstruction},
    {kChain, fb::Chain::VT_STACKTRACE, Form::Tables, kFrameList},
    {kDataReference, fb::BackendDelegateDataReference::VT_LOCATION, Form::Scalar, 1},
    {kDataReference, fb::BackendDelegateDataReference::VT_INDEX, Form::Scalar, 4},
    {kInlineData, fb::BackendDelegateInlineData::VT_DATA, Form::Items, 1},
    {kCompileSpec, fb::CompileSpec::VT_KEY, Form::Text, 0},
    {kCompileSpec, fb::CompileSpec::VT_VALUE, Form::Items, 1},
    {kDelegate, fb::BackendDelegate::VT_ID, Form::Text, 0},
    {kDelegate, fb::BackendDelegate::VT_PROCESSED, Form::Child, kDataReference},
    {kDelegate, fb::BackendDelegate::VT_COMPILE_SPECS, Form::Tables, kCompileSpec},
    {kContainerMetadata, fb::ContainerMetadata::VT_ENCODED_INP_STR, Form::Text, 0},
    {kContainerMetadata, fb::ContainerMetadata::VT_ENCODED_OUT_STR, Form::Text, 0},
    {kBufferDevice, fb::NonConstBufferDevice::VT_BUFFER_IDX, Form::Scalar, 4},
    {kBufferDevice, fb::NonConstBufferDevice::VT_DEVICE_TYPE, Form::Scalar, 1},
    {kBufferDevice, fb::NonConstBufferDevice::VT_DEVICE_INDEX, Form::Scalar, 1},
    {kPlan, fb::ExecutionPlan::VT_NAME, Form::Text, 0},
    {kPlan, fb::ExecutionPlan::VT_CONTAINER_META_TYPE, Form::Child, kContainerMetadata},
    {kPlan, fb::ExecutionPlan::VT_VALUES, Form::Tables, kEValue},
    {kPlan, fb::ExecutionPlan::VT_INPUTS, Form::Items, 4},
    {kPlan, fb::ExecutionPlan::VT_OUTPUTS, Form::Items, 4},
    {kPlan, fb::ExecutionPlan::VT_CHAINS, Form::Tables, kChain},
    {kPlan, fb::ExecutionPlan::VT_OPERATORS, Form::Tables, kOperator},
    {kPlan, fb::ExecutionPlan::VT_DELEGATES, Form::Tables, kDelegate},
    {kPlan, fb::ExecutionPlan::VT_NON_CONST_BUFFER_SIZES, Form::Items, 8},
    {kPlan, fb::ExecutionPlan::VT_NON_CONST_BUFFER_DEVICE, Form::Tables, kBufferDevice},
    {kBuffer, fb::Buffer::VT_STORAGE, Form::Items, 1},
    {kSegment, fb::DataSegment::VT_OFFSET, Form::Scalar, 8},
    {kSegment, fb::DataSegment::VT_SIZE, Form::Scalar, 8},
    {kSubsegments, fb::SubsegmentOffsets::VT_SEGMENT_INDEX, Form::Scalar, 4},
    {kSubsegments, fb::SubsegmentOffsets::VT_OFFSETS, Form::Items, 8},
    {kNamedData, fb::NamedData::VT_KEY, Form::Text, 0},
    {kNamedData, fb::NamedData::VT_SEGMENT_INDEX, Form::Scalar, 4},
    {kProgram, fb::Program::VT_VERSION, Form::Scalar, 4},
    {kProgram, fb::Program::VT_EXECUTION_PLAN, Form::Tables, kPlan},
    {kProgram, fb::Program::VT_CONSTANT_BUFFER, Form::Tables, kBuffer},
    {kProgram, fb::Program::VT_BACKEND_DELEGATE_DATA, Form::Tables, kInlineData},
    {kProgram, fb::Program::VT_SEGMENTS, Form::Tables, kSegment},
    {kProgram, fb::Program::VT_CONSTANT_SEGMENT, Form::Child, kSubsegments},
    {kProgram, fb::Program::VT_MUTABLE_DATA_SEGMENTS, Form::Tables, kSubsegments},
    {kProgram, fb::Program::VT_NAMED_DATA, Form::Tables, kNamedData},
};

// Where the fields of each table begin, and where those of the last end.
struct Index {
  constexpr Index() {
    for (const Field& field : kFields) ++begin[field.table + 1];
    for (int table = 0; table < kTables; ++table) {
      begin[table + 1] = static_cast<uint8_t>(begin[table] + begin[table + 1]);
    }
  }
  uint8_t begin[kTables + 1] = {};
};
constexpr Index kIndex;

constexpr bool is_in_order() {
  for (size_t i = 1; i < sizeof(kFields) / sizeof(Field); ++i) {
    if (kFields[i].table < kFields[i - 1].table) return false;
  }
  return true;
}
static_assert(is_in_order());

// Positions are bytes from the beginning; they may be anything until has() has seen them.
class Walk {
 public:
  Walk(const uint8_t* data, size_t size, uint32_t max_depth, uint32_t max_tables)
      : data_(data), size_(size), depth_left_(max_depth), tables_left_(max_tables) {}

  // What the offset at `at` leads to; 0, where no table is, if that is outside.
  size_t follow(size_t at) const {
    if (!has(at, sizeof(uint32_t))) return 0;
    const auto offset = read<uint32_t>(at);
    return offset != 0 && offset <= INT32_MAX && offset < size_ - at ? at + offset : 0;
  }

  bool table(size_t at, uint8_t which) {
    if (at == 0 || depth_left_ == 0 || tables_left_ == 0 || !has(at, sizeof(int32_t))) return false;
    --tables_left_;
    --depth_left_;
    const size_t vtable = at - static_cast<size_t>(int64_t{read<int32_t>(at)});
    if (!has(vtable, sizeof(uint16_t))) return false;
    const uint16_t bytes = read<uint16_t>(vtable);
    if (bytes % 2 != 0 || bytes > size_ - vtable) return false;
    uint8_t first_byte = 0;  // of the field before: the type, for a union
    for (uint8_t i = kIndex.begin[which]; i < kIndex.begin[which + 1]; ++i) {
      const uint8_t entry = kFields[i].entry;
      const size_t offset = entry < bytes ? read<uint16_t>(vtable + entry) : 0;
      if (offset != 0 && !field(at + offset, kFields[i], first_byte)) return false;
      first_byte = offset == 0 ? uint8_t{0} : data_[at + offset];
    }
    ++depth_left_;
    return true;
  }

 private:
  bool has(size_t at, size_t bytes) const {
    return at % bytes == 0 && at < size_ && bytes <= size_ - at;
  }
  template <typename T>
  T read(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(T));
    return value;
  }

  bool field(size_t at, const Field& field, uint8_t type) {
    if (field.form == Form::Scalar) return has(at, field.argument);
    const size_t target = follow(at);
    switch (field.form) {
      case Form::Text:
        return vector(target, 1, true);
      case Form::Items:
        return vector(target, field.argument, false);
      case Form::Child:
        return table(target, field.argument);
      case Form::Tables:
        return tables(target, field.argument);
      default:
        return member(target, field, type);
    }
  }

  // A member of a type that this version does not know is not looked at.
  bool member(size_t at, const Field& field, uint8_t type) {
    const uint8_t n_types =
        field.form == Form::Values ? kOptionalTensorList - kNull + 1 : kFreeCall - kKernelCall + 1;
    return at != 0 && (type == 0 || type > n_types ||
                       table(at, static_cast<uint8_t>(field.argument + type - 1)));
  }

  bool vector(size_t at, size_t item_bytes, bool is_text) const {
    if (at == 0 || !has(at, sizeof(uint32_t))) return false;
    const size_t count = read<uint32_t>(at);
    const size_t items = at + sizeof(uint32_t);
    const size_t room = size_ - items;
    return count <= room / item_bytes && (count == 0 || items % item_bytes == 0) &&
           (!is_text || (count < room && data_[items + count] == 0));
  }

  bool tables(size_t at, uint8_t which) {
    if (!vector(at, sizeof(uint32_t), false)) return false;
    for (uint32_t left = read<uint32_t>(at); left > 0; --left) {
      at += sizeof(uint32_t);
      if (!table(follow(at), which)) return false;
    }
    return true;
  }

  const uint8_t* data_;
  size_t size_;
  uint32_t depth_left_;
  uint32_t tables_left_;
};

}  // namespace

bool is_program_structure(const uint8_t* data, size_t size, uint32_t max_depth,
                          uint32_t max_tables) {
  Walk walk(data, size, max_depth, max_tables);
  return walk.table(walk.follow(0), kProgram);
}

}  // namespace executorch::schema
