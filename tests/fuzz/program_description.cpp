// Programs as text, for findings.
#include <sstream>

#include "program_edit.h"

namespace executorch::fuzz {
namespace {

std::string name_of(const fb::ExecutionPlanT& plan, int32_t op_index) {
  if (op_index < 0 || static_cast<size_t>(op_index) >= plan.operators.size()) {
    return "an operator that there is not";
  }
  const auto& op = *plan.operators[static_cast<size_t>(op_index)];
  return op.overload.empty() ? op.name : op.name + "." + op.overload;
}

template <class List>
std::string join(const List& list) {
  std::ostringstream text;
  text << "[";
  for (size_t i = 0; i < list.size(); ++i) text << (i ? "," : "") << +list[i];
  text << "]";
  return text.str();
}

std::string describe_tensor(const fb::TensorT& tensor) {
  std::ostringstream text;
  text << fb::EnumNameScalarType(tensor.scalar_type) << join(tensor.sizes);
  for (size_t i = 0; i < tensor.dim_order.size(); ++i) {
    if (tensor.dim_order[i] != i) {
      text << " order " << join(tensor.dim_order);
      break;
    }
  }
  if (tensor.shape_dynamism != fb::TensorShapeDynamism::STATIC) text << " dynamic";
  if (tensor.allocation_info != nullptr) {
    text << " @" << tensor.allocation_info->memory_id << ":"
         << tensor.allocation_info->memory_offset_low;
  } else if (tensor.data_buffer_idx > 0) {
    text << " constant";
  }
  return text.str();
}

std::string describe_value(const fb::ExecutionPlanT& plan, int64_t index, bool is_item = false);

template <class Items>
std::string describe_list(const fb::ExecutionPlanT& plan, const Items& items) {
  std::string text = "[";
  for (const int64_t item : items) {
    text += (text.size() > 1 ? ", " : "") + describe_value(plan, item, true);
  }
  return text + "]";
}

std::string describe_value(const fb::ExecutionPlanT& plan, int64_t index, bool is_item) {
  if (index < 0 || static_cast<uint64_t>(index) >= plan.values.size()) {
    return index == -1 ? "None" : "?" + std::to_string(index);
  }
  const auto& val = plan.values[static_cast<size_t>(index)]->val;
  if (const auto* tensor = val.AsTensor()) return describe_tensor(*tensor);
  if (const auto* integer = val.AsInt()) return std::to_string(integer->int_val);
  if (const auto* flag = val.AsBool()) return flag->bool_val ? "true" : "false";
  if (is_item) return fb::EnumNameKernelTypes(val.type);  // a list may name itself
  if (const auto* list = val.AsIntList()) return describe_list(plan, list->items);
  if (const auto* list = val.AsTensorList()) return describe_list(plan, list->items);
  if (const auto* list = val.AsOptionalTensorList()) return describe_list(plan, list->items);
  if (const auto* list = val.AsDoubleList()) return join(list->items);
  if (const auto* text = val.AsString()) return '"' + text->string_val + '"';
  if (const auto* number = val.AsDouble()) {
    std::ostringstream text;
    text << number->double_val << "d";
    return text.str();
  }
  return fb::EnumNameKernelTypes(val.type);
}

std::string name_of(const fb::ExecutionPlanT& plan, const fb::InstructionArgumentsUnion& args) {
  if (const auto* call = args.AsKernelCall()) return name_of(plan, call->op_index);
  if (const auto* call = args.AsDelegateCall()) {
    const auto index = static_cast<size_t>(call->delegate_index);
    return index < plan.delegates.size() ? plan.delegates[index]->id : "a delegate";
  }
  if (args.AsMoveCall()) return "move";
  if (args.AsJumpFalseCall()) return "jump";
  return args.AsFreeCall() ? "free" : "";
}

std::string describe_instruction(const fb::ExecutionPlanT& plan,
                                 const fb::InstructionArgumentsUnion& args) {
  std::string text = name_of(plan, args) + "(";
  const auto add = [&](const std::vector<int32_t>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      text +=
          (i ? ", " : "") + ("v" + std::to_string(list[i])) + "=" + describe_value(plan, list[i]);
    }
  };
  if (const auto* call = args.AsKernelCall()) {
    add(call->args);
  } else if (const auto* delegate = args.AsDelegateCall()) {
    add(delegate->args);
  } else if (const auto* move = args.AsMoveCall()) {
    add({move->move_from, move->move_to});
  } else if (const auto* jump = args.AsJumpFalseCall()) {
    add({jump->cond_value_index});
    text += " to " + std::to_string(jump->destination_instruction);
  } else if (const auto* freed = args.AsFreeCall()) {
    add({freed->value_index});
  }
  return text + ")";
}

fb::ProgramT unpack(const Bytes& program) {
  fb::ProgramT objects;
  fb::GetProgram(program.data())->UnPackTo(&objects);
  return objects;
}

}  // namespace

std::string operator_at(const Bytes& program, size_t method, size_t chain, size_t instruction) {
  const fb::ProgramT objects = unpack(program);
  if (method >= objects.execution_plan.size()) return "";
  const auto& plan = *objects.execution_plan[method];
  if (chain >= plan.chains.size()) return "";
  const auto& list = plan.chains[chain]->instructions;
  return instruction < list.size() ? name_of(plan, list[instruction]->instr_args) : "";
}

std::string describe(const Bytes& program) {
  std::string text;
  for (const auto& plan : unpack(program).execution_plan) {
    text += plan->name + ": inputs " + describe_list(*plan, plan->inputs) + "\n";
    for (const auto& chain : plan->chains) {
      for (const auto& instruction : chain->instructions) {
        text += "  " + describe_instruction(*plan, instruction->instr_args) + "\n";
      }
    }
    text += "  outputs " + describe_list(*plan, plan->outputs) + ", arenas " +
            join(plan->non_const_buffer_sizes) + "\n";
  }
  return text;
}

}  // namespace executorch::fuzz
