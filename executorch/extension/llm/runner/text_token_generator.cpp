#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/text_stream.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/tensor/tensor.h>

#include <algorithm>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

TextTokenGenerator::TextTokenGenerator(::tokenizers::Tokenizer* tokenizer,
                                       TextDecoderRunner* text_decoder_runner, bool use_kv_cache,
                                       std::unique_ptr<std::unordered_set<uint64_t>>&& eos_ids,
                                       Stats* stats)
    : tokenizer_(tokenizer),
      text_decoder_runner_(text_decoder_runner),
      use_kv_cache_(use_kv_cache),
      eos_ids_(std::move(eos_ids)),
      stats_(stats) {}

void TextTokenGenerator::remove_logit_processor(const LogitProcessor* processor) {
  const auto found =
      std::find_if(processors_.begin(), processors_.end(),
                   [&](const auto& candidate) { return candidate.get() == processor; });
  if (found != processors_.end()) processors_.erase(found);
}

Error TextTokenGenerator::apply_logit_processors(aten::Tensor& logits) {
  for (const auto& processor : processors_) {
    ET_CHECK_OK_OR_RETURN_ERROR(processor->process(logits));
  }
  return Error::Ok;
}

/// The token after `tokens`, the last of which stands at `start_pos`.
Result<uint64_t> TextTokenGenerator::next_token(std::vector<uint64_t>& tokens, int64_t start_pos,
                                                float temperature) {
  const size_t begin = use_kv_cache_ ? tokens.size() - 1 : 0;
  TensorPtr input =
      from_blob(tokens.data() + begin, {1, static_cast<aten::SizesType>(tokens.size() - begin)},
                aten::ScalarType::Long);
  ET_ASSIGN_OR_RETURN(const auto logits,
                      text_decoder_runner_->step(input, use_kv_cache_ ? start_pos : 0));
  return choose(logits, temperature);
}

Result<uint64_t> TextTokenGenerator::choose(const aten::Tensor& logits, float temperature) {
  aten::Tensor changed = logits;
  TensorPtr copy;
  if (!processors_.empty() && logits.unsafeGetTensorImpl()->is_read_only()) {
    if (logits.const_data_ptr() == nullptr) return Error::InvalidProgram;
    copy = clone_tensor_ptr(logits);
    changed = *copy;
  }
  ET_CHECK_OK_OR_RETURN_ERROR(apply_logit_processors(changed));
  const int32_t token = text_decoder_runner_->logits_to_token(changed, temperature);
  if (token < 0) return Error::InvalidArgument;
  for (const auto& processor : processors_) {
    ET_CHECK_OK_OR_RETURN_ERROR(processor->accept(static_cast<uint64_t>(token)));
  }
  return static_cast<uint64_t>(token);
}

Result<int64_t> TextTokenGenerator::generate(
    std::vector<uint64_t> tokens, std::optional<uint64_t> first, int64_t start_pos,
    int32_t max_new_tokens, float temperature,
    const std::function<void(const std::string&)>& token_callback) {
  chosen_.clear();
  ET_CHECK_OR_RETURN_ERROR(!tokens.empty(), InvalidArgument,
                           "generate: there is no token to continue");
  TextStream stream(tokenizer_, tokens);
  const auto show = [&](const std::string& text) {
    if (!text.empty() && token_callback) token_callback(text);
  };
  const auto is_complete = [](const auto& processor) { return processor->is_complete(); };
  while (static_cast<int64_t>(chosen_.size()) < max_new_tokens && !should_stop_) {
    const Result<uint64_t> token =
        first.has_value() ? Result<uint64_t>(*first) : next_token(tokens, start_pos, temperature);
    if (!token.ok()) return token.error();
    first.reset();
    ++start_pos;
    chosen_.push_back(*token);
    tokens.push_back(*token);
    if (chosen_.size() == 1 && stats_ != nullptr && stats_->first_token_ms == 0) {
      stats_->first_token_ms = time_in_ms();
    }
    const bool ends = eos_ids_ != nullptr && eos_ids_->count(*token) != 0;
    if (ends && !ignore_eos_) break;
    // Tokenizers often lack a token that ends a text.
    if (!ends || tokenizer_ == nullptr || has_text(*tokenizer_, *token)) {
      ET_ASSIGN_OR_RETURN(const auto text, stream.add(*token));
      show(text);
    }
    if (std::any_of(processors_.begin(), processors_.end(), is_complete)) break;
  }
  show(stream.finish());
  return static_cast<int64_t>(chosen_.size());
}

}  // namespace executorch::extension::llm
