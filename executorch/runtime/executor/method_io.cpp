#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/plan_validation.h>
#include <executorch/schema/program_generated.h>

#include <cmath>
#include <cstring>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;
using aten::Tensor;

// True if `source` lays its elements out as `input` would when resized to its shape: dimensions of
// extent 1 or 0 may stand anywhere, and a tensor without a dim order is contiguous. Orders that a
// user made may name dimensions that there are not.
bool same_order(const Tensor& source, const Tensor& input) {
  const auto next = [&source](const Tensor& tensor, size_t& at) {
    const auto order = tensor.dim_order();
    for (; at < order.size(); ++at) {
      const size_t dim = order.data() == nullptr ? at : order[at];
      if (dim >= order.size() || source.sizes()[dim] > 1) {
        ++at;
        return dim;
      }
    }
    return order.size();
  };
  const auto rank = static_cast<size_t>(source.dim());
  for (size_t at_source = 0, at_input = 0, dim = 0; dim < rank;) {
    dim = next(source, at_source);
    if (dim != next(input, at_input)) return false;
  }
  return true;
}

bool close(double found, double expected) {
  constexpr double kAbsolute = 1e-4;
  constexpr double kRelative = 1e-5;
  return found == expected || (std::isnan(found) && std::isnan(expected)) ||
         (std::isfinite(expected) &&
          std::fabs(found - expected) <= kAbsolute + kRelative * std::fabs(expected));
}

bool has_memory(const fb::Tensor& tensor) {
  return tensor.allocation_info() != nullptr || internal::is_constant(tensor);
}

}  // namespace

size_t Method::inputs_size() const {
  return state_.plan == nullptr ? 0 : state_.plan->inputs()->size();
}

size_t Method::outputs_size() const {
  return state_.plan == nullptr ? 0 : state_.plan->outputs()->size();
}

EValue& Method::input_value(size_t index) const {
  ET_CHECK_MSG(index < inputs_size(), "%s: input %zu of %zu", name(), index, inputs_size());
  return state_
      .values[static_cast<size_t>(state_.plan->inputs()->Get(static_cast<uint32_t>(index)))];
}

EValue& Method::output_value(size_t index) const {
  ET_CHECK_MSG(index < outputs_size(), "%s: output %zu of %zu", name(), index, outputs_size());
  return state_
      .values[static_cast<size_t>(state_.plan->outputs()->Get(static_cast<uint32_t>(index)))];
}

const EValue& Method::get_input(size_t i) const {
  return input_value(i);
}
EValue& Method::mutable_input(size_t i) {
  EValue& value = input_value(i);
  // The caller sets it, in ways that cannot be seen here.
  state_.input_set[i] = true;
  state_.checks_data = true;
  return value;
}
const EValue& Method::get_output(size_t i) const {
  return output_value(i);
}
EValue& Method::mutable_output(size_t i) {
  state_.checks_data = true;
  return output_value(i);
}

Error Method::set_inputs(const aten::ArrayRef<EValue>& input_evalues) {
  ET_CHECK_OR_RETURN_ERROR(input_evalues.size() == inputs_size(), InvalidArgument,
                           "%s takes %zu inputs, found %zu", name(), inputs_size(),
                           input_evalues.size());
  for (size_t i = 0; i < input_evalues.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(set_input(input_evalues[i], i));
  }
  return Error::Ok;
}

