#include <executorch/devtools/inspect/describe_plan.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <cmath>

namespace executorch::devtools {
namespace {

namespace fb = executorch_flatbuffer;

template <typename T>
Json to_list(const flatbuffers::Vector<T>* items) {
  Json list = Json::array();
  for (uint32_t i = 0; items != nullptr && i < items->size(); ++i) {
    list.push_back(items->Get(i));
  }
  return list;
}

// JSON has no such numbers.
Json to_number(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json describe_tensor(const fb::Tensor& tensor) {
  static constexpr const char* kDynamism[] = {"static", "bounded", "unbounded"};
  Json out = {{"type", "Tensor"},
              {"dtype", runtime::toString(static_cast<aten::ScalarType>(tensor.scalar_type()))},
              {"sizes", to_list(tensor.sizes())},
              {"dim_order", to_list(tensor.dim_order())},
              {"dynamism", kDynamism[static_cast<int>(tensor.shape_dynamism())]}};
  double bytes = static_cast<double>(
      runtime::elementSize(static_cast<aten::ScalarType>(tensor.scalar_type())));
  for (const Json& size : out["sizes"]) {
    bytes *= size.get<double>();
  }
  out["bytes"] = static_cast<uint64_t>(bytes);
  const auto* extra = tensor.extra_tensor_info();
  const bool external = extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL;
  if (const auto* memory = tensor.allocation_info()) {
    out["memory"] = memory->memory_id();
    out["offset"] = uint64_t{memory->memory_offset_high()} << 32 | memory->memory_offset_low();
  }
  if (external) {
    out["external"] = extra->fully_qualified_name()->str();
  } else if (tensor.data_buffer_idx() > 0) {
    out[tensor.allocation_info() == nullptr ? "constant" : "initial_state"] =
        tensor.data_buffer_idx();
  }
  if (extra != nullptr && !external && extra->fully_qualified_name() != nullptr) {
    out["name"] = extra->fully_qualified_name()->str();
  }
  if (extra != nullptr && extra->device_type() != fb::DeviceType::CPU) {
    out["device"] = std::string(fb::EnumNameDeviceType(extra->device_type())) + ":" +
                    std::to_string(extra->device_index());
  }
  return out;
}

Json describe_value(const fb::EValue& value) {
  switch (value.val_type()) {
    case fb::KernelTypes::Tensor:
      return describe_tensor(*value.val_as_Tensor());
    case fb::KernelTypes::Int:
      return {{"type", "Int"}, {"value", value.val_as_Int()->int_val()}};
    case fb::KernelTypes::Bool:
      return {{"type", "Bool"}, {"value", value.val_as_Bool()->bool_val()}};
    case fb::KernelTypes::Double:
      return {{"type", "Double"}, {"value", to_number(value.val_as_Double()->double_val())}};
    case fb::KernelTypes::String:
      return {{"type", "String"}, {"value", value.val_as_String()->string_val()->str()}};
    case fb::KernelTypes::IntList:
      return {{"type", "IntList"}, {"items", to_list(value.val_as_IntList()->items())}};
    case fb::KernelTypes::DoubleList: {
      Json items = Json::array();
      for (const double item : *value.val_as_DoubleList()->items()) {
        items.push_back(to_number(item));
      }
      return {{"type", "DoubleList"}, {"value", items}};
    }
    case fb::KernelTypes::BoolList: {
      Json items = Json::array();
      for (const uint8_t item : *value.val_as_BoolList()->items()) {
        items.push_back(item != 0);
      }
      return {{"type", "BoolList"}, {"value", items}};
    }
    case fb::KernelTypes::TensorList:
      return {{"type", "TensorList"}, {"items", to_list(value.val_as_TensorList()->items())}};
    case fb::KernelTypes::OptionalTensorList:
      return {{"type", "OptionalTensorList"},
              {"items", to_list(value.val_as_OptionalTensorList()->items())}};
    default:
      return {{"type", "None"}};
  }
}

std::string operator_name(const fb::Operator& op) {
  const bool overloaded = op.overload() != nullptr && op.overload()->size() > 0;
  return op.name()->str() + (overloaded ? "." + op.overload()->str() : "");
}

Json describe_instruction(const fb::ExecutionPlan& plan, const fb::Instruction& instruction) {
  switch (instruction.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: {
      const auto& call = *instruction.instr_args_as_KernelCall();
      return {{"type", "kernel"},
              {"operator",
               operator_name(*plan.operators()->Get(static_cast<uint32_t>(call.op_index())))},
              {"args", to_list(call.args())}};
    }
    case fb::InstructionArguments::DelegateCall: {
      const auto& call = *instruction.instr_args_as_DelegateCall();
      return {{"type", "delegate"},
              {"delegate", call.delegate_index()},
              {"args", to_list(call.args())}};
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

Json describe_delegate(const fb::Program& program, const fb::BackendDelegate& delegate) {
  const auto& data = *delegate.processed();
  const bool in_segment = data.location() == fb::DataLocation::SEGMENT;
  uint64_t bytes = 0;
  if (in_segment) {
    bytes = program.segments()->Get(data.index())->size();
  } else if (const auto* blob = program.backend_delegate_data()->Get(data.index())->data()) {
    bytes = blob->size();
  }
  Json out = {{"id", delegate.id()->str()},
              {in_segment ? "segment" : "inline", data.index()},
              {"bytes", bytes},
              {"compile_specs", Json::array()}};
  for (uint32_t i = 0; delegate.compile_specs() != nullptr && i < delegate.compile_specs()->size();
       ++i) {
    const auto* spec = delegate.compile_specs()->Get(i);
    out["compile_specs"].push_back(
        {{"key", spec->key()->str()}, {"value", to_list(spec->value())}});
  }
  return out;
}

Json describe_memory(const fb::ExecutionPlan& plan) {
  Json list = Json::array();
  const auto* sizes = plan.non_const_buffer_sizes();
  for (uint32_t id = 1; sizes != nullptr && id < sizes->size(); ++id) {
    list.push_back({{"id", id}, {"bytes", sizes->Get(id)}});
    for (uint32_t i = 0;
         plan.non_const_buffer_device() != nullptr && i < plan.non_const_buffer_device()->size();
         ++i) {
      const auto* device = plan.non_const_buffer_device()->Get(i);
      if (static_cast<uint32_t>(device->buffer_idx()) == id) {
        list.back()["device"] = std::string(fb::EnumNameDeviceType(device->device_type())) + ":" +
                                std::to_string(device->device_index());
      }
    }
  }
  return list;
}

}  // namespace

namespace {

void add_origin(const runtime::DebugIdentity& identity, const std::string& method, size_t chain,
                size_t number, Json& instruction) {
  runtime::InstructionOrigin origin;
  if (!identity.instruction(method.c_str(), chain, number, origin)) {
    return;
  }
  if (origin.module_path[0] != '\0') {
    instruction["module"] = origin.module_path;
  }
  if (origin.file[0] != '\0') {
    instruction["place"] = std::string(origin.file) + ":" + std::to_string(origin.line);
  }
}

}  // namespace

Json describe_plan(const fb::Program& program, const fb::ExecutionPlan& plan,
                   const runtime::DebugIdentity* identity) {
  Json out = {{"name", plan.name()->str()},
              {"inputs", to_list(plan.inputs())},
              {"outputs", to_list(plan.outputs())},
              {"memory", describe_memory(plan)},
              {"values", Json::array()},
              {"delegates", Json::array()},
              {"chains", Json::array()}};
  for (const auto* value : *plan.values()) {
    out["values"].push_back(describe_value(*value));
  }
  for (uint32_t i = 0; plan.delegates() != nullptr && i < plan.delegates()->size(); ++i) {
    out["delegates"].push_back(describe_delegate(program, *plan.delegates()->Get(i)));
  }
  for (const auto* chain : *plan.chains()) {
    Json instructions = Json::array();
    for (const auto* instruction : *chain->instructions()) {
      Json entry = describe_instruction(plan, *instruction);
      if (identity != nullptr) {
        add_origin(*identity, plan.name()->str(), out["chains"].size(), instructions.size(), entry);
      }
      instructions.push_back(std::move(entry));
    }
    out["chains"].push_back(instructions);
  }
  return out;
}

}  // namespace executorch::devtools
