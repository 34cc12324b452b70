// Finds the buffers of the program, such as key and value caches, that are updated in place.

#include <executorch/kernels/optimized/graph.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

constexpr int kNone = -1, kRefused = -2;

}  // namespace

bool Graph::is_plain_buffer(int v) const {
  const Value& value = values_[v];
  return value.value->isTensor() && value.data != nullptr && value.root == v && value.n_defs == 0 &&
         !value.constant && !value.input && !value.output && !value.escapes;
}

// Whether the buffer and all its views are read only behind its update, and only in the same block.
bool Graph::is_read_after(int v, int update) const {
  const Value& value = values_[v];
  const bool is_view = nodes_[update].written != v;
  if (value.output || (is_view && (value.escapes || value.n_defs > 1))) return false;
  effort_.spend(value.uses.size());
  return std::all_of(value.uses.begin(), value.uses.end(), [&](int use) {
    return nodes_[use].block == nodes_[update].block &&
           (use > update || (use == update && !is_view));
  });
}

// Removes buffers whose bytes another value uses as well.
void Graph::refuse_shared_bytes(std::vector<int>& updates) const {
  std::vector<int> buffers;
  for (int v = 0; v < static_cast<int>(updates.size()); ++v) {
    if (updates[v] >= 0) buffers.push_back(v);
  }
  if (buffers.empty()) return;
  const auto by_address = [&](int a, int b) { return values_[a].data < values_[b].data; };
  std::sort(buffers.begin(), buffers.end(), by_address);
  const auto overlap = [&](int a, int b) {
    return values_[a].data < values_[b].data + values_[b].nbytes &&
           values_[b].data < values_[a].data + values_[a].nbytes;
  };
  // The buffers that are left are sorted by their ends as well.
  for (size_t i = 1; i < buffers.size(); ++i) {
    if (overlap(buffers[i - 1], buffers[i])) {
      for (const int v : buffers) updates[v] = kRefused;
      return;
    }
  }
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    const Value& value = values_[v];
    if (value.data == nullptr || value.constant) continue;
    auto at = std::partition_point(buffers.begin(), buffers.end(), [&](int b) {
      return values_[b].data + values_[b].nbytes <= value.data;
    });
    for (; at != buffers.end() && overlap(*at, v); ++at) {
      effort_.spend(1);
      if (value.root != *at) updates[*at] = kRefused;
    }
  }
}

void Graph::find_updates() {
  std::vector<int> updates(values_.size(), kNone);
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
    const int v = nodes_[n].written;
    if (v >= 0) updates[v] = updates[v] == kNone && is_plain_buffer(v) ? n : kRefused;
  }
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    int& update = updates[values_[v].root];
    if (update >= 0 && !is_read_after(v, update)) update = kRefused;
  }
  refuse_shared_bytes(updates);
  for (size_t v = 0; v < updates.size(); ++v) {
    if (updates[v] >= 0) values_[v].updated = updates[v];
    values_[v].escapes |= updates[v] == kRefused;
  }
}

}  // namespace executorch::optimized
