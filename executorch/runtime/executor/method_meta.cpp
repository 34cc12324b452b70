#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/schema/program_generated.h>

#include <string_view>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;

Tag tag_of(fb::KernelTypes type) {
  switch (type) {
    case fb::KernelTypes::Int:
      return Tag::Int;
    case fb::KernelTypes::Bool:
      return Tag::Bool;
    case fb::KernelTypes::Double:
      return Tag::Double;
    case fb::KernelTypes::Tensor:
      return Tag::Tensor;
    case fb::KernelTypes::String:
      return Tag::String;
    case fb::KernelTypes::IntList:
      return Tag::ListInt;
    case fb::KernelTypes::DoubleList:
      return Tag::ListDouble;
    case fb::KernelTypes::BoolList:
      return Tag::ListBool;
    case fb::KernelTypes::TensorList:
      return Tag::ListTensor;
    case fb::KernelTypes::OptionalTensorList:
      return Tag::ListOptionalTensor;
    default:
      return Tag::None;
  }
}

// The value that entry `index` of the inputs or outputs refers to.
Result<const fb::EValue*> find_value(const fb::ExecutionPlan& plan,
                                     const flatbuffers::Vector<int32_t>& list, size_t index,
                                     const char* what) {
  ET_CHECK_OR_RETURN_ERROR(index < list.size(), InvalidArgument,
                           "%s: %s %zu asked for, there are %" PRIu32, plan.name()->c_str(), what,
                           index, list.size());
  return plan.values()->Get(list.Get(static_cast<uint32_t>(index)));
}

Result<const fb::Tensor*> find_tensor(const fb::ExecutionPlan& plan,
                                      const flatbuffers::Vector<int32_t>& list, size_t index,
                                      const char* what) {
  ET_ASSIGN_OR_RETURN(const auto* const value, find_value(plan, list, index, what));
  ET_CHECK_OR_RETURN_ERROR(value->val_type() == fb::KernelTypes::Tensor, InvalidArgument,
                           "%s: %s %zu is a %s, no Tensor", plan.name()->c_str(), what, index,
                           fb::EnumNameKernelTypes(value->val_type()));
  return value->val_as_Tensor();
}

const fb::Tensor* attribute(const fb::EValue& value) {
  const auto* tensor = value.val_as_Tensor();
  return tensor != nullptr && tensor->extra_tensor_info() != nullptr &&
                 tensor->extra_tensor_info()->fully_qualified_name() != nullptr
             ? tensor
             : nullptr;
}

}  // namespace

Result<TensorInfo> TensorInfo::from(const fb::Tensor& tensor) {
  TensorInfo info;
  info.sizes_ = {tensor.sizes()->data(), tensor.sizes()->size()};
  info.dim_order_ = {tensor.dim_order()->data(), tensor.dim_order()->size()};
  info.scalar_type_ = static_cast<aten::ScalarType>(tensor.scalar_type());
  info.is_dynamic_ = tensor.shape_dynamism() != fb::TensorShapeDynamism::STATIC;
  info.is_memory_planned_ = tensor.allocation_info() != nullptr || tensor.data_buffer_idx() != 0;
  const auto* extra = tensor.extra_tensor_info();
  if (extra != nullptr && extra->fully_qualified_name() != nullptr) {
    info.name_ = extra->fully_qualified_name()->string_view();
  }
  // As strides do, an extent of 0 counts as 1: it hides no overflow of the others.
  int64_t nbytes = static_cast<int64_t>(elementSize(info.scalar_type_));
  bool is_empty = false;
  for (const int32_t size : info.sizes_) {
    is_empty |= size == 0;
    ET_CHECK_OR_RETURN_ERROR(
        !__builtin_mul_overflow(nbytes, int64_t{size == 0 ? 1 : size}, &nbytes), InvalidArgument,
        "the tensor's upper bound has no size in bytes: it is open");
  }
  nbytes = is_empty ? 0 : nbytes;
  info.nbytes_ = static_cast<size_t>(nbytes);
  return info;
}

const char* MethodMeta::name() const {
  return plan_->name()->c_str();
}

size_t MethodMeta::num_inputs() const {
  return plan_->inputs()->size();
}

