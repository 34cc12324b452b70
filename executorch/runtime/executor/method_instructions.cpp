#include <executorch/runtime/executor/method_allocation.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/program_generated.h>

#include <cstring>
#include <new>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;
using fb::InstructionArguments;
using internal::allocate_list;

// The view operator, whose result borrows the bytes of its operand.
constexpr char kViewOperator[] = "executorch_prim::et_view.default";

// The most missing operators that are named, because a file may call more than anybody reads.
constexpr size_t kMostReported = 100;

// "name.overload", or "name"; the length was checked with the program.
struct OperatorName {
  explicit OperatorName(const fb::Operator& op) {
    const size_t length = op.name()->size();
    std::memcpy(text, op.name()->c_str(), length + 1);
    if (op.overload() != nullptr && op.overload()->size() > 0) {
      text[length] = '.';
      std::memcpy(text + length + 1, op.overload()->c_str(), op.overload()->size() + 1);
    }
  }
  char text[100];
};

}  // namespace

/// Builds the instructions of a method. Kernels that are not registered are collected, so that
/// one message names them all.
class Method::InstructionBuilder {
 public:
  InstructionBuilder(State& state, Span<const Kernel> kernels)
      : state_(state), allocator_(*state.memory_manager->method_allocator()), kernels_(kernels) {}

  Error build() {
    const auto& chains = *state_.plan->chains();
    ET_CHECK_OK_OR_RETURN_ERROR(allocate_scratch());
    ET_ASSIGN_OR_RETURN(auto* const built, allocate_list<Chain>(allocator_, chains.size()));
    for (uint32_t c = 0; c < chains.size(); ++c) {
      const auto& entries = *chains.Get(c)->instructions();
      ET_ASSIGN_OR_RETURN(auto* const instructions,
                          allocate_list<Instruction>(allocator_, entries.size()));
      for (uint32_t i = 0; i < entries.size(); ++i) {
        chain_ = c;
        instruction_ = i;
        ET_CHECK_OK_OR_RETURN_ERROR(build_instruction(*entries.Get(i), instructions[i]));
      }
      new (&built[c]) Chain(instructions, entries.size());
    }
    state_.chains = {built, chains.size()};
    return report_missing();
  }

 private:
  // Calls of an operator that has no kernel, and where the first one stands.
  struct Missing {
    uint32_t calls;
    uint32_t chain;
    uint32_t first;
  };

  // Room for the tensor arguments of the longest call, and a count for each operator.
  Error allocate_scratch() {
    uint32_t longest = 0;
    for (const auto* chain : *state_.plan->chains()) {
      for (const auto* instruction : *chain->instructions()) {
        if (const auto* call = instruction->instr_args_as_KernelCall()) {
          longest = call->args()->size() > longest ? call->args()->size() : longest;
        }
      }
    }
    const auto* operators = state_.plan->operators();
    const size_t count = operators == nullptr ? 0 : operators->size();
    ET_ASSIGN_OR_RETURN(metas_, allocate_list<TensorMeta>(allocator_, longest));
    ET_ASSIGN_OR_RETURN(auto* const missing, allocate_list<Missing>(allocator_, count));
    for (size_t i = 0; i < count; ++i) missing[i] = {};
    missing_ = {missing, count};
    return Error::Ok;
  }

  EValue* value(int32_t index) { return &state_.values[static_cast<size_t>(index)]; }

  Result<InstructionArgs> list_values(const int32_t* indices, size_t count) {
    ET_ASSIGN_OR_RETURN(auto** const args, allocate_list<EValue*>(allocator_, count));
    for (size_t i = 0; i < count; ++i) args[i] = value(indices[i]);
    return InstructionArgs(args, count);
  }

