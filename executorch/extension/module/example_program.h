#pragma once

#include <executorch/schema/program_generated.h>

#include <cstdint>
#include <string>
#include <vector>

namespace executorch::extension::testing {

/// Bytes of a small program for tests, whose only operator is `op`, with the schema of aten::add.
/// Tensors are float32 of shape [2, 2]; inputs and outputs lie in planned memory.
///   forward(x, y) = x + y
///   twice(x) = x + x
///   weighted(x) = x + w, where w is external data under the key "w"
///   scaled(x, alpha) = x + alpha * x, exported with alpha = 3; its output is not planned
///   nothing() has neither inputs nor outputs
///   endless(x) computes x + x until its work is more than it may be
class ExampleProgram {
 public:
  static std::string bytes(const std::string& op = "aten::add",
                           const std::string& overload = "out") {
    return ExampleProgram(op, overload).finish();
  }

 private:
  using Builder = flatbuffers::FlatBufferBuilder;
  template <typename T>
  using Offset = flatbuffers::Offset<T>;
  template <typename T>
  using Vector = std::vector<T>;

  static constexpr uint32_t kTensorBytes = 16;

  ExampleProgram(std::string op, std::string overload)
      : op_(std::move(op)), overload_(std::move(overload)) {}

  enum class Place { Planned, Unplanned, External };

  Offset<executorch_flatbuffer::EValue> tensor(Place place, uint32_t slot = 0) {
    namespace fb = executorch_flatbuffer;
    const auto sizes = b_.CreateVector(Vector<int32_t>{2, 2});
    const auto order = b_.CreateVector(Vector<uint8_t>{0, 1});
    Offset<fb::AllocationDetails> memory;
    Offset<fb::ExtraTensorInfo> extra;
    if (place == Place::Planned) {
      memory = fb::CreateAllocationDetails(b_, /*memory_id=*/1, slot * kTensorBytes, 0);
    } else if (place == Place::External) {
      extra =
          fb::CreateExtraTensorInfo(b_, 0, b_.CreateString("w"), fb::TensorDataLocation::EXTERNAL);
    }
    const auto value = fb::CreateTensor(b_, fb::ScalarType::FLOAT, 0, sizes, order, false, 0,
                                        memory, 0, fb::TensorShapeDynamism::STATIC, extra);
    return fb::CreateEValue(b_, fb::KernelTypes::Tensor, value.Union());
  }

  Offset<executorch_flatbuffer::EValue> integer(int64_t number) {
    namespace fb = executorch_flatbuffer;
    return fb::CreateEValue(b_, fb::KernelTypes::Int, fb::CreateInt(b_, number).Union());
  }

  /// One call of the operator with these arguments, or none; again and again while the value
  /// `again_unless` is false.
  Offset<executorch_flatbuffer::ExecutionPlan> plan(
      const char* name, const Vector<Offset<executorch_flatbuffer::EValue>>& values,
      const Vector<int32_t>& inputs, const Vector<int32_t>& outputs,
      const Vector<int32_t>& arguments, int32_t again_unless = -1) {
    namespace fb = executorch_flatbuffer;
    Vector<Offset<fb::Instruction>> calls;
    if (!arguments.empty()) {
      const auto call = fb::CreateKernelCall(b_, 0, b_.CreateVector(arguments));
      calls.push_back(
          fb::CreateInstruction(b_, fb::InstructionArguments::KernelCall, call.Union()));
    }
    if (again_unless >= 0) {
      const auto jump = fb::CreateJumpFalseCall(b_, again_unless, 0);
      calls.push_back(
          fb::CreateInstruction(b_, fb::InstructionArguments::JumpFalseCall, jump.Union()));
    }
    const Vector<int32_t> none;
    const Vector<Offset<fb::Chain>> chains{
        fb::CreateChain(b_, b_.CreateVector(none), b_.CreateVector(none), b_.CreateVector(calls))};
    const Vector<Offset<fb::Operator>> operators{
        fb::CreateOperator(b_, b_.CreateString(op_), b_.CreateString(overload_))};
    const auto metadata = fb::CreateContainerMetadata(b_, b_.CreateString(""), b_.CreateString(""));
    return fb::CreateExecutionPlan(b_, b_.CreateString(name), metadata, b_.CreateVector(values),
                                   b_.CreateVector(inputs), b_.CreateVector(outputs),
                                   b_.CreateVector(chains), b_.CreateVector(operators),
                                   b_.CreateVector(Vector<Offset<fb::BackendDelegate>>()),
                                   b_.CreateVector(Vector<int64_t>{0, 3 * kTensorBytes}));
  }

  std::string finish() {
    namespace fb = executorch_flatbuffer;
    const auto P = Place::Planned;
    const auto never =
        fb::CreateEValue(b_, fb::KernelTypes::Bool, fb::CreateBool(b_, false).Union());
    const Vector<Offset<fb::ExecutionPlan>> plans{
        plan("forward", {tensor(P, 0), tensor(P, 1), integer(1), tensor(P, 2)}, {0, 1}, {3},
             {0, 1, 2, 3, 3}),
        plan("twice", {tensor(P, 0), integer(1), tensor(P, 1)}, {0}, {2}, {0, 0, 1, 2, 2}),
        plan("weighted", {tensor(P, 0), tensor(Place::External), integer(1), tensor(P, 1)}, {0},
             {3}, {0, 1, 2, 3, 3}),
        plan("scaled", {tensor(P, 0), integer(3), tensor(Place::Unplanned)}, {0, 1}, {2},
             {0, 0, 1, 2, 2}),
        plan("nothing", {}, {}, {}, {}),
        plan("endless", {tensor(P, 0), integer(1), tensor(P, 1), never}, {0}, {2}, {0, 0, 1, 2, 2},
             3),
    };
    const Vector<Offset<fb::Buffer>> constants{
        fb::CreateBuffer(b_, b_.CreateVector(Vector<uint8_t>()))};
    const auto program =
        fb::CreateProgram(b_, 0, b_.CreateVector(plans), b_.CreateVector(constants));
    fb::FinishProgramBuffer(b_, program);
    return {reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize()};
  }

  std::string op_;
  std::string overload_;
  Builder b_;
};

}  // namespace executorch::extension::testing
