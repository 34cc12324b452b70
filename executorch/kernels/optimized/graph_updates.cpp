// Finds the values that are written in place: buffers of the program, such as key and value caches,
// and what loops carry from round to round.

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

// The first and the last node that reads or writes each value.
std::vector<Graph::Period> Graph::find_periods() const {
  std::vector<Period> periods(values_.size());
  const auto see = [&](int v, int node, bool is_copied) {
    Period& period = periods[v];
    if (period.last < 0) period = {node, node, is_copied};
    period.last = node;
  };
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
    for (int v : nodes_[n].inputs) see(v, n, false);
    for (int v : nodes_[n].outputs) see(v, n, false);
    if (nodes_[n].written >= 0) see(nodes_[n].written, n, nodes_[n].copies);
  }
  const int end = static_cast<int>(nodes_.size()) - 1;
  for (size_t v = 0; v < periods.size(); ++v) {
    if (values_[v].output) see(static_cast<int>(v), end, false);
  }
  return periods;
}

// Whether a jump leads into the period from outside, and not to its first basic block.
bool Graph::is_entered(const Period& period) const {
  const int first = nodes_[period.first].basic_block, last = nodes_[period.last].basic_block;
  effort_.spend(jumps_.size());
  return std::any_of(jumps_.begin(), jumps_.end(), [&](const auto& jump) {
    const auto [from, to] = jump;
    return to > first && to <= last && (from < first || from > last);
  });
}

// Marks values that only copies write. No other value uses their bytes, or none while they are in
// use: from a copy that runs before all other nodes of that period. (Another one may be the result
// that the program means to write to a buffer.) All others that copies write escape.
void Graph::find_carried() {
  std::vector<int> found;
  for (const Node& node : nodes_) {
    const int v = node.written;
    if (!node.copies || values_[v].carried) continue;
    const Value& value = values_[v];
    values_[v].carried = value.data != nullptr && value.root == v && value.n_defs == 0 &&
                         !value.constant && !value.input && !value.escapes;
    if (value.carried) found.push_back(v);
    values_[v].escapes |= !value.carried;
  }
  for (const Node& node : nodes_) {
    if (node.written >= 0 && !node.copies && values_[node.written].carried) refuse(node.written);
  }
  if (found.empty()) return;
  const std::vector<Period> periods = find_periods();
  std::sort(found.begin(), found.end(),
            [&](int a, int b) { return values_[a].data < values_[b].data; });
  std::vector<const char*> ends;  // ends[i]: the highest end of found[0] to found[i]
  for (const int v : found) {
    const char* const end = values_[v].data + values_[v].nbytes;
    ends.push_back(ends.empty() ? end : std::max<const char*>(ends.back(), end));
  }
  const auto may_share = [&](int v, int other) {
    const Period &a = periods[v], &b = periods[other];
    return b.last < 0 || (a.is_copied && (b.last < a.first || b.first > a.last) && !is_entered(a));
  };
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    const Value& value = values_[v];
    if (value.data == nullptr || value.constant || value.nbytes == 0) continue;
    const auto behind = std::partition_point(found.begin(), found.end(), [&](int c) {
      return values_[c].data < value.data + value.nbytes;
    });
    for (auto i = behind - found.begin(); i-- > 0 && ends[i] > value.data;) {
      effort_.spend(1);
      const int c = found[i];
      const bool overlaps = value.data < values_[c].data + values_[c].nbytes;
      if (value.root != c && overlaps && !may_share(c, v)) refuse(c);
    }
  }
}

void Graph::refuse(int carried) {
  values_[carried].carried = false;
  values_[carried].escapes = true;
}

void Graph::find_updates() {
  std::vector<int> updates(values_.size(), kNone);
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
    const int v = nodes_[n].copies ? -1 : nodes_[n].written;
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
