#include <executorch/extension/llm/sampler/constraint/plain_bytes.h>
#include <executorch/extension/llm/sampler/constraint/token_masks.h>

#include <algorithm>

namespace executorch::extension::llm::constraint {

TokenMasks::TokenMasks(Automaton& automaton, std::shared_ptr<const Vocabulary> vocabulary)
    : automaton_(automaton), vocabulary_(std::move(vocabulary)) {
  std::vector<bool> plain(automaton.n_classes(), false);
  for (int b = 0; b < 256; ++b) {
    const uint8_t byte = static_cast<uint8_t>(b);
    if (is_plain(byte)) plain[automaton.class_of(byte)] = true;
  }
  for (size_t c = 0; c < plain.size(); ++c) {
    if (plain[c]) plain_classes_.push_back(static_cast<uint8_t>(c));
  }
}

void TokenMasks::add(const Positions& positions, const Frames& frames, TokenMask& mask) {
  forget_if_full();
  for (const auto [place, frame] : positions) add(place, frame, 0, frames, mask);
}

void TokenMasks::add(Place place, Frame frame, uint32_t node, const Frames& frames,
                     TokenMask& mask) {
  const Walk& found = walk(place, node);
  for (const uint32_t token : found.tokens) mask[token / 64] |= uint64_t{1} << token % 64;
  for (size_t i = 0; i < found.mask.size(); ++i) mask[i] |= found.mask[i];
  if (frame == kBottom) return;
  // Walks stay where they are while others are made.
  for (const uint32_t end : found.ends) {
    add(frames.return_to(frame), frames.outer(frame), end, frames, mask);
  }
}

/// Between masks only: what was found may be in use during one.
void TokenMasks::forget_if_full() {
  if (states_.size() < kMaxWalkStates && walk_bytes_ < kMaxWalkBytes) return;
  frames_.clear();
  states_.clear();
  state_ids_.clear();
  walks_.clear();
  walk_bytes_ = 0;
}

const TokenMasks::Walk& TokenMasks::walk(Place place, uint32_t node) {
  const uint64_t key = static_cast<uint64_t>(place) << 32 | node;
  const auto found = walks_.find(key);
  if (found != walks_.end()) return found->second;
  Walk made = make_walk(place, node);
  walk_bytes_ +=
      sizeof(Walk) + 64 + made.tokens.size() * 4 + made.mask.size() * 8 + made.ends.size() * 4;
  return walks_.emplace(key, std::move(made)).first->second;
}

TokenMasks::Walk TokenMasks::make_walk(Place place, uint32_t root) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const std::vector<uint32_t>& sorted = vocabulary_->sorted();
  Walk walk;
  // States at the nodes above the one that is looked at.
  std::vector<int32_t> path(nodes[root].deepest - nodes[root].depth + 1);
  path[0] = state_of({{place, kBottom}});
  const auto keep = [&](uint32_t first, uint32_t end) {
    walk.tokens.insert(walk.tokens.end(), sorted.begin() + first, sorted.begin() + end);
  };
  const auto visit = [&](uint32_t at, int32_t state) {
    const Vocabulary::Node& node = nodes[at];
    const bool leaf = node.skip == at + 1;
    if (states_[static_cast<size_t>(state)].ended && !leaf) walk.ends.push_back(at);
    const uint32_t below = node.deepest - node.depth;
    if (leaf || !node.plain_below || plain_run(state) < below) return false;
    keep(node.own_end, node.end);
    // What is allowed here needs no second look behind an end.
    if (states_[static_cast<size_t>(state)].ended) walk.ends.pop_back();
    return true;
  };
  uint32_t at = visit(root, path[0]) ? nodes[root].skip : root + 1;
  while (at < nodes[root].skip) {
    const Vocabulary::Node& node = nodes[at];
    const uint32_t depth = node.depth - nodes[root].depth;
    const int32_t state = next(path[depth - 1], node.byte);
    if (state == kDead) {
      at = node.skip;
      continue;
    }
    path[depth] = state;
    keep(node.first, node.own_end);
    at = visit(at, state) ? node.skip : at + 1;
  }
  if (walk.tokens.size() > vocabulary_->size() / 64 + 1) {
    walk.mask.assign((vocabulary_->size() + 63) / 64, 0);
    for (const uint32_t token : walk.tokens) walk.mask[token / 64] |= uint64_t{1} << token % 64;
    walk.tokens = {};
  }
  return walk;
}

int32_t TokenMasks::state_of(Positions positions) {
  if (positions.empty()) return kDead;
  const auto found = state_ids_.find(positions);
  if (found != state_ids_.end()) return found->second;
  WalkState state{positions, false, kUnknownRun, {}};
  state.ended = automaton_.close(state.closed, frames_);
  state.next.assign(automaton_.n_classes(), kUnknown);
  states_.push_back(std::move(state));
  const int32_t id = static_cast<int32_t>(states_.size() - 1);
  state_ids_.emplace(std::move(positions), id);
  return id;
}

int32_t TokenMasks::next(int32_t state, uint8_t byte) {
  const size_t at = static_cast<size_t>(state);
  const uint8_t byte_class = automaton_.class_of(byte);
  const int32_t known = states_[at].next[byte_class];
  if (known != kUnknown) return known;
  const int32_t made = state_of(automaton_.step(states_[at].closed, byte_class));
  return states_[at].next[byte_class] = made;
}

/// How many plain bytes, whichever, can be read from `state`; or fewer.
uint32_t TokenMasks::plain_run(int32_t state) {
  constexpr size_t kMostVisited = 64;
  const uint32_t known = states_[static_cast<size_t>(state)].plain_run;
  if (known != kUnknownRun) return known;
  // All states after one byte, two and so on, until none is new.
  std::vector<int32_t> visited{state};
  size_t begin = 0;
  uint32_t run = 0;
  for (;; ++run) {
    const size_t end = visited.size();
    if (begin == end) {
      run = kEndlessRun;
      break;
    }
    bool dead = false;
    for (size_t i = begin; i < end && !dead; ++i) {
      for (const uint8_t byte_class : plain_classes_) {
        const size_t at = static_cast<size_t>(visited[i]);
        int32_t after = states_[at].next[byte_class];
        if (after == kUnknown) {
          after = state_of(automaton_.step(states_[at].closed, byte_class));
          states_[at].next[byte_class] = after;
        }
        dead = after == kDead;
        if (dead) break;
        if (std::find(visited.begin(), visited.end(), after) == visited.end()) {
          visited.push_back(after);
        }
      }
    }
    if (dead) break;
    begin = end;
    // Characters that are counted go on for ever; so far is as far as most tokens go.
    if (visited.size() > kMostVisited) break;
  }
  return states_[static_cast<size_t>(state)].plain_run = run;
}

}  // namespace executorch::extension::llm::constraint
