#include <executorch/runtime/executor/plan_validation.h>

namespace executorch::runtime::internal {
namespace {

namespace fb = executorch_flatbuffer;
using fb::KernelTypes;

// Joined operator names are this long at most, with their zero byte.
constexpr size_t kOperatorNameBytes = 100;

bool is_scalar(KernelTypes type) {
  return type == KernelTypes::Null || type == KernelTypes::Int || type == KernelTypes::Bool ||
         type == KernelTypes::Double;
}

// The number of items of a list value; 0 for other values.
uint32_t n_items(const fb::EValue& value) {
  switch (value.val_type()) {
    case KernelTypes::IntList:
      return size_of(value.val_as_IntList()->items());
    case KernelTypes::DoubleList:
      return size_of(value.val_as_DoubleList()->items());
    case KernelTypes::BoolList:
      return size_of(value.val_as_BoolList()->items());
    case KernelTypes::TensorList:
      return size_of(value.val_as_TensorList()->items());
    case KernelTypes::OptionalTensorList:
      return size_of(value.val_as_OptionalTensorList()->items());
    default:
      return 0;
  }
}

// Checks the value indices in `list`. Messages name an item "<what> <i>".
Error validate_indices(const PlanScope& scope, const flatbuffers::Vector<int32_t>* list,
                       const char* what) {
  ET_CHECK_OR_RETURN_ERROR(list != nullptr, InvalidProgram, "%s has no list of %ss", scope.name,
                           what);
  ET_CHECK_OR_RETURN_ERROR(scope.take(list->size()), InvalidProgram,
                           "%s: more list items than the file can hold", scope.name);
  for (uint32_t i = 0; i < list->size(); ++i) {
    const int32_t value = list->Get(i);
    ET_CHECK_OR_RETURN_ERROR(value >= 0 && static_cast<uint32_t>(value) < scope.num_values(),
                             InvalidProgram, "%s: %s %" PRIu32 " is value %" PRId32 " of %" PRIu32,
                             scope.name, what, i, value, scope.num_values());
  }
  return Error::Ok;
}

Error validate_inputs(const PlanScope& scope) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_indices(scope, scope.plan.inputs(), "input"));
  for (uint32_t i = 0; i < scope.plan.inputs()->size(); ++i) {
    const auto index = static_cast<uint32_t>(scope.plan.inputs()->Get(i));
    const auto* tensor = scope.tensor(index);
    ET_CHECK_OR_RETURN_ERROR(tensor == nullptr || !is_constant(*tensor), InvalidProgram,
                             "%s: input %" PRIu32 ", value %" PRIu32 ", is a constant", scope.name,
                             i, index);
    const KernelTypes type = scope.type(index);
    ET_CHECK_OR_RETURN_ERROR(tensor != nullptr || is_scalar(type) || type == KernelTypes::String,
                             InvalidProgram, "%s: input %" PRIu32 ", value %" PRIu32 ", is a %s",
                             scope.name, i, index, fb::EnumNameKernelTypes(type));
  }
  return Error::Ok;
}

Error validate_operators(const PlanScope& scope) {
  for (uint32_t i = 0; i < size_of(scope.plan.operators()); ++i) {
    const auto* op = scope.plan.operators()->Get(i);
    ET_CHECK_OR_RETURN_ERROR(op->name() != nullptr, InvalidProgram,
                             "%s: operator %" PRIu32 " has no name", scope.name, i);
    const size_t overload = op->overload() == nullptr ? 0 : op->overload()->size();
    const size_t length = op->name()->size() + (overload > 0 ? 1 + overload : 0);
    ET_CHECK_OR_RETURN_ERROR(length < kOperatorNameBytes, InvalidProgram,
                             "%s: operator %" PRIu32 " has a name of %zu bytes, at most %zu fit",
                             scope.name, i, length, kOperatorNameBytes - 1);
  }
  return Error::Ok;
}

