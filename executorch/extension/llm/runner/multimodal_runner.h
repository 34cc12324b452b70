#pragma once

#include <executorch/extension/llm/runner/grammar.h>
#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/multimodal_decoder_runner.h>
#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/llm/runner/multimodal_prefiller.h>
#include <executorch/extension/llm/runner/stats.h>
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

/// Continues a text with images and sound in it, prompt after prompt, until reset().
/// create_multimodal_runner() makes one.
class MultimodalRunner : public IRunner {
 public:
  /// `metadata`: as of get_llm_metadata().
  explicit MultimodalRunner(std::unordered_map<std::string, int64_t> metadata,
                            std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                            std::unique_ptr<Module> module,
                            std::unique_ptr<MultimodalDecoderRunner> text_decoder_runner,
                            std::unique_ptr<MultimodalPrefiller> multimodal_prefiller,
                            std::unique_ptr<IOManager> io_manager,
                            std::unique_ptr<TextTokenGenerator> text_token_generator,
                            std::unique_ptr<Stats> stats);
  ~MultimodalRunner() override = default;

  bool is_loaded() const override;
  ET_NODISCARD runtime::Error load() override;

  ET_NODISCARD runtime::Error generate(
      const std::string& prompt, const GenerationConfig& config,
      std::function<void(const std::string&)> token_callback = {},
      std::function<void(const Stats&)> stats_callback = {}) override;
  /// Without inputs: continues what prefill() or generate() left; InvalidState if that is nothing.
  /// InvalidArgument, and the numbers in the log, if there is no room for a new token. Of the
  /// prompt, only a text at its end is echoed.
  ET_NODISCARD virtual runtime::Error generate(
      const std::vector<MultimodalInput>& inputs, const GenerationConfig& config,
      std::function<void(const std::string&)> token_callback = {},
      std::function<void(const Stats&)> stats_callback = {});

  /// Returns the likeliest next token. `num_bos` counts only where nothing was read yet, `num_eos`
  /// only for a text at the end. Empty texts are passed over. After an error the runner is as
  /// before.
  runtime::Result<uint64_t> prefill(const std::vector<MultimodalInput>& inputs, int32_t num_bos = 0,
                                    int32_t num_eos = 0) override;
  runtime::Result<uint64_t> prefill(const std::string& prompt, int32_t num_bos = 0,
                                    int32_t num_eos = 0);
  void stop() override;
  void reset() override;

  /// The generator that chooses the tokens of generate(); processors are added to it.
  TextTokenGenerator& text_token_generator() { return *text_token_generator_; }

 private:
  runtime::Result<uint64_t> read(const std::vector<MultimodalInput>& inputs, int32_t num_bos,
                                 int32_t num_eos);
  runtime::Error read_bos(int32_t num_bos);
  runtime::Result<std::optional<uint64_t>> first_token(float temperature);
  runtime::Error continue_text(const GenerationConfig& config,
                               const std::function<void(const std::string&)>& token_callback);

  // Whatever is declared later may point into what is declared earlier.
  std::unordered_map<std::string, int64_t> metadata_;
  std::unique_ptr<::tokenizers::Tokenizer> tokenizer_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Stats> stats_;
  std::unique_ptr<IOManager> io_manager_;
  std::unique_ptr<MultimodalDecoderRunner> text_decoder_runner_;
  std::unique_ptr<MultimodalPrefiller> multimodal_prefiller_;
  std::unique_ptr<TextTokenGenerator> text_token_generator_;

  Grammars grammars_;
  /// How many tokens the program has read.
  int64_t position_ = 0;
  /// The token behind these that is part of the text, and that the program has not read yet.
  std::optional<uint64_t> unread_;
  /// The likeliest next token, where the program has read the whole text.
  std::optional<uint64_t> likeliest_;
};

}  // namespace executorch::extension::llm
