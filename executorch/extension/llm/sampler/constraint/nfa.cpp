#include <executorch/extension/llm/sampler/constraint/nfa.h>

#include <map>
#include <unordered_set>

namespace executorch::extension::llm::constraint {
namespace {

/// The edges between kept states, sorted by their first state.
template <typename Edge, typename Target>
Nfa::Edges<Edge> sorted(const std::vector<std::pair<State, Edge>>& drawn, uint32_t n_states,
                        const std::vector<bool>& kept, Target target) {
  Nfa::Edges<Edge> edges;
  edges.first.assign(n_states + 1, 0);
  for (const auto& [from, edge] : drawn) {
    if (kept[from] && kept[target(edge)]) ++edges.first[from + 1];
  }
  for (uint32_t s = 0; s < n_states; ++s) edges.first[s + 1] += edges.first[s];
  std::vector<uint32_t> next(edges.first.begin(), edges.first.end() - 1);
  edges.all.resize(edges.first.back());
  for (const auto& [from, edge] : drawn) {
    if (kept[from] && kept[target(edge)]) edges.all[next[from]++] = edge;
  }
  return edges;
}

void divide_bytes_into_classes(Nfa& nfa) {
  nfa.class_of_byte.assign(256, 0);
  size_t n_classes = 1;
  for (const ByteSet& set : nfa.sets) {
    std::map<std::pair<uint8_t, bool>, uint8_t> divided;
    for (size_t b = 0; b < 256; ++b) {
      uint8_t& its_class = nfa.class_of_byte[b];
      const auto found = divided.try_emplace({its_class, set[b]}, divided.size()).first;
      its_class = found->second;
    }
    n_classes = divided.size();
  }
  nfa.byte_of_class.resize(n_classes);
  for (size_t b = 0; b < 256; ++b) nfa.byte_of_class[nfa.class_of_byte[b]] = b;
}

/// The states that can be reached from `start` without reading a byte, by epsilon edges and by
/// calls of `empty` rules. Calls on_call(rule) for each call edge of these states.
template <typename OnCall>
std::unordered_set<State> reached_reading_nothing(const Nfa& nfa, State start,
                                                  const std::vector<bool>& empty, OnCall on_call) {
  std::vector<State> work{start};
  std::unordered_set<State> seen{start};
  const auto visit = [&](State to) {
    if (seen.insert(to).second) work.push_back(to);
  };
  while (!work.empty()) {
    const State s = work.back();
    work.pop_back();
    for (auto e = nfa.epsilons.begin(s); e != nfa.epsilons.end(s); ++e) visit(*e);
    for (auto c = nfa.calls.begin(s); c != nfa.calls.end(s); ++c) {
      on_call(c->rule);
      if (empty[c->rule]) visit(c->to);
    }
  }
  return seen;
}

}  // namespace

uint32_t NfaBuilder::add_rule() {
  const State start = add_state();
  rules_.push_back({start, add_state()});
  return static_cast<uint32_t>(rules_.size() - 1);
}

State NfaBuilder::add_state() {
  if (n_states_ == kMaxStates) {
    throw Unusable("too large: more than " + std::to_string(kMaxStates) + " states");
  }
  return n_states_++;
}

void NfaBuilder::count_edge() const {
  if (bytes_.size() + epsilons_.size() + calls_.size() >= kMaxEdges) {
    throw Unusable("too large: more than " + std::to_string(kMaxEdges) + " edges");
  }
}

void NfaBuilder::add_bytes(State from, State to, const ByteSet& set) {
  count_edge();
  const auto [found, added] = set_ids_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
  if (added) sets_.push_back(set);
  bytes_.push_back({from, {to, found->second}});
}

void NfaBuilder::add_byte(State from, State to, uint8_t byte) {
  add_bytes(from, to, ByteSet().set(byte));
}

State NfaBuilder::add_text(State from, const std::string& text) {
  for (const char c : text) {
    const State to = add_state();
    add_byte(from, to, static_cast<uint8_t>(c));
    from = to;
  }
  return from;
}

void NfaBuilder::add_epsilon(State from, State to) {
  count_edge();
  epsilons_.push_back({from, to});
}

void NfaBuilder::add_call(State from, State to, uint32_t rule) {
  count_edge();
  calls_.push_back({from, {to, rule}});
}

/// The states from which the end of their rule can be reached. A call counts only if the end of the
/// called rule can be reached, too.
std::vector<bool> NfaBuilder::states_that_end() const {
  const std::vector<bool> all(n_states_, true);
  Drawn<State> back, back_calls, callers;  // of a state: before it, calls before it, calls of it
  for (const auto& [from, edge] : bytes_) back.push_back({edge.to, from});
  for (const auto& [from, to] : epsilons_) back.push_back({to, from});
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    back_calls.push_back({calls_[i].second.to, i});
    callers.push_back({rules_[calls_[i].second.rule].start, i});
  }
  const auto any = [](State) { return State{0}; };
  const auto before = sorted(back, n_states_, all, any);
  const auto calls_before = sorted(back_calls, n_states_, all, any);
  const auto calls_of = sorted(callers, n_states_, all, any);
  std::vector<bool> ends(n_states_, false);
  std::vector<State> work;
  const auto mark = [&](State s) {
    if (ends[s]) return;
    ends[s] = true;
    work.push_back(s);
  };
  for (const Nfa::Rule& rule : rules_) mark(rule.end);
  while (!work.empty()) {
    const State s = work.back();
    work.pop_back();
    for (auto p = before.begin(s); p != before.end(s); ++p) mark(*p);
    for (const auto* edges : {&calls_before, &calls_of}) {
      for (auto i = edges->begin(s); i != edges->end(s); ++i) {
        const auto& [from, call] = calls_[*i];
        if (ends[call.to] && ends[rules_[call.rule].start]) mark(from);
      }
    }
  }
  return ends;
}

