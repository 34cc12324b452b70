#include <executorch/extension/llm/runner/text_stream.h>
#include <executorch/extension/llm/runner/util.h>

#include <utility>

namespace executorch::extension::llm {

TextStream::TextStream(const ::tokenizers::Tokenizer* tokenizer,
                       const std::vector<uint64_t>& previous, std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  if (tokenizer == nullptr) return;
  decoder_.emplace(*tokenizer);
  // Spaces in front of a word depend on what it follows.
  decoder_->follow(previous);
}

runtime::Result<std::string> TextStream::add(uint64_t token) {
  if (!decoder_.has_value()) return std::string();
  auto text = decoder_->push(token);
  ET_CHECK_OR_RETURN_ERROR(text.ok(), InvalidArgument, "the tokenizer has no token %llu",
                           static_cast<unsigned long long>(token));
  held_ += *text;
  const size_t n = stop_safe_prefix_len(held_, stop_strings_, is_stopped_);
  std::string shown = held_.substr(0, n);
  held_.erase(0, n);
  return shown;
}

std::string TextStream::finish() {
  if (is_stopped_ || !decoder_.has_value()) return "";
  held_ += decoder_->finish();
  // What the decoder held back may complete a stop string.
  const size_t n = stop_safe_prefix_len(held_, stop_strings_, is_stopped_);
  if (is_stopped_) held_.resize(n);
  return std::exchange(held_, "");
}

}  // namespace executorch::extension::llm
