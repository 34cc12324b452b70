#include <executorch/exir/native/offset_planner.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace executorch::exir {
namespace {

using Order = std::vector<size_t>;

struct SharedObject {
  uint64_t size;
  std::vector<size_t> blocks;
};

bool is_free_during(const SharedObject& object, const Block& block,
                    const std::vector<Block>& blocks) {
  return std::none_of(object.blocks.begin(), object.blocks.end(),
                      [&](size_t other) { return live_together(blocks[other], block); });
}

// Behind every block of the object that is alive together with `block`.
uint64_t end_of_neighbours(const SharedObject& object, const Block& block,
                           const std::vector<Block>& blocks, const std::vector<uint64_t>& offsets) {
  uint64_t end = 0;
  for (const size_t other : object.blocks) {
    if (live_together(blocks[other], block)) {
      end = std::max(end, offsets[other] + blocks[other].size);
    }
  }
  return end;
}

enum class Gap { Lowest, Tightest };

// Places the blocks in `order`, each into a gap between those that are placed and alive with it.
OffsetPlan place(const std::vector<Block>& blocks, const Order& order, Gap gap) {
  OffsetPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<size_t> placed;  // by ascending offset
  placed.reserve(blocks.size());
  for (const size_t i : order) {
    const Block& block = blocks[i];
    uint64_t end = 0;  // of the neighbours passed so far
    uint64_t best_room = std::numeric_limits<uint64_t>::max();
    uint64_t best = std::numeric_limits<uint64_t>::max();
    for (const size_t other : placed) {
      if (!live_together(blocks[other], block)) continue;
      const uint64_t start = plan.offsets[other];
      if (start >= end + block.size && start - end < best_room) {
        best_room = start - end;
        best = end;
        if (gap == Gap::Lowest) break;
      }
      end = std::max(end, start + blocks[other].size);
    }
    const uint64_t offset = best_room == std::numeric_limits<uint64_t>::max() ? end : best;
    plan.offsets[i] = offset;
    plan.total = std::max(plan.total, offset + block.size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](uint64_t at, size_t p) { return at < plan.offsets[p]; }),
                  i);
  }
  return plan;
}

Order sorted_by(const std::vector<Block>& blocks,
                const std::function<std::pair<uint64_t, uint64_t>(const Block&)>& key) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return key(blocks[a]) > key(blocks[b]); });
  return order;
}

uint64_t duration(const Block& block) {
  return static_cast<uint64_t>(block.last - block.first + 1);
}

struct Candidate {
  const char* name;
  Order order;
};

std::vector<Candidate> candidates(const std::vector<Block>& blocks) {
  using Key = std::pair<uint64_t, uint64_t>;
  return {
      {"by size", sorted_by(blocks,
                            [](const Block& b) {
                              return Key{b.size, duration(b)};
                            })},
      {"by size and lifetime", sorted_by(blocks,
                                         [](const Block& b) {
                                           return Key{b.size * duration(b), b.size};
                                         })},
      {"by lifetime", sorted_by(blocks,
                                [](const Block& b) {
                                  return Key{duration(b), b.size};
                                })},
      {"by first use", sorted_by(blocks,
                                 [](const Block& b) {
                                   return Key{~static_cast<uint64_t>(b.first), b.size};
                                 })},
  };
}

// Steps of local search that keep its cost near that of the candidates.
constexpr size_t kSearchWork = 20'000'000;
constexpr size_t kMaxSearchSteps = 400;