  Error build_instruction(const fb::Instruction& entry, Instruction& out) {
    new (&out) Instruction{};
    switch (entry.instr_args_type()) {
      case InstructionArguments::KernelCall: {
        const auto& call = *entry.instr_args_as_KernelCall();
        out.kind = Instruction::Kind::Kernel;
        out.target = static_cast<uint32_t>(call.op_index());
        ET_ASSIGN_OR_RETURN(out.args, list_values(call.args()->data(), call.args()->size()));
        return resolve(out);
      }
      case InstructionArguments::DelegateCall: {
        const auto& call = *entry.instr_args_as_DelegateCall();
        out.kind = Instruction::Kind::Delegate;
        out.target = static_cast<uint32_t>(call.delegate_index());
        ET_ASSIGN_OR_RETURN(out.args, list_values(call.args()->data(), call.args()->size()));
        return Error::Ok;
      }
      case InstructionArguments::MoveCall: {
        const auto& call = *entry.instr_args_as_MoveCall();
        out.kind = Instruction::Kind::Move;
        const int32_t indices[] = {call.move_from(), call.move_to()};
        ET_ASSIGN_OR_RETURN(out.args, list_values(indices, 2));
        return Error::Ok;
      }
      case InstructionArguments::JumpFalseCall: {
        const auto& call = *entry.instr_args_as_JumpFalseCall();
        out.kind = Instruction::Kind::JumpFalse;
        out.target = static_cast<uint32_t>(call.destination_instruction());
        const int32_t index = call.cond_value_index();
        ET_ASSIGN_OR_RETURN(out.args, list_values(&index, 1));
        return Error::Ok;
      }
      default: {
        out.kind = Instruction::Kind::Free;
        const int32_t index = entry.instr_args_as_FreeCall()->value_index();
        ET_ASSIGN_OR_RETURN(out.args, list_values(&index, 1));
        state_.checks_data = true;
        return Error::Ok;
      }
    }
  }

  // Kernels may be registered for the types and orders of exactly these tensor arguments.
  Error resolve(Instruction& out) {
    size_t count = 0;
    for (EValue* arg : out.args) {
      if (arg->isTensor()) {
        const aten::Tensor& tensor = arg->toTensor();
        const auto order = tensor.dim_order();
        new (&metas_[count++]) TensorMeta(
            tensor.scalar_type(), {const_cast<aten::DimOrderType*>(order.data()), order.size()});
      }
    }
    const OperatorName name(*state_.plan->operators()->Get(out.target));
    const Span<const TensorMeta> metas(metas_, count);
    auto kernel = kernels_.empty() ? get_op_function_from_registry(name.text, metas)
                                   : get_op_function_from_registry(name.text, metas, kernels_);
    if (kernel.ok()) {
      out.kernel = *kernel;
    } else {
      Missing& missing = missing_[out.target];
      missing = missing.calls == 0 ? Missing{1, chain_, instruction_}
                                   : Missing{missing.calls + 1, missing.chain, missing.first};
    }
    out.points_last_argument = !out.args.empty() && std::strcmp(name.text, kViewOperator) == 0;
    if (out.points_last_argument) {
      out.pointed = last_tensor(out.args);
      state_.checks_data = true;
    }
    return Error::Ok;
  }

  // One line for each operator, however often it is called.
  Error report_missing() {
    size_t count = 0;
    for (const Missing& missing : missing_) count += missing.calls > 0 ? 1 : 0;
    if (count == 0) return Error::Ok;
    ET_LOG(Error, "%s: no kernel is registered for the arguments of %zu operators:",
           state_.plan->name()->c_str(), count);
    size_t lines = 0;
    for (uint32_t i = 0; i < missing_.size() && lines < kMostReported; ++i) {
      if (missing_[i].calls > 0) {
        ++lines;
        report(OperatorName(*state_.plan->operators()->Get(i)).text, missing_[i]);
      }
    }
    return Error::OperatorMissing;
  }

  void report(const char* name, const Missing& missing) {
    if (!ET_LOG_ENABLED) {
      return;  // and nothing that reads origins is linked
    }
    InstructionOrigin origin;
    const auto identity = state_.program->debug_identity();
    const bool known = identity.ok() && identity->instruction(state_.plan->name()->c_str(),
                                                              missing.chain, missing.first, origin);
    ET_LOG(Error, "  %s, calls: %" PRIu32 ", the first is instruction %" PRIu32 "%s%s", name,
           missing.calls, missing.first, known ? ", from " : "",
           known ? OriginText(origin).text : "");
  }

  State& state_;
  MemoryAllocator& allocator_;
  Span<const Kernel> kernels_;
  TensorMeta* metas_ = nullptr;
  uint32_t chain_ = 0;
  uint32_t instruction_ = 0;
  Span<Missing> missing_;
};

Error Method::init_instructions(Span<const Kernel> kernels) {
  for (const EValue& value : state_.values) {
    if (value.isTensor() && value.toTensor().const_data_ptr() == nullptr &&
        value.toTensor().numel() > 0) {
      state_.checks_data = true;
    }
  }
  return InstructionBuilder(state_, kernels).build();
}

}  // namespace executorch::runtime