/// For each rule: whether it accepts the empty text.
std::vector<bool> NfaBuilder::empty_rules(const Nfa& nfa) const {
  std::vector<bool> empty(rules_.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rule = 0; rule < rules_.size(); ++rule) {
      if (empty[rule]) continue;
      const auto reached = reached_reading_nothing(nfa, rules_[rule].start, empty, [](uint32_t) {});
      if (reached.count(rules_[rule].end) != 0) empty[rule] = changed = true;
    }
  }
  return empty;
}

void NfaBuilder::check_left_recursion(const Nfa& nfa) const {
  const std::vector<bool> empty = empty_rules(nfa);
  std::vector<std::vector<uint32_t>> first_calls(rules_.size());
  for (size_t rule = 0; rule < rules_.size(); ++rule) {
    reached_reading_nothing(nfa, rules_[rule].start, empty,
                            [&](uint32_t called) { first_calls[rule].push_back(called); });
  }
  // Remove rules that call no remaining rule first, again and again (a topological sort); those
  // that remain call each other in a circle.
  std::vector<uint32_t> n_left(rules_.size()), work;
  std::vector<std::vector<uint32_t>> callers(rules_.size());
  for (uint32_t rule = 0; rule < rules_.size(); ++rule) {
    n_left[rule] = static_cast<uint32_t>(first_calls[rule].size());
    for (const uint32_t called : first_calls[rule]) callers[called].push_back(rule);
    if (n_left[rule] == 0) work.push_back(rule);
  }
  size_t n_done = 0;
  while (!work.empty()) {
    const uint32_t rule = work.back();
    work.pop_back();
    ++n_done;
    for (const uint32_t caller : callers[rule]) {
      if (--n_left[caller] == 0) work.push_back(caller);
    }
  }
  if (n_done != rules_.size()) throw Unusable("a definition refers to itself without end");
}

Nfa NfaBuilder::finish(uint32_t root) {
  const std::vector<bool> ends = states_that_end();
  if (!ends[rules_[root].start]) throw Unusable("no text can satisfy it");
  Nfa nfa;
  nfa.root = root;
  nfa.rules = rules_;
  nfa.sets = sets_;
  nfa.bytes = sorted(bytes_, n_states_, ends, [](const Nfa::ByteEdge& e) { return e.to; });
  nfa.epsilons = sorted(epsilons_, n_states_, ends, [](State to) { return to; });
  Drawn<Nfa::CallEdge> calls;
  for (const auto& call : calls_) {
    if (ends[rules_[call.second.rule].start]) calls.push_back(call);
  }
  nfa.calls = sorted(calls, n_states_, ends, [](const Nfa::CallEdge& e) { return e.to; });
  check_left_recursion(nfa);
  divide_bytes_into_classes(nfa);
  return nfa;
}

}  // namespace executorch::extension::llm::constraint
