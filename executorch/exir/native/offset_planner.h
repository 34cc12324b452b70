#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// Where in an arena each tensor lies: tensors that are alive at the same time must not overlap,
/// the arena's size should be as small as possible. The problem is dynamic storage allocation
/// (NP-hard: Garey and Johnson, SR2); its lower bound is the largest sum of live bytes.
namespace executorch::exir {

/// Bytes in use from step `first` to step `last`, both included. Sizes are multiples of the
/// alignment, hence so are all offsets.
struct Block {
  uint64_t size;
  int64_t first;
  int64_t last;
};

inline bool live_together(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct OffsetPlan {
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> objects;  ///< The shared object of each block; greedy only.
  uint64_t total = 0;
  const char* strategy = "";
};

/// max over time of the live bytes: no plan is smaller. O(n log n).
uint64_t lower_bound(const std::vector<Block>& blocks);

/// Shared objects: blocks by descending size (equal sizes: the later first) go into the first
/// object in which no block is alive at the same time, at its start; else, with `nest`, behind the
/// blocks they meet in the first object with room left; else into a new object. Objects lie one
/// behind the other.
OffsetPlan plan_greedy(const std::vector<Block>& blocks, bool nest);

/// The smallest of plan_greedy and of lowest-gap and tightest-gap placement over several orders of
/// the blocks, improved by moving the blocks at the top of the arena forward in the order. Stops as
/// soon as the lower bound is reached. Deterministic. O(n^2) with small factors.
OffsetPlan plan_best(const std::vector<Block>& blocks);

/// Two blocks that are alive together and overlap, if there are any. O(n^2) at worst.
std::optional<std::pair<size_t, size_t>> find_conflict(const std::vector<Block>& blocks,
                                                       const std::vector<uint64_t>& offsets);

}  // namespace executorch::exir
