#include <executorch/cpu/size.h>
#include <executorch/extension/c_api/executorch.h>
#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/extension/c_api/handles.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <cinttypes>
#include <limits>
#include <utility>

namespace executorch::extension::c_api {
namespace {

using aten::ScalarType;
using runtime::Error;
using runtime::EValue;
using runtime::MethodMeta;
using runtime::Result;
using runtime::Tag;
using runtime::TensorInfo;

static_assert(EXECUTORCH_MAX_RANK == runtime::kTensorDimensionLimit);

int32_t kind_of(Tag tag) {
  switch (tag) {
    case Tag::None:
      return EXECUTORCH_KIND_NONE;
    case Tag::Tensor:
      return EXECUTORCH_KIND_TENSOR;
    case Tag::Int:
      return EXECUTORCH_KIND_INT;
    case Tag::Double:
      return EXECUTORCH_KIND_DOUBLE;
    case Tag::Bool:
      return EXECUTORCH_KIND_BOOL;
    case Tag::String:
      return EXECUTORCH_KIND_STRING;
    default:
      return EXECUTORCH_KIND_OTHER;
  }
}

template <class Sizes, class Order>
void describe(executorch_value& value, ScalarType type, const Sizes& sizes, const Order& order) {
  value.dtype = static_cast<int32_t>(type);
  value.rank = static_cast<int32_t>(sizes.size());
  for (size_t i = 0; i < sizes.size() && i < EXECUTORCH_MAX_RANK; ++i) {
    value.sizes[i] = sizes[i];
    value.dim_order[i] = i < order.size() ? order[i] : static_cast<uint8_t>(i);
  }
}

Error declared(const Result<Tag>& tag, const Result<TensorInfo>& tensor, executorch_value* info) {
  ET_CHECK_OK_OR_RETURN_ERROR(tag.error());
  executorch_value value{};
  value.kind = kind_of(*tag);
  if (*tag == Tag::Tensor) {
    ET_CHECK_OK_OR_RETURN_ERROR(tensor.error());
    describe(value, tensor->scalar_type(), tensor->sizes(), tensor->dim_order());
    value.n_bytes = tensor->nbytes();
    value.is_dynamic = tensor->is_dynamic() ? 1 : 0;
  }
  *info = value;
  return Error::Ok;
}

executorch_value given(const EValue& from) {
  executorch_value value{};
  value.kind = kind_of(from.tag);
  if (from.isTensor()) {
    const aten::Tensor tensor = from.toTensor();
    describe(value, tensor.scalar_type(), tensor.sizes(), tensor.dim_order());
    value.data = tensor.const_data_ptr();
    value.n_bytes = tensor.nbytes();
  } else if (from.isInt()) {
    value.as_int = from.toInt();
  } else if (from.isBool()) {
    value.as_int = from.toBool() ? 1 : 0;
  } else if (from.isDouble()) {
    value.as_double = from.toDouble();
  } else if (from.isString()) {
    value.data = from.toString().data();
    value.n_bytes = from.toString().size();
  }
  return value;
}

Result<MethodMeta> meta_of(const executorch_method& method) {
  return method.loaded->module->program()->method_meta(method.name.c_str());
}

runtime::ArgumentText input_text(const executorch_method& method, size_t index) {
  return {"input", index, method.loaded_method->input_name(index)};
}

/// Gives the method an input and remembers that it has one.
Error set_value(executorch_method& method, size_t index, const EValue& value) {
  ET_CHECK_OR_RETURN_ERROR(index < method.is_set.size(), InvalidArgument, "input %zu of %zu", index,
                           method.is_set.size());
  ET_CHECK_OK_OR_RETURN_ERROR(method.module->set_input(method.name, value, index));
  method.is_set[index] = true;
  return Error::Ok;
}

/// Gives the method an input tensor whose elements are at `data`.
Error give(executorch_method& method, size_t index, InputTensor& input, void* data) {
  aten::TensorImpl tensor(input.type, static_cast<ssize_t>(input.sizes.size()), input.sizes.data(),
                          data, input.dim_order.data(), input.strides.data());
  return set_value(method, index, EValue(aten::Tensor(&tensor)));
}

// Module marks the access to a Method as deprecated, since it is experimental.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
Result<runtime::Method*> loaded_method(executorch_method& method) {
  return method.module->method(method.name);
}

/// Where the method has an input tensor; null if it has no memory.
void* memory_of_input(const executorch_method& method, size_t index) {
  const EValue& input = method.loaded_method->get_input(index);
  return input.isTensor() ? input.toTensor().mutable_data_ptr() : nullptr;
}
#pragma GCC diagnostic pop

/// How many bytes a tensor of these sizes has; invalid if that is beyond int64.
Result<cpu::Size> bytes_of(int32_t dtype, int32_t rank, const int64_t* sizes) {
  const auto type = static_cast<ScalarType>(dtype);
  ET_CHECK_OR_RETURN_ERROR(
      dtype >= 0 && dtype < static_cast<int32_t>(ScalarType::NumOptions) && runtime::isValid(type),
      InvalidArgument, "no element type %" PRId32, dtype);
  ET_CHECK_OR_RETURN_ERROR(rank >= 0 && rank <= EXECUTORCH_MAX_RANK, InvalidArgument,
                           "rank %" PRId32 ", expected 0 to %d", rank, EXECUTORCH_MAX_RANK);
  ET_CHECK_OR_RETURN_ERROR(rank == 0 || sizes != nullptr, InvalidArgument,
                           "sizes: NULL is not allowed");
  cpu::Size n(static_cast<int64_t>(runtime::elementSize(type)));
  for (int32_t i = 0; i < rank; ++i) {
    ET_CHECK_OR_RETURN_ERROR(
        sizes[i] >= 0 && sizes[i] <= std::numeric_limits<aten::SizesType>::max(), InvalidArgument,
        "size %" PRId64 " of dimension %" PRId32, sizes[i], i);
    n = n * cpu::Size(sizes[i]);
  }
  return n;
}

Error set_tensor(executorch_method& method, size_t index, int32_t dtype, int32_t rank,
                 const int64_t* sizes, const void* data, size_t n_bytes) {
  ET_CHECK_OR_RETURN_ERROR(index < method.inputs.size(), InvalidArgument, "input %zu of %zu", index,
                           method.inputs.size());
  const Result<MethodMeta> meta = meta_of(method);
  ET_CHECK_OK_OR_RETURN_ERROR(meta.error());
  const Result<Tag> tag = meta->input_tag(index);
  ET_CHECK_OK_OR_RETURN_ERROR(tag.error());
  ET_CHECK_OR_RETURN_ERROR(*tag == Tag::Tensor, InvalidArgument, "%s is no tensor",
                           input_text(method, index).text);
  const Result<TensorInfo> info = meta->input_tensor_meta(index);
  ET_CHECK_OK_OR_RETURN_ERROR(info.error());
  const Result<cpu::Size> needed = bytes_of(dtype, rank, sizes);
  ET_CHECK_OK_OR_RETURN_ERROR(needed.error());
  ET_CHECK_OR_RETURN_ERROR(needed->ok(), InvalidArgument,
                           "%s is larger than any memory by its sizes",
                           input_text(method, index).text);
  ET_CHECK_OR_RETURN_ERROR(static_cast<uint64_t>(needed->value()) == n_bytes, InvalidArgument,
                           "%s has %zu bytes, its type and sizes need %" PRId64,
                           input_text(method, index).text, n_bytes, needed->value());
  ET_CHECK_OR_RETURN_ERROR(data != nullptr || n_bytes == 0, InvalidArgument,
                           "data: NULL is not allowed");
  ET_CHECK_OR_RETURN_ERROR(static_cast<size_t>(rank) == info->sizes().size(), InvalidArgument,
                           "%s has rank %" PRId32 ", expected %zu", input_text(method, index).text,
                           rank, info->sizes().size());
  InputTensor input;
  input.type = static_cast<ScalarType>(dtype);
  input.sizes.assign(sizes, sizes + rank);
  input.dim_order.assign(info->dim_order().begin(), info->dim_order().end());
  input.strides.resize(input.sizes.size());
  ET_CHECK_OK_OR_RETURN_ERROR(runtime::dim_order_to_stride(
      input.sizes.data(), input.dim_order.data(), input.sizes.size(), input.strides.data()));
  input.bytes = aligned_copy(data, n_bytes);
  input.is_planned = info->is_memory_planned();
  // Outputs of the last run may share the memory of a planned input. So until the next run, this
  // input is set to the memory it already has: that checks type and sizes, and writes nothing.
  void* const there = input.is_planned ? memory_of_input(method, index) : nullptr;
  ET_CHECK_OK_OR_RETURN_ERROR(
      give(method, index, input, there == nullptr ? input.bytes.get() : there));
  InputTensor& of_run = method.inputs_of_run[index];
  if (method.has_run && !input.is_planned && of_run.bytes == nullptr) {
    of_run = std::move(method.inputs[index]);
  }
  method.inputs[index] = std::move(input);
  return Error::Ok;
}

/// Sets the planned inputs before every run, since the last run may have written to their memory.
Error give_planned_inputs(executorch_method& method) {
  for (size_t i = 0; i < method.inputs.size(); ++i) {
    InputTensor& input = method.inputs[i];
    if (input.is_planned) {
      ET_CHECK_OK_OR_RETURN_ERROR(give(method, i, input, input.bytes.get()));
    }
  }
  return Error::Ok;
}

/// Gives memory to outputs that have none, enough for their largest sizes.
Error provide_outputs(executorch_method& method) {
  const MethodMeta meta = method.loaded_method->method_meta();
  for (size_t i = 0; i < method.memory_of_outputs.size(); ++i) {
    const EValue& output = method.loaded_method->get_output(i);
    if (!output.isTensor() || output.toTensor().const_data_ptr() != nullptr) continue;
    const Result<TensorInfo> info = meta.output_tensor_meta(i);
    ET_CHECK_OK_OR_RETURN_ERROR(info.error());
    if (info->is_memory_planned() || info->nbytes() == 0) continue;
    AlignedBytes& memory = method.memory_of_outputs[i];
    if (memory == nullptr) memory = aligned_bytes(info->nbytes());
    ET_CHECK_OK_OR_RETURN_ERROR(
        method.loaded_method->set_output_data_ptr(memory.get(), info->nbytes(), i));
  }
  return Error::Ok;
}

Error run(executorch_method& method) {
  method.has_run = false;
  method.outputs.clear();
  for (size_t i = 0; i < method.is_set.size(); ++i) {
    ET_CHECK_OR_RETURN_ERROR(method.is_set[i], InvalidState, "%s of %zu was never set",
                             c_api::input_text(method, i).text, method.is_set.size());
  }
  ET_CHECK_OK_OR_RETURN_ERROR(give_planned_inputs(method));
  ET_CHECK_OK_OR_RETURN_ERROR(provide_outputs(method));
  const auto outputs = method.module->execute(method.name);
  for (InputTensor& input : method.inputs_of_run) input = {};
  ET_CHECK_OK_OR_RETURN_ERROR(outputs.error());
  for (const EValue& output : *outputs) method.outputs.push_back(given(output));
  method.has_run = true;
  return Error::Ok;
}

Error load(const executorch_program& program, const char* name, executorch_method** method) {
  auto handle = std::make_unique<executorch_method>();
  handle->loaded = program.loaded;
  handle->name = name;
  const Result<MethodMeta> meta = meta_of(*handle);
  if (!meta.ok()) return Error::NotFound;  // it has been said
  handle->module = std::make_unique<Module>(program.loaded->module->program());
  const Result<runtime::Method*> loaded = loaded_method(*handle);
  ET_CHECK_OK_OR_RETURN_ERROR(loaded.error());
  handle->loaded_method = *loaded;
  handle->inputs.resize(meta->num_inputs());
  handle->inputs_of_run.resize(meta->num_inputs());
  handle->memory_of_outputs.resize(meta->num_outputs());
  // An input that is no tensor has its value from the program.
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const Result<Tag> tag = meta->input_tag(i);
    ET_CHECK_OK_OR_RETURN_ERROR(tag.error());
    handle->is_set.push_back(*tag != Tag::Tensor);
  }
  *method = handle.release();
  return Error::Ok;
}

}  // namespace
}  // namespace executorch::extension::c_api

