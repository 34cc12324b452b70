#pragma once

#include <executorch/extension/llm/runner/grammar.h>
#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/runner/text_prefiller.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/module/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace executorch::extension::llm {

/// Continues a text, prompt after prompt, until reset(). create_text_llm_runner() makes one.
/// text_session.h has the same with more sampling, stop strings, and several texts over one copy of
/// the weights.
class TextLLMRunner : public IRunner {
 public:
  /// `metadata`: as of get_llm_metadata(). `temperature`: of all calls; -1: each says its own.
  /// `decode_text_decoder_runner`: what the generator works with, where that is not
  /// `text_decoder_runner`; kept for it.
  explicit TextLLMRunner(std::unordered_map<std::string, int64_t> metadata,
                         std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                         std::unique_ptr<extension::Module> module,
                         std::unique_ptr<TextDecoderRunner> text_decoder_runner,
                         std::unique_ptr<TextPrefiller> text_prefiller,
                         std::unique_ptr<IOManager> io_manager,
                         std::unique_ptr<TextTokenGenerator> text_token_generator,
                         std::unique_ptr<Stats> stats, float temperature = -1.0f,
                         std::unique_ptr<TextDecoderRunner> decode_text_decoder_runner = nullptr);

  bool is_loaded() const override;
  ET_NODISCARD runtime::Error load() override;

  /// InvalidArgument, and the numbers in the log, if the text is longer than the context. After an
  /// error before the first new token the text is as before. An empty prompt continues the text;
  /// InvalidState if there is none. `config.grammar`, of `config.grammar_type` "regex" or
  /// "json_schema", is what new text must be: grammar.h.
  ET_NODISCARD runtime::Error generate(
      const std::string& prompt, const GenerationConfig& config,
      std::function<void(const std::string&)> token_callback = {},
      std::function<void(const Stats&)> stats_callback = {}) override;

  /// Text and tokens only. Returns the likeliest next token.
  runtime::Result<uint64_t> prefill(const std::vector<MultimodalInput>& inputs, int32_t num_bos = 0,
                                    int32_t num_eos = 0) override;
  runtime::Result<uint64_t> prefill(const std::string& prompt, int32_t num_bos = 0,
                                    int32_t num_eos = 0);
  runtime::Result<uint64_t> prefill(const std::string& prompt, const GenerationConfig& config);

  /// Generates, tells nobody, and forgets it.
  ET_NODISCARD runtime::Error warmup(const std::string& prompt, int32_t max_new_tokens);
  void reset() override;
  void stop() override;

  /// The generator that chooses the tokens of generate(); processors are added to it.
  TextTokenGenerator& text_token_generator() { return *text_token_generator_; }

 private:
  int64_t metadata(const char* name, int64_t otherwise) const;
  runtime::Result<std::vector<uint64_t>> encode(const std::string& text, int32_t num_bos,
                                                int32_t num_eos) const;
  runtime::Error append(const std::vector<uint64_t>& tokens);
  /// Makes the text `before` tokens long again, if nothing follows the `n_tokens` that were
  /// appended.
  void take_back(size_t before, size_t n_tokens);
  /// Reads what the program has not seen, up to `end`.
  runtime::Result<uint64_t> read(size_t end, float temperature = 0.0f);
  /// Reads what the program has not seen of the text, and continues it. Returns how many tokens
  /// were chosen.
  runtime::Result<int64_t> answer(const std::shared_ptr<LogitProcessor>& constraint,
                                  float temperature, const GenerationConfig& config,
                                  const std::function<void(const std::string&)>& token_callback);
  /// What follows the text, of which `first` was chosen already, if it was. Returns how many tokens.
  runtime::Result<int64_t> continue_text(
      std::optional<uint64_t> first, float temperature, const GenerationConfig& config,
      const std::function<void(const std::string&)>& token_callback);

  // Whatever is declared later may point into what is declared earlier.
  std::unordered_map<std::string, int64_t> metadata_;
  std::unique_ptr<::tokenizers::Tokenizer> tokenizer_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Stats> stats_;
  std::unique_ptr<IOManager> io_manager_;
  std::unique_ptr<TextDecoderRunner> text_decoder_runner_;
  std::unique_ptr<TextDecoderRunner> decode_text_decoder_runner_;
  std::unique_ptr<TextPrefiller> text_prefiller_;
  std::unique_ptr<TextTokenGenerator> text_token_generator_;
  float temperature_;

  Grammars grammars_;
  std::vector<uint64_t> text_;
  /// Tokens at its beginning that are in the program's caches.
  size_t n_seen_ = 0;
};

}  // namespace executorch::extension::llm
