#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <optional>
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

/// [1, t] or [t].
bool is_row(runtime::Span<const int32_t> sizes) {
  return (sizes.size() == 1 || (sizes.size() == 2 && sizes[0] == 1)) && sizes[sizes.size() - 1] > 0;
}

/// What a method says of its inputs.
struct MethodInputs {
  const MethodMeta& meta;
  const std::string& method;
  std::vector<std::string> names;  ///< of inputs; "" for those that the program does not name
  bool is_stateless;

  MethodInputs(const Module& module, const MethodMeta& of, const std::string& method_name)
      : meta(of), method(method_name), names(of.num_inputs()), is_stateless(false) {
    const Result<runtime::DebugIdentity> identity = module.program()->debug_identity();
    if (!identity.ok()) return;
    is_stateless = identity->is_stateless(method_name.c_str());
    for (size_t i = 0; i < names.size(); ++i) {
      names[i] = identity->input_name(method_name.c_str(), i);
    }
  }

  /// "its input 1 (mask)".
  std::string input(size_t i) const {
    return std::string("its ") + runtime::ArgumentText("input", i, names[i].c_str()).text;
  }
  Error refuse_input(size_t i, const std::string& found, const char* expected) const {
    return refuse(method, input(i) + " is " + found, expected);
  }
};

Error read_tokens(const MethodInputs& inputs, size_t i, ProgramForm& form) {
  constexpr char kExpected[] = "token ids, int64 or int32 [1, t]";
  if (inputs.meta.num_inputs() == 0) return refuse(inputs.method, "it has no input", kExpected);
  const Result<TensorInfo> input = inputs.meta.input_tensor_meta(i);
  if (!input.ok()) return inputs.refuse_input(i, "no tensor", kExpected);
  const auto sizes = input->sizes();
  const bool fits = is_integer(input->scalar_type()) && is_row(sizes);
  if (!fits) return inputs.refuse_input(i, described(input->scalar_type(), sizes), kExpected);
  form.token_type = input->scalar_type();
  form.token_dims = sizes.size();
  form.max_tokens = sizes[sizes.size() - 1];
  return Error::Ok;
}

Error read_positions(const MethodInputs& inputs, ProgramForm& form) {
  constexpr char kExpected[] = "a position, or one for each token, int64 or int32 [1] or [t]";
  const Result<TensorInfo> input = inputs.meta.input_tensor_meta(1);
  if (!input.ok()) return inputs.refuse_input(1, "no tensor", kExpected);
  const auto sizes = input->sizes();
  if (!is_integer(input->scalar_type()) || sizes.size() != 1) {
    return inputs.refuse_input(1, described(input->scalar_type(), sizes), kExpected);
  }
  form.position_type = input->scalar_type();
  form.position = sizes[0] == 1 ? ProgramForm::Position::Start : ProgramForm::Position::EachToken;
  return Error::Ok;
}

Error read_embeddings(const MethodInputs& inputs, ProgramForm& form) {
  constexpr char kExpected[] = "embeddings [1, t, d], of float, half or bfloat16, and positions";
  if (inputs.meta.num_inputs() != 2) {
    return refuse(inputs.method, "it has " + std::to_string(inputs.meta.num_inputs()) + " inputs",
                  kExpected);
  }
  const Result<TensorInfo> input = inputs.meta.input_tensor_meta(0);
  if (!input.ok()) return inputs.refuse_input(0, "no tensor", kExpected);
  const auto sizes = input->sizes();
  const bool fits = is_float(input->scalar_type()) && sizes.size() == 3 && sizes[0] == 1 &&
                    sizes[1] > 0 && sizes[2] > 0;
  if (!fits) return inputs.refuse_input(0, described(input->scalar_type(), sizes), kExpected);
  form.token_type = input->scalar_type();
  form.token_dims = 3;
  form.max_tokens = sizes[1];
  form.embedding_width = sizes[2];
  return read_positions(inputs, form);
}

