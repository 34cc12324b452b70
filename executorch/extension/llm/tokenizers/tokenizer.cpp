#include <executorch/extension/llm/tokenizers/tokenizer.h>

namespace tokenizers {

Error Tokenizer::fail(Error error, std::string message) {
  initialized_ = false;
  error_message_ = std::move(message);
  TK_LOG(Info, "%s", error_message_.c_str());
  return error;
}

Error Tokenizer::load_from_bytes(std::string_view) {
  return fail(Error::LoadFailure, "this tokenizer can only be loaded from a file");
}

Result<std::string> Tokenizer::decode_bytes(const std::vector<uint64_t>& tokens,
                                            bool skip_special_tokens) const {
  std::string bytes;
  uint64_t previous = bos_tok_;
  for (const uint64_t token : tokens) {
    bytes += TK_UNWRAP(decode(previous, token, skip_special_tokens));
    previous = token;
  }
  return bytes;
}

Result<std::string> Tokenizer::token_bytes(uint64_t token) const {
  return id_to_piece(token);
}

bool Tokenizer::is_special(uint64_t token) const {
  const bool named = bos_tok_ != 0 || eos_tok_ != 0;
  return named && (token == bos_tok_ || token == eos_tok_);
}

std::vector<uint64_t> Tokenizer::end_tokens() const {
  return {eos_tok_};
}

}  // namespace tokenizers
