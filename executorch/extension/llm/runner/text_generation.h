/// The loop that continues a text: inside of the runner only.
#pragma once

#include <executorch/extension/llm/runner/text_session_state.h>
#include <executorch/extension/llm/runner/text_stream.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::llm {

class TextGeneration {
 public:
  TextGeneration(TextSession::State& session, GenerationOptions options);

  struct Step {
    uint64_t token = 0;
    /// What may be shown of the text now.
    std::string text;
    /// Set if the text ends here. EndOfText and StopToken: `token` is not part of it; Complete: it
    /// is; StopString: it may be; others: there is no token.
    std::optional<FinishReason> end;
  };

  /// Checks options and text. Before the first next().
  runtime::Error begin();
  runtime::Error set_sampling(SamplingOptions options);
  /// Computes the text, so that next() has only to choose. Nothing for a text that cannot go on.
  runtime::Error prepare();
  /// Chooses one token and appends it to the text.
  runtime::Result<Step> next();

  /// All steps.
  runtime::Result<GenerationResult> run();

 private:
  std::optional<FinishReason> end_before_choice();
  runtime::Error compute_logits();
  runtime::Error find_logits();
  std::optional<FinishReason> end_at(uint64_t token) const;
  runtime::Result<uint64_t> choose();
  runtime::Result<Step> take(uint64_t token);
  void finish_text(Step& step);
  std::vector<uint64_t> guess() const;
  bool deliver(const std::string& text, GenerationResult& result) const;

  TextSession::State& session_;
  GenerationOptions options_;
  TokenSampler sampler_;
  TextStream stream_;
  int64_t n_chosen_ = 0;
  int64_t n_runs_ = 0;

  /// Logits after the last token of the text, and, if they were guessed right, after tokens that
  /// follow: rows of the last run of the program.
  std::optional<aten::Tensor> rows_;
  int64_t row_ = 0;
  std::vector<uint64_t> guessed_;
  size_t n_right_ = 0;
  /// Whether logits_ holds those of the next token.
  bool has_logits_ = false;
  std::vector<float> logits_;
};

}  // namespace executorch::extension::llm
