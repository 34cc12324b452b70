#include <executorch/kernels/optimized/memory.h>

#include <algorithm>
#include <climits>

namespace executorch::optimized {
namespace {

constexpr uintptr_t kAlignment = 64;
// A memory plan leaves fewer bytes than this between neighbouring tensors, to align the second one.
constexpr ptrdiff_t kPadding = 16;

struct Range {
  char* begin;
  char* end;
};

void sort_by_address(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

bool overlap(const Range& a, const Range& b) {
  return a.begin < b.end && b.begin < a.end;
}

// The bytes of a value, and the first and the last node that reads or writes them.
struct Block {
  int value = -1;
  Range range = {};
  size_t nbytes = 0;
  int first = INT_MAX;
  int last = -1;
  bool movable = false;
  /// Other values that keep these bytes: each is computed in place of the one before it, as in the
  /// program's memory plan (Planner::keep_in_place).
  std::vector<int> successors = {};
};

bool coexist(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Blocks sorted by the time in which they are needed. Most are needed for a short time, so those
// that coexist with a given block are found without looking at all others.
class Timeline {
 public:
  explicit Timeline(size_t n_nodes) : periods_(n_nodes / kPeriod + 1) {}

  void add(const Block* block) {
    if (block->first < 0 || block->last / kPeriod - block->first / kPeriod > kMostPeriods) {
      always_.push_back(block);
      return;
    }
    for (int p = block->first / kPeriod; p <= block->last / kPeriod; ++p) {
      periods_[static_cast<size_t>(p)].push_back(block);
    }
  }
  // Calls f(other) for every block that may coexist with `block`, for some of them several times.
  template <class F>
  void for_each(const Block& block, const F& f) const {
    for (const Block* other : always_) f(*other);
    for (int p = block.first / kPeriod; p <= block.last / kPeriod; ++p) {
      for (const Block* other : periods_[static_cast<size_t>(p)]) f(*other);
    }
  }

 private:
  static constexpr int kPeriod = 32;  // instructions
  static constexpr int kMostPeriods = 8;

  std::vector<std::vector<const Block*>> periods_;
  std::vector<const Block*> always_;
};

// The writes to values that keep their addresses, sorted by address.
class FixedWrites {
 public:
  struct Write {
    Range range;
    int node;
    int root;
  };
  void add(const Write& write) { writes_.push_back(write); }
  void sort() {
    std::sort(writes_.begin(), writes_.end(),
              [](const Write& a, const Write& b) { return a.range.begin < b.range.begin; });
    ends_.clear();
    for (const Write& write : writes_) {
      ends_.push_back(ends_.empty() ? write.range.end : std::max(ends_.back(), write.range.end));
    }
  }
  // Whether f(write) is true for a write that overlaps the range.
  template <class F>
  bool any(const Range& range, const F& f) const {
    const auto behind =
        std::partition_point(writes_.begin(), writes_.end(),
                             [&](const Write& write) { return write.range.begin < range.end; });
    for (auto i = behind - writes_.begin(); i-- > 0 && ends_[i] > range.begin;) {
      if (overlap(writes_[i].range, range) && f(writes_[i])) return true;
    }
    return false;
  }

 private:
  std::vector<Write> writes_;
  std::vector<char*> ends_;  // ends_[i]: the highest end of writes_[0] to writes_[i]
};

class Planner {
 public:
  explicit Planner(Graph& graph)
      : graph_(graph), blocks_(graph.values().size()), placed_(graph.nodes().size()) {}

  bool run(Placement& placement) {
    find_lifetimes();
    keep_in_place();
    find_room();
    for (const Block& block : blocks_) {
      if (block.last >= 0 && !block.movable && block.nbytes > 0 && is_in_room(block.range)) {
        placed_.add(&block);
      }
    }
    if (!fixed_stay_intact()) return false;
    std::vector<Block*> order;
    for (Block& block : blocks_) {
      if (block.last >= 0 && block.movable) order.push_back(&block);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Block* a, const Block* b) { return a->nbytes > b->nbytes; });
    for (Block* block : order) {
      if (!place(*block) && !allocate(*block)) return false;
      placement.addresses.emplace_back(block->value, block->range.begin);
      for (int v : block->successors) placement.addresses.emplace_back(v, block->range.begin);
    }
    placement.temporary = find_temporary();
    return true;
  }

 private:
  const Graph::Value& value(int v) const { return graph_.values()[v]; }
  static Range range_of(const Graph::Value& v) {
    return v.data == nullptr ? Range{} : Range{v.data, v.data + v.nbytes};
  }

  // Whether the value may get another address: it is no view, a node computes it, it is neither an
  // input nor an output of the method, and it is stable (graph.h).
  bool is_movable(int v) const {
    const Graph::Value& known = value(v);
    return known.data != nullptr && known.root == v && known.def >= 0 && !known.input &&
           !known.output && graph_.stable(v);
  }

  void find_lifetimes() {
    const auto& nodes = graph_.nodes();
    std::vector<bool> is_output(blocks_.size());
    for (size_t v = 0; v < blocks_.size(); ++v) {
      if (value(static_cast<int>(v)).output) is_output[value(static_cast<int>(v)).root] = true;
    }
    std::vector<int> seen_in(blocks_.size(), -1);
    std::vector<bool> crosses(blocks_.size());
    const auto see = [&](int v, int node) {
      const int root = value(v).root;
      if (value(root).data == nullptr || value(root).constant) return;
      Block& block = blocks_[root];
      block.first = std::min(block.first, node);
      block.last = std::max(block.last, node);
      crosses[root] = crosses[root] || (seen_in[root] >= 0 && seen_in[root] != nodes[node].block);
      seen_in[root] = nodes[node].block;
    };
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      if (!nodes[n].live) continue;
      for (int v : nodes[n].inputs) see(v, n);
      for (int v : nodes[n].outputs) see(v, n);
    }
    for (int v = 0; v < static_cast<int>(blocks_.size()); ++v) {
      Block& block = blocks_[v];
      block.value = v;
      block.nbytes = value(v).nbytes;
      block.range = range_of(value(v));
      if (block.last < 0) continue;
      const bool starts = value(v).def == block.first;
      block.movable = is_movable(v) && !is_output[v] && !crosses[v] && starts;
      const bool straight = graph_.is_straight();
      if (block.movable) continue;
      if (value(v).input || !straight || !starts || value(v).escapes) block.first = -1;
      if (!value(v).input || !straight || is_output[v] || value(v).escapes) block.last = INT_MAX;
    }
  }

  // If the program's memory plan computes a result in place of an operand that no later node reads,
  // both keep sharing their bytes: the result becomes a successor of the operand's block.
  void keep_in_place() {
    std::vector<int> owner(blocks_.size());
    for (size_t v = 0; v < owner.size(); ++v) owner[v] = static_cast<int>(v);
    for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
      const auto& node = graph_.nodes()[n];
      if (!node.live || node.fused != nullptr || node.outputs.size() != 1) continue;
      Block& out = blocks_[node.outputs[0]];
      for (int v : node.inputs) {
        Block& in = blocks_[owner[value(v).root]];
        if (!out.movable || !in.movable || in.last != n || &in == &out ||
            value(out.value).data != value(in.value).data || out.nbytes > in.nbytes) {
          continue;
        }
        owner[out.value] = in.value;
        in.last = std::max(in.last, out.last);
        in.successors.push_back(out.value);
        out.last = -1;
        break;
      }
    }
  }

