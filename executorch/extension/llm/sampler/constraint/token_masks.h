/// Finds the tokens that may come next by walking the vocabulary's trie and an automaton together;
/// keeps the results of these walks.
#pragma once

#include <executorch/extension/llm/sampler/constraint/automaton.h>
#include <executorch/extension/llm/sampler/constraint/vocabulary.h>

#include <memory>
#include <unordered_set>

namespace executorch::extension::llm::constraint {

/// One bit for each token, the first in the lowest bit.
using TokenMask = std::vector<uint64_t>;

/// The tokens that can be read within one rule do not depend on its caller, so a walk is done once
/// per place. Only tokens that go on after the rule's end are looked at for each caller. Places
/// that allow the same texts of kSharedDepth bytes, and differ only further ahead (as in how many
/// characters may still follow), share one walk. Not thread-safe.
class TokenMasks {
 public:
  TokenMasks(Automaton& automaton, std::shared_ptr<const Vocabulary> vocabulary);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  /// Sets the bits of the tokens that can be read from `positions`, which need not be closed.
  void add(const Positions& positions, const Frames& frames, TokenMask& mask);

 private:
  /// The tokens below a node of the trie that can be read from a place, whatever its caller is.
  struct Walk {
    std::vector<uint32_t> tokens;  // where few are allowed, else
    TokenMask mask;
    /// Inner nodes of the trie at which the rule may be finished.
    std::vector<uint32_t> ends;
    /// In a shared walk: nodes at depth kSharedDepth, where the walk stopped.
    std::vector<uint32_t> cuts;
    const Walk* shared = nullptr;
  };
  struct WalkState {
    Positions closed;
    bool ended;
    uint32_t plain_run = kUnknownRun;
    std::vector<int32_t> next;
    std::vector<uint32_t> likeness;  // by depth; 0 is not known
  };
  struct LikenessHash {
    size_t operator()(const std::vector<uint32_t>& key) const;
  };
  /// In bytes. One or two of a hundred tokens are longer.
  static constexpr uint32_t kSharedDepth = 16;
  static constexpr uint32_t kDeadEnd = 1, kAlive = 2, kUnlike = UINT32_MAX;
  /// The most calls of likeness() for one place; nested rules would need too many.
  static constexpr size_t kMaxLooks = 2000;
  /// Shared walks are tried only after kLongWalksBefore walks of at least kLongWalk nodes, since
  /// most constraints have few of these, and no more after kMaxUnlike places for which they failed.
  static constexpr size_t kLongWalk = 4096, kLongWalksBefore = 4, kMaxUnlike = 4;
  static constexpr uint32_t kUnknownRun = UINT32_MAX;
  static constexpr uint32_t kEndlessRun = UINT32_MAX - 1;
  static constexpr int32_t kUnknown = -2, kDead = -1;
  static constexpr size_t kMaxWalkStates = 1 << 15;
  static constexpr size_t kMaxWalkBytes = size_t{64} << 20;

  void add(Place place, Frame frame, uint32_t node, const Frames& frames, TokenMask& mask);
  const Walk& walk(Place place, uint32_t node);
  Walk make_walk(Place place, uint32_t node);
  const Walk* shared_walk(Place place, int32_t state);
  void go_below(uint32_t root, int32_t state, uint32_t deepest, Walk& walk);
  void finish(Walk& walk);
  uint32_t likeness(int32_t state, uint32_t depth, size_t& looks);
  int32_t state_of(Positions positions);
  int32_t next(int32_t state, uint8_t byte);
  int32_t next_of_class(int32_t state, uint8_t byte_class);
  uint32_t plain_run(int32_t state);
  void forget_if_full();

  Automaton& automaton_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<uint8_t> plain_classes_;
  Frames frames_;
  std::vector<WalkState> states_;
  std::map<Positions, int32_t> state_ids_;
  std::unordered_map<uint64_t, Walk> walks_;
  std::unordered_map<uint32_t, Walk> shared_walks_;  // by likeness
  std::unordered_map<std::vector<uint32_t>, uint32_t, LikenessHash> likenesses_;
  /// Places for which likeness() gave up. Not forgotten, since it would give up again.
  std::unordered_set<Place> unlike_;
  size_t n_long_walks_ = 0;
  size_t walk_bytes_ = 0;
};

}  // namespace executorch::extension::llm::constraint
