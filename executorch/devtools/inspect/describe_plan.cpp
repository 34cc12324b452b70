#include <executorch/devtools/inspect/describe_plan.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>

namespace executorch::devtools {
namespace {

namespace fb = executorch_flatbuffer;

template <typename T>
Json to_list(const flatbuffers::Vector<T>* items, Budget& budget) {
  Json list = Json::array();
  budget.take(items == nullptr ? 0 : items->size() + uint64_t{1});
  for (uint32_t i = 0; items != nullptr && i < items->size(); ++i) list.push_back(items->Get(i));
  return list;
}

std::string name_of(const flatbuffers::String* name, Budget& budget) {
  return name == nullptr ? "" : budget.name(name->string_view());
}

// Of the upper bound; the largest number if that has none.
uint64_t bytes_of(const fb::Tensor& tensor) {
  uint64_t bytes = runtime::elementSize(static_cast<aten::ScalarType>(tensor.scalar_type()));
  for (uint32_t d = 0; tensor.sizes() != nullptr && d < tensor.sizes()->size(); ++d) {
    const auto size = static_cast<uint64_t>(std::max(tensor.sizes()->Get(d), 0));
    if (__builtin_mul_overflow(bytes, size, &bytes)) return UINT64_MAX;
  }
  return bytes;
}

Json describe_tensor(const fb::Tensor& tensor, Budget& budget) {
  static constexpr const char* kDynamism[] = {"static", "bounded", "unbounded"};
  Json out = {{"type", "Tensor"},
              {"dtype", runtime::toString(static_cast<aten::ScalarType>(tensor.scalar_type()))},
              {"sizes", to_list(tensor.sizes(), budget)},
              {"dim_order", to_list(tensor.dim_order(), budget)},
              {"dynamism", kDynamism[static_cast<int>(tensor.shape_dynamism())]}};
  out["bytes"] = bytes_of(tensor);
  const auto* extra = tensor.extra_tensor_info();
  const bool external = extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL;
  if (const auto* memory = tensor.allocation_info()) {
    out["memory"] = memory->memory_id();
    out["offset"] = uint64_t{memory->memory_offset_high()} << 32 | memory->memory_offset_low();
  }
  if (external) {
    out["external"] = name_of(extra->fully_qualified_name(), budget);
  } else if (tensor.data_buffer_idx() > 0) {
    out[tensor.allocation_info() == nullptr ? "constant" : "initial_state"] =
        tensor.data_buffer_idx();
  }
  if (extra != nullptr && !external && extra->fully_qualified_name() != nullptr) {
    out["name"] = name_of(extra->fully_qualified_name(), budget);
  }
  if (extra != nullptr && extra->device_type() != fb::DeviceType::CPU) {
    out["device"] = std::string(fb::EnumNameDeviceType(extra->device_type())) + ":" +
                    std::to_string(extra->device_index());
  }
  return out;
}

Json describe_value(const fb::EValue& value, Budget& budget) {
  budget.take(1);
  switch (value.val_type()) {
    case fb::KernelTypes::Tensor:
      return describe_tensor(*value.val_as_Tensor(), budget);
    case fb::KernelTypes::Int:
      return {{"type", "Int"}, {"value", value.val_as_Int()->int_val()}};
    case fb::KernelTypes::Bool:
      return {{"type", "Bool"}, {"value", value.val_as_Bool()->bool_val()}};
    case fb::KernelTypes::Double:
      return {{"type", "Double"}, {"value", json_number(value.val_as_Double()->double_val())}};
    case fb::KernelTypes::String:
      return {{"type", "String"},
              {"value", budget.text(value.val_as_String()->string_val()->string_view())}};
    case fb::KernelTypes::IntList:
      return {{"type", "IntList"}, {"items", to_list(value.val_as_IntList()->items(), budget)}};
    case fb::KernelTypes::DoubleList: {
      Json items = Json::array();
      budget.take(value.val_as_DoubleList()->items()->size());
      for (const double item : *value.val_as_DoubleList()->items()) {
        items.push_back(json_number(item));
      }
      return {{"type", "DoubleList"}, {"value", items}};
    }
    case fb::KernelTypes::BoolList: {
      Json items = Json::array();
      budget.take(value.val_as_BoolList()->items()->size());
      for (const uint8_t item : *value.val_as_BoolList()->items()) items.push_back(item != 0);
      return {{"type", "BoolList"}, {"value", items}};
    }
    case fb::KernelTypes::TensorList:
      return {{"type", "TensorList"},
              {"items", to_list(value.val_as_TensorList()->items(), budget)}};
    case fb::KernelTypes::OptionalTensorList:
      return {{"type", "OptionalTensorList"},
              {"items", to_list(value.val_as_OptionalTensorList()->items(), budget)}};
    default:
      return {{"type", "None"}};
  }
}

std::string operator_name(const fb::Operator& op, Budget& budget) {
  const bool overloaded = op.overload() != nullptr && op.overload()->size() > 0;
  return name_of(op.name(), budget) + (overloaded ? "." + name_of(op.overload(), budget) : "");
}

Json describe_instruction(const fb::ExecutionPlan& plan, const fb::Instruction& instruction,
                          Budget& budget) {
  switch (instruction.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: {
      const auto& call = *instruction.instr_args_as_KernelCall();
      return {
          {"type", "kernel"},
          {"operator",
           operator_name(*plan.operators()->Get(static_cast<uint32_t>(call.op_index())), budget)},
          {"args", to_list(call.args(), budget)}};
    }
    case fb::InstructionArguments::DelegateCall: {
      const auto& call = *instruction.instr_args_as_DelegateCall();
      return {{"type", "delegate"},
              {"delegate", call.delegate_index()},
              {"args", to_list(call.args(), budget)}};
    }
    case fb::InstructionArguments::MoveCall: {
      const auto& call = *instruction.instr_args_as_MoveCall();
      return {{"type", "move"}, {"from", call.move_from()}, {"to", call.move_to()}};
    }
    case fb::InstructionArguments::JumpFalseCall: {
      const auto& call = *instruction.instr_args_as_JumpFalseCall();
      return {{"type", "jump_if_false"},
              {"condition", call.cond_value_index()},
              {"destination", call.destination_instruction()}};
    }
    default:
      return {{"type", "free"}, {"value", instruction.instr_args_as_FreeCall()->value_index()}};
  }
}

Json describe_delegate(const fb::Program& program, const fb::BackendDelegate& delegate,
                       Budget& budget) {
  const auto& data = *delegate.processed();
  const bool in_segment = data.location() == fb::DataLocation::SEGMENT;
  uint64_t bytes = 0;
  if (in_segment) {
    bytes = program.segments()->Get(data.index())->size();
  } else if (const auto* blob = program.backend_delegate_data()->Get(data.index())->data()) {
    bytes = blob->size();
  }
  Json out = {{"id", name_of(delegate.id(), budget)},
              {in_segment ? "segment" : "inline", data.index()},
              {"bytes", bytes},
              {"compile_specs", Json::array()}};
  for (uint32_t i = 0; delegate.compile_specs() != nullptr && i < delegate.compile_specs()->size();
       ++i) {
    const auto* spec = delegate.compile_specs()->Get(i);
    out["compile_specs"].push_back(
        {{"key", name_of(spec->key(), budget)}, {"value", to_list(spec->value(), budget)}});
  }
  return out;
}

Json describe_memory(const fb::ExecutionPlan& plan, Budget& budget) {
  Json list = Json::array();
  const auto* sizes = plan.non_const_buffer_sizes();
  const auto* devices = plan.non_const_buffer_device();
  for (uint32_t id = 1; sizes != nullptr && id < sizes->size(); ++id) {
    budget.take(1 + (devices == nullptr ? 0 : devices->size()));
    list.push_back({{"id", id}, {"bytes", sizes->Get(id)}});
    for (uint32_t i = 0; devices != nullptr && i < devices->size(); ++i) {
      const auto* device = devices->Get(i);
      if (static_cast<uint32_t>(device->buffer_idx()) == id) {
        list.back()["device"] = std::string(fb::EnumNameDeviceType(device->device_type())) + ":" +
                                std::to_string(device->device_index());
      }
    }
  }
  return list;
}

void add_origin(const runtime::DebugIdentity& identity, const char* method, size_t chain,
                size_t number, Budget& budget, Json& instruction) {
  runtime::InstructionOrigin origin;
  if (!identity.instruction(method, chain, number, origin)) return;
  if (origin.module_path[0] != '\0') instruction["module"] = budget.name(origin.module_path);
  if (origin.file[0] != '\0') {
    instruction["place"] = budget.name(origin.file) + ":" + std::to_string(origin.line);
  }
}

/// What the user's model calls the inputs or outputs of a method.
Json names_of(const runtime::DebugIdentity& identity, const char* method, size_t count,
              const char* (runtime::DebugIdentity::*name)(const char*, size_t) const,
              Budget& budget) {
  Json names = Json::array();
  for (size_t i = 0; i < count; ++i) {
    budget.take(1);
    names.push_back(budget.name((identity.*name)(method, i)));
  }
  return names;
}

}  // namespace

Json describe_plan(const fb::Program& program, const fb::ExecutionPlan& plan,
                   const runtime::DebugIdentity* identity, Budget& budget) {
  Json out = {{"name", name_of(plan.name(), budget)},
              {"inputs", to_list(plan.inputs(), budget)},
              {"outputs", to_list(plan.outputs(), budget)},
              {"memory", describe_memory(plan, budget)},
              {"values", Json::array()},
              {"delegates", Json::array()},
              {"chains", Json::array()}};
  if (identity != nullptr) {
    const char* const method = plan.name()->c_str();
    out["input_names"] = names_of(*identity, method, out["inputs"].size(),
                                  &runtime::DebugIdentity::input_name, budget);
    out["output_names"] = names_of(*identity, method, out["outputs"].size(),
                                   &runtime::DebugIdentity::output_name, budget);
  }
  for (const auto* value : *plan.values()) out["values"].push_back(describe_value(*value, budget));
  for (uint32_t i = 0; plan.delegates() != nullptr && i < plan.delegates()->size(); ++i) {
    out["delegates"].push_back(describe_delegate(program, *plan.delegates()->Get(i), budget));
  }
  for (const auto* chain : *plan.chains()) {
    Json instructions = Json::array();
    for (const auto* instruction : *chain->instructions()) {
      budget.take(1);
      Json entry = describe_instruction(plan, *instruction, budget);
      if (identity != nullptr) {
        add_origin(*identity, plan.name()->c_str(), out["chains"].size(), instructions.size(),
                   budget, entry);
      }
      instructions.push_back(std::move(entry));
    }
    out["chains"].push_back(std::move(instructions));
  }
  return out;
}

}  // namespace executorch::devtools