// The blocks that make the arena as large as it is were placed too late: moves one of them towards
// the front, keeps the order if the arena does not grow.
void improve(const std::vector<Block>& blocks, Order order, uint64_t bound, OffsetPlan& best) {
  const size_t n = blocks.size();
  const size_t steps = std::min(kMaxSearchSteps, kSearchWork / std::max<size_t>(1, n * n));
  uint64_t random = 0x9e3779b97f4a7c15u;
  OffsetPlan current = place(blocks, order, Gap::Tightest);
  for (size_t step = 0; step < steps && best.total > bound; ++step) {
    std::vector<size_t> top;  // positions in the order
    for (size_t p = 1; p < n; ++p) {
      if (current.offsets[order[p]] + blocks[order[p]].size == current.total) top.push_back(p);
    }
    if (top.empty()) return;
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t from = top[(random >> 33) % top.size()];
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t to = (random >> 33) % from;
    Order trial = order;
    std::rotate(trial.begin() + static_cast<ptrdiff_t>(to),
                trial.begin() + static_cast<ptrdiff_t>(from),
                trial.begin() + static_cast<ptrdiff_t>(from) + 1);
    OffsetPlan plan = place(blocks, trial, Gap::Tightest);
    if (plan.total <= current.total) {
      current = plan;
      order = std::move(trial);
    }
    if (plan.total < best.total) {
      best = std::move(plan);
      best.strategy = "by local search";
    }
  }
}

}  // namespace

uint64_t lower_bound(const std::vector<Block>& blocks) {
  std::vector<std::pair<int64_t, uint64_t>> starts;
  std::vector<std::pair<int64_t, uint64_t>> ends;
  for (const Block& block : blocks) {
    starts.emplace_back(block.first, block.size);
    ends.emplace_back(block.last, block.size);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  uint64_t live = 0;
  uint64_t bound = 0;
  size_t ended = 0;
  for (const auto& [step, size] : starts) {
    while (ends[ended].first < step) live -= ends[ended++].second;
    live += size;
    bound = std::max(bound, live);
  }
  return bound;
}

OffsetPlan plan_greedy(const std::vector<Block>& blocks, bool nest) {
  OffsetPlan plan;
  plan.strategy = "greedy";
  plan.offsets.assign(blocks.size(), 0);
  plan.objects.assign(blocks.size(), 0);
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].size < blocks[b].size; });
  std::reverse(order.begin(), order.end());

  std::vector<SharedObject> objects;
  for (const size_t i : order) {
    const Block& block = blocks[i];
    uint64_t offset = 0;
    auto object = std::find_if(objects.begin(), objects.end(), [&](const SharedObject& o) {
      return is_free_during(o, block, blocks);
    });
    if (object == objects.end() && nest) {
      object = std::find_if(objects.begin(), objects.end(), [&](const SharedObject& o) {
        offset = end_of_neighbours(o, block, blocks, plan.offsets);
        return offset > 0 && offset + block.size <= o.size;
      });
    }
    if (object == objects.end()) {
      objects.push_back({block.size, {}});
      object = objects.end() - 1;
      offset = 0;
    }
    object->blocks.push_back(i);
    plan.offsets[i] = offset;
    plan.objects[i] = static_cast<uint32_t>(object - objects.begin());
  }
  for (const SharedObject& object : objects) {
    for (const size_t i : object.blocks) plan.offsets[i] += plan.total;
    plan.total += object.size;
  }
  return plan;
}

OffsetPlan plan_best(const std::vector<Block>& blocks) {
  const uint64_t bound = lower_bound(blocks);
  OffsetPlan best = plan_greedy(blocks, true);
  best.objects.clear();
  const std::vector<Candidate> tried = candidates(blocks);
  const Order* best_order = &tried.front().order;
  for (const Candidate& candidate : tried) {
    for (const Gap gap : {Gap::Tightest, Gap::Lowest}) {
      if (best.total == bound) return best;
      OffsetPlan plan = place(blocks, candidate.order, gap);
      if (plan.total < best.total) {
        best = std::move(plan);
        best.strategy = candidate.name;
        best_order = &candidate.order;
      }
    }
  }
  improve(blocks, *best_order, bound, best);
  return best;
}

std::optional<std::pair<size_t, size_t>> find_conflict(const std::vector<Block>& blocks,
                                                       const std::vector<uint64_t>& offsets) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
  for (size_t p = 0; p < order.size(); ++p) {
    const size_t i = order[p];
    for (size_t q = p + 1; q < order.size(); ++q) {
      const size_t j = order[q];
      if (offsets[j] >= offsets[i] + blocks[i].size) break;
      if (blocks[j].size > 0 && live_together(blocks[i], blocks[j])) return std::pair{i, j};
    }
  }
  return std::nullopt;
}

}  // namespace executorch::exir
