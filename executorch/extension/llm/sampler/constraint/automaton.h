/// Makes an Nfa deterministic while texts are read: a state of a rule's deterministic automaton is
/// made when a text first leads to it.
#pragma once

#include <executorch/extension/llm/sampler/constraint/nfa.h>

#include <map>

namespace executorch::extension::llm::constraint {

/// A state of the deterministic automaton of one rule: a set of the Nfa's states.
using Place = int32_t;
inline constexpr Place kNowhere = -1;

/// Call stacks of rules. A frame is the innermost call that has not returned: the place to return
/// to, and the frame around it. Equal stacks have equal ids.
using Frame = int32_t;
inline constexpr Frame kBottom = -1;
class Frames {
 public:
  Frame push(Place return_to, Frame outer);
  Place return_to(Frame frame) const { return frames_[static_cast<size_t>(frame)].return_to; }
  Frame outer(Frame frame) const { return frames_[static_cast<size_t>(frame)].outer; }
  size_t size() const { return frames_.size(); }
  void clear();

 private:
  struct Call {
    Place return_to;
    Frame outer;
  };
  std::vector<Call> frames_;
  std::unordered_map<uint64_t, Frame> ids_;
};

struct Position {
  Place place;
  Frame frame;
  bool operator==(const Position& other) const = default;
  auto operator<=>(const Position& other) const = default;
};
/// All positions that the text so far can lead to; sorted, without duplicates.
using Positions = std::vector<Position>;

/// Not thread-safe: queries create places. Throws Unusable where an expression needs too many of
/// them, so that time and memory of a call are bounded.
class Automaton {
 public:
  static constexpr size_t kMaxPlaces = 1 << 17;
  static constexpr size_t kMaxPlaceStates = 1 << 22;
  static constexpr size_t kMaxPositions = 1 << 12;

  explicit Automaton(Nfa nfa);

  size_t n_classes() const { return nfa_.byte_of_class.size(); }
  uint8_t class_of(uint8_t byte) const { return nfa_.class_of_byte[byte]; }
  Positions start();

  /// Adds the starts of rules that are called at the positions, and the places that finished rules
  /// return to. Returns whether the outermost rule may be finished.
  bool close(Positions& positions, Frames& frames);
  /// The positions after reading a byte at closed positions. The result is not closed.
  Positions step(const Positions& closed, uint8_t byte_class);
  /// Whether any byte can be read at the positions.
  bool can_go_on(const Positions& closed);

 private:
  struct Call {
    uint32_t rule;
    std::vector<State> return_states;
    Place return_to = kNowhere;
  };
  struct PlaceData {
    std::vector<State> states;
    std::vector<Call> calls;
    bool ends = false;
    std::vector<Place> next;  // by class; kUnknown
  };
  static constexpr Place kUnknown = -2;

  Place place_of(std::vector<State> states);
  Place start_of(uint32_t rule);
  Place next(Place place, uint8_t byte_class);

  Nfa nfa_;
  std::vector<bool> is_rule_end_;
  std::vector<PlaceData> places_;
  std::map<std::vector<State>, Place> ids_;
  std::unordered_map<uint32_t, Place> starts_;
  size_t n_place_states_ = 0;
};

}  // namespace executorch::extension::llm::constraint