namespace c_api = executorch::extension::c_api;
using c_api::all_given;
using c_api::guarded;
using executorch::runtime::Error;
using executorch::runtime::EValue;

executorch_status executorch_method_load(const executorch_program* program, const char* name,
                                         executorch_method** method) {
  return guarded("executorch_method_load", [&] {
    if (!all_given("program, name and method", program, name, method))
      return Error::InvalidArgument;
    return c_api::load(*program, name, method);
  });
}

void executorch_method_free(executorch_method* method) {
  delete method;
}

executorch_status executorch_method_input_count(const executorch_method* method, size_t* count) {
  return guarded("executorch_method_input_count", [&] {
    if (!all_given("method and count", method, count)) return Error::InvalidArgument;
    *count = method->inputs.size();
    return Error::Ok;
  });
}

executorch_status executorch_method_output_count(const executorch_method* method, size_t* count) {
  return guarded("executorch_method_output_count", [&] {
    if (!all_given("method and count", method, count)) return Error::InvalidArgument;
    const auto meta = c_api::meta_of(*method);
    ET_CHECK_OK_OR_RETURN_ERROR(meta.error());
    *count = meta->num_outputs();
    return Error::Ok;
  });
}

executorch_status executorch_method_input_name(const executorch_method* method, size_t index,
                                               const char** name) {
  return guarded("executorch_method_input_name", [&] {
    if (!all_given("method and name", method, name)) return Error::InvalidArgument;
    ET_CHECK_OR_RETURN_ERROR(index < method->inputs.size(), InvalidArgument, "input %zu of %zu",
                             index, method->inputs.size());
    *name = method->loaded_method->input_name(index);
    return Error::Ok;
  });
}

