/// Language models as tokens in, tokens out, for servers: several texts over one copy of the
/// weights. text_session.h has the implementation, with more than these interfaces ask for.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace executorch::extension::llm {

struct SamplingConfig {
  /// 0: choose the likeliest token. Negative values mean unset, which is 0, too.
  float temperature = -1.0f;
  /// Keeps the fewest tokens whose probabilities add up to it. 1: all.
  float top_p = 1.0f;
  /// Chooses among this many of the likeliest tokens. 0: among all.
  int32_t top_k = 0;
  uint64_t seed = 0;
};

struct DecodeResult {
  uint64_t token_id = 0;
  /// The text that the token adds, in whole characters. Empty while a character is incomplete.
  std::string text_piece;
  /// Whether the token ends the text; it is not part of the text then.
  bool is_eos = false;
  /// Whether no token follows: the text ended, stop() was called, or the context is full.
  bool is_terminal = false;
};

struct LLMServingCapacity {
  int32_t max_physical_sessions_without_weight_duplication = 1;
  /// Memory of one session that is not shared with others.
  int64_t estimated_bytes_per_session = 0;
};

/// A session with one text. Not thread-safe, except stop().
class LLMSession {
 public:
  virtual ~LLMSession() = default;
  /// Appends tokens to the text. The first decode_one() after that uses `initial_sampling`, if it
  /// is given. After an error the text is as before.
  virtual runtime::Error prefill_tokens(const std::vector<uint64_t>& tokens,
                                        const SamplingConfig* initial_sampling = nullptr) = 0;
  /// Chooses the next token and appends it. InvalidState if the text is empty.
  virtual runtime::Result<DecodeResult> decode_one(const SamplingConfig& sampling) = 0;
  /// The number of tokens in the text.
  virtual int64_t position() const = 0;
  /// Empties the text.
  virtual runtime::Error reset() = 0;
  /// Ends a running call soon. May be called from any thread.
  virtual void stop() = 0;
};

/// A model. It must outlive its sessions; sessions may run at the same time.
class LLMEngine {
 public:
  virtual ~LLMEngine() = default;
  virtual runtime::Result<std::unique_ptr<LLMSession>> create_session() = 0;
  virtual LLMServingCapacity serving_capacity() const = 0;
  virtual const std::unordered_map<std::string, int64_t>& metadata() const = 0;
};

}  // namespace executorch::extension::llm
