/// Where the keys and values of one text's tokens lie, for backends that keep them outside of
/// programs. No tensor is seen here: layers have rows, and a step of some tokens says which rows it
/// writes and which it reads.
///
///   backend   plan(layer, position, T) for each layer; writes and reads those rows; commit() once
///   runner    can_extend(), rewind(), clear(): as_control() of the same cache
///
/// Errors are values, and nothing throws but the standard library where it is out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace executorch::extension::llm::cache {

class SequenceControl;
class SequencePlanner;

/// A cache as a registry keeps it, with one interface for the runner and one for the backend. Null
/// for an interface that it does not have.
class CacheBase {
 public:
  virtual ~CacheBase() = default;
  virtual SequenceControl* as_control() = 0;
  virtual SequencePlanner* as_planner() = 0;
};

/// The interface for the runner.
class SequenceControl {
 public:
  virtual ~SequenceControl() = default;
  /// Whether n more tokens fit.
  virtual bool can_extend(int n = 1) const = 0;
  /// The number of tokens in the longest possible text.
  virtual int capacity() const = 0;
  /// Forgets all tokens from position new_len on. False, with nothing changed, if there are fewer
  /// tokens, or if a layer no longer keeps tokens that would then be read.
  virtual bool rewind(int new_len) = 0;
  virtual void clear() = 0;
};

/// Rows start .. start + len - 1 of a layer.
struct Run {
  int start;
  int len;
};

/// The rows that a step writes and reads in one layer, oldest first; two runs where the rows wrap
/// around.
struct SeqStepPlan {
  Run write[2];
  int n_write;
  Run read[2];
  int n_read;
  /// The position of the token in the first row that is read.
  int read_base_pos;
};

/// The interface for the backend.
class SequencePlanner {
 public:
  virtual ~SequencePlanner() = default;
  /// The rows for T >= 1 tokens from `position` on; changes nothing. None if there is no such
  /// layer, and for tokens that do not fit.
  virtual std::optional<SeqStepPlan> plan(int layer, int position, int T) const = 0;
  /// To be called after the step: its tokens now are part of the text. May be called for each
  /// layer.
  virtual void commit(const SeqStepPlan& plan) = 0;
};

/// Computes the rows of one kind of layer; holds no state.
class LayoutPolicy {
 public:
  virtual ~LayoutPolicy() = default;
  /// Needs position >= 0 and as many tokens T >= 1 as the layer takes in a step.
  virtual SeqStepPlan plan(int position, int T) const = 0;
  /// The first position whose row is not overwritten after `length` tokens.
  virtual int retained_from(int length) const = 0;
};

/// Flat: the layer keeps all tokens. Ring: it keeps the last `window` tokens.
struct LayerPolicy {
  enum class Kind : int { Flat = 0, Ring = 1 };
  Kind kind = Kind::Flat;
  int window = 0;  // of a ring
};

struct LayerConfig {
  LayerPolicy policy;
  int n_kv_heads;
  int head_dim;
};

struct CacheConfig {
  int capacity;  // tokens
  int n_layers;
  std::vector<LayerConfig> layers;  // one of each layer, or one for all
  int kv_dtype;                     // a ScalarType
  int initial_capacity = 512;       // rows to begin with
  /// The most tokens in a step; by default, for each ring, its window.
  std::optional<int> max_write;
};

/// Whether a SequenceCache can be created: sizes are positive, there is one entry of `layers` for
/// all layers or one for each, and the rows of a ring, window + max_write - 1, do not overflow.
inline bool valid(const CacheConfig& cfg) {
  if (cfg.capacity <= 0 || cfg.n_layers <= 0 || cfg.initial_capacity < 0 ||
      (cfg.max_write && *cfg.max_write <= 0) ||
      (cfg.layers.size() != 1 && cfg.layers.size() != static_cast<std::size_t>(cfg.n_layers))) {
    return false;
  }
  for (const LayerConfig& layer : cfg.layers) {
    const int64_t window = layer.policy.window;
    if (layer.policy.kind != LayerPolicy::Kind::Ring) continue;
    if (window <= 0 ||
        window + cfg.max_write.value_or(layer.policy.window) > std::numeric_limits<int>::max()) {
      return false;
    }
  }
  return true;
}

}  // namespace executorch::extension::llm::cache