/// Whether one of the words of a name, such as "attention_mask", is that.
bool has_word(std::string_view name, std::string_view word) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find_first_of("_.", begin), name.size());
    if (name.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

/// What an input has for each token, by its name; none for tokens and names that say nothing.
std::optional<ProgramForm::Role> role_of(const std::string& name) {
  using Role = ProgramForm::Role;
  // PyTorch's key padding masks are true where a key is to be left out. What other padding masks
  // mean differs between models.
  if (name.find("key_padding_mask") != std::string::npos) return Role::Zeros;
  if (has_word(name, "mask") && !has_word(name, "padding")) return Role::Ones;
  for (const char* const word : {"pos", "position", "positions"}) {
    if (has_word(name, word)) return Role::Positions;
  }
  for (const char* const word : {"type", "segment", "segments"}) {
    if (has_word(name, word)) return Role::Zeros;
  }
  return std::nullopt;
}

/// An input of a program that is given the whole text, other than its tokens.
Error read_companion(const MethodInputs& inputs, size_t i, ProgramForm& form) {
  constexpr char kExpected[] =
      "integers or bools [1, t] or [t] named attention_mask, key_padding_mask, position_ids or "
      "token_type_ids";
  const Result<TensorInfo> input = inputs.meta.input_tensor_meta(i);
  if (!input.ok()) return inputs.refuse_input(i, "no tensor", kExpected);
  const ScalarType type = input->scalar_type();
  const auto role = role_of(inputs.names[i]);
  const auto sizes = input->sizes();
  const bool fits =
      is_row(sizes) && sizes[sizes.size() - 1] == form.max_tokens && role.has_value() &&
      (is_integer(type) || (type == ScalarType::Bool && *role != ProgramForm::Role::Positions));
  if (!fits) {
    const char* const unnamed =
        inputs.names[i].empty() ? " and has no name (was it stripped?)" : "";
    return inputs.refuse_input(i, described(type, sizes) + unnamed, kExpected);
  }
  form.inputs.push_back({*role, type, sizes.size()});
  return Error::Ok;
}

/// Which input the tokens are: the first that its name does not make something else of.
size_t find_tokens(const MethodInputs& inputs) {
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    if (!role_of(inputs.names[i])) return i;
  }
  return 0;
}

/// Whether a method with tokens and a second input keeps caches of its own: it takes the position of
/// the first token, or that of each and may remember something. Incremental programs compare texts
/// themselves.
bool keeps_caches(const MethodInputs& inputs, const ProgramForm& form) {
  if (inputs.meta.num_inputs() != 2 || form.is_incremental) return false;
  const Result<TensorInfo> input = inputs.meta.input_tensor_meta(1);
  if (!input.ok() || input->sizes().size() != 1 || !is_integer(input->scalar_type())) return false;
  return input->sizes()[0] == 1 || !inputs.is_stateless;
}

Error read_text(const MethodInputs& inputs, ProgramForm& form) {
  if (keeps_caches(inputs, form)) {
    ET_CHECK_OK_OR_RETURN_ERROR(read_tokens(inputs, 0, form));
    return read_positions(inputs, form);
  }
  form.tokens_input = find_tokens(inputs);
  ET_CHECK_OK_OR_RETURN_ERROR(read_tokens(inputs, form.tokens_input, form));
  if (inputs.names.size() == 1) return Error::Ok;
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    if (i == form.tokens_input) {
      form.inputs.push_back({ProgramForm::Role::Tokens, form.token_type, form.token_dims});
    } else {
      ET_CHECK_OK_OR_RETURN_ERROR(read_companion(inputs, i, form));
    }
  }
  return Error::Ok;
}

Error read_only_tokens(const MethodInputs& inputs, ProgramForm& form) {
  ET_CHECK_OK_OR_RETURN_ERROR(read_tokens(inputs, 0, form));
  return inputs.names.size() == 1
             ? Error::Ok
             : refuse(inputs.method, "it has " + std::to_string(inputs.names.size()) + " inputs",
                      "token ids only");
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

using Reader = Error (*)(const MethodInputs&, ProgramForm&);

/// `one_suffices`: what takes exactly one token can be called for one after the other.
Result<ProgramForm> form_of(Module& module, const std::string& method_name, Reader read_inputs,
                            bool one_suffices) {
  ET_ASSIGN_OR_RETURN(const MethodMeta meta, module.method_meta(method_name));
  ProgramForm form;
  form.is_incremental = has_incremental_state(meta);
  ET_CHECK_OK_OR_RETURN_ERROR(read_inputs(MethodInputs(module, meta, method_name), form));
  ET_CHECK_OK_OR_RETURN_ERROR(read_logits_output(meta, method_name, form));
  ET_ASSIGN_OR_RETURN(const bool any_number,
                      is_input_dynamic(module, method_name, form.tokens_input));
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
  return form_of(module, method_name, read_text, false);
}

Result<ProgramForm> token_embedding_form(Module& module, const std::string& method_name) {
  Result<ProgramForm> form = form_of(module, method_name, read_only_tokens, true);
  if (form.ok()) form->embedding_width = form->vocabulary_size;
  return form;
}

Result<ProgramForm> embeddings_form(Module& module, const std::string& method_name) {
  return form_of(module, method_name, read_embeddings, true);
}

}  // namespace executorch::extension::llm
