#include <executorch/backends/xnnpack/runtime/memory_plan.h>
#include <executorch/backends/xnnpack/runtime/operation.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace executorch::backends::xnnpack {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Blocks of an arena that grows as needed.
class Blocks {
 public:
  /// Bytes of the arena.
  int64_t end() const { return end_; }

  /// The offset of a block, of the smallest free one that is large enough, or behind all.
  int64_t take(int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(free_.find(offset));
      add(offset + bytes, size - bytes);
      return offset;
    }
    int64_t offset = end_;
    if (!free_.empty()) {
      const auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        remove(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    const auto next = free_.lower_bound(offset);
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        remove(previous);
      }
    }
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

 private:
  void add(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    free_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::map<int64_t, int64_t>::iterator block) {
    by_size_.erase({block->second, block->first});
    free_.erase(block);
  }

  std::map<int64_t, int64_t> free_;                // bytes by offset
  std::set<std::pair<int64_t, int64_t>> by_size_;  // with offsets
  int64_t end_ = 0;
};

}  // namespace

MemoryPlan::MemoryPlan(const Graph& graph)
    : root_(graph.values.size()),
      output_(graph.values.size(), kNoId),
      last_use_(graph.values.size(), 0),
      bytes_(graph.values.size(), 0),
      offset_(graph.values.size(), 0),
      elided_(graph.nodes.size(), false) {
  for (uint32_t id = 0; id < root_.size(); ++id) root_[id] = id;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (uint32_t j = 0; j < node.n_inputs; ++j) {
      if (node.input[j] != kNoId) last_use_[node.input[j]] = i;
    }
    for (uint32_t j = 0; j < node.n_outputs; ++j) last_use_[node.output[j]] = i;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!joins(graph, i)) continue;
    const Node& node = graph.nodes[i];
    elided_[i] = node.operation->is_view;
    join(graph, node.input[0], node.output[0]);
  }
}

bool MemoryPlan::joins(const Graph& graph, size_t i) const {
  const Node& node = graph.nodes[i];
  if (!node.operation->is_view && !node.operation->in_place) return false;
  const uint32_t root = root_[node.input[0]];
  const bool own = graph.values[root].place == Value::Place::Internal;
  // An external value has a place of its own; an output is computed in one only.
  if (graph.out(node).place == Value::Place::Output && (!own || output_[root] != kNoId)) {
    return false;
  }
  if (node.operation->is_view) return true;
  // Memory that is already an output's must not be overwritten.
  return own && output_[root] == kNoId && last_use_[root] == i &&
         graph.in(node).type == graph.out(node).type;
}

void MemoryPlan::join(const Graph& graph, uint32_t input, uint32_t output) {
  const uint32_t root = root_[input];
  root_[output] = root;
  last_use_[root] = std::max(last_use_[root], last_use_[output]);
  if (graph.values[output].place == Value::Place::Output) output_[root] = output;
}

bool MemoryPlan::in_arena(const Graph& graph, size_t id) const {
  return root_[id] == id && output_[id] == kNoId &&
         graph.values[id].place == Value::Place::Internal;
}

bool MemoryPlan::has_room(const Graph& graph) const {
  for (size_t id = 0; id < root_.size(); ++id) {
    if (in_arena(graph, id) && nbytes(graph.values[id]) > bytes_[id]) return false;
  }
  return is_laid_out_;
}

bool MemoryPlan::fit(const Graph& graph, int64_t max_bytes) {
  if (arena_bytes_ <= max_bytes && has_room(graph)) return true;
  is_laid_out_ = false;
  for (const bool keeps_larger : {true, false}) {
    for (size_t id = 0; id < root_.size(); ++id) {
      bytes_[id] = std::max(keeps_larger ? bytes_[id] : 0, nbytes(graph.values[id]));
    }
    if (lay_out(graph, max_bytes)) return is_laid_out_ = true;
  }
  arena_bytes_ = 0;
  return false;
}

bool MemoryPlan::lay_out(const Graph& graph, int64_t max_bytes) {
  Blocks blocks;
  // The values that a node is the last to use, as lists.
  std::vector<uint32_t> first(graph.nodes.size(), kNoId), next(root_.size(), kNoId);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (uint32_t j = 0; j < node.n_outputs; ++j) {
      const uint32_t id = node.output[j];
      if (!in_arena(graph, id)) continue;
      if (bytes_[id] > max_bytes) return false;
      offset_[id] = blocks.take(aligned(bytes_[id]));
      if (blocks.end() > max_bytes) return false;
      next[id] = first[last_use_[id]];
      first[last_use_[id]] = id;
    }
    for (uint32_t id = first[i]; id != kNoId; id = next[id]) {
      blocks.give_back(offset_[id], aligned(bytes_[id]));
    }
  }
  arena_bytes_ = blocks.end();
  return true;
}

void MemoryPlan::resolve(Graph& graph, uint8_t* arena) const {
  for (size_t id = 0; id < root_.size(); ++id) {
    Value& value = graph.values[id];
    if (value.place != Value::Place::Internal) continue;
    const uint32_t root = root_[id];
    const bool own = graph.values[root].place == Value::Place::Internal;
    const uint32_t output = own ? output_[root] : root;
    value.data = output == kNoId ? arena + offset_[root] : graph.values[output].data;
  }
}

}  // namespace executorch::backends::xnnpack
