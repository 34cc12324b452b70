#include <executorch/extension/llm/sampler/constraint/automaton.h>

#include <algorithm>

namespace executorch::extension::llm::constraint {
namespace {

void sort_once(std::vector<State>& states) {
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
}

}  // namespace

Frame Frames::push(Place return_to, Frame outer) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(return_to)) << 32 | static_cast<uint32_t>(outer);
  const auto [found, added] = ids_.try_emplace(key, static_cast<Frame>(frames_.size()));
  if (added) frames_.push_back({return_to, outer});
  return found->second;
}

void Frames::clear() {
  frames_.clear();
  ids_.clear();
}

Automaton::Automaton(Nfa nfa) : nfa_(std::move(nfa)), is_rule_end_(nfa_.n_states(), false) {
  for (const Nfa::Rule& rule : nfa_.rules) is_rule_end_[rule.end] = true;
}

Positions Automaton::start() {
  return {{start_of(nfa_.root), kBottom}};
}

Place Automaton::start_of(uint32_t rule) {
  const auto found = starts_.find(rule);
  if (found != starts_.end()) return found->second;
  return starts_[rule] = place_of({nfa_.rules[rule].start});
}

/// The place for these states together with all states that epsilon edges lead to.
Place Automaton::place_of(std::vector<State> states) {
  if (states.empty()) return kNowhere;
  std::unordered_map<State, bool> seen;
  for (const State s : states) seen[s] = true;
  for (size_t i = 0; i < states.size(); ++i) {
    const State s = states[i];
    for (auto e = nfa_.epsilons.begin(s); e != nfa_.epsilons.end(s); ++e) {
      if (seen.try_emplace(*e, true).second) states.push_back(*e);
    }
  }
  // Leave out states with epsilon edges only: they would make equal places differ.
  PlaceData data;
  std::map<uint32_t, std::vector<State>> calls;
  std::vector<State> kept;
  for (const State s : states) {
    const bool reads = nfa_.bytes.begin(s) != nfa_.bytes.end(s);
    const bool calls_others = nfa_.calls.begin(s) != nfa_.calls.end(s);
    if (!reads && !calls_others && !is_rule_end_[s]) continue;
    data.ends = data.ends || is_rule_end_[s];
    kept.push_back(s);
    for (auto c = nfa_.calls.begin(s); c != nfa_.calls.end(s); ++c) calls[c->rule].push_back(c->to);
  }
  sort_once(kept);
  const auto found = ids_.find(kept);
  if (found != ids_.end()) return found->second;
  n_place_states_ += kept.size();
  if (places_.size() == kMaxPlaces || n_place_states_ > kMaxPlaceStates) {
    throw Unusable("the constraint needs too much memory: it has too many different states");
  }
  for (auto& [rule, returns] : calls) data.calls.push_back({rule, std::move(returns), kUnknown});
  data.states = kept;
  data.next.assign(n_classes(), kUnknown);
  places_.push_back(std::move(data));
  const Place place = static_cast<Place>(places_.size() - 1);
  ids_.emplace(std::move(kept), place);
  return place;
}

Place Automaton::next(Place place, uint8_t byte_class) {
  const size_t at = static_cast<size_t>(place);
  if (places_[at].next[byte_class] != kUnknown) return places_[at].next[byte_class];
  const uint8_t byte = nfa_.byte_of_class[byte_class];
  std::vector<State> after;
  for (const State s : places_[at].states) {
    for (auto e = nfa_.bytes.begin(s); e != nfa_.bytes.end(s); ++e) {
      if (nfa_.sets[e->set][byte]) after.push_back(e->to);
    }
  }
  sort_once(after);
  const Place result = place_of(std::move(after));
  return places_[at].next[byte_class] = result;
}

bool Automaton::close(Positions& positions, Frames& frames) {
  bool ended = false;
  const auto add = [&](Position position) {
    if (std::find(positions.begin(), positions.end(), position) != positions.end()) return;
    if (positions.size() == kMaxPositions) {
      throw Unusable("the constraint can be read in too many ways");
    }
    positions.push_back(position);
  };
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto [place, frame] = positions[i];
    const size_t at = static_cast<size_t>(place);
    if (places_[at].ends) {
      if (frame == kBottom) {
        ended = true;
      } else {
        add({frames.return_to(frame), frames.outer(frame)});
      }
    }
    for (size_t c = 0; c < places_[at].calls.size(); ++c) {
      // place_of() may reallocate places_, so use indices, not references.
      if (places_[at].calls[c].return_to == kUnknown) {
        const Place made = place_of(places_[at].calls[c].return_states);
        places_[at].calls[c].return_to = made;
      }
      const uint32_t rule = places_[at].calls[c].rule;
      const Place start = start_of(rule);
      add({start, frames.push(places_[at].calls[c].return_to, frame)});
    }
  }
  return ended;
}

Positions Automaton::step(const Positions& closed, uint8_t byte_class) {
  Positions after;
  for (const auto [place, frame] : closed) {
    const Place to = next(place, byte_class);
    if (to != kNowhere) after.push_back({to, frame});
  }
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  return after;
}

bool Automaton::can_go_on(const Positions& closed) {
  return std::any_of(closed.begin(), closed.end(), [this](const Position& position) {
    const auto& states = places_[static_cast<size_t>(position.place)].states;
    return std::any_of(states.begin(), states.end(),
                       [this](State s) { return nfa_.bytes.begin(s) != nfa_.bytes.end(s); });
  });
}

}  // namespace executorch::extension::llm::constraint
