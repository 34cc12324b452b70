/// The cache of one text: some layers keep all tokens, others the last ones.
#pragma once

#include <executorch/extension/llm/cache/cache.h>

#include <algorithm>
#include <memory>

namespace executorch::extension::llm::cache {

/// Row i holds token i.
class FlatPolicy final : public LayoutPolicy {
 public:
  int retained_from(int) const override { return 0; }
  SeqStepPlan plan(int position, int T) const override {
    return {{{position, T}, {0, 0}}, 1, {{0, position + T}, {0, 0}}, 1, 0};
  }
};

/// Token i lies in row i % (window + max_write - 1): a step of max_write tokens overwrites nothing
/// that its own first token reads. Each token sees the last `window` up to itself; a step reads what
/// its tokens see together, and the backend masks the rest for each.
class RingPolicy final : public LayoutPolicy {
 public:
  /// Both at least 1, their sum an int.
  RingPolicy(int window, int max_write) : window_(window), rows_(window + max_write - 1) {}

  int retained_from(int length) const override { return std::max(length - window_, 0); }
  SeqStepPlan plan(int position, int T) const override {
    SeqStepPlan plan = {};
    plan.n_write = runs(position, T, plan.write);
    plan.read_base_pos = std::max(position - (window_ - 1), 0);
    plan.n_read = runs(plan.read_base_pos, position - plan.read_base_pos + T, plan.read);
    return plan;
  }

 private:
  int runs(int position, int n, Run* to) const {
    const int row = position % rows_, first = std::min(n, rows_ - row);
    to[0] = {row, first};
    if (first == n) return 1;
    to[1] = {0, n - first};
    return 2;
  }

  int window_;
  int rows_;
};

/// One length for all layers. A cache of a configuration that is not valid() has no layers and no
/// room.
class SequenceCache : public CacheBase, public SequenceControl, public SequencePlanner {
 public:
  explicit SequenceCache(const CacheConfig& cfg) {
    if (!valid(cfg)) return;
    capacity_ = cfg.capacity;
    n_layers_ = cfg.n_layers;
    for (const LayerConfig& layer : cfg.layers) {
      layers_.push_back(kind_of(layer.policy, cfg.max_write));
    }
  }

  SequenceControl* as_control() override { return this; }
  SequencePlanner* as_planner() override { return this; }

  bool can_extend(int n = 1) const override { return n >= 0 && n <= capacity_ - length_; }
  int capacity() const override { return capacity_; }
  void clear() override { length_ = 0; }
  bool rewind(int new_len) override {
    if (new_len < 0 || new_len > length_) return false;
    for (const Kind& kind : kinds_) {
      if (new_len < kind.layout->retained_from(length_)) return false;
    }
    length_ = new_len;
    return true;
  }

  std::optional<SeqStepPlan> plan(int layer, int position, int T) const override {
    if (layer < 0 || layer >= n_layers_ || position < 0 || T < 1 ||
        T > capacity_ - std::min(position, capacity_)) {
      return std::nullopt;
    }
    const Kind& kind = kinds_[layers_[layers_.size() == 1 ? 0 : static_cast<std::size_t>(layer)]];
    if (T > kind.max_write) return std::nullopt;
    return kind.layout->plan(position, T);
  }
  void commit(const SeqStepPlan& plan) override {
    int64_t end = plan.read_base_pos;
    for (int i = 0; i < plan.n_read && i < 2; ++i) end += plan.read[i].len;
    length_ = static_cast<int>(std::clamp<int64_t>(end, length_, capacity_));
  }

 private:
  /// Layers of one policy share a layout.
  struct Kind {
    LayerPolicy policy;
    int max_write;
    std::unique_ptr<LayoutPolicy> layout;
  };

  std::size_t kind_of(const LayerPolicy& policy, const std::optional<int>& max_write) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i].policy.kind == policy.kind && kinds_[i].policy.window == policy.window) {
        return i;
      }
    }
    Kind kind = {policy, capacity_, nullptr};
    if (policy.kind == LayerPolicy::Kind::Ring) {
      kind.max_write = max_write.value_or(policy.window);
      kind.layout = std::make_unique<RingPolicy>(policy.window, kind.max_write);
    } else {
      kind.layout = std::make_unique<FlatPolicy>();
    }
    kinds_.push_back(std::move(kind));
    return kinds_.size() - 1;
  }

  int capacity_ = 0;
  int length_ = 0;
  int n_layers_ = 0;
  std::vector<Kind> kinds_;
  std::vector<std::size_t> layers_;  ///< The kind of each, or the one of all.
};

}  // namespace executorch::extension::llm::cache
