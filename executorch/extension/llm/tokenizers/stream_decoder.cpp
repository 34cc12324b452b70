#include <executorch/extension/llm/tokenizers/stream_decoder.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <utility>

namespace tokenizers {

void StreamDecoder::follow(const std::vector<uint64_t>& text) {
  constexpr size_t kMostBytes = 4;
  const auto goes_on = [&](uint64_t token) {
    const Result<std::string> bytes = tokenizer_->decode_bytes({token}, skip_special_tokens_);
    if (!bytes.ok() || bytes->empty()) return bytes.ok() && !tokenizer_->is_special(token);
    return (static_cast<uint8_t>((*bytes)[0]) & 0xc0) == 0x80;
  };
  size_t count = std::min<size_t>(text.size(), 1);
  while (count < std::min(text.size(), kMostBytes) && goes_on(text[text.size() - count])) ++count;
  for (size_t i = text.size() - count; i < text.size(); ++i) (void)push(text[i]);
}

Result<std::string> StreamDecoder::push(uint64_t token) {
  if (skip_special_tokens_ && tokenizer_->is_special(token)) return std::string();
  waiting_ +=
      TK_UNWRAP(tokenizer_->decodes_by_pairs() ? added_to_previous(token) : added_to_all(token));
  const size_t complete = waiting_.size() - utf8::incomplete_tail(waiting_);
  std::string text = utf8::valid(std::string_view(waiting_).substr(0, complete));
  waiting_.erase(0, complete);
  return text;
}

/// What the token adds to the text of the token before it. Where that one alone spells nothing, as
/// a space at the beginning of a text, it does not tell what is in front of this one.
Result<std::string> StreamDecoder::added_to_previous(uint64_t token) {
  constexpr size_t kMost = 16;
  const std::string alone = TK_UNWRAP(tokenizer_->decode_bytes({token}, skip_special_tokens_));
  std::string added = alone;
  std::vector<uint64_t> tokens = previous_;
  tokens.push_back(token);
  if (!previous_.empty()) {
    const std::string before = TK_UNWRAP(tokenizer_->decode_bytes(previous_, skip_special_tokens_));
    added = TK_UNWRAP(tokenizer_->decode_bytes(tokens, skip_special_tokens_));
    if (added.compare(0, before.size(), before) == 0) {
      added.erase(0, before.size());
    } else {
      added = alone;
    }
  }
  if (!alone.empty()) {
    tokens = {token};
  } else if (tokens.size() > kMost) {
    tokens.erase(tokens.begin() + 1);
  }
  previous_ = std::move(tokens);
  return added;
}

/// The part of the text that a further token would not change, without what was given before.
Result<std::string> StreamDecoder::added_to_all(uint64_t token) {
  constexpr size_t kMost = 128;
  std::vector<uint64_t> tokens = last_;
  tokens.push_back(token);
  const std::string text = TK_UNWRAP(tokenizer_->decode_bytes(tokens, skip_special_tokens_));
  tokens.push_back(token);
  const std::string longer = TK_UNWRAP(tokenizer_->decode_bytes(tokens, skip_special_tokens_));
  tokens.pop_back();
  const size_t most = std::min(text.size(), longer.size());
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(most);
  const auto differs = std::mismatch(text.begin(), end, longer.begin()).first;
  const auto same = static_cast<size_t>(differs - text.begin());
  std::string added = same > given_ ? text.substr(given_, same - given_) : std::string();
  given_ = std::max(given_, same);
  if (tokens.size() > kMost) {
    // Drop the first tokens: the end of the text does not depend on them.
    tokens.erase(tokens.begin(), tokens.end() - kMost / 2);
    const std::string rest = TK_UNWRAP(tokenizer_->decode_bytes(tokens, skip_special_tokens_));
    const size_t held = text.size() - std::min(given_, text.size());
    given_ = rest.size() - std::min(held, rest.size());
  }
  last_ = std::move(tokens);
  return added;
}

std::string StreamDecoder::finish() {
  if (!last_.empty()) {
    const Result<std::string> text = tokenizer_->decode_bytes(last_, skip_special_tokens_);
    waiting_ += text.ok() && text->size() > given_ ? text->substr(given_) : std::string();
    last_.clear();
    given_ = 0;
  }
  std::string text = utf8::valid(waiting_);
  waiting_.clear();
  previous_.clear();
  return text;
}

}  // namespace tokenizers
