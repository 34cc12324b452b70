#pragma once

#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// What only some kinds of files need and none contains.
struct TokenizerOptions {
  /// Special tokens of a tiktoken file, in order from its first free id. Where it is empty and the
  /// file is a known vocabulary (GPT-2, cl100k, o200k, Llama 3), that vocabulary's own.
  std::vector<std::string> special_tokens;
  /// How a tiktoken file's text is cut into words; empty: by the known vocabulary, else Llama 3's.
  std::string pattern;
  /// Places of a text's first and last token in `special_tokens`.
  size_t bos_index = 0;
  size_t eos_index = 1;
};

/// Makes the tokenizer of a file, whatever its kind: tokenizer.json, tekken.json, tiktoken,
/// SentencePiece model, llama2.c's tokenizer.bin, vocab.json (with the merges.txt that lies beside
/// it, or without); or of a folder that holds one of these. The kind is seen from the content.
/// Reads tokenizer_config.json beside it for the chat template and the first and last token. Null
/// where it is no tokenizer; `error` then says for each kind why not.
std::unique_ptr<Tokenizer> load_tokenizer_file(const std::string& path,
                                               std::string* error = nullptr,
                                               const TokenizerOptions& options = {});

/// The same for the bytes of one file; `merges` are those of merges.txt, and `config` those of
/// tokenizer_config.json, where there are any.
std::unique_ptr<Tokenizer> load_tokenizer_bytes(std::string_view bytes,
                                                std::string* error = nullptr,
                                                const TokenizerOptions& options = {},
                                                std::string_view merges = {},
                                                std::string_view config = {});

}  // namespace tokenizers
