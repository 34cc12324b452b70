#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/traced_call.h>
#include <executorch/schema/program_generated.h>

// The most instructions that one execute() may run: a program whose loop never ends is an error.
#ifndef ET_MAX_INSTRUCTIONS
#define ET_MAX_INSTRUCTIONS 10000000
#endif

namespace executorch {
namespace runtime {
namespace {

bool lacks_data(const aten::Tensor& tensor) {
  return tensor.const_data_ptr() == nullptr && tensor.numel() > 0;
}

// Also for lists; what a list cannot give is for the kernel to report.
bool lacks_data(const EValue& value) {
  if (value.isTensor()) {
    return lacks_data(value.toTensor());
  }
  if (value.isTensorList()) {
    const auto list = value.tryToTensorList();
    for (size_t i = 0; list.ok() && i < list->size(); ++i) {
      if (lacks_data((*list)[i])) {
        return true;
      }
    }
  }
  if (value.isListOptionalTensor()) {
    const auto list = value.tryToListOptionalTensor();
    for (size_t i = 0; list.ok() && i < list->size(); ++i) {
      if ((*list)[i].has_value() && lacks_data(*(*list)[i])) {
        return true;
      }
    }
  }
  return false;
}

void log_arguments(InstructionArgs args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const EValue& value = *args[i];
    if (value.isTensor()) {
      const aten::Tensor& tensor = value.toTensor();
      ET_LOG(Error, "  argument %zu: Tensor %s %s", i, toString(tensor.scalar_type()),
             tensor_shape_to_c_string({tensor.sizes().data(), tensor.sizes().size()}).data());
    } else if (value.isInt()) {
      ET_LOG(Error, "  argument %zu: Int %" PRId64, i, value.toInt());
    } else if (value.isDouble()) {
      ET_LOG(Error, "  argument %zu: Double %g", i, value.toDouble());
    } else {
      ET_LOG(Error, "  argument %zu: %s", i, tag_to_string(value.tag));
    }
  }
}

}  // namespace

const char* Method::name() const {
  return state_.plan->name()->c_str();
}

bool Method::instruction_origin(size_t chain, size_t instruction, InstructionOrigin& out) const {
  const auto identity = state_.program->debug_identity();
  return identity.ok() && identity->instruction(name(), chain, instruction, out);
}

Error Method::execute() {
  internal::event_tracer_create_event_block(state_.event_tracer, "Execute");
  state_.chain = 0;
  state_.instruction = 0;
  const Error error = run_chains();
  state_.chain = 0;
  state_.instruction = 0;
  if (error == Error::Ok) {
    log_outputs();
  }
  return error;
}

Error Method::run_chains() {
  internal::EventTracerProfileMethodScope scope(state_.event_tracer, "Method::execute");
  ET_CHECK_OK_OR_RETURN_ERROR(check_ready());
  state_.temp_allocator->reset();
  for (size_t count = 0; state_.chain < state_.chains.size();) {
    if (state_.instruction == state_.chains[state_.chain].size()) {
      ++state_.chain;
      state_.instruction = 0;
      continue;
    }
    ET_CHECK_OR_RETURN_ERROR(count++ < ET_MAX_INSTRUCTIONS, InvalidProgram,
                             "%s: stopped after %d instructions; a loop does not end", name(),
                             ET_MAX_INSTRUCTIONS);
    ET_CHECK_OK_OR_RETURN_ERROR(run_instruction());
  }
  return Error::Ok;
}

Error Method::check_ready() const {
  for (size_t i = 0; i < state_.input_set.size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(state_.input_set[i], InvalidArgument,
                             "%s: input %zu of %zu has not been set", name(), i,
                             state_.input_set.size());
  }
  for (size_t i = 0; state_.checks_data && i < outputs_size(); ++i) {
    EValue* const output = &output_value(i);
    if (!output->isTensor() || !lacks_data(output->toTensor())) {
      continue;
    }
    // An output that a view or a move will point somewhere needs nothing.
    for (const Chain& chain : state_.chains) {
      for (const Instruction& instruction : chain) {
        const bool calls = instruction.kind == Instruction::Kind::Kernel ||
                           instruction.kind == Instruction::Kind::Delegate;
        const size_t n = instruction.args.size() - (instruction.points_last_argument ? 1 : 0);
        for (size_t a = 0; calls && a < n; ++a) {
          ET_CHECK_OR_RETURN_ERROR(instruction.args[a] != output, InvalidState,
                                   "%s: output %zu is not memory planned and has no memory; call "
                                   "set_output_data_ptr() first",
                                   name(), i);
        }
      }
    }
  }
  return Error::Ok;
}

Error Method::run_step() {
  internal::EventTracerProfileInstructionScope instruction_scope(
      state_.event_tracer, static_cast<ChainID>(state_.chain),
      static_cast<DebugHandle>(state_.instruction));
  internal::EventTracerProfileMethodScope scope(state_.event_tracer, "Method::step");
  if (state_.chain == state_.chains.size()) {
    return Error::EndOfMethod;
  }
  if (!is_in_progress()) {
    ET_CHECK_OK_OR_RETURN_ERROR(check_ready());
  }
  if (state_.chains[state_.chain].size() > 0) {
    ET_CHECK_OK_OR_RETURN_ERROR(run_instruction());
  }
  if (state_.instruction == state_.chains[state_.chain].size()) {
    state_.instruction = 0;
    ++state_.chain;
    log_outputs();
  }
  return Error::Ok;
}

Error Method::restart() {
  ET_CHECK_OR_RETURN_ERROR(state_.chain == state_.chains.size(), InvalidState,
                           "%s: cannot go back to the beginning before the end is reached", name());
  state_.chain = 0;
  state_.instruction = 0;
  return Error::Ok;
}

Error Method::run_instruction() {
  const Instruction& instruction = state_.chains[state_.chain][state_.instruction];
  internal::EventTracerProfileInstructionScope instruction_scope(
      state_.event_tracer, static_cast<ChainID>(state_.chain),
      static_cast<DebugHandle>(state_.instruction));
  size_t next = state_.instruction + 1;
  Failure failure{state_.instruction, instruction.args};
  Error error = Error::Ok;
  switch (instruction.kind) {
    case Instruction::Kind::Kernel:
      error = run_kernel(instruction, failure);
      break;
    case Instruction::Kind::Delegate:
      error = run_delegate(instruction);
      break;
    case Instruction::Kind::JumpFalse: {
      internal::EventTracerProfileOpScope scope(state_.event_tracer, "JF_CALL");
      auto holds = read_condition(*instruction.args[0]);
      error = holds.error();
      next = holds.ok() && !*holds ? instruction.target : next;
      break;
    }
    case Instruction::Kind::Move: {
      internal::EventTracerProfileOpScope scope(state_.event_tracer, "MOVE_CALL");
      *instruction.args[1] = *instruction.args[0];
      break;
    }
    case Instruction::Kind::Free: {
      internal::EventTracerProfileOpScope scope(state_.event_tracer, "FREE_CALL");
      if (instruction.args[0]->isTensor()) {
        instruction.args[0]->toTensor().unsafeGetTensorImpl()->set_data(nullptr);
      }
      break;
    }
    case Instruction::Kind::Skip:
      break;
  }
  state_.temp_allocator->reset();
  if (error == Error::Ok) {
    state_.instruction = next;
  } else {
    log_origin(failure.instruction);
    log_arguments(failure.args);
  }
  return error;
}

// Under the lines that say what is wrong with an instruction: whose it is.
void Method::log_origin(size_t instruction) const {
  InstructionOrigin origin;
  if (ET_LOG_ENABLED && instruction_origin(state_.chain, instruction, origin)) {
    ET_LOG(Error, "  it comes from %s", OriginText(origin).text);
  }
}

Error Method::check_data(const Instruction& instruction) const {
  const size_t n = instruction.args.size() - (instruction.points_last_argument ? 1 : 0);
  for (size_t i = 0; i < n; ++i) {
    ET_CHECK_OR_RETURN_ERROR(!lacks_data(*instruction.args[i]), InvalidState,
                             "%s: instruction %zu: argument %zu has no memory", name(),
                             state_.instruction, i);
  }
  return Error::Ok;
}

Error Method::run_kernel(const Instruction& instruction, Failure& failure) {
  internal::EventTracerProfileOpScope scope(state_.event_tracer, "OPERATOR_CALL");
  if (state_.checks_data) {
    ET_CHECK_OK_OR_RETURN_ERROR(check_data(instruction));
  }
  KernelRuntimeContext context(state_.event_tracer, state_.temp_allocator);
  if (internal::attached(state_.event_tracer) == nullptr || instruction.traces_itself) {
    instruction.kernel(context, instruction.args);
  } else {
    const auto& op = *state_.plan->operators()->Get(instruction.target);
    internal::call_traced(op.name()->c_str(), op.overload() ? op.overload()->c_str() : nullptr,
                          instruction.kernel, context, instruction.args);
  }
  const Error error = context.failure_state();
  if (error != Error::Ok) {
    context.get_blamed(failure.instruction, failure.args);
    const auto& chain = *state_.plan->chains()->Get(static_cast<uint32_t>(state_.chain));
    const auto& call = *chain.instructions()
                            ->Get(static_cast<uint32_t>(failure.instruction))
                            ->instr_args_as_KernelCall();
    const auto& op = *state_.plan->operators()->Get(static_cast<uint32_t>(call.op_index()));
    const bool overloaded = op.overload() != nullptr && op.overload()->size() > 0;
    ET_LOG(Error, "%s: instruction %zu, %s%s%s, failed: %s", name(), failure.instruction,
           op.name()->c_str(), overloaded ? "." : "", overloaded ? op.overload()->c_str() : "",
           to_string(error));
  }
  return error;
}

Error Method::run_delegate(const Instruction& instruction) {
  internal::EventTracerProfileOpScope scope(state_.event_tracer, "DELEGATE_CALL");
  if (state_.checks_data) {
    ET_CHECK_OK_OR_RETURN_ERROR(check_data(instruction));
  }
  Delegate& delegate = state_.delegates[instruction.target];
  BackendExecutionContext context(state_.event_tracer, state_.temp_allocator, name());
  const Error error = delegate.backend->execute(context, delegate.handle, instruction.args);
  if (error != Error::Ok) {
    ET_LOG(Error, "%s: instruction %zu, delegate %" PRIu32 " (%s), failed: %s", name(),
           state_.instruction, instruction.target,
           state_.plan->delegates()->Get(instruction.target)->id()->c_str(), to_string(error));
    return error;
  }
  for (const EValue* arg : instruction.args) {
    internal::event_tracer_log_evalue(state_.event_tracer, *arg);
  }
  return Error::Ok;
}

// A Bool, or a Bool tensor that holds if all its elements do.
Result<bool> Method::read_condition(const EValue& condition) const {
  if (condition.isBool()) {
    return condition.toBool();
  }
  ET_CHECK_OR_RETURN_ERROR(
      condition.isTensor() && condition.toTensor().scalar_type() == aten::ScalarType::Bool,
      InvalidProgram, "%s: instruction %zu jumps on a %s, expected a Bool or a Bool tensor", name(),
      state_.instruction, tag_to_string(condition.tag));
  const aten::Tensor& tensor = condition.toTensor();
  ET_CHECK_OR_RETURN_ERROR(!lacks_data(tensor), InvalidState,
                           "%s: instruction %zu: the condition has no memory", name(),
                           state_.instruction);
  const auto* elements = tensor.const_data_ptr<uint8_t>();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    if (elements[i] == 0) {
      return false;
    }
  }
  return true;
}

void Method::log_outputs() {
  if (internal::attached(state_.event_tracer) == nullptr) {
    return;
  }
  for (size_t i = 0; i < outputs_size(); ++i) {
    internal::event_tracer_log_evalue_output(state_.event_tracer, output_value(i));
  }
}

}  // namespace runtime
}  // namespace executorch
