/// Which tokens may come next: walks of the vocabulary through an automaton, remembered.
#pragma once

#include <executorch/extension/llm/sampler/constraint/automaton.h>
#include <executorch/extension/llm/sampler/constraint/vocabulary.h>

#include <memory>
#include <unordered_set>

namespace executorch::extension::llm::constraint {

/// One bit for each token, the first in the lowest bit.
using TokenMask = std::vector<uint64_t>;

/// What tokens do within one rule does not depend on who called it, so it is found once for each
/// place; only tokens that go on behind the rule's end are looked at again, from there, for each
/// caller. Places that differ in what lies further ahead than most tokens are long (how many
/// characters a text may still have) share one walk. Not thread-safe.
class TokenMasks {
 public:
  TokenMasks(Automaton& automaton, std::shared_ptr<const Vocabulary> vocabulary);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  /// Sets the bits of tokens that can be read from `positions`, not closed.
  void add(const Positions& positions, const Frames& frames, TokenMask& mask);

 private:
  /// Tokens below a node of the vocabulary, read from a place whose caller is not known.
  struct Walk {
    std::vector<uint32_t> tokens;  // where few are allowed, else
    TokenMask mask;
    /// Nodes with others below at which the rule may have ended.
    std::vector<uint32_t> ends;
    /// Of a walk that others share: nodes kSharedDepth deep, below which it was not.
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
  /// Bytes: of a hundred tokens one or two are longer.
  static constexpr uint32_t kSharedDepth = 16;
  static constexpr uint32_t kDeadEnd = 1, kAlive = 2, kUnlike = UINT32_MAX;
  /// Likenesses that are looked for at one place; nested rules have too many.
  static constexpr size_t kMaxLooks = 2000;
  /// Most constraints have few places with long walks: looking for more of the same kind begins
  /// with the fifth, and ends where it was in vain too often.
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
  /// Places that need too many looks. Kept: they would need as many again.
  std::unordered_set<Place> unlike_;
  size_t n_long_walks_ = 0;
  size_t walk_bytes_ = 0;
};

}  // namespace executorch::extension::llm::constraint