executorch_status executorch_method_output_name(const executorch_method* method, size_t index,
                                                const char** name) {
  return guarded("executorch_method_output_name", [&] {
    if (!all_given("method and name", method, name)) return Error::InvalidArgument;
    const size_t count = method->loaded_method->outputs_size();
    ET_CHECK_OR_RETURN_ERROR(index < count, InvalidArgument, "output %zu of %zu", index, count);
    *name = method->loaded_method->output_name(index);
    return Error::Ok;
  });
}

executorch_status executorch_method_input_info(const executorch_method* method, size_t index,
                                               executorch_value* info) {
  return guarded("executorch_method_input_info", [&] {
    if (!all_given("method and info", method, info)) return Error::InvalidArgument;
    const auto meta = c_api::meta_of(*method);
    ET_CHECK_OK_OR_RETURN_ERROR(meta.error());
    ET_CHECK_OR_RETURN_ERROR(index < meta->num_inputs(), InvalidArgument, "input %zu of %zu", index,
                             meta->num_inputs());
    return c_api::declared(meta->input_tag(index), meta->input_tensor_meta(index), info);
  });
}

executorch_status executorch_method_output_info(const executorch_method* method, size_t index,
                                                executorch_value* info) {
  return guarded("executorch_method_output_info", [&] {
    if (!all_given("method and info", method, info)) return Error::InvalidArgument;
    const auto meta = c_api::meta_of(*method);
    ET_CHECK_OK_OR_RETURN_ERROR(meta.error());
    ET_CHECK_OR_RETURN_ERROR(index < meta->num_outputs(), InvalidArgument, "output %zu of %zu",
                             index, meta->num_outputs());
    return c_api::declared(meta->output_tag(index), meta->output_tensor_meta(index), info);
  });
}

