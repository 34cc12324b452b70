#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/traced_call.h>
#include <executorch/schema/program_generated.h>

#include <cstring>

namespace executorch::runtime {
namespace {

// What an instruction costs when it runs again, in units of some hundred nanoseconds, as jumps and
// moves take. Kernels pass over small tensors element by element.
constexpr uint64_t kElementsPerUnit = 1024;
constexpr uint64_t kSmall = 2048, kSmallElementsPerUnit = 32;
constexpr uint64_t kItemsPerUnit = 8;
constexpr uint64_t kKernelUnits = 4, kDelegateUnits = 100;
constexpr uint64_t kStepsPerUnit = 256;  // of those that kernels and delegates tell of

uint64_t work_of(const EValue& value);
uint64_t work_of(aten::ArrayRef<EValue*> values) {
  uint64_t work = values.size() / kItemsPerUnit;
  for (const EValue* value : values) work += value == nullptr ? 0 : work_of(*value);
  return work;
}

uint64_t work_of(const EValue& value) {
  const auto& list = value.payload.copyable_union;
  switch (value.tag) {
    case Tag::Tensor: {
      const auto elements = static_cast<uint64_t>(value.payload.as_tensor.numel());
      return elements < kSmall
                 ? elements / kSmallElementsPerUnit
                 : kSmall / kSmallElementsPerUnit + (elements - kSmall) / kElementsPerUnit;
    }
    case Tag::ListTensor:
      return work_of(list.as_tensor_list_ptr->values());
    case Tag::ListOptionalTensor:
      return work_of(list.as_list_optional_tensor_ptr->values());
    case Tag::ListInt:
      return work_of(list.as_int_list_ptr->values());
    case Tag::ListDouble:
      return list.as_double_list_ptr->size() / kItemsPerUnit;
    case Tag::ListBool:
      return list.as_bool_list_ptr->size() / kItemsPerUnit;
    case Tag::String:
      return list.as_string_ptr->size() / kItemsPerUnit;
    default:
      return 0;
  }
}

uint64_t work_of(const Instruction& instruction) {
  const uint64_t arguments = work_of({instruction.args.data(), instruction.args.size()});
  switch (instruction.kind) {
    case Instruction::Kind::Kernel:
      return kKernelUnits + arguments;
    case Instruction::Kind::Delegate:
      return kDelegateUnits + arguments;
    default:
      return 1 + arguments;
  }
}

// Kernels read both; a tensor that a user made may have neither.
bool lacks_layout(const EValue& value) {
  if (!value.isTensor()) return false;
  const aten::Tensor& tensor = value.toTensor();
  if (tensor.unsafeGetTensorImpl() == nullptr) return true;
  if (tensor.dim() == 0) return false;
  return tensor.strides().data() == nullptr || tensor.dim_order().data() == nullptr;
}

bool lacks_data(const aten::Tensor& tensor) {
  return tensor.const_data_ptr() == nullptr && tensor.numel() > 0;
}

// Also for lists; what a list cannot give is for the kernel to report.
bool lacks_data(const EValue& value) {
  if (value.isTensor()) return lacks_data(value.toTensor());
  if (value.isTensorList()) {
    const auto list = value.tryToTensorList();
    for (size_t i = 0; list.ok() && i < list->size(); ++i) {
      if (lacks_data((*list)[i])) return true;
    }
  }
  if (value.isListOptionalTensor()) {
    const auto list = value.tryToListOptionalTensor();
    for (size_t i = 0; list.ok() && i < list->size(); ++i) {
      if ((*list)[i].has_value() && lacks_data(*(*list)[i])) return true;
    }
  }
  return false;
}

void log_arguments(InstructionArgs args) {
  constexpr size_t kMost = 32;  // a file may have more than anybody reads
  for (size_t i = 0; i < args.size() && i < kMost; ++i) {
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
  return state_.plan == nullptr ? "a moved-from method" : state_.plan->name()->c_str();
}

bool Method::instruction_origin(size_t chain, size_t instruction, InstructionOrigin& out) const {
  if (state_.program == nullptr) return false;  // moved from
  const auto identity = state_.program->debug_identity();
  return identity.ok() && identity->instruction(name(), chain, instruction, out);
}

const char* Method::input_name(size_t i) const {
  if (state_.program == nullptr) return "";
  const auto identity = state_.program->debug_identity();
  return identity.ok() ? identity->input_name(name(), i) : "";
}

const char* Method::output_name(size_t i) const {
  if (state_.program == nullptr) return "";
  const auto identity = state_.program->debug_identity();
  return identity.ok() ? identity->output_name(name(), i) : "";
}

Error Method::execute() {
  ET_CHECK_OR_RETURN_ERROR(!is_in_progress(), InvalidState,
                           "%s: step() has begun an execution; step to its end and call "
                           "reset_execution() before execute()",
                           name());
  internal::event_tracer_create_event_block(state_.event_tracer, "Execute");
  const Error error = run_chains();
  state_.chain = 0;
  state_.instruction = 0;
  return error == Error::Ok ? finish() : error;
}

Error Method::run_chains() {
  internal::EventTracerProfileMethodScope scope(state_.event_tracer, "Method::execute");
  ET_CHECK_OK_OR_RETURN_ERROR(begin());
  free_temp_memory();
  uint64_t work_left = state_.max_work, instructions_left = state_.max_instructions;
  for (; state_.chain < state_.chains.size(); ++state_.chain, state_.instruction = 0) {
    const Chain& chain = state_.chains[state_.chain];
    for (size_t n_reached = 0; state_.instruction < chain.size();) {
      const bool runs_again = state_.instruction < n_reached;
      if (runs_again) {
        const uint64_t work = work_of(chain[state_.instruction]);
        ET_CHECK_OR_RETURN_ERROR(
            work <= work_left && instructions_left > 0, InvalidProgram,
            "%s: stopped after %" PRIu64 " instructions and %" PRIu64
            " units of work in loops; a loop does not end, or needs more: see set_max_work()",
            name(), state_.max_instructions - instructions_left, state_.max_work - work_left);
        work_left -= work;
        --instructions_left;
      } else {
        n_reached = state_.instruction + 1;  // what runs once is as long as the file
      }
      state_.steps = 0;
      ET_CHECK_OK_OR_RETURN_ERROR(run_instruction());
      if (runs_again) {
        const uint64_t work = state_.steps / kStepsPerUnit;
        work_left -= work < work_left ? work : work_left;
      }
    }
  }
  return Error::Ok;
}

// Before the first instruction.
Error Method::begin() {
  ET_CHECK_OR_RETURN_ERROR(state_.plan != nullptr, InvalidState, "the method was moved away");
  // Views of the last execution may lead to what its caller has freed since.
  for (const Chain& chain : state_.chains) {
    for (const Instruction& instruction : chain) {
      if (instruction.kind == Instruction::Kind::Kernel && instruction.points_last_argument &&
          instruction.pointed != nullptr) {
        instruction.pointed->drop_data();
      }
    }
  }
  return check_ready();
}

Error Method::check_ready() const {
  for (size_t i = 0; i < state_.input_set.size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(state_.input_set[i], InvalidArgument, "%s: %s of %zu has not been set",
                             name(), input_text(i).text, state_.input_set.size());
    ET_CHECK_OR_RETURN_ERROR(!state_.checks_data || !lacks_layout(input_value(i)), InvalidArgument,
                             "%s: %s is undefined, or a tensor without strides or dim order",
                             name(), input_text(i).text);
  }
  bool lacks = false;
  for (size_t i = 0; state_.checks_data && i < outputs_size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(!lacks_layout(output_value(i)), InvalidArgument,
                             "%s: %s is undefined, or a tensor without strides or dim order",
                             name(), output_text(i).text);
    lacks = lacks || (output_value(i).isTensor() && lacks_data(output_value(i).toTensor()));
  }
  return lacks ? check_outputs() : Error::Ok;
}

// An output that a call is given has memory; one that a view or a move will point somewhere needs
// none.
Error Method::check_outputs() const {
  const size_t n_values = state_.values.size();
  auto* const is_given = state_.heap->allocateList<bool>(n_values);
  ET_CHECK_OR_RETURN_ERROR(is_given != nullptr, MemoryAllocationFailed, "%s: no memory for a check",
                           name());
  std::memset(is_given, 0, n_values);
  for (const Chain& chain : state_.chains) {
    for (const Instruction& instruction : chain) {
      const bool calls = instruction.kind == Instruction::Kind::Kernel ||
                         instruction.kind == Instruction::Kind::Delegate;
      const size_t n = instruction.args.size() - (instruction.points_last_argument ? 1 : 0);
      for (size_t a = 0; calls && a < n; ++a) {
        // What was fused may have values of its own.
        const auto distance = reinterpret_cast<uintptr_t>(instruction.args[a]) -
                              reinterpret_cast<uintptr_t>(state_.values.data());
        if (distance / sizeof(EValue) < n_values) is_given[distance / sizeof(EValue)] = true;
      }
    }
  }
  const auto is_ready = [&](size_t i) {
    const auto value = static_cast<size_t>(state_.plan->outputs()->Get(static_cast<uint32_t>(i)));
    return !is_given[value] || !output_value(i).isTensor() ||
           !lacks_data(output_value(i).toTensor());
  };
  size_t i = 0;
  while (i < outputs_size() && is_ready(i)) ++i;
  state_.heap->reset();
  ET_CHECK_OR_RETURN_ERROR(i == outputs_size(), InvalidState,
                           "%s: %s is not memory planned and has no memory; call "
                           "set_output_data_ptr() first",
                           name(), output_text(i).text);
  return Error::Ok;
}

Error Method::run_step() {
  internal::EventTracerProfileInstructionScope instruction_scope(
      state_.event_tracer, static_cast<ChainID>(state_.chain),
      static_cast<DebugHandle>(state_.instruction));
  internal::EventTracerProfileMethodScope scope(state_.event_tracer, "Method::step");
  if (state_.chain == state_.chains.size()) return Error::EndOfMethod;
  if (!is_in_progress()) {
    ET_CHECK_OK_OR_RETURN_ERROR(begin());
  }
  Error error = state_.chains[state_.chain].size() > 0 ? run_instruction() : Error::Ok;
  if (error == Error::Ok && state_.instruction == state_.chains[state_.chain].size()) {
    state_.instruction = 0;
    ++state_.chain;
    error = state_.chain == state_.chains.size() ? finish() : Error::Ok;
  }
  if (error != Error::Ok) {
    state_.chain = 0;
    state_.instruction = 0;
  }
  return error;
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
  prefetch_arguments();
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
        instruction.args[0]->toTensor().unsafeGetTensorImpl()->drop_data();
      }
      break;
    }
    case Instruction::Kind::Skip:
      break;
  }
  free_temp_memory();
  if (error == Error::Ok) {
    state_.instruction = next;
  } else {
    log_origin(failure.instruction);
    log_arguments(failure.args);
  }
  return error;
}

