#include <executorch/backends/xnnpack/runtime/memory_plan.h>
#include <executorch/backends/xnnpack/runtime/operation.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

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
  // What an output lies in keeps its contents.
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

bool MemoryPlan::fits(const Graph& graph) const {
  for (size_t id = 0; id < root_.size(); ++id) {
    if (in_arena(graph, id) && nbytes(graph.values[id]) > bytes_[id]) return false;
  }
  return true;
}

void MemoryPlan::lay_out(const Graph& graph) {
  for (size_t id = 0; id < root_.size(); ++id) {
    bytes_[id] = std::max(bytes_[id], nbytes(graph.values[id]));
  }
  free_.clear();
  arena_bytes_ = 0;
  // Blocks by the node after which they are free.
  std::vector<std::vector<Block>> ending(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (uint32_t j = 0; j < node.n_outputs; ++j) {
      const uint32_t id = node.output[j];
      if (!in_arena(graph, id)) continue;
      const int64_t bytes = aligned(bytes_[id]);
      offset_[id] = take_block(bytes);
      ending[last_use_[id]].push_back({offset_[id], bytes});
    }
    for (const Block& block : ending[i]) free_block(block.offset, block.bytes);
  }
}

int64_t MemoryPlan::take_block(int64_t bytes) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->bytes >= bytes && (best == free_.end() || it->bytes < best->bytes)) best = it;
  }
  if (best == free_.end()) {
    // The arena grows, from its last block if that is free.
    if (!free_.empty() && free_.back().offset + free_.back().bytes == arena_bytes_) {
      const int64_t offset = free_.back().offset;
      free_.pop_back();
      arena_bytes_ = offset + bytes;
      return offset;
    }
    arena_bytes_ += bytes;
    return arena_bytes_ - bytes;
  }
  const int64_t offset = best->offset;
  *best = {offset + bytes, best->bytes - bytes};
  if (best->bytes == 0) free_.erase(best);
  return offset;
}

void MemoryPlan::free_block(int64_t offset, int64_t bytes) {
  if (bytes == 0) return;
  auto next = std::find_if(free_.begin(), free_.end(),
                           [offset](const Block& block) { return block.offset > offset; });
  const bool joins_next = next != free_.end() && offset + bytes == next->offset;
  if (next != free_.begin() && (next - 1)->offset + (next - 1)->bytes == offset) {
    (next - 1)->bytes += bytes + (joins_next ? next->bytes : 0);
    if (joins_next) free_.erase(next);
  } else if (joins_next) {
    *next = {offset, bytes + next->bytes};
  } else {
    free_.insert(next, {offset, bytes});
  }
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
