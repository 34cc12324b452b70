#include <executorch/extension/llm/tokenizers/stream_decoder.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

namespace tokenizers {

Result<std::string> StreamDecoder::push(uint64_t token) {
  if (skip_special_tokens_ && tokenizer_->is_special(token)) {
    return std::string();
  }
  // What a token adds depends at most on the one before it: the difference of two short texts.
  std::string added;
  if (!has_previous_) {
    added = TK_UNWRAP(tokenizer_->decode_bytes({token}, skip_special_tokens_));
  } else {
    const std::string before =
        TK_UNWRAP(tokenizer_->decode_bytes({previous_}, skip_special_tokens_));
    added = TK_UNWRAP(tokenizer_->decode_bytes({previous_, token}, skip_special_tokens_));
    if (added.compare(0, before.size(), before) == 0) {
      added.erase(0, before.size());
    } else {
      added = TK_UNWRAP(tokenizer_->decode_bytes({token}, skip_special_tokens_));
    }
  }
  has_previous_ = true;
  previous_ = token;
  waiting_ += added;
  const size_t complete = waiting_.size() - utf8::incomplete_tail(waiting_);
  std::string text = utf8::valid(std::string_view(waiting_).substr(0, complete));
  waiting_.erase(0, complete);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = utf8::valid(waiting_);
  waiting_.clear();
  has_previous_ = false;
  return text;
}

}  // namespace tokenizers