executorch_status executorch_method_set_tensor(executorch_method* method, size_t index,
                                               int32_t dtype, int32_t rank, const int64_t* sizes,
                                               const void* data, size_t n_bytes) {
  return guarded("executorch_method_set_tensor", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    return c_api::set_tensor(*method, index, dtype, rank, sizes, data, n_bytes);
  });
}

executorch_status executorch_method_set_int(executorch_method* method, size_t index,
                                            int64_t value) {
  return guarded("executorch_method_set_int", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    return c_api::set_value(*method, index, EValue(value));
  });
}

executorch_status executorch_method_set_double(executorch_method* method, size_t index,
                                               double value) {
  return guarded("executorch_method_set_double", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    return c_api::set_value(*method, index, EValue(value));
  });
}

executorch_status executorch_method_set_bool(executorch_method* method, size_t index, int value) {
  return guarded("executorch_method_set_bool", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    return c_api::set_value(*method, index, EValue(value != 0));
  });
}

executorch_status executorch_method_set_max_work(executorch_method* method, uint64_t units) {
  return guarded("executorch_method_set_max_work", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    method->module->set_max_work(units);
    return Error::Ok;
  });
}

executorch_status executorch_method_run(executorch_method* method) {
  return guarded("executorch_method_run", [&] {
    if (!all_given("method", method)) return Error::InvalidArgument;
    return c_api::run(*method);
  });
}

executorch_status executorch_method_output(const executorch_method* method, size_t index,
                                           executorch_value* output) {
  return guarded("executorch_method_output", [&] {
    if (!all_given("method and output", method, output)) return Error::InvalidArgument;
    ET_CHECK_OR_RETURN_ERROR(method->has_run, InvalidState, "the method has not run, or failed");
    ET_CHECK_OR_RETURN_ERROR(index < method->outputs.size(), InvalidArgument, "output %zu of %zu",
                             index, method->outputs.size());
    *output = method->outputs[index];
    return Error::Ok;
  });
}
