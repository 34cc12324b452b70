#pragma once

#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <vector>

namespace executorch::extension::llm {

/// Reads a prompt: in chunks of `max_seq_len` tokens, or one token after the other over caches
/// (`use_kv_cache`) of a program that takes one at a time (no `enable_parallel_prefill`). A program
/// without caches takes the whole text in one call, from position 0 on.
class TextPrefiller {
 public:
  TextPrefiller(TextDecoderRunner* text_decoder_runner, bool use_kv_cache,
                bool enable_parallel_prefill, int64_t max_seq_len = 128);
  virtual ~TextPrefiller() = default;

  /// Reads the tokens at position `start_pos`, which moves behind them over caches. Returns the
  /// next token: the likeliest, or one by `temperature`. InvalidArgument for no tokens, and for a
  /// temperature below 0.
  virtual runtime::Result<uint64_t> prefill(std::vector<uint64_t>& prompt_tokens,
                                            int64_t& start_pos) {
    return prefill(prompt_tokens, start_pos, 0.0f);
  }
  virtual runtime::Result<uint64_t> prefill(std::vector<uint64_t>& prompt_tokens,
                                            int64_t& start_pos, float temperature);

  /// The same of at most `max_seq_len` tokens.
  virtual runtime::Result<uint64_t> prefill_chunk(std::vector<uint64_t>& prompt_tokens,
                                                  int64_t& start_pos) {
    return prefill_chunk(prompt_tokens, start_pos, 0.0f);
  }
  virtual runtime::Result<uint64_t> prefill_chunk(std::vector<uint64_t>& prompt_tokens,
                                                  int64_t& start_pos, float temperature);

  ET_NODISCARD runtime::Error load() { return text_decoder_runner_->load(); }
  bool is_loaded() const { return text_decoder_runner_->is_method_loaded(); }

 private:
  TextDecoderRunner* text_decoder_runner_;
  bool use_kv_cache_;
  bool enable_parallel_prefill_;
  int64_t max_seq_len_;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextPrefiller;
}  // namespace torch::executor
