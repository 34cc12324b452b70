#include <executorch/extension/llm/runner/multimodal_decoder_runner.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

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
  const Result<ProgramForm> form = token_embedding_form(*module_, kTokenEmbeddingMethod);
  if (!form.ok()) return form.error();
  embedding_form_ = *form;
  if (embedding_form_.embedding_width != form_.embedding_width) {
    ET_LOG(Error, "method '%s' gives %lld numbers for a token, and '%s' takes %lld",
           kTokenEmbeddingMethod, static_cast<long long>(embedding_form_.embedding_width),
           method_name_.c_str(), static_cast<long long>(form_.embedding_width));
    return Error::InvalidArgument;
  }
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
  const Error error = load();
  if (error != Error::Ok) return error;
  const int64_t n = tokens == nullptr ? 0 : static_cast<int64_t>(tokens->numel());
  if (n < 1 || n > embedding_form_.max_tokens) {
    ET_LOG(Error, "method '%s' takes 1 to %lld tokens in a call, not %lld", kTokenEmbeddingMethod,
           static_cast<long long>(embedding_form_.max_tokens), static_cast<long long>(n));
    return Error::InvalidArgument;
  }
  const auto input = as_input(tokens, embedding_form_.token_type, embedding_form_.token_dims);
  if (!input.ok()) return input.error();
  const auto outputs = module_->execute(kTokenEmbeddingMethod, {EValue(*input)});
  if (!outputs.ok()) return outputs.error();
  return outputs->at(embedding_form_.logits_output).toTensor();
}

Result<Tensor> MultimodalDecoderRunner::decode(const EValue& embeddings, int64_t start_pos) {
  const Error error = load();
  if (error != Error::Ok) return error;
  if (!embeddings.isTensor()) {
    ET_LOG(Error, "method '%s': the embeddings are no tensor", method_name_.c_str());
    return Error::InvalidArgument;
  }
  const Tensor tensor = embeddings.toTensor();
  const auto sizes = tensor.sizes();
  const bool fits = tensor.scalar_type() == form_.token_type && sizes.size() == 3 &&
                    sizes[0] == 1 && sizes[1] >= 1 && sizes[1] <= form_.max_tokens &&
                    sizes[2] == form_.embedding_width;
  if (!fits) {
    ET_LOG(Error, "method '%s': the embeddings are %s; expected %s [1, 1 to %lld, %lld]",
           method_name_.c_str(),
           described(tensor.scalar_type(), {sizes.data(), sizes.size()}).c_str(),
           runtime::toString(form_.token_type), static_cast<long long>(form_.max_tokens),
           static_cast<long long>(form_.embedding_width));
    return Error::InvalidArgument;
  }
  if (start_pos < 0 || start_pos > std::numeric_limits<int64_t>::max() - sizes[1]) {
    ET_LOG(Error, "method '%s': there is no position %lld", method_name_.c_str(),
           static_cast<long long>(start_pos));
    return Error::InvalidArgument;
  }
  return run(make_tensor_ptr(tensor), sizes[1], start_pos);
}

Result<Tensor> MultimodalDecoderRunner::step(TensorPtr& tokens, int64_t start_pos) {
  const Result<Tensor> embeddings = embed(tokens);
  if (!embeddings.ok()) return embeddings.error();
  return decode(EValue(*embeddings), start_pos);
}

}  // namespace executorch::extension::llm
