#include <executorch/extension/llm/tokenizers/trie.h>

#include <algorithm>

namespace tokenizers {
namespace {

/// A subtree: entries [begin, end), whose first `depth` bytes lead to `node`.
struct Branch {
  uint32_t node;
  uint32_t begin;
  uint32_t end;
  uint32_t depth;
};

/// Divides the entries [begin, end), which are sorted and longer than `depth`, by their byte at
/// `depth`. In the results, `node` is that byte.
void split(const std::vector<std::pair<std::string, uint32_t>>& entries, uint32_t begin,
           uint32_t end, uint32_t depth, std::vector<Branch>& children) {
  children.clear();
  for (uint32_t i = begin; i < end; ++i) {
    const auto byte = static_cast<uint8_t>(entries[i].first[depth]);
    if (children.empty() || children.back().node != byte) {
      children.push_back({byte, i, i, depth + 1});
    }
    children.back().end = i + 1;
  }
}

/// Keeps track of the array's nodes that are in use.
class Places {
 public:
  size_t size() const { return taken_.size(); }
  void take(uint32_t node) { taken_[node] = true; }
  /// The lowest base for which the nodes of all children are free. Skips regions in which many
  /// bases were tried.
  uint32_t find_base(const std::vector<Branch>& children) {
    while (first_free_ < taken_.size() && taken_[first_free_]) ++first_free_;
    const uint32_t lowest = children.front().node;
    uint32_t base = first_free_ > lowest ? first_free_ - lowest : 1;
    for (uint32_t tries = 0;; ++base) {
      if (base + 256 > taken_.size()) {
        taken_.resize(std::max<size_t>(base + 512, taken_.size() * 2));
      }
      if (std::all_of(children.begin(), children.end(),
                      [&](const Branch& c) { return !taken_[base + c.node]; })) {
        return base;
      }
      if (++tries > 1024) {
        first_free_ = std::max(first_free_, base - 512);
        tries = 0;
      }
    }
  }

 private:
  std::vector<bool> taken_ = std::vector<bool>(512);
  uint32_t first_free_ = 1;
};

}  // namespace

void Trie::build(std::vector<std::pair<std::string, uint32_t>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Places places;
  places.take(0);
  units_.assign(places.size(), Unit{});
  std::vector<Branch> branches{{0, 0, static_cast<uint32_t>(entries.size()), 0}};
  std::vector<Branch> children;
  while (!branches.empty()) {
    const Branch branch = branches.back();
    branches.pop_back();
    uint32_t first = branch.begin;  // of those that do not end here
    for (; first < branch.end && entries[first].first.size() == branch.depth; ++first) {
      units_[branch.node].value = branch.depth == 0 ? kNoToken : entries[first].second;
    }
    split(entries, first, branch.end, branch.depth, children);
    if (children.empty()) continue;
    const uint32_t base = places.find_base(children);
    units_.resize(places.size());
    units_[branch.node].base = base;
    for (Branch& child : children) {
      child.node += base;
      places.take(child.node);
      units_[child.node].parent = branch.node;
    }
    branches.insert(branches.end(), children.rbegin(), children.rend());
  }
}

}  // namespace tokenizers