Error Method::set_input(const EValue& input_evalue, size_t input_idx) {
  ET_CHECK_OR_RETURN_ERROR(!is_in_progress(), InvalidState,
                           "%s: inputs cannot be set while an execution is in progress", name());
  ET_CHECK_OR_RETURN_ERROR(input_idx < inputs_size(), InvalidArgument,
                           "%s: input %zu, expected one of %zu", name(), input_idx, inputs_size());
  const auto index =
      static_cast<uint32_t>(state_.plan->inputs()->Get(static_cast<uint32_t>(input_idx)));
  const fb::EValue& recorded = *state_.plan->values()->Get(index);
  const Tag tag = *method_meta().input_tag(input_idx);
  ET_CHECK_OR_RETURN_ERROR(input_evalue.tag == tag, InvalidArgument, "%s: %s is a %s, expected %s",
                           name(), input_text(input_idx).text, tag_to_string(input_evalue.tag),
                           tag_to_string(tag));
  switch (tag) {
    case Tag::Tensor:
      ET_CHECK_OK_OR_RETURN_ERROR(set_tensor_input(input_evalue.toTensor(), input_idx));
      break;
    case Tag::Int: {
      const int64_t expected = recorded.val_as_Int()->int_val();
      ET_CHECK_OR_RETURN_ERROR(input_evalue.toInt() == expected, InvalidArgument,
                               "%s: %s is %" PRId64 ", but the method was exported for %" PRId64,
                               name(), input_text(input_idx).text, input_evalue.toInt(), expected);
      break;
    }
    case Tag::Bool: {
      const bool expected = recorded.val_as_Bool()->bool_val();
      ET_CHECK_OR_RETURN_ERROR(input_evalue.toBool() == expected, InvalidArgument,
                               "%s: %s is %s, but the method was exported for %s", name(),
                               input_text(input_idx).text, expected ? "false" : "true",
                               expected ? "true" : "false");
      break;
    }
    case Tag::Double: {
      const double expected = recorded.val_as_Double()->double_val();
      ET_CHECK_OR_RETURN_ERROR(close(input_evalue.toDouble(), expected), InvalidArgument,
                               "%s: %s is %g, but the method was exported for %g", name(),
                               input_text(input_idx).text, input_evalue.toDouble(), expected);
      break;
    }
    default:
      break;  // Strings and None carry nothing.
  }
  state_.input_set[input_idx] = true;
  return Error::Ok;
}

// Every check comes before the first change; resizing is a check until it succeeds.
Error Method::set_tensor_input(const Tensor& source, size_t index) {
  const auto value_index =
      static_cast<uint32_t>(state_.plan->inputs()->Get(static_cast<uint32_t>(index)));
  const fb::Tensor& recorded = *state_.plan->values()->Get(value_index)->val_as_Tensor();
  ET_CHECK_OR_RETURN_ERROR(source.unsafeGetTensorImpl() != nullptr, InvalidArgument,
                           "%s: %s is an undefined tensor", name(), input_text(index).text);
  ET_ASSIGN_OR_RETURN(const Tensor input, state_.values[value_index].tryToTensor());
  ET_CHECK_OR_RETURN_ERROR(source.scalar_type() == input.scalar_type(), InvalidArgument,
                           "%s: %s has element type %s, expected %s", name(),
                           input_text(index).text, toString(source.scalar_type()),
                           toString(input.scalar_type()));
  ET_CHECK_OR_RETURN_ERROR(source.const_data_ptr() != nullptr || source.numel() == 0,
                           InvalidArgument, "%s: %s has no data", name(), input_text(index).text);
  ET_CHECK_OR_RETURN_ERROR(source.dim() != input.dim() || same_order(source, input),
                           InvalidArgument,
                           "%s: %s has its dimensions in another order in memory (such as "
                           "channels last) than the method was exported for",
                           name(), input_text(index).text);
  auto& impl = *input.unsafeGetTensorImpl();
  const bool borrows = !has_memory(recorded);
  if (!borrows) {  // a view of a constant may have taken its place
    ET_CHECK_OK_OR_RETURN_ERROR(internal::writable_data(input).error(), "%s: %s cannot be set",
                                name(), input_text(index).text);
    // Without elements a tensor may have had none, and this input has some.
    ET_CHECK_OR_RETURN_ERROR(source.numel() == 0 || input.const_data_ptr() != nullptr, InvalidState,
                             "%s: %s has no memory any more; a view takes its place", name(),
                             input_text(index).text);
  }
  const bool read_only = impl.is_read_only();
  if (borrows) {  // the room of the last input is no bound for this one
    impl.borrow_data(impl.mutable_data(), SIZE_MAX, read_only);
  }
  if (resize_tensor(input, source.sizes()) != Error::Ok) {
    if (borrows) {
      impl.borrow_data(impl.mutable_data(), static_cast<size_t>(impl.numel()), read_only);
    }
    const bool is_static = input.shape_dynamism() == TensorShapeDynamism::STATIC;
    ET_LOG(Error, "%s: %s has shape %s, expected %s%s", name(), input_text(index).text,
           tensor_shape_to_c_string({source.sizes().data(), source.sizes().size()}).data(),
           is_static ? "" : "at most ",
           tensor_shape_to_c_string({recorded.sizes()->data(), recorded.sizes()->size()}).data());
    return Error::InvalidArgument;
  }
  if (borrows) {
    impl.borrow_data(source.mutable_data_ptr(), static_cast<size_t>(source.numel()),
                     source.unsafeGetTensorImpl()->is_read_only());
  } else if (source.numel() > 0 && source.const_data_ptr() != input.const_data_ptr()) {
    std::memmove(input.mutable_data_ptr(), source.const_data_ptr(), source.nbytes());
  }
  return Error::Ok;
}

