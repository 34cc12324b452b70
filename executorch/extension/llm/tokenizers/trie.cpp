#include <executorch/extension/llm/tokenizers/trie.h>

#include <algorithm>

namespace tokenizers {

namespace {

/// Strings with a common start: entries [begin, end), whose first `depth` bytes lead to `node`.
struct Branch {
  uint32_t node;
  uint32_t begin;
  uint32_t end;
  uint32_t depth;
};

}  // namespace

void Trie::build(std::vector<std::pair<std::string, uint32_t>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  units_.assign(512, Unit{});
  std::vector<bool> taken(512);
  taken[0] = true;
  uint32_t first_free = 1;
  std::vector<Branch> branches{{0, 0, static_cast<uint32_t>(entries.size()), 0}};
  std::vector<Branch> children;
  while (!branches.empty()) {
    const Branch branch = branches.back();
    branches.pop_back();
    children.clear();
    for (uint32_t i = branch.begin; i < branch.end; ++i) {
      const std::string& key = entries[i].first;
      if (key.size() == branch.depth) {
        units_[branch.node].value = branch.depth == 0 ? kNoToken : entries[i].second;
        continue;
      }
      const auto byte = static_cast<uint8_t>(key[branch.depth]);
      if (children.empty() || children.back().node != byte) {
        children.push_back({byte, i, i, branch.depth + 1});
      }
      children.back().end = i + 1;
    }
    if (children.empty()) {
      continue;
    }
    // The first place where all children are free; places that were tried often are given up.
    while (first_free < taken.size() && taken[first_free]) {
      ++first_free;
    }
    const uint32_t lowest = children.front().node;
    uint32_t base = first_free > lowest ? first_free - lowest : 1;
    uint32_t tries = 0;
    for (;; ++base) {
      if (base + 256 > taken.size()) {
        const size_t size = std::max<size_t>(base + 512, taken.size() * 2);
        taken.resize(size);
        units_.resize(size);
      }
      const bool fits = std::all_of(children.begin(), children.end(),
                                    [&](const Branch& c) { return !taken[base + c.node]; });
      if (fits) {
        break;
      }
      if (++tries > 1024) {
        first_free = std::max(first_free, base - 512);
        tries = 0;
      }
    }
    units_[branch.node].base = base;
    for (Branch& child : children) {
      const uint32_t node = base + child.node;
      taken[node] = true;
      units_[node].parent = branch.node;
      child.node = node;
    }
    branches.insert(branches.end(), children.rbegin(), children.rend());
  }
}

}  // namespace tokenizers
