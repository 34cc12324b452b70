#include <executorch/runtime/executor/plan_validation.h>

namespace executorch::runtime::internal {
namespace {

namespace fb = executorch_flatbuffer;
using fb::KernelTypes;

const char* type_name(const PlanScope& scope, uint32_t index) {
  return fb::EnumNameKernelTypes(scope.type(index));
}

Error validate_arenas(const PlanScope& scope) {
  const auto* sizes = scope.plan.non_const_buffer_sizes();
  const uint32_t count = size_of(sizes);
  for (uint32_t i = 0; i < count; ++i) {
    // Entry 0 is reserved: memory ids start at 1.
    ET_CHECK_OR_RETURN_ERROR(i == 0 ? sizes->Get(0) == 0 : sizes->Get(i) >= 0, InvalidProgram,
                             "%s: planned memory %" PRIu32 " has %" PRId64 " bytes", scope.name, i,
                             sizes->Get(i));
  }
  const auto* devices = scope.plan.non_const_buffer_device();
  for (uint32_t i = 0; i < size_of(devices); ++i) {
    const auto* entry = devices->Get(i);
    const int32_t index = entry->buffer_idx();
    ET_CHECK_OR_RETURN_ERROR(index > 0 && static_cast<uint32_t>(index) < count &&
                                 entry->device_type() >= fb::DeviceType::MIN &&
                                 entry->device_type() <= fb::DeviceType::MAX,
                             InvalidProgram,
                             "%s: device entry %" PRIu32 " names planned memory %" PRId32
                             " of %" PRIu32 " and device type %d",
                             scope.name, i, index, count, static_cast<int>(entry->device_type()));
  }
  return Error::Ok;
}

// Items that are value indices. Tensor lists are resolved while values are made, in order, so
// their items come earlier; integer lists are resolved when they are read.
template <typename Item>
Error validate_items(const PlanScope& scope, uint32_t index, const flatbuffers::Vector<Item>* items,
                     KernelTypes item_type, bool optional) {
  ET_CHECK_OR_RETURN_ERROR(items != nullptr, InvalidProgram,
                           "%s: value %" PRIu32 ": %s has no items", scope.name, index,
                           type_name(scope, index));
  ET_CHECK_OR_RETURN_ERROR(scope.take(items->size()), InvalidProgram,
                           "%s: value %" PRIu32 ": more list items than the file can hold",
                           scope.name, index);
  const uint32_t end = item_type == KernelTypes::Tensor ? index : scope.num_values();
  for (uint32_t i = 0; i < items->size(); ++i) {
    const int64_t item = items->Get(i);
    if (optional && item == -1) continue;
    ET_CHECK_OR_RETURN_ERROR(
        item >= 0 && item < end, InvalidProgram,
        "%s: value %" PRIu32 ": %s item %" PRIu32 " is value %" PRId64 ", expected 0 to %" PRId64,
        scope.name, index, type_name(scope, index), i, item, static_cast<int64_t>(end) - 1);
    const KernelTypes found = scope.type(static_cast<uint32_t>(item));
    ET_CHECK_OR_RETURN_ERROR(found == item_type || (optional && found == KernelTypes::Null),
                             InvalidProgram,
                             "%s: value %" PRIu32 ": %s item %" PRIu32 " is a %s, expected %s",
                             scope.name, index, type_name(scope, index), i,
                             fb::EnumNameKernelTypes(found), fb::EnumNameKernelTypes(item_type));
  }
  return Error::Ok;
}

Error validate_bools(const PlanScope& scope, uint32_t index) {
  const auto* items = scope.plan.values()->Get(index)->val_as_BoolList()->items();
  ET_CHECK_OR_RETURN_ERROR(items != nullptr && scope.take(items->size()), InvalidProgram,
                           "%s: value %" PRIu32 ": BoolList has no items", scope.name, index);
  for (uint32_t i = 0; i < items->size(); ++i) {
    // The bytes are used as bool where they lie.
    ET_CHECK_OR_RETURN_ERROR(items->Get(i) <= 1, InvalidProgram,
                             "%s: value %" PRIu32 ": BoolList item %" PRIu32
                             " is %u, expected 0 or 1",
                             scope.name, index, i, unsigned{items->Get(i)});
  }
  return Error::Ok;
}

Error validate_value(const PlanScope& scope, uint32_t index) {
  const auto* value = scope.plan.values()->Get(index);
  ET_CHECK_OR_RETURN_ERROR(value->val() != nullptr || value->val_type() == KernelTypes::Null,
                           InvalidProgram, "%s: value %" PRIu32 " is empty", scope.name, index);
  switch (value->val_type()) {
    case KernelTypes::Null:
    case KernelTypes::Int:
    case KernelTypes::Bool:
    case KernelTypes::Double:
      return Error::Ok;
    case KernelTypes::Tensor:
      return validate_tensor(scope, index);
    case KernelTypes::String:
      ET_CHECK_OR_RETURN_ERROR(value->val_as_String()->string_val() != nullptr, InvalidProgram,
                               "%s: value %" PRIu32 ": String is empty", scope.name, index);
      return Error::Ok;
    case KernelTypes::IntList:
      return validate_items(scope, index, value->val_as_IntList()->items(), KernelTypes::Int,
                            false);
    case KernelTypes::DoubleList:
      ET_CHECK_OR_RETURN_ERROR(value->val_as_DoubleList()->items() != nullptr, InvalidProgram,
                               "%s: value %" PRIu32 ": DoubleList has no items", scope.name, index);
      return Error::Ok;
    case KernelTypes::BoolList:
      return validate_bools(scope, index);
    case KernelTypes::TensorList:
      return validate_items(scope, index, value->val_as_TensorList()->items(), KernelTypes::Tensor,
                            false);
    case KernelTypes::OptionalTensorList:
      return validate_items(scope, index, value->val_as_OptionalTensorList()->items(),
                            KernelTypes::Tensor, true);
    case KernelTypes::NONE:
      break;
  }
  ET_LOG(Error, "%s: value %" PRIu32 " has the unknown type %d", scope.name, index,
         static_cast<int>(value->val_type()));
  return Error::InvalidProgram;
}

}  // namespace

Error validate_values(const PlanScope& scope) {
  ET_CHECK_OR_RETURN_ERROR(scope.plan.values() != nullptr, InvalidProgram, "%s has no values",
                           scope.name);
  ET_CHECK_OK_OR_RETURN_ERROR(validate_arenas(scope));
  for (uint32_t i = 0; i < scope.num_values(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(validate_value(scope, i));
  }
  return Error::Ok;
}

}  // namespace executorch::runtime::internal