Error Method::set_output_data_ptr(void* buffer, size_t size, size_t output_idx) {
  ET_CHECK_OR_RETURN_ERROR(output_idx < outputs_size(), InvalidArgument,
                           "%s: output %zu, expected one of %zu", name(), output_idx,
                           outputs_size());
  const auto index =
      static_cast<uint32_t>(state_.plan->outputs()->Get(static_cast<uint32_t>(output_idx)));
  const auto* recorded = state_.plan->values()->Get(index)->val_as_Tensor();
  const EValue& value = output_value(output_idx);
  ET_CHECK_OR_RETURN_ERROR(recorded != nullptr && value.isTensor(), InvalidArgument,
                           "%s: %s is a %s, expected a Tensor", name(),
                           output_text(output_idx).text, tag_to_string(value.tag));
  ET_CHECK_OR_RETURN_ERROR(!has_memory(*recorded), InvalidState,
                           "%s: %s is memory planned or a constant; it has memory", name(),
                           output_text(output_idx).text);
  ET_ASSIGN_OR_RETURN(const TensorInfo info, method_meta().output_tensor_meta(output_idx));
  const Tensor& output = value.toTensor();
  const size_t needed = info.nbytes() > output.nbytes() ? info.nbytes() : output.nbytes();
  ET_CHECK_OR_RETURN_ERROR(buffer != nullptr && size >= needed, InvalidArgument,
                           "%s: %s needs %zu bytes, found %zu at %p", name(),
                           output_text(output_idx).text, needed, size, buffer);
  auto& impl = *output.unsafeGetTensorImpl();
  ET_CHECK_OR_RETURN_ERROR(!impl.is_read_only(), InvalidState, "%s: a constant was moved to %s",
                           name(), output_text(output_idx).text);
  impl.borrow_data(buffer, size / elementSize(impl.scalar_type()), false);
  return Error::Ok;
}

Error Method::get_outputs(EValue* output_evalues, size_t length) {
  ET_CHECK_OR_RETURN_ERROR(length >= outputs_size(), InvalidArgument,
                           "%s has %zu outputs, room for %zu", name(), outputs_size(), length);
  ET_CHECK_OR_RETURN_ERROR(output_evalues != nullptr || length == 0, InvalidArgument,
                           "%s: the room for %zu outputs is null", name(), length);
  for (size_t i = 0; i < length; ++i) {
    output_evalues[i] = i < outputs_size() ? output_value(i) : EValue();
  }
  return Error::Ok;
}

Error Method::get_inputs(EValue* input_evalues, size_t length) {
  ET_CHECK_OR_RETURN_ERROR(length >= inputs_size(), InvalidArgument,
                           "%s has %zu inputs, room for %zu", name(), inputs_size(), length);
  ET_CHECK_OR_RETURN_ERROR(input_evalues != nullptr || length == 0, InvalidArgument,
                           "%s: the room for %zu inputs is null", name(), length);
  for (size_t i = 0; i < length; ++i) {
    input_evalues[i] = i < inputs_size() ? input_value(i) : EValue();
  }
  return Error::Ok;
}

Result<Tensor> Method::get_attribute(std::string_view attribute) {
  for (uint32_t i = 0; i < state_.values.size(); ++i) {
    const auto* tensor = state_.plan->values()->Get(i)->val_as_Tensor();
    const auto* extra = tensor == nullptr ? nullptr : tensor->extra_tensor_info();
    if (extra != nullptr && extra->fully_qualified_name() != nullptr &&
        extra->fully_qualified_name()->string_view() == attribute) {
      return state_.values[i].tryToTensor();
    }
  }
  ET_LOG(Error, "%s has no attribute %.*s", name(), static_cast<int>(attribute.size()),
         attribute.data());
  return Error::NotFound;
}

}  // namespace executorch::runtime
