#pragma once

#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/runtime/core/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace executorch::extension::llm {

/// Generates tokens until the text ends. The constructor's arguments must outlive it.
class TextTokenGenerator {
 public:
  /// `use_kv_cache`: whether the program takes only the new token in a call, not the whole text.
  TextTokenGenerator(::tokenizers::Tokenizer* tokenizer, TextDecoderRunner* text_decoder_runner,
                     bool use_kv_cache, std::unique_ptr<std::unordered_set<uint64_t>>&& eos_ids,
                     Stats* stats);
  virtual ~TextTokenGenerator() = default;

  /// Whether to go on after a token that ends the text. One that the tokenizer has no text for adds
  /// nothing to the text.
  void set_ignore_eos(bool ignore_eos) { ignore_eos_ = ignore_eos; }
  void add_logit_processor(std::shared_ptr<LogitProcessor> processor) {
    processors_.push_back(std::move(processor));
  }
  /// Removes one that was added; nothing happens if it is not there any more.
  void remove_logit_processor(const LogitProcessor* processor);
  /// Removes the processor that was added last.
  void remove_last_logit_processor() {
    if (!processors_.empty()) processors_.pop_back();
  }
  void clear_logit_processors() { processors_.clear(); }
  size_t num_logit_processors() const { return processors_.size(); }
  /// Calls all processors in order, up to the first error.
  ET_NODISCARD runtime::Error apply_logit_processors(aten::Tensor& logits);

  /// Chooses the next token from the last row of logits. The processors first change the logits,
  /// and then are told the token.
  runtime::Result<uint64_t> choose(const aten::Tensor& logits, float temperature);

  /// Generates the continuation of `tokens`, whose last one the program has not seen, at position
  /// `start_pos`. `token_callback` gets whole characters. Returns how many tokens were chosen,
  /// including the one that ended the text.
  runtime::Result<int64_t> generate(
      std::vector<uint64_t> tokens, int64_t start_pos, int32_t max_new_tokens,
      float temperature = 0.0f,
      const std::function<void(const std::string&)>& token_callback = {}) {
    forget_stop();
    return generate(std::move(tokens), std::nullopt, start_pos, max_new_tokens, temperature,
                    token_callback);
  }
  /// The same, where the program has seen all tokens, and `first` was already chosen as the next
  /// one. A stop() before the call counts as well, back to the last forget_stop().
  runtime::Result<int64_t> generate(std::vector<uint64_t> tokens, std::optional<uint64_t> first,
                                    int64_t start_pos, int32_t max_new_tokens, float temperature,
                                    const std::function<void(const std::string&)>& token_callback);

  /// Ends generate() soon. May be called from any thread.
  void stop() { should_stop_ = true; }
  bool is_stopped() const { return should_stop_; }
  void forget_stop() { should_stop_ = false; }

  ET_NODISCARD runtime::Error load() { return text_decoder_runner_->load(); }
  bool is_loaded() const { return text_decoder_runner_->is_method_loaded(); }

  const std::unordered_set<uint64_t>& eos_ids() const { return *eos_ids_; }
  /// The tokens that the last generate() chose, even if it ended with an error.
  const std::vector<uint64_t>& chosen_tokens() const { return chosen_; }

 private:
  runtime::Result<uint64_t> next_token(std::vector<uint64_t>& tokens, int64_t start_pos,
                                       float temperature);

  ::tokenizers::Tokenizer* tokenizer_;
  TextDecoderRunner* text_decoder_runner_;
  bool use_kv_cache_;
  std::unique_ptr<std::unordered_set<uint64_t>> eos_ids_;
  Stats* stats_;
  bool ignore_eos_ = false;
  std::atomic<bool> should_stop_{false};
  std::vector<std::shared_ptr<LogitProcessor>> processors_;
  std::vector<uint64_t> chosen_;
};

/// Adds a processor, which is removed again where the scope is left: by a return or an exception.
/// Null: nothing is added.
class ScopedLogitProcessor {
 public:
  ScopedLogitProcessor(TextTokenGenerator& generator, std::shared_ptr<LogitProcessor> processor)
      : generator_(generator), processor_(processor.get()) {
    if (processor != nullptr) generator.add_logit_processor(std::move(processor));
  }
  ~ScopedLogitProcessor() { generator_.remove_logit_processor(processor_); }
  ScopedLogitProcessor(const ScopedLogitProcessor&) = delete;
  ScopedLogitProcessor& operator=(const ScopedLogitProcessor&) = delete;

 private:
  TextTokenGenerator& generator_;
  const LogitProcessor* processor_;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextTokenGenerator;
}  // namespace torch::executor