Error validate_delegate(const PlanScope& scope, uint32_t index) {
  const auto* delegate = scope.plan.delegates()->Get(index);
  const auto* data = delegate->processed();
  ET_CHECK_OR_RETURN_ERROR(delegate->id() != nullptr && data != nullptr, InvalidProgram,
                           "%s: delegate %" PRIu32 " lacks its id or data", scope.name, index);
  const bool is_inline = data->location() == fb::DataLocation::INLINE;
  ET_CHECK_OR_RETURN_ERROR(is_inline || data->location() == fb::DataLocation::SEGMENT,
                           InvalidProgram, "%s: delegate %" PRIu32 ": unknown data location %d",
                           scope.name, index, static_cast<int>(data->location()));
  const uint32_t count = is_inline ? size_of(scope.program.backend_delegate_data())
                                   : size_of(scope.program.segments());
  ET_CHECK_OR_RETURN_ERROR(data->index() < count, InvalidProgram,
                           "%s: delegate %" PRIu32 " (%s): data in %s %" PRIu32 " of %" PRIu32,
                           scope.name, index, delegate->id()->c_str(),
                           is_inline ? "blob" : "segment", data->index(), count);
  ET_CHECK_OR_RETURN_ERROR(scope.take(size_of(delegate->compile_specs())), InvalidProgram,
                           "%s: more compile specs than the file can hold", scope.name);
  for (uint32_t i = 0; i < size_of(delegate->compile_specs()); ++i) {
    ET_CHECK_OR_RETURN_ERROR(delegate->compile_specs()->Get(i)->key() != nullptr, InvalidProgram,
                             "%s: delegate %" PRIu32 " (%s): compile spec %" PRIu32 " has no key",
                             scope.name, index, delegate->id()->c_str(), i);
  }
  return Error::Ok;
}

// One instruction and where it stands.
struct InstructionScope {
  const PlanScope& plan;
  uint32_t index;
  uint32_t count;
};

#define ET_INSTRUCTION_CHECK(scope, cond, format, ...)                                   \
  ET_CHECK_OR_RETURN_ERROR(cond, InvalidProgram, "%s: instruction %" PRIu32 ": " format, \
                           (scope).plan.name, (scope).index, ##__VA_ARGS__)

Error validate_value_index(const InstructionScope& scope, int32_t value, const char* what) {
  ET_INSTRUCTION_CHECK(scope, value >= 0 && static_cast<uint32_t>(value) < scope.plan.num_values(),
                       "%s is value %" PRId32 " of %" PRIu32, what, value, scope.plan.num_values());
  return Error::Ok;
}

// Checks a call of entry `callee` of a table with `count` entries.
Error validate_call(const InstructionScope& scope, const char* what, int32_t callee, uint32_t count,
                    const flatbuffers::Vector<int32_t>* args) {
  ET_INSTRUCTION_CHECK(scope, callee >= 0 && static_cast<uint32_t>(callee) < count,
                       "calls %s %" PRId32 " of %" PRIu32, what, callee, count);
  ET_INSTRUCTION_CHECK(scope, args != nullptr && scope.plan.take(args->size()),
                       "has no arguments, or more than the file can hold");
  for (uint32_t i = 0; i < args->size(); ++i) {
    const int32_t value = args->Get(i);
    ET_INSTRUCTION_CHECK(
        scope, value >= 0 && static_cast<uint32_t>(value) < scope.plan.num_values(),
        "argument %" PRIu32 " is value %" PRId32 " of %" PRIu32, i, value, scope.plan.num_values());
    // A call looks at all of a list.
    ET_INSTRUCTION_CHECK(
        scope,
        scope.plan.take(n_items(*scope.plan.plan.values()->Get(static_cast<uint32_t>(value)))),
        "argument %" PRIu32 " is a list; they have more items than the file can hold", i);
  }
  return Error::Ok;
}

// Checks that a move replaces a value by one of the same kind, because the kernels that follow were
// chosen for that kind.
Error validate_move(const InstructionScope& scope, const fb::MoveCall& call) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_value_index(scope, call.move_from(), "source"));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_value_index(scope, call.move_to(), "destination"));
  const auto from = static_cast<uint32_t>(call.move_from());
  const auto to = static_cast<uint32_t>(call.move_to());
  const KernelTypes from_type = scope.plan.type(from);
  const KernelTypes to_type = scope.plan.type(to);
  ET_INSTRUCTION_CHECK(scope, from_type == to_type || (is_scalar(from_type) && is_scalar(to_type)),
                       "moves value %" PRIu32 ", a %s, to value %" PRIu32 ", a %s", from,
                       fb::EnumNameKernelTypes(from_type), to, fb::EnumNameKernelTypes(to_type));
  const auto& inputs = *scope.plan.plan.inputs();
  ET_INSTRUCTION_CHECK(scope, scope.plan.take(inputs.size()), "comes after too many others");
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    ET_INSTRUCTION_CHECK(scope, static_cast<uint32_t>(inputs.Get(i)) != to,
                         "moves a value to input %" PRIu32, i);
  }
  if (from_type == KernelTypes::Tensor) {
    const auto from_dtype = scope.plan.tensor(from)->scalar_type();
    const auto to_dtype = scope.plan.tensor(to)->scalar_type();
    ET_INSTRUCTION_CHECK(scope, from_dtype == to_dtype, "moves a %s tensor to a %s tensor",
                         fb::EnumNameScalarType(from_dtype), fb::EnumNameScalarType(to_dtype));
  }
  return Error::Ok;
}

