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

/// What a registry owns: one object with the faces that its users need. Null for a face it lacks.
class CacheBase {
 public:
  virtual ~CacheBase() = default;
  virtual SequenceControl* as_control() = 0;
  virtual SequencePlanner* as_planner() = 0;
};

/// The runner's face.
class SequenceControl {
 public:
  virtual ~SequenceControl() = default;
  /// Whether n more tokens fit.
  virtual bool can_extend(int n = 1) const = 0;
  /// Tokens of the longest text.
  virtual int capacity() const = 0;
  /// Forgets all tokens from position new_len on. False, and nothing changes, if there are fewer, or
  /// if a layer does not keep what would then be read.
  virtual bool rewind(int new_len) = 0;
  virtual void clear() = 0;
};

/// Rows start .. start + len - 1 of a layer.
struct Run {
  int start;
  int len;
};

/// The rows of a step in one layer, oldest first; two runs where they wrap around.
struct SeqStepPlan {
  Run write[2];
  int n_write;
  Run read[2];
  int n_read;
  /// The position of the token in the first row that is read.
  int read_base_pos;
};

/// The backend's face.
class SequencePlanner {
 public:
  virtual ~SequencePlanner() = default;
  /// The rows of T >= 1 tokens from `position` on; changes nothing. None for a layer that there is
  /// not, and for tokens that do not fit.
  virtual std::optional<SeqStepPlan> plan(int layer, int position, int T) const = 0;
  /// The step was made: its tokens are part of the text. May be called for each layer.
  virtual void commit(const SeqStepPlan& plan) = 0;
};

/// The rows of one kind of layer; holds no state.
class LayoutPolicy {
 public:
  virtual ~LayoutPolicy() = default;
  /// Needs position >= 0 and as many tokens T >= 1 as the layer takes in a step.
  virtual SeqStepPlan plan(int position, int T) const = 0;
  /// The first position whose token is still there after `length` tokens.
  virtual int retained_from(int length) const = 0;
};

/// Flat: all tokens are kept. Ring: the last `window`.
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
  /// Tokens of a step at most; without a number, of each ring its window.
  std::optional<int> max_write;
};

/// Whether a SequenceCache can be made: sizes are positive, layers as many as they should be, and
/// the rows of a ring, window + max_write - 1, a number.
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
