/// What a TextSession holds: inside of the runner only.
#pragma once

#include <executorch/extension/llm/runner/language_model.h>
#include <executorch/extension/llm/runner/text_session.h>

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm {

class TextGeneration;

struct TextSession::State {
  State(std::unique_ptr<Module> own_module, const std::string& method_name);
  ~State();

  std::unique_ptr<Module> module;
  TextDecoderRunner decoder;
  /// Set once the decoder is loaded.
  std::optional<LanguageModel> model;
  const ::tokenizers::Tokenizer* tokenizer = nullptr;
  const std::unordered_set<uint64_t>* eos_ids = nullptr;
  /// Tokens of the program's vocabulary that the tokenizer lacks.
  const std::vector<uint64_t>* unknown_tokens = nullptr;
  int64_t context_length = 0;

  std::vector<uint64_t> text;
  /// Tokens before this one are forgotten.
  size_t window_begin = 0;
  std::atomic<bool> stop{false};
  /// What decode_one() goes on with in its next call.
  std::unique_ptr<TextGeneration> steps;
  std::optional<SamplingConfig> initial_sampling;
};

}  // namespace executorch::extension::llm
