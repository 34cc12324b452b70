/// Builds small programs by hand, for tests: valid ones, and ones with a single thing wrong.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/program_generated.h>

#include <string>
#include <vector>

namespace executorch::runtime::testing {

struct TensorSpec {
  std::vector<int32_t> sizes;
  /// Planned memory, 0 for none.
  uint32_t memory_id = 0;
  uint64_t offset = 0;
  /// Constant, or initial state of planned memory.
  uint32_t data = 0;
  aten::ScalarType dtype = aten::ScalarType::Float;
  int8_t dynamism = 0;
  std::string name = "";
  bool external = false;
  /// Contiguous if empty.
  std::vector<uint8_t> dim_order = {};
  int32_t storage_offset = 0;
  int8_t layout = 0;
};

struct DelegateSpec {
  std::string id;
  std::vector<uint8_t> blob = {};
  bool in_segment = false;
  std::vector<std::pair<std::string, std::string>> compile_specs = {};
};

class ProgramBuilder;

/// One method. Adders return the index of the new value.
class PlanBuilder {
 public:
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int64_t> arenas = {0};
  std::vector<DelegateSpec> delegates;
  /// Whether it says how its outputs are arranged.
  bool arranged = true;

  int32_t tensor(const TensorSpec& spec);
  int32_t integer(int64_t value);
  int32_t boolean(bool value);
  int32_t number(double value);
  int32_t text(const std::string& value);
  int32_t none();
  int32_t integers(const std::vector<int64_t>& items);
  int32_t numbers(const std::vector<double>& items);
  int32_t booleans(const std::vector<uint8_t>& items);
  int32_t tensors(const std::vector<int32_t>& items);
  int32_t optional_tensors(const std::vector<int32_t>& items);

  /// `op` is "name.overload" or "name".
  void kernel(const std::string& op, const std::vector<int32_t>& args);
  void call_delegate(int32_t index, const std::vector<int32_t>& args);
  void move(int32_t from, int32_t to);
  void jump_if_false(int32_t condition, int32_t destination);
  void free(int32_t value);
  /// The last instruction `n` times more, as one table of the file.
  void repeat(size_t n) { instructions_.insert(instructions_.end(), n, instructions_.back()); }

 private:
  friend class ProgramBuilder;
  using Instruction = executorch_flatbuffer::InstructionArguments;
  using Kernel = executorch_flatbuffer::KernelTypes;

  explicit PlanBuilder(flatbuffers::FlatBufferBuilder& fbb, std::string name)
      : fbb_(fbb), name_(std::move(name)) {}
  template <typename T>
  int32_t add(Kernel type, flatbuffers::Offset<T> value) {
    values_.push_back(executorch_flatbuffer::CreateEValue(fbb_, type, value.Union()));
    return static_cast<int32_t>(values_.size()) - 1;
  }
  template <typename T>
  void emit(Instruction type, flatbuffers::Offset<T> args) {
    instructions_.push_back(executorch_flatbuffer::CreateInstruction(fbb_, type, args.Union()));
  }

  flatbuffers::FlatBufferBuilder& fbb_;
  std::string name_;
  std::vector<flatbuffers::Offset<executorch_flatbuffer::EValue>> values_;
  std::vector<std::string> operators_;
  std::vector<flatbuffers::Offset<executorch_flatbuffer::Instruction>> instructions_;
};

class ProgramBuilder {
 public:
  /// Blobs; entry 0 of each is the reserved empty one.
  std::vector<std::vector<uint8_t>> constants = {{}};
  std::vector<std::vector<uint8_t>> states = {{}};
  std::vector<std::pair<std::string, std::vector<uint8_t>>> named_data;
  uint32_t version = 0;
  /// Puts constants into the deprecated place.
  bool constants_inline = false;

  PlanBuilder& method(const std::string& name = "forward") {
    plans_.push_back(PlanBuilder(fbb_, name));
    return plans_.back();
  }
  ProgramBuilder() { plans_.reserve(8); }

  /// A complete file. Call once.
  std::vector<uint8_t> build();

  template <typename T>
  static std::vector<uint8_t> bytes(const std::vector<T>& items) {
    const auto* begin = reinterpret_cast<const uint8_t*>(items.data());
    return {begin, begin + items.size() * sizeof(T)};
  }

 private:
  uint32_t add_segment(const std::vector<uint8_t>& data);
  flatbuffers::Offset<executorch_flatbuffer::SubsegmentOffsets> add_blobs(
      const std::vector<std::vector<uint8_t>>& blobs);
  flatbuffers::Offset<executorch_flatbuffer::ExecutionPlan> finish_plan(PlanBuilder& plan);

  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<PlanBuilder> plans_;
  std::vector<uint8_t> segment_data_;
  std::vector<flatbuffers::Offset<executorch_flatbuffer::DataSegment>> segments_;
  std::vector<flatbuffers::Offset<executorch_flatbuffer::BackendDelegateInlineData>> inline_data_;
};

}  // namespace executorch::runtime::testing