  bool gives_room(const Block& block) const {
    return block.movable || (block.last < 0 && is_movable(block.value));
  }

  // Finds the bytes that new addresses may lie in: those of all values that may move, including the
  // values that are no longer computed.
  void find_room() {
    for (const Block& block : blocks_) {
      if (gives_room(block)) room_.push_back(block.range);
    }
    sort_by_address(room_);
    std::vector<Range> merged;
    for (const Range& range : room_) {
      if (!merged.empty() && range.begin - merged.back().end < kPadding) {
        merged.back().end = std::max(merged.back().end, range.end);
      } else {
        merged.push_back(range);
      }
    }
    room_ = std::move(merged);
  }

  // The parts of room_ in which no value lies that keeps its address.
  std::vector<Span<uint8_t>> find_temporary() const {
    std::vector<Range> kept;
    for (const Block& block : blocks_) {
      const Graph::Value& known = value(block.value);
      const bool owns_bytes = known.data != nullptr && known.root == block.value;
      if (owns_bytes && !known.constant && !gives_room(block)) kept.push_back(block.range);
    }
    sort_by_address(kept);
    std::vector<Span<uint8_t>> found;
    auto next = kept.begin();
    char* begin = nullptr;  // behind the kept values so far
    for (const Range& room : room_) {
      const auto add = [&](char* end) {
        begin = std::max(begin, room.begin);
        if (begin >= end) return;
        found.emplace_back(reinterpret_cast<uint8_t*>(begin), static_cast<size_t>(end - begin));
      };
      for (; next != kept.end() && next->begin < room.end; ++next) {
        add(next->begin);
        begin = std::max(begin, next->end);
      }
      add(room.end);
    }
    return found;
  }

