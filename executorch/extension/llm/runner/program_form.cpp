#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <string_view>

namespace executorch::extension::llm {
namespace {

using aten::ScalarType;
using runtime::Error;
using runtime::MethodMeta;
using runtime::Result;
using runtime::TensorInfo;

bool is_integer(ScalarType type) {
  return type == ScalarType::Long || type == ScalarType::Int;
}

bool is_float(ScalarType type) {
  return type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::Half ||
         type == ScalarType::BFloat16;
}

/// Logs what is wrong with a method.
Error refuse(const std::string& method, const std::string& found, const std::string& expected) {
  ET_LOG(Error, "method '%s' is not that of a language model: %s; expected %s", method.c_str(),
         found.c_str(), expected.c_str());
  return Error::InvalidArgument;
}

Error read_tokens(const MethodMeta& meta, const std::string& method, ProgramForm& form) {
  constexpr char kExpected[] = "token ids, int64 or int32 [1, t]";
  if (meta.num_inputs() == 0) return refuse(method, "it has no input", kExpected);
  const Result<TensorInfo> input = meta.input_tensor_meta(0);
  if (!input.ok()) return refuse(method, "its first input is no tensor", kExpected);
  const auto sizes = input->sizes();
  const bool fits = is_integer(input->scalar_type()) &&
                    (sizes.size() == 1 || (sizes.size() == 2 && sizes[0] == 1)) &&
                    sizes[sizes.size() - 1] > 0;
  if (!fits) {
    return refuse(method, "its first input is " + described(input->scalar_type(), sizes),
                  kExpected);
  }
  form.token_type = input->scalar_type();
  form.token_dims = sizes.size();
  form.max_tokens = sizes[sizes.size() - 1];
  return Error::Ok;
}

Error read_embeddings(const MethodMeta& meta, const std::string& method, ProgramForm& form) {
  constexpr char kExpected[] = "embeddings [1, t, d], of float, half or bfloat16, and positions";
  if (meta.num_inputs() != 2) {
    return refuse(method, "it has " + std::to_string(meta.num_inputs()) + " inputs", kExpected);
  }
  const Result<TensorInfo> input = meta.input_tensor_meta(0);
  if (!input.ok()) return refuse(method, "its first input is no tensor", kExpected);
  const auto sizes = input->sizes();
  const bool fits = is_float(input->scalar_type()) && sizes.size() == 3 && sizes[0] == 1 &&
                    sizes[1] > 0 && sizes[2] > 0;
  if (!fits) {
    return refuse(method, "its first input is " + described(input->scalar_type(), sizes),
                  kExpected);
  }
  form.token_type = input->scalar_type();
  form.token_dims = 3;
  form.max_tokens = sizes[1];
  form.embedding_width = sizes[2];
  return Error::Ok;
}

Error read_positions(const MethodMeta& meta, const std::string& method, ProgramForm& form) {
  constexpr char kExpected[] = "tokens, and their position or positions, int64 or int32 [1] or [t]";
  if (meta.num_inputs() == 1) return Error::Ok;
  if (meta.num_inputs() > 2) {
    return refuse(method, "it has " + std::to_string(meta.num_inputs()) + " inputs", kExpected);
  }
  const Result<TensorInfo> input = meta.input_tensor_meta(1);
  if (!input.ok()) return refuse(method, "its second input is no tensor", kExpected);
  const auto sizes = input->sizes();
  if (!is_integer(input->scalar_type()) || sizes.size() != 1) {
    return refuse(method, "its second input is " + described(input->scalar_type(), sizes),
                  kExpected);
  }
  form.position_type = input->scalar_type();
  form.position = sizes[0] == 1 ? ProgramForm::Position::Start : ProgramForm::Position::EachToken;
  return Error::Ok;
}

Error read_logits_output(const MethodMeta& meta, const std::string& method, ProgramForm& form) {
  constexpr char kExpected[] = "logits, float, half or bfloat16 [1, t, v] or [1, v]";
  for (size_t i = 0; i < meta.num_outputs(); ++i) {
    const Result<TensorInfo> output = meta.output_tensor_meta(i);
    if (!output.ok()) continue;
    const auto sizes = output->sizes();
    const ScalarType type = output->scalar_type();
    int64_t n_rows = 1;  // sizes are checked at load: their product is an int64
    for (size_t d = 0; d + 1 < sizes.size(); ++d) n_rows *= sizes[d];
    const bool fits = is_float(type) && sizes.size() >= 1 && sizes.size() <= 3 &&
                      sizes[sizes.size() - 1] > 0 && (n_rows == 1 || n_rows == form.max_tokens);
    if (!fits) {
      return refuse(method, "output " + std::to_string(i) + " is " + described(type, sizes),
                    kExpected);
    }
    form.logits_output = i;
    form.vocabulary_size = sizes[sizes.size() - 1];
    form.gives_all_positions = n_rows > 1;
    return Error::Ok;
  }
  return refuse(method, "no output is a tensor", kExpected);
}

bool has_incremental_state(const MethodMeta& meta) {
  constexpr std::string_view kPrefix = "incremental_";
  for (size_t i = 0; i < meta.num_attributes(); ++i) {
    const Result<TensorInfo> info = meta.attribute_tensor_meta(i);
    if (info.ok() && info->name().substr(0, kPrefix.size()) == kPrefix) return true;
  }
  return false;
}

using Reader = Error (*)(const MethodMeta&, const std::string&, ProgramForm&);

/// `one_suffices`: what takes exactly one token can be called for one after the other.
Result<ProgramForm> form_of(Module& module, const std::string& method_name, Reader read_first,
                            bool one_suffices) {
  ET_ASSIGN_OR_RETURN(const MethodMeta meta, module.method_meta(method_name));
  ProgramForm form;
  for (const Reader read : {read_first, read_positions, read_logits_output}) {
    ET_CHECK_OK_OR_RETURN_ERROR(read(meta, method_name, form));
  }
  form.is_incremental = has_incremental_state(meta);
  ET_ASSIGN_OR_RETURN(const bool any_number, is_input_dynamic(module, method_name, 0));
  one_suffices |= form.position != ProgramForm::Position::None;
  const bool one_at_a_time = one_suffices && form.max_tokens == 1;
  if (!any_number && !one_at_a_time) {
    return refuse(method_name, "it takes exactly " + std::to_string(form.max_tokens) + " tokens",
                  "any number up to a maximum: export it with a dynamic shape, as in "
                  "dynamic_shapes=({1: torch.export.Dim(\"tokens\", max=1024)},)");
  }
  return form;
}

}  // namespace

std::string described(ScalarType type, runtime::Span<const int32_t> sizes) {
  std::string text = std::string(runtime::toString(type)) + " [";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + "]";
}

Result<bool> is_input_dynamic(Module& module, const std::string& method_name, size_t i) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const Result<runtime::Method*> method = module.method(method_name);
  if (!method.ok()) return method.error();
  const aten::Tensor input = (*method)->get_input(i).toTensor();
#pragma GCC diagnostic pop
  return input.unsafeGetTensorImpl()->shape_dynamism() != aten::TensorShapeDynamism::STATIC;
}

Result<ProgramForm> program_form(Module& module, const std::string& method_name) {
  return form_of(module, method_name, read_tokens, false);
}

Result<ProgramForm> token_embedding_form(Module& module, const std::string& method_name) {
  Result<ProgramForm> form = form_of(module, method_name, read_tokens, true);
  if (!form.ok()) return form;
  if (form->position != ProgramForm::Position::None) {
    return refuse(method_name, "it has 2 inputs", "token ids only");
  }
  form->embedding_width = form->vocabulary_size;
  return form;
}

Result<ProgramForm> embeddings_form(Module& module, const std::string& method_name) {
  return form_of(module, method_name, read_embeddings, true);
}

}  // namespace executorch::extension::llm
