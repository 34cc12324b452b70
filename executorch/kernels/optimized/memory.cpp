#include <executorch/kernels/optimized/memory.h>

#include <algorithm>
#include <climits>

namespace executorch::optimized {
namespace {

constexpr uintptr_t kAlignment = 64;
// Between two tensors that follow one another in a plan.
constexpr ptrdiff_t kPadding = 16;

struct Range {
  char* begin;
  char* end;
};

bool overlap(const Range& a, const Range& b) {
  return a.begin < b.end && b.begin < a.end;
}

// Bytes from the first to the last instruction that mentions them.
struct Block {
  int value = -1;
  Range range = {};
  size_t nbytes = 0;
  int first = INT_MAX;
  int last = -1;
  bool movable = false;
  /// Values that the program planned into these bytes one after the other, each made in place.
  std::vector<int> successors = {};
};

bool coexist(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

class Planner {
 public:
  explicit Planner(Graph& graph) : graph_(graph), blocks_(graph.values().size()) {}

  bool run(std::vector<std::pair<int, char*>>& places) {
    find_lifetimes();
    keep_in_place();
    find_room();
    for (const Block& block : blocks_) {
      if (block.last >= 0 && !block.movable && block.nbytes > 0) placed_.push_back(&block);
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
      places.emplace_back(block->value, block->range.begin);
      for (int v : block->successors) places.emplace_back(v, block->range.begin);
    }
    return true;
  }

 private:
  const Graph::Value& value(int v) const { return graph_.values()[v]; }
  static Range range_of(const Graph::Value& v) { return {v.data, v.data + v.nbytes}; }

  // Whether the value's own bytes may lie elsewhere.
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
      const bool straight = graph_.n_blocks() == 1;
      if (block.movable) continue;
      if (value(v).input || !straight || !starts || value(v).foreign) block.first = -1;
      if (!value(v).input || !straight || is_output[v] || value(v).foreign) block.last = INT_MAX;
    }
  }

  // A result that the program planned over an operand that ends there stays with it.
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

  // The bytes of everything that may move, also of what is not computed any more.
  void find_room() {
    for (int v = 0; v < static_cast<int>(blocks_.size()); ++v) {
      const Block& block = blocks_[v];
      if (block.movable || (block.last < 0 && is_movable(v))) room_.push_back(block.range);
    }
    std::sort(room_.begin(), room_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
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

  // What a fused call reads and cannot be moved must not be written before the call.
  bool fixed_stay_intact() {
    const auto& nodes = graph_.nodes();
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      if (nodes[n].fused == nullptr || !nodes[n].live) continue;
      for (int v : nodes[n].inputs) {
        const int root = value(v).root;
        const Graph::Value& read = value(root);
        if (read.data == nullptr || read.constant || blocks_[root].movable) continue;
        int from = n;
        while (from > 0 && nodes[from - 1].block == nodes[n].block && from - 1 != read.def) --from;
        for (int w = from; w < n; ++w) {
          if (nodes[w].live && writes(nodes[w], root)) return false;
        }
        for (int o : nodes[n].outputs) {
          nodes[n].fused->bounce |= overlap(range_of(value(value(o).root)), range_of(read)) &&
                                    !blocks_[value(o).root].movable;
        }
      }
    }
    return true;
  }

  // Whether a node may write bytes of `root` through another value.
  bool writes(const Graph::Node& node, int root) const {
    const auto hits = [&](int v) {
      const int written = value(v).root;
      return written != root && value(written).data != nullptr && !value(written).constant &&
             !blocks_[written].movable && overlap(range_of(value(written)), range_of(value(root)));
    };
    return std::any_of(node.outputs.begin(), node.outputs.end(), hits) ||
           (!node.pure && !node.sealed &&
            std::any_of(node.inputs.begin(), node.inputs.end(), hits));
  }

  // The lowest place that nothing needs at the same time.
  bool place(Block& block) {
    for (const Range& room : room_) {
      const auto aligned = [](char* at) {
        const auto address = reinterpret_cast<uintptr_t>(at);
        return at + ((kAlignment - address % kAlignment) % kAlignment);
      };
      char* at = aligned(room.begin);
      for (bool moved = true; moved && fits(at, block, room);) {
        moved = false;
        for (const Block* other : placed_) {
          if (coexist(block, *other) && overlap({at, at + block.nbytes}, other->range)) {
            at = aligned(other->range.end);
            moved = true;
          }
        }
      }
      if (!fits(at, block, room)) continue;
      block.range = {at, at + block.nbytes};
      placed_.push_back(&block);
      return true;
    }
    return false;
  }
  bool allocate(Block& block) {
    auto* const bytes =
        static_cast<char*>(graph_.draft().allocator.allocate(block.nbytes, kAlignment));
    block.range = {bytes, bytes + block.nbytes};
    return bytes != nullptr;
  }
  static bool fits(char* at, const Block& block, const Range& room) {
    return at <= room.end && static_cast<size_t>(room.end - at) >= block.nbytes;
  }

  Graph& graph_;
  // One for each value; only those of roots are used.
  std::vector<Block> blocks_;
  std::vector<Range> room_;
  std::vector<const Block*> placed_;
};

}  // namespace

bool place_values(Graph& graph, std::vector<std::pair<int, char*>>& places) {
  return Planner(graph).run(places);
}

}  // namespace executorch::optimized
