/// Nondeterministic automata over bytes, divided into rules that may call each other. Regular
/// expressions and JSON schemas are compiled to these.
#pragma once

#include <bitset>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace executorch::extension::llm::constraint {

using ByteSet = std::bitset<256>;
using State = uint32_t;

/// Thrown for an expression or schema that cannot be used; the message is for its author.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A set of rules. A rule is a graph of states with a start and an end. An edge reads a byte of a
/// set, or nothing, or a text of a rule, which may be recursive. Every state can reach the end of
/// its rule, and no rule calls itself before it has read a byte.
struct Nfa {
  struct Rule {
    State start, end;
  };
  struct ByteEdge {
    State to;
    uint32_t set;
  };
  struct CallEdge {
    State to;
    uint32_t rule;
  };
  /// The edges of all states, one state after the other.
  template <typename Edge>
  struct Edges {
    std::vector<uint32_t> first;
    std::vector<Edge> all;
    const Edge* begin(State s) const { return all.data() + first[s]; }
    const Edge* end(State s) const { return all.data() + first[s + 1]; }
  };

  uint32_t root = 0;
  std::vector<Rule> rules;
  std::vector<ByteSet> sets;
  Edges<ByteEdge> bytes;
  Edges<State> epsilons;
  Edges<CallEdge> calls;
  /// Bytes that are in the same sets have the same class.
  std::vector<uint8_t> class_of_byte;
  /// One byte of each class.
  std::vector<uint8_t> byte_of_class;

  size_t n_states() const { return epsilons.first.size() - 1; }
};

/// Builds an Nfa. Throws Unusable for more than kMaxStates states, so that a hostile description
/// costs bounded time and memory.
class NfaBuilder {
 public:
  static constexpr size_t kMaxStates = 1u << 19;
  static constexpr size_t kMaxEdges = 1u << 21;

  uint32_t add_rule();
  State start(uint32_t rule) const { return rules_[rule].start; }
  State end(uint32_t rule) const { return rules_[rule].end; }
  State add_state();

  void add_bytes(State from, State to, const ByteSet& set);
  void add_byte(State from, State to, uint8_t byte);
  /// Adds an ASCII text; returns the state after it.
  State add_text(State from, const std::string& text);
  void add_epsilon(State from, State to);
  void add_call(State from, State to, uint32_t rule);

  /// Removes states from which the end cannot be reached. Throws Unusable if none remains, or if a
  /// rule calls itself before it has read a byte.
  Nfa finish(uint32_t root);

 private:
  template <typename Edge>
  using Drawn = std::vector<std::pair<State, Edge>>;

  void count_edge() const;
  std::vector<bool> states_that_end() const;
  std::vector<bool> empty_rules(const Nfa& nfa) const;
  void check_left_recursion(const Nfa& nfa) const;

  uint32_t n_states_ = 0;
  std::vector<Nfa::Rule> rules_;
  Drawn<Nfa::ByteEdge> bytes_;
  Drawn<State> epsilons_;
  Drawn<Nfa::CallEdge> calls_;
  std::vector<ByteSet> sets_;
  std::unordered_map<ByteSet, uint32_t> set_ids_;
};

}  // namespace executorch::extension::llm::constraint
