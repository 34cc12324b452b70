#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/llm/sampler/util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <limits>
#include <numeric>
#include <utility>

namespace executorch::extension::llm {
namespace {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::Result;

template <class From, class To>
TensorPtr copied(const Tensor& tensor, std::vector<aten::SizesType> sizes) {
  const From* const values = tensor.const_data_ptr<From>();
  return make_tensor_ptr(std::move(sizes), std::vector<To>(values, values + tensor.numel()));
}

}  // namespace

TextDecoderRunner::TextDecoderRunner(Module* module, IOManager* io_manager, std::string method_name,
                                     std::unique_ptr<Sampler> sampler, Stats* stats)
    : module_(module),
      io_manager_(io_manager),
      method_name_(std::move(method_name)),
      sampler_(std::move(sampler)),
      stats_(stats) {}

Result<TensorPtr> TextDecoderRunner::as_input(const TensorPtr& tensor, ScalarType type,
                                              size_t dims) {
  const ScalarType found = tensor->scalar_type();
  ET_CHECK_OR_RETURN_ERROR(found == ScalarType::Long || found == ScalarType::Int, InvalidArgument,
                           "tokens and positions are int64 or int32, found %s",
                           runtime::toString(found));
  if (found == type && static_cast<size_t>(tensor->dim()) == dims) return TensorPtr(tensor);
  const auto n = static_cast<aten::SizesType>(tensor->numel());
  std::vector<aten::SizesType> sizes = {n};
  if (dims == 2) sizes.insert(sizes.begin(), 1);
  if (found == type && type == ScalarType::Long) {
    return copied<int64_t, int64_t>(*tensor, std::move(sizes));
  }
  if (found == type) return copied<int32_t, int32_t>(*tensor, std::move(sizes));
  if (type == ScalarType::Int) {
    const int64_t* const values = tensor->const_data_ptr<int64_t>();
    for (aten::SizesType i = 0; i < n; ++i) {
      if (values[i] >= 0 && values[i] <= std::numeric_limits<int32_t>::max()) continue;
      ET_LOG(Error, "token or position %lld does not fit into int32, which the program takes",
             static_cast<long long>(values[i]));
      return Error::InvalidArgument;
    }
    return copied<int64_t, int32_t>(*tensor, std::move(sizes));
  }
  return copied<int32_t, int64_t>(*tensor, std::move(sizes));
}

Error TextDecoderRunner::load() {
  return load_as(program_form);
}

Error TextDecoderRunner::load_as(Result<ProgramForm> (*find_form)(Module&, const std::string&)) {
  if (is_form_known_) return Error::Ok;
  ET_CHECK_OK_OR_RETURN_ERROR(module_->load_method(method_name_));
  ET_ASSIGN_OR_RETURN(form_, find_form(*module_, method_name_));
  is_form_known_ = true;
  return Error::Ok;
}

bool TextDecoderRunner::is_method_loaded() {
  return is_form_known_ && module_->is_method_loaded(method_name_);
}

/// The inputs of a call with the n tokens that a text begins with.
Result<std::vector<TensorPtr>> TextDecoderRunner::inputs_of(const TensorPtr& tokens,
                                                            int64_t n) const {
  std::vector<TensorPtr> inputs;
  if (form_.inputs.empty()) inputs.push_back(tokens);
  for (const ProgramForm::Input& input : form_.inputs) {
    if (input.role == ProgramForm::Role::Tokens) {
      inputs.push_back(tokens);
    } else if (input.role == ProgramForm::Role::Positions) {
      std::vector<int64_t> positions(static_cast<size_t>(n));
      std::iota(positions.begin(), positions.end(), int64_t{0});
      ET_ASSIGN_OR_RETURN(auto made,
                          as_input(make_tensor_ptr(std::move(positions)), input.type, input.dims));
      inputs.push_back(std::move(made));
    } else {
      std::vector<aten::SizesType> sizes(input.dims, 1);
      sizes.back() = static_cast<aten::SizesType>(n);
      const int value = input.role == ProgramForm::Role::Ones ? 1 : 0;
      inputs.push_back(full(std::move(sizes), value, input.type));
    }
  }
  return inputs;
}

Result<std::vector<EValue>> TextDecoderRunner::execute(const TensorPtr& tokens, int64_t n,
                                                       int64_t start_pos) {
  ET_ASSIGN_OR_RETURN(const std::vector<TensorPtr> given, inputs_of(tokens, n));
  std::vector<EValue> inputs(given.begin(), given.end());
  std::vector<int64_t> positions;
  TensorPtr position;
  if (form_.position != ProgramForm::Position::None) {
    ET_ASSIGN_OR_RETURN(const auto made, populate_start_pos_or_cache_position(
                                             module_, start_pos, positions, static_cast<int>(n),
                                             method_name_.c_str()));
    ET_ASSIGN_OR_RETURN(position, as_input(made, form_.position_type, 1));
    inputs.emplace_back(position);
    if (io_manager_ != nullptr) {
      ET_ASSIGN_OR_RETURN(inputs, io_manager_->prepare_decode(tokens, position, method_name_));
    }
  }
  if (stats_ != nullptr) stats_->on_model_execution_begin();
  auto outputs = module_->execute(method_name_, inputs);
  if (stats_ != nullptr) stats_->on_model_execution_end();
  if (outputs.ok() && io_manager_ != nullptr && form_.position != ProgramForm::Position::None) {
    ET_CHECK_OK_OR_RETURN_ERROR(io_manager_->update_decode(*outputs, method_name_));
  }
  return outputs;
}

Result<Tensor> TextDecoderRunner::run(const TensorPtr& tokens, int64_t n, int64_t start_pos) {
  ET_ASSIGN_OR_RETURN(const auto outputs, execute(tokens, n, start_pos));
  const EValue& logits = outputs.at(form_.logits_output);
  if (!logits.isTensor()) return Error::InvalidProgram;
  return logits.toTensor();
}

Result<Tensor> TextDecoderRunner::step(TensorPtr& input, int64_t start_pos) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  ET_CHECK_OR_RETURN_ERROR(
      input != nullptr && input->numel() >= 1 && input->numel() <= form_.max_tokens,
      InvalidArgument, "method '%s' takes 1 to %lld tokens in a call, not %lld",
      method_name_.c_str(), static_cast<long long>(form_.max_tokens),
      static_cast<long long>(input == nullptr ? 0 : input->numel()));
  const Result<TensorPtr> tokens = as_input(input, form_.token_type, form_.token_dims);
  if (!tokens.ok()) return tokens.error();
  return run(*tokens, (*tokens)->numel(), start_pos);
}

int32_t TextDecoderRunner::sample(const Tensor& logits, float temperature) {
  if (sampler_ == nullptr) {
    return ::executorch::extension::llm::logits_to_token(logits, temperature);
  }
  sampler_->set_temperature(temperature);
  return sample_from_logits(logits, *sampler_);
}

int32_t TextDecoderRunner::logits_to_token(const Tensor& logits_tensor, const float temperature) {
  if (stats_ != nullptr) stats_->on_sampling_begin();
  int32_t token = -1;
  std::vector<float> row;
  if (excluded_.empty()) {
    token = sample(logits_tensor, temperature);
  } else if (read_logits(logits_tensor, -1, row) == Error::Ok) {
    for (const uint64_t excluded : excluded_) {
      if (excluded < row.size()) row[excluded] = -std::numeric_limits<float>::infinity();
    }
    token = sample(*make_tensor_ptr(std::move(row)), temperature);
  }
  if (stats_ != nullptr) stats_->on_sampling_end();
  return token;
}

}  // namespace executorch::extension::llm
