#include <executorch/extension/llm/sampler/constraint/plain_bytes.h>
#include <executorch/extension/llm/sampler/constraint/vocabulary.h>

#include <algorithm>

namespace executorch::extension::llm {

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].empty()) sorted_.push_back(i);
  }
  std::sort(sorted_.begin(), sorted_.end(), [this](uint32_t a, uint32_t b) {
    const int order = tokens_[a].compare(tokens_[b]);
    return order != 0 ? order < 0 : a < b;
  });
  nodes_.push_back({0, true, 0, 0, 0, 0, 0, 0});
  // The nodes from the root to the last token.
  std::vector<uint32_t> open{0};
  const std::string none;
  const std::string* last = &none;
  for (uint32_t i = 0; i < sorted_.size(); ++i) {
    const std::string& token = tokens_[sorted_[i]];
    const size_t shared =
        std::mismatch(token.begin(), token.end(), last->begin(), last->end()).first - token.begin();
    close_nodes(open, shared, i);
    for (size_t at = shared; at < token.size(); ++at) {
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      const uint32_t depth = static_cast<uint32_t>(at + 1);
      nodes_.push_back({static_cast<uint8_t>(token[at]), true, depth, depth, 0, i, i, i});
    }
    nodes_[open.back()].own_end = i + 1;
    last = &token;
  }
  close_nodes(open, 0, static_cast<uint32_t>(sorted_.size()));
  nodes_[0].skip = static_cast<uint32_t>(nodes_.size());
  nodes_[0].end = static_cast<uint32_t>(sorted_.size());
}

/// Completes the nodes that are deeper than `depth`, and tells those above of them.
void Vocabulary::close_nodes(std::vector<uint32_t>& open, size_t depth, uint32_t n_sorted) {
  while (open.size() > depth + 1) {
    Node& node = nodes_[open.back()];
    open.pop_back();
    node.skip = static_cast<uint32_t>(nodes_.size());
    node.end = n_sorted;
    Node& above = nodes_[open.back()];
    above.deepest = std::max(above.deepest, node.deepest);
    above.plain_below = above.plain_below && node.plain_below && constraint::is_plain(node.byte);
  }
}

}  // namespace executorch::extension::llm
