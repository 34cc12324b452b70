/// What all runners of language models have in common.
#pragma once

#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/llm/runner/stats.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace executorch::extension::llm {

struct GenerationConfig {
  /// Whether the callback gets the prompt, too.
  bool echo = true;
  /// A constraint on the answer and its type, for runners that support constraints.
  std::string grammar;
  std::string grammar_type;
  /// Go on after a token that ends the text.
  bool ignore_eos = false;
  /// -1: as many as the context has room for.
  int32_t max_new_tokens = -1;
  /// The call only warms up caches: log no statistics.
  bool warming = false;
  /// Tokens of prompt and answer together. -1: as many as the context has room for.
  int32_t seq_len = -1;
  float temperature = 0.8f;
  /// How many beginning-of-text tokens to put before the prompt, and end-of-text tokens behind it.
  int32_t num_bos = 0;
  int32_t num_eos = 0;

  /// How many new tokens all limits together allow; 0 or more.
  int32_t resolve_max_new_tokens(int64_t max_context_len, int64_t num_tokens_occupied) const {
    int64_t room = max_context_len;
    if (seq_len >= 0) room = std::min<int64_t>(room, seq_len);
    room = std::max<int64_t>(0, room) - std::max<int64_t>(0, num_tokens_occupied);
    if (max_new_tokens >= 0) room = std::min<int64_t>(room, max_new_tokens);
    return static_cast<int32_t>(std::clamp<int64_t>(room, 0, std::numeric_limits<int32_t>::max()));
  }
};

class IRunner {
 public:
  virtual ~IRunner() = default;
  virtual bool is_loaded() const = 0;
  ET_NODISCARD virtual runtime::Error load() = 0;
  /// Appends `prompt` to the text so far, then generates the answer and passes it to
  /// `token_callback` piece by piece.
  ET_NODISCARD virtual runtime::Error generate(
      const std::string& prompt, const GenerationConfig& config,
      std::function<void(const std::string&)> token_callback,
      std::function<void(const Stats&)> stats_callback) = 0;
  /// Reads a part of the prompt. Returns the likeliest next token. NotSupported if the runner does
  /// not implement it.
  virtual runtime::Result<uint64_t> prefill(const std::vector<MultimodalInput>& inputs,
                                            int32_t num_bos = 0, int32_t num_eos = 0) {
    (void)inputs;
    (void)num_bos;
    (void)num_eos;
    ET_LOG(Error, "this runner has no prefill()");
    return runtime::Error::NotSupported;
  }
  /// Ends generate() soon. May be called from any thread.
  virtual void stop() = 0;
  /// Forgets the text.
  virtual void reset() = 0;
};

}  // namespace executorch::extension::llm
