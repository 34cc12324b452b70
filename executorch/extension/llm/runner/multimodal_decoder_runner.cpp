#include <executorch/extension/llm/runner/multimodal_decoder_runner.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace executorch::extension::llm {

using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::Result;

MultimodalDecoderRunner::MultimodalDecoderRunner(Module* module, IOManager* io_manager,
                                                 std::string method_name,
                                                 std::unique_ptr<Sampler> sampler)
    : TextDecoderRunner(module, io_manager,
                        method_name == kForwardMethod ? kTextModelMethod : std::move(method_name),
                        std::move(sampler)) {}

Error MultimodalDecoderRunner::load() {
  const Error error = load_as(embeddings_form);
  if (error != Error::Ok || is_embedding_known_) return error;
  ET_ASSIGN_OR_RETURN(embedding_form_, token_embedding_form(*module_, kTokenEmbeddingMethod));
  ET_CHECK_OR_RETURN_ERROR(
      embedding_form_.embedding_width == form_.embedding_width, InvalidArgument,
      "method '%s' gives %lld numbers for a token, and '%s' takes %lld", kTokenEmbeddingMethod,
      static_cast<long long>(embedding_form_.embedding_width), method_name_.c_str(),
      static_cast<long long>(form_.embedding_width));
  is_embedding_known_ = true;
  return Error::Ok;
}

bool MultimodalDecoderRunner::is_method_loaded() {
  return is_embedding_known_ && TextDecoderRunner::is_method_loaded() &&
         module_->is_method_loaded(kTokenEmbeddingMethod);
}

int64_t MultimodalDecoderRunner::max_tokens() const {
  return std::min(form_.max_tokens, embedding_form_.max_tokens);
}

Result<Tensor> MultimodalDecoderRunner::embed(const TensorPtr& tokens) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  const int64_t n = tokens == nullptr ? 0 : static_cast<int64_t>(tokens->numel());
  ET_CHECK_OR_RETURN_ERROR(
      n >= 1 && n <= embedding_form_.max_tokens, InvalidArgument,
      "method '%s' takes 1 to %lld tokens in a call, not %lld", kTokenEmbeddingMethod,
      static_cast<long long>(embedding_form_.max_tokens), static_cast<long long>(n));
  ET_ASSIGN_OR_RETURN(const auto input,
                      as_input(tokens, embedding_form_.token_type, embedding_form_.token_dims));
  const auto outputs = module_->execute(kTokenEmbeddingMethod, {EValue(input)});
  if (!outputs.ok()) return outputs.error();
  return outputs->at(embedding_form_.logits_output).toTensor();
}

Result<Tensor> MultimodalDecoderRunner::decode(const EValue& embeddings, int64_t start_pos) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  ET_CHECK_OR_RETURN_ERROR(embeddings.isTensor(), InvalidArgument,
                           "method '%s': the embeddings are no tensor", method_name_.c_str());
  const Tensor tensor = embeddings.toTensor();
  const auto sizes = tensor.sizes();
  const bool fits = tensor.scalar_type() == form_.token_type && sizes.size() == 3 &&
                    sizes[0] == 1 && sizes[1] >= 1 && sizes[1] <= form_.max_tokens &&
                    sizes[2] == form_.embedding_width;
  ET_CHECK_OR_RETURN_ERROR(
      fits, InvalidArgument, "method '%s': the embeddings are %s; expected %s [1, 1 to %lld, %lld]",
      method_name_.c_str(), described(tensor.scalar_type(), {sizes.data(), sizes.size()}).c_str(),
      runtime::toString(form_.token_type), static_cast<long long>(form_.max_tokens),
      static_cast<long long>(form_.embedding_width));
  ET_CHECK_OR_RETURN_ERROR(
      start_pos >= 0 && start_pos <= std::numeric_limits<int64_t>::max() - sizes[1],
      InvalidArgument, "method '%s': there is no position %lld", method_name_.c_str(),
      static_cast<long long>(start_pos));
  return run(make_tensor_ptr(tensor), sizes[1], start_pos);
}

Result<Tensor> MultimodalDecoderRunner::step(TensorPtr& tokens, int64_t start_pos) {
  ET_ASSIGN_OR_RETURN(const Tensor embeddings, embed(tokens));
  return decode(EValue(embeddings), start_pos);
}

}  // namespace executorch::extension::llm
