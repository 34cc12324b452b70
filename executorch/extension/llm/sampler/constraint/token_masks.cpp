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
  for (const Walk* part = &found; part != nullptr; part = part->shared) {
    for (const uint32_t token : part->tokens) mask[token / 64] |= uint64_t{1} << token % 64;
    for (size_t i = 0; i < part->mask.size(); ++i) mask[i] |= part->mask[i];
    if (frame == kBottom) continue;
    // The map does not move a walk when others are added.
    for (const uint32_t end : part->ends) {
      add(frames.return_to(frame), frames.outer(frame), end, frames, mask);
    }
  }
}

/// To be called between masks only: while one is computed, its walks are in use.
void TokenMasks::forget_if_full() {
  if (states_.size() < kMaxWalkStates && walk_bytes_ < kMaxWalkBytes) return;
  frames_.clear();
  states_.clear();
  state_ids_.clear();
  walks_.clear();
  shared_walks_.clear();
  likenesses_.clear();
  walk_bytes_ = 0;
}

const TokenMasks::Walk& TokenMasks::walk(Place place, uint32_t node) {
  const uint64_t key = static_cast<uint64_t>(place) << 32 | node;
  const auto found = walks_.find(key);
  if (found != walks_.end()) return found->second;
  Walk made = make_walk(place, node);
  return walks_.emplace(key, std::move(made)).first->second;
}

TokenMasks::Walk TokenMasks::make_walk(Place place, uint32_t root) {
  Walk walk;
  const int32_t state = state_of({{place, kBottom}});
  walk.shared = root == 0 ? shared_walk(place, state) : nullptr;
  if (walk.shared == nullptr) {
    go_below(root, state, UINT32_MAX, walk);
  } else {
    for (const uint32_t cut : walk.shared->cuts) {
      const Vocabulary::Node& node = vocabulary_->nodes()[cut];
      const std::string& text = vocabulary_->bytes(vocabulary_->sorted()[node.first]);
      int32_t at = state;
      for (uint32_t i = 0; i < node.depth && at != kDead; ++i) {
        at = next(at, static_cast<uint8_t>(text[i]));
      }
      if (at != kDead) go_below(cut, at, UINT32_MAX, walk);
    }
  }
  finish(walk);
  return walk;
}

/// The walk that is shared by all places from which the same texts of kSharedDepth bytes can be
/// read; null if it is not known which places these are.
const TokenMasks::Walk* TokenMasks::shared_walk(Place place, int32_t state) {
  if (n_long_walks_ < kLongWalksBefore || unlike_.size() >= kMaxUnlike ||
      unlike_.count(place) != 0) {
    return nullptr;
  }
  size_t looks = kMaxLooks;
  const uint32_t like = likeness(state, kSharedDepth, looks);
  if (like == kUnlike) {
    unlike_.insert(place);
    return nullptr;
  }
  const auto found = shared_walks_.find(like);
  if (found != shared_walks_.end()) return &found->second;
  Walk walk;
  go_below(0, state, kSharedDepth, walk);
  finish(walk);
  return &shared_walks_.emplace(like, std::move(walk)).first->second;
}

/// Adds the tokens below `root` that can be read from `state`. Stops at nodes of depth `deepest`
/// and adds these to walk.cuts.
void TokenMasks::go_below(uint32_t root, int32_t state, uint32_t deepest, Walk& walk) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const std::vector<uint32_t>& sorted = vocabulary_->sorted();
  // The automaton's states at the nodes from root to the present one.
  std::vector<int32_t> path(nodes[root].deepest - nodes[root].depth + 1);
  path[0] = state;
  const auto keep = [&](uint32_t first, uint32_t end) {
    walk.tokens.insert(walk.tokens.end(), sorted.begin() + first, sorted.begin() + end);
  };
  const auto visit = [&](uint32_t at, int32_t here) {
    const Vocabulary::Node& node = nodes[at];
    const bool leaf = node.skip == at + 1;
    if (!leaf && node.depth == deepest) {
      walk.cuts.push_back(at);
      return true;
    }
    if (states_[static_cast<size_t>(here)].ended && !leaf) walk.ends.push_back(at);
    const uint32_t below = node.deepest - node.depth;
    if (leaf || !node.plain_below || node.deepest > deepest || plain_run(here) < below) {
      return false;
    }
    keep(node.own_end, node.end);
    // All tokens below are allowed already, so they need not be looked at again for each caller.
    if (states_[static_cast<size_t>(here)].ended) walk.ends.pop_back();
    return true;
  };
  uint32_t at = visit(root, path[0]) ? nodes[root].skip : root + 1;
  size_t n_nodes = 0;
  for (; at < nodes[root].skip; ++n_nodes) {
    const Vocabulary::Node& node = nodes[at];
    const uint32_t depth = node.depth - nodes[root].depth;
    const int32_t here = next(path[depth - 1], node.byte);
    if (here == kDead) {
      at = node.skip;
      continue;
    }
    path[depth] = here;
    keep(node.first, node.own_end);
    at = visit(at, here) ? node.skip : at + 1;
  }
  n_long_walks_ += n_nodes >= kLongWalk;
}