  bool is_in_room(const Range& range) const {
    const auto room = std::partition_point(room_.begin(), room_.end(),
                                           [&](const Range& r) { return r.end <= range.begin; });
    return room != room_.end() && room->begin < range.end;
  }

  // Returns false if an operand of a fused call that cannot be moved would be overwritten before
  // the call reads it. Also sets FusedCall::out_overlaps_operand.
  bool fixed_stay_intact() {
    const auto& nodes = graph_.nodes();
    const FixedWrites writes = find_fixed_writes();
    int block_start = 0;
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      if (nodes[n].block != nodes[block_start].block) block_start = n;
      if (nodes[n].fused == nullptr || !nodes[n].live) continue;
      for (int v : nodes[n].inputs) {
        const int root = value(v).root;
        const Graph::Value& read = value(root);
        if (read.data == nullptr || read.constant || blocks_[root].movable) continue;
        const int from = read.def < n ? std::max(block_start, read.def + 1) : block_start;
        const auto spoils = [&](const FixedWrites::Write& write) {
          graph_.effort().spend(1);
          return write.node >= from && write.node < n && write.root != root;
        };
        if (writes.any(range_of(read), spoils)) return false;
        for (int o : nodes[n].outputs) {
          nodes[n].fused->out_overlaps_operand |=
              overlap(range_of(value(value(o).root)), range_of(read)) &&
              !blocks_[value(o).root].movable;
        }
      }
    }
    return true;
  }

  FixedWrites find_fixed_writes() const {
    const auto& nodes = graph_.nodes();
    FixedWrites writes;
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      const auto add = [&](int v) {
        const int root = value(v).root;
        if (value(root).data == nullptr || value(root).constant || blocks_[root].movable) return;
        writes.add({range_of(value(root)), n, root});
      };
      if (!nodes[n].live) continue;
      std::for_each(nodes[n].outputs.begin(), nodes[n].outputs.end(), add);
      if (nodes[n].written >= 0) add(nodes[n].written);
      if (nodes[n].pure || nodes[n].delegate_call || nodes[n].written >= 0) continue;
      std::for_each(nodes[n].inputs.begin(), nodes[n].inputs.end(), add);
    }
    writes.sort();
    return writes;
  }

  // Gives the block the lowest address at which it overlaps no block that is needed at the same
  // time (first fit). These blocks are visited in the order of their addresses; whenever one
  // overlaps the candidate, the candidate moves behind it. Returns false if there is no such
  // address.
  bool place(Block& block) {
    std::vector<Range> taken;
    placed_.for_each(block, [&](const Block& other) {
      graph_.effort().spend(1);
      if (coexist(block, other)) taken.push_back(other.range);
    });
    sort_by_address(taken);
    graph_.effort().spend(8 * taken.size() + room_.size());
    const auto aligned = [](char* at) {
      const auto address = reinterpret_cast<uintptr_t>(at);
      return at + ((kAlignment - address % kAlignment) % kAlignment);
    };
    auto next = taken.begin();
    char* behind = nullptr;
    for (const Range& room : room_) {
      char* at = aligned(std::max(room.begin, behind));
      for (; next != taken.end() && fits(at, block, room); ++next) {
        if (next->begin >= at + block.nbytes) break;
        behind = std::max(behind, next->end);
        at = std::max(at, aligned(behind));
      }
      if (!fits(at, block, room)) continue;
      block.range = {at, at + block.nbytes};
      placed_.add(&block);
      return true;
    }
    return false;
  }
  bool allocate(Block& block) {
    auto* const bytes =
        static_cast<char*>(graph_.draft().allocator.allocate(block.nbytes, kAlignment));
    if (bytes == nullptr) return false;
    block.range = {bytes, bytes + block.nbytes};
    return true;
  }
  static bool fits(char* at, const Block& block, const Range& room) {
    return at <= room.end && static_cast<size_t>(room.end - at) >= block.nbytes;
  }

  Graph& graph_;
  // One for each value. Views share the block of their root.
  std::vector<Block> blocks_;
  std::vector<Range> room_;  // the bytes that new addresses may lie in, sorted and disjoint
  Timeline placed_;          // the blocks in room_ that have their final address
};

}  // namespace

bool place_values(Graph& graph, Placement& placement) {
  return Planner(graph).run(placement);
}

}  // namespace executorch::optimized