void Method::free_temp_memory() {
  state_.temp_allocator->reset();
  if (state_.heap != state_.temp_allocator) state_.heap->reset();
}

// What an instruction reads of its arguments, beside their elements, has left the caches while the
// weights of others went through them.
void Method::prefetch_arguments() const {
#if defined(__GNUC__)
  const Chain& chain = state_.chains[state_.chain];
  constexpr size_t kLine = 64;
  const size_t next = state_.instruction + 1, after = next + 1;
  if (after < chain.size()) {
    for (const EValue* value : chain[after].args) __builtin_prefetch(value);
  }
  if (next < chain.size()) {
    for (const EValue* value : chain[next].args) {
      if (!value->isTensor()) continue;
      const auto* const tensor =
          reinterpret_cast<const char*>(value->toTensor().unsafeGetTensorImpl());
      __builtin_prefetch(tensor);
      __builtin_prefetch(tensor + kLine);
    }
  }
#endif
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

void Method::set_steps(uint64_t steps) {
  state_.steps = steps;
  state_.all_steps += std::min(steps, UINT64_MAX - state_.all_steps);
}

Error Method::run_kernel(const Instruction& instruction, Failure& failure) {
  internal::EventTracerProfileOpScope scope(state_.event_tracer, "OPERATOR_CALL");
  if (state_.checks_data) {
    ET_CHECK_OK_OR_RETURN_ERROR(check_data(instruction));
  }
  // What was moved here has memory that outlives the call.
  ET_CHECK_OR_RETURN_ERROR(
      !instruction.points_last_argument || instruction.pointed == last_tensor(instruction.args),
      InvalidProgram, "%s: instruction %zu makes a view of what was moved there", name(),
      state_.instruction);
  KernelRuntimeContext context(state_.event_tracer, state_.temp_allocator, state_.heap);
  if (internal::attached(state_.event_tracer) == nullptr || instruction.traces_itself) {
    instruction.kernel(context, instruction.args);
  } else {
    const auto& op = *state_.plan->operators()->Get(instruction.target);
    internal::call_traced(op.name()->c_str(), op.overload() ? op.overload()->c_str() : nullptr,
                          instruction.kernel, context, instruction.args);
  }
  set_steps(context.steps());
  const Error error = context.failure_state();
  if (error != Error::Ok) {
    context.get_failed_instruction(failure.instruction, failure.args);
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
  ET_CHECK_OK_OR_RETURN_ERROR(check_written(instruction));
  BackendExecutionContext context(state_.event_tracer, state_.temp_allocator, name(), state_.heap);
  const Error error = delegate.backend->execute(context, delegate.handle, instruction.args);
  set_steps(context.steps());
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
  if (condition.isBool()) return condition.toBool();
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
    if (elements[i] == 0) return false;
  }
  return true;
}

// After the last instruction: whoever reads an output may rely on its memory.
Error Method::finish() {
  for (size_t i = 0; state_.checks_data && i < outputs_size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(!lacks_data(output_value(i)), InvalidState,
                             "%s: %s has no memory at the end", name(), output_text(i).text);
  }
  for (size_t i = 0; internal::attached(state_.event_tracer) != nullptr && i < outputs_size();
       ++i) {
    internal::event_tracer_log_evalue_output(state_.event_tracer, output_value(i));
  }
  return Error::Ok;
}

}  // namespace executorch::runtime