Result<Tag> MethodMeta::input_tag(size_t index) const {
  ET_ASSIGN_OR_RETURN(const auto* const value,
                      find_value(*plan_, *plan_->inputs(), index, "input"));
  return tag_of(value->val_type());
}

Result<TensorInfo> MethodMeta::input_tensor_meta(size_t index) const {
  ET_ASSIGN_OR_RETURN(const auto* const tensor,
                      find_tensor(*plan_, *plan_->inputs(), index, "input"));
  return TensorInfo::from(*tensor);
}

size_t MethodMeta::num_outputs() const {
  return plan_->outputs()->size();
}

Result<Tag> MethodMeta::output_tag(size_t index) const {
  ET_ASSIGN_OR_RETURN(const auto* const value,
                      find_value(*plan_, *plan_->outputs(), index, "output"));
  return tag_of(value->val_type());
}

Result<TensorInfo> MethodMeta::output_tensor_meta(size_t index) const {
  ET_ASSIGN_OR_RETURN(const auto* const tensor,
                      find_tensor(*plan_, *plan_->outputs(), index, "output"));
  return TensorInfo::from(*tensor);
}

size_t MethodMeta::num_attributes() const {
  size_t count = 0;
  for (const auto* value : *plan_->values()) count += attribute(*value) != nullptr ? 1 : 0;
  return count;
}

Result<TensorInfo> MethodMeta::attribute_tensor_meta(size_t index) const {
  size_t remaining = index;
  for (const auto* value : *plan_->values()) {
    const auto* tensor = attribute(*value);
    if (tensor != nullptr && remaining-- == 0) return TensorInfo::from(*tensor);
  }
  ET_LOG(Error, "%s: attribute %zu asked for, there are %zu", name(), index, num_attributes());
  return Error::InvalidArgument;
}

size_t MethodMeta::num_memory_planned_buffers() const {
  const auto* sizes = plan_->non_const_buffer_sizes();
  return sizes == nullptr || sizes->size() == 0 ? 0 : sizes->size() - 1;
}

Result<int64_t> MethodMeta::memory_planned_buffer_size(size_t index) const {
  ET_CHECK_OR_RETURN_ERROR(index < num_memory_planned_buffers(), InvalidArgument,
                           "%s: planned buffer %zu asked for, there are %zu", name(), index,
                           num_memory_planned_buffers());
  return plan_->non_const_buffer_sizes()->Get(static_cast<uint32_t>(index + 1));
}

Result<etensor::Device> MethodMeta::memory_planned_buffer_device(size_t index) const {
  ET_CHECK_OK_OR_RETURN_ERROR(memory_planned_buffer_size(index).error());
  const auto* devices = plan_->non_const_buffer_device();
  for (uint32_t i = 0; devices != nullptr && i < devices->size(); ++i) {
    const auto* entry = devices->Get(i);
    if (static_cast<size_t>(entry->buffer_idx()) == index + 1) {
      return etensor::Device(static_cast<etensor::DeviceType>(entry->device_type()),
                             entry->device_index());
    }
  }
  return etensor::Device(etensor::DeviceType::CPU);
}

bool MethodMeta::uses_backend(const char* backend_name) const {
  if (backend_name == nullptr) return false;
  const std::string_view wanted(backend_name);
  for (size_t i = 0; i < num_backends(); ++i) {
    if (plan_->delegates()->Get(static_cast<uint32_t>(i))->id()->string_view() == wanted) {
      return true;
    }
  }
  return false;
}

size_t MethodMeta::num_backends() const {
  return plan_->delegates() == nullptr ? 0 : plan_->delegates()->size();
}

Result<const char*> MethodMeta::get_backend_name(size_t index) const {
  ET_CHECK_OR_RETURN_ERROR(index < num_backends(), InvalidArgument,
                           "%s: delegate %zu asked for, there are %zu", name(), index,
                           num_backends());
  return plan_->delegates()->Get(static_cast<uint32_t>(index))->id()->c_str();
}

size_t MethodMeta::num_instructions() const {
  size_t count = 0;
  for (const auto* chain : *plan_->chains()) count += chain->instructions()->size();
  return count;
}

}  // namespace executorch::runtime