Error validate_jump(const InstructionScope& scope, const fb::JumpFalseCall& call) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_value_index(scope, call.cond_value_index(), "condition"));
  const auto cond = static_cast<uint32_t>(call.cond_value_index());
  const auto* tensor = scope.plan.tensor(cond);
  // A placeholder of any scalar type may have become a Bool by the time of the jump.
  ET_INSTRUCTION_CHECK(scope,
                       tensor != nullptr ? tensor->scalar_type() == fb::ScalarType::BOOL
                                         : is_scalar(scope.plan.type(cond)),
                       "jumps on value %" PRIu32 ", a %s; expected a Bool or a BOOL tensor", cond,
                       fb::EnumNameKernelTypes(scope.plan.type(cond)));
  const int32_t destination = call.destination_instruction();
  ET_INSTRUCTION_CHECK(scope, destination >= 0 && static_cast<uint32_t>(destination) <= scope.count,
                       "jumps to instruction %" PRId32 " of %" PRIu32, destination, scope.count);
  return Error::Ok;
}

Error validate_free(const InstructionScope& scope, const fb::FreeCall& call) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_value_index(scope, call.value_index(), "the freed value"));
  const auto index = static_cast<uint32_t>(call.value_index());
  const auto* const tensor = scope.plan.tensor(index);
  ET_INSTRUCTION_CHECK(scope, tensor != nullptr, "frees value %" PRIu32 ", a %s; expected a Tensor",
                       index, fb::EnumNameKernelTypes(scope.plan.type(index)));
  // It would lack its memory in the next execution.
  ET_INSTRUCTION_CHECK(scope, tensor->allocation_info() == nullptr && !is_constant(*tensor),
                       "frees value %" PRIu32 ", whose memory is planned or a constant's", index);
  return Error::Ok;
}

Error validate_instruction(const InstructionScope& scope, const fb::Instruction& instruction) {
  ET_INSTRUCTION_CHECK(scope, instruction.instr_args() != nullptr, "is empty");
  const fb::ExecutionPlan& plan = scope.plan.plan;
  switch (instruction.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: {
      const auto* call = instruction.instr_args_as_KernelCall();
      return validate_call(scope, "operator", call->op_index(), size_of(plan.operators()),
                           call->args());
    }
    case fb::InstructionArguments::DelegateCall: {
      const auto* call = instruction.instr_args_as_DelegateCall();
      return validate_call(scope, "delegate", call->delegate_index(), size_of(plan.delegates()),
                           call->args());
    }
    case fb::InstructionArguments::MoveCall:
      return validate_move(scope, *instruction.instr_args_as_MoveCall());
    case fb::InstructionArguments::JumpFalseCall:
      return validate_jump(scope, *instruction.instr_args_as_JumpFalseCall());
    case fb::InstructionArguments::FreeCall:
      return validate_free(scope, *instruction.instr_args_as_FreeCall());
    case fb::InstructionArguments::NONE:
      break;
  }
  ET_INSTRUCTION_CHECK(scope, false, "has the unknown type %d",
                       static_cast<int>(instruction.instr_args_type()));
  return Error::Ok;
}

}  // namespace

Error validate_interface(const PlanScope& scope) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_inputs(scope));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_indices(scope, scope.plan.outputs(), "output"));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_operators(scope));
  for (uint32_t i = 0; i < size_of(scope.plan.delegates()); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(validate_delegate(scope, i));
  }
  return Error::Ok;
}

Error validate_instructions(const PlanScope& scope) {
  const auto* chains = scope.plan.chains();
  ET_CHECK_OR_RETURN_ERROR(size_of(chains) > 0, InvalidProgram, "%s has no instructions",
                           scope.name);
  for (uint32_t c = 0; c < chains->size(); ++c) {
    const auto* instructions = chains->Get(c)->instructions();
    ET_CHECK_OR_RETURN_ERROR(instructions != nullptr, InvalidProgram,
                             "%s: chain %" PRIu32 " has no instructions", scope.name, c);
    for (uint32_t i = 0; i < instructions->size(); ++i) {
      ET_CHECK_OK_OR_RETURN_ERROR(
          validate_instruction({scope, i, instructions->size()}, *instructions->Get(i)));
    }
  }
  return Error::Ok;
}

}  // namespace executorch::runtime::internal
