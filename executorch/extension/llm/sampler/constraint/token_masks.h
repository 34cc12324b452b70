/// Which tokens may come next: walks of the vocabulary through an automaton, remembered.
#pragma once

#include <executorch/extension/llm/sampler/constraint/automaton.h>
#include <executorch/extension/llm/sampler/constraint/vocabulary.h>

#include <memory>

namespace executorch::extension::llm::constraint {

/// One bit for each token, the first in the lowest bit.
using TokenMask = std::vector<uint64_t>;

/// What tokens do within one rule does not depend on who called it, so it is found once for each
/// place; only tokens that go on behind the rule's end are looked at again, from there, for each
/// caller. Not thread-safe.
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
  };
  struct WalkState {
    Positions closed;
    bool ended;
    uint32_t plain_run = kUnknownRun;
    std::vector<int32_t> next;
  };
  static constexpr uint32_t kUnknownRun = UINT32_MAX;
  static constexpr uint32_t kEndlessRun = UINT32_MAX - 1;
  static constexpr int32_t kUnknown = -2, kDead = -1;
  static constexpr size_t kMaxWalkStates = 1 << 15;
  static constexpr size_t kMaxWalkBytes = size_t{64} << 20;

  void add(Place place, Frame frame, uint32_t node, const Frames& frames, TokenMask& mask);
  const Walk& walk(Place place, uint32_t node);
  Walk make_walk(Place place, uint32_t node);
  int32_t state_of(Positions positions);
  int32_t next(int32_t state, uint8_t byte);
  uint32_t plain_run(int32_t state);
  void forget_if_full();

  Automaton& automaton_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<uint8_t> plain_classes_;
  Frames frames_;
  std::vector<WalkState> states_;
  std::map<Positions, int32_t> state_ids_;
  std::unordered_map<uint64_t, Walk> walks_;
  size_t walk_bytes_ = 0;
};

}  // namespace executorch::extension::llm::constraint
