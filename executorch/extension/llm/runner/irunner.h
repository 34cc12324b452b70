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

namespace executorch {
namespace extension {
namespace llm {

struct GenerationConfig {
  /// Hand the prompt to the callback, too.
  bool echo = true;
  /// A constraint and its kind, for runners that know some.
  std::string grammar;
  std::string grammar_type;
  /// Go on after the end of the text.
  bool ignore_eos = false;
  /// -1: as many as the context has room for.
  int32_t max_new_tokens = -1;
  /// This only warms up caches: say nothing of it.
  bool warming = false;
  /// Tokens of prompt and answer together. -1: as many as the context has room for.
  int32_t seq_len = -1;
  float temperature = 0.8f;
  /// How often the first and last token stand around the prompt.
  int32_t num_bos = 0;
  int32_t num_eos = 0;

  /// New tokens that there is room for, by the least of all bounds; 0 or more.
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
  /// Continues the text so far with `prompt`, and then with what the model says, piece by piece.
  ET_NODISCARD virtual runtime::Error generate(
      const std::string& prompt, const GenerationConfig& config,
      std::function<void(const std::string&)> token_callback,
      std::function<void(const Stats&)> stats_callback) = 0;
  /// Reads a part of the prompt. Returns the token that would follow. NotSupported if the runner
  /// cannot.
  virtual runtime::Result<uint64_t> prefill(const std::vector<MultimodalInput>& inputs,
                                            int32_t num_bos = 0, int32_t num_eos = 0) {
    (void)inputs;
    (void)num_bos;
    (void)num_eos;
    ET_LOG(Error, "this runner has no prefill()");
    return runtime::Error::NotSupported;
  }
  /// Ends generate() soon. From any thread.
  virtual void stop() = 0;
  /// Forgets the text.
  virtual void reset() = 0;
};

}  // namespace llm
}  // namespace extension
}  // namespace executorch