void TokenMasks::finish(Walk& walk) {
  if (walk.tokens.size() > vocabulary_->size() / 64 + 1) {
    walk.mask.assign((vocabulary_->size() + 63) / 64, 0);
    for (const uint32_t token : walk.tokens) walk.mask[token / 64] |= uint64_t{1} << token % 64;
    walk.tokens = {};
  }
  walk_bytes_ += sizeof(Walk) + 64 + walk.mask.size() * 8 +
                 (walk.tokens.size() + walk.ends.size() + walk.cuts.size()) * 4;
}

size_t TokenMasks::LikenessHash::operator()(const std::vector<uint32_t>& key) const {
  uint64_t hash = key.size();
  for (const uint32_t word : key) hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ hash >> 29;
  return static_cast<size_t>(hash);
}

/// A number that is equal for states from which the same texts of up to `depth` bytes can be read,
/// and after which of them the rule may be finished. kUnlike if `looks` calls did not suffice.
uint32_t TokenMasks::likeness(int32_t state, uint32_t depth, size_t& looks) {
  if (state == kDead) return kDeadEnd;
  if (depth == 0) return kAlive;
  const size_t at = static_cast<size_t>(state);
  if (states_[at].likeness.empty()) states_[at].likeness.assign(kSharedDepth + 1, 0);
  if (states_[at].likeness[depth] != 0) return states_[at].likeness[depth];
  if (looks == 0) return kUnlike;
  --looks;
  std::vector<uint32_t> key{depth, states_[at].ended};
  key.reserve(automaton_.n_classes() + 2);
  for (size_t c = 0; c < automaton_.n_classes(); ++c) {
    const int32_t after = next_of_class(state, static_cast<uint8_t>(c));
    key.push_back(likeness(after, depth - 1, looks));
    if (key.back() == kUnlike) return kUnlike;
  }
  const uint32_t made = kAlive + 1 + static_cast<uint32_t>(likenesses_.size());
  walk_bytes_ += key.size() * 4 + 64;
  return states_[at].likeness[depth] = likenesses_.emplace(std::move(key), made).first->second;
}

int32_t TokenMasks::state_of(Positions positions) {
  if (positions.empty()) return kDead;
  const auto found = state_ids_.find(positions);
  if (found != state_ids_.end()) return found->second;
  WalkState state{positions, false, kUnknownRun, {}, {}};
  state.ended = automaton_.close(state.closed, frames_);
  state.next.assign(automaton_.n_classes(), kUnknown);
  states_.push_back(std::move(state));
  const int32_t id = static_cast<int32_t>(states_.size() - 1);
  state_ids_.emplace(std::move(positions), id);
  return id;
}

int32_t TokenMasks::next(int32_t state, uint8_t byte) {
  return next_of_class(state, automaton_.class_of(byte));
}

int32_t TokenMasks::next_of_class(int32_t state, uint8_t byte_class) {
  const size_t at = static_cast<size_t>(state);
  const int32_t known = states_[at].next[byte_class];
  if (known != kUnknown) return known;
  const int32_t made = state_of(automaton_.step(states_[at].closed, byte_class));
  return states_[at].next[byte_class] = made;
}

/// A lower bound of n such that any n plain bytes can be read from `state`.
uint32_t TokenMasks::plain_run(int32_t state) {
  constexpr size_t kMostVisited = 64;
  const uint32_t known = states_[static_cast<size_t>(state)].plain_run;
  if (known != kUnknownRun) return known;
  // All states after one byte, after two and so on, until no new one is found.
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
        const int32_t after = next_of_class(visited[i], byte_class);
        dead = after == kDead;
        if (dead) break;
        if (std::find(visited.begin(), visited.end(), after) == visited.end()) {
          visited.push_back(after);
        }
      }
    }
    if (dead) break;
    begin = end;
    // A counter of characters gives ever new states; a run of this length is longer than most
    // tokens.
    if (visited.size() > kMostVisited) break;
  }
  return states_[static_cast<size_t>(state)].plain_run = run;
}

}  // namespace executorch::extension::llm::constraint
