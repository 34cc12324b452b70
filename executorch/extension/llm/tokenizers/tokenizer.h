#pragma once

#include <executorch/extension/llm/tokenizers/error.h>
#include <executorch/extension/llm/tokenizers/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

struct TokenIndex {
  const char* str;
  int32_t id;
};

/// Text to token ids and back. After load() all const members may be called from several threads.
class Tokenizer {
 public:
  explicit Tokenizer() {}
  virtual ~Tokenizer() {}

  /// Reads a file. After an error error_message() says what is wrong with it.
  virtual Error load(const std::string& tokenizer_path) = 0;

  /// Like load(), from the bytes of such a file, which are not needed afterwards.
  virtual Error load_from_bytes(std::string_view bytes);

  /// What load() or load_from_bytes() found wrong; empty after success.
  const std::string& error_message() const { return error_message_; }

  /// A token as the vocabulary spells it; its bytes where vocabularies of the kind spell bytes.
  virtual Result<std::string> id_to_piece(uint64_t token) const = 0;
  virtual Result<uint64_t> piece_to_id(const std::string& text) const = 0;

  /// The tokens of `input`, after `bos` times the first token and before `eos` times the last one.
  /// Special tokens that the text spells out become those tokens. `input` may be any bytes; where
  /// a tokenizer works on characters, bytes that are not UTF-8 are read as U+FFFD.
  virtual Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos = 0,
                                               int8_t eos = 0) const = 0;

  /// The bytes that `token` adds to a text behind `prev_token`: possibly part of a character. See
  /// StreamDecoder (stream_decoder.h) for text that is cut between characters.
  virtual Result<std::string> decode(uint64_t prev_token, uint64_t token,
                                     bool skip_special_tokens = false) const = 0;

  /// The bytes that the tokens spell together; not checked to be UTF-8. The default concatenates
  /// what decode(previous, token) gives.
  virtual Result<std::string> decode_bytes(const std::vector<uint64_t>& tokens,
                                           bool skip_special_tokens = false) const;

  /// Whether what a token adds to a text depends on no other token than the one before it.
  virtual bool decodes_by_pairs() const { return true; }

  /// The bytes that `token` stands for inside a text (a sentence's first word keeps its space), for
  /// tables of what may follow. A special token gives the text that it is written as.
  virtual Result<std::string> token_bytes(uint64_t token) const;

  /// Whether `token` controls the model instead of standing for text. The default: bos_tok() and
  /// eos_tok(); none where both are 0, as of a class that names neither.
  virtual bool is_special(uint64_t token) const;

  /// Tokens after which a generated text ends: eos_tok() and, where the file names others with that
  /// meaning, those too.
  virtual std::vector<uint64_t> end_tokens() const;

  /// The Jinja template of conversations that came with the tokenizer (tokenizer_config.json or
  /// chat_template.jinja beside its file), or empty.
  const std::string& chat_template() const { return chat_template_; }
  void set_chat_template(std::string text) { chat_template_ = std::move(text); }

  /// One more than the largest token.
  int32_t vocab_size() const { return vocab_size_; }
  uint64_t bos_tok() const { return bos_tok_; }
  uint64_t eos_tok() const { return eos_tok_; }
  /// Other first and last tokens than those that the file names.
  virtual void set_bos_tok(uint64_t token) { bos_tok_ = token; }
  virtual void set_eos_tok(uint64_t token) { eos_tok_ = token; }
  virtual bool is_loaded() const { return initialized_; }

 protected:
  /// Notes and logs what is wrong; returns `error`.
  Error fail(Error error, std::string message);

  bool initialized_ = false;
  int32_t vocab_size_ = 0;
  uint64_t bos_tok_ = 0;
  uint64_t eos_tok_ = 0;
  std::string error_message_;
  std::string chat_template_;
};

}  // namespace tokenizers
