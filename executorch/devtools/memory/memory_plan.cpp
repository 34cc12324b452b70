#include <executorch/devtools/memory/memory_plan.h>
#include <executorch/exir/native/offset_planner.h>

#include <algorithm>
#include <limits>
#include <map>

namespace executorch::devtools {
namespace {

constexpr size_t kLargest = 5;
// The exporter's alignment of planned tensors, in bytes.
constexpr uint64_t kAlignment = 16;
// Planning takes time with the square of the number of tensors, so no more than these are planned
// anew.
constexpr size_t kMostReplanned = 4096;
// The most mentions of values by instructions, directly or as entries of lists, that are read.
constexpr size_t kMostMentions = 4u << 20;
// The most entries in the tables of bytes in use, one for each arena and step.
constexpr size_t kMostLive = 16u << 20;
// If a method has more loops, they are treated as a single one around all of them.
constexpr size_t kMostLoops = 256;

struct Interval {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  void add(int64_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
  bool empty() const { return last < 0; }
};

/// The steps from the first to the last mention of each value of a method.
class Lifetimes {
 public:
  explicit Lifetimes(const Json& method)
      : name_(method["name"].get<std::string>()),
        values_(method["values"]),
        lives_(values_.size()),
        base_(values_.size()) {
    for (size_t i = 0; i < base_.size(); ++i) base_[i] = static_cast<int64_t>(i);
    int64_t step = 0;
    for (const Json& chain : method["chains"]) {
      const int64_t begin = step;
      for (const Json& instruction : chain) add(instruction, begin, ++step);
    }
    end_ = step;
    for (const Json& input : method["inputs"]) mention(input, 0, true);
    for (const Json& output : method["outputs"]) mention(output, end_ + 1);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].contains("initial_state")) {
        lives_[i].add(0);
        lives_[i].add(end_ + 1);
      }
    }
    extend_over_loops();
  }

  const Interval& of(size_t value) const { return lives_[value]; }
  /// The last step: the one after the last instruction.
  int64_t end() const { return end_ + 1; }

 private:
  void count_mention(size_t n = 1) {
    n_mentions_ += n;
    if (n_mentions_ > kMostMentions) {
      throw InspectError{"method " + name_ +
                         ": its instructions name more values than can be told"};
    }
  }

  void mention(const Json& index, int64_t step, bool writes = false) {
    const auto value = index.get<int64_t>();
    if (value < 0) return;
    count_mention();
    const Json& entry = values_[static_cast<size_t>(value)];
    Interval& life = lives_[static_cast<size_t>(base_[static_cast<size_t>(value)])];
    const bool is_new = life.empty();
    life.add(step);
    if (entry.contains("memory")) {
      // A value whose first mention does not write it is a view of the value at the same place.
      const auto [last, is_free] = last_at_.try_emplace({entry["memory"], entry["offset"]}, value);
      if (is_new && !is_free && !writes)
        life.first = lives_[static_cast<size_t>(last->second)].last;
      last->second = value;
    }
    const bool has_items = entry["type"] == "TensorList" || entry["type"] == "OptionalTensorList";
    for (const Json& item : has_items ? entry["items"] : Json::array()) mention(item, step, writes);
  }

  // Whether a kernel writes `value`: it is the last argument, an entry of it, or a list with the
  // same entries.
  bool is_written(const Json& value, const Json& last) {
    const auto index = last.get<int64_t>();
    if (value == last || index < 0) return value == last;
    const Json& out = values_[static_cast<size_t>(index)];
    if (out["type"] != "TensorList" || value.get<int64_t>() < 0) return false;
    const Json& items = out["items"];
    count_mention(items.size());
    const Json& given = values_[value.get<size_t>()];
    return std::find(items.begin(), items.end(), value) != items.end() ||
           (given["type"] == "TensorList" && given["items"] == items);
  }

  void add(const Json& instruction, int64_t chain_begin, int64_t step) {
    const auto type = instruction["type"].get<std::string>();
    if (type == "kernel" && instruction["operator"] == "executorch_prim::et_view.default" &&
        instruction["args"].size() >= 2) {
      const auto view = instruction["args"].back().get<int64_t>();
      const auto source = instruction["args"][0].get<int64_t>();
      if (view >= 0 && source >= 0 && !values_[static_cast<size_t>(view)].contains("memory")) {
        base_[static_cast<size_t>(view)] = base_[static_cast<size_t>(source)];
      }
    }
    if (type == "kernel" || type == "delegate") {
      // A kernel writes its last argument. Which arguments a delegate writes is not known.
      const Json& args = instruction["args"];
      for (const Json& value : args) {
        mention(value, step, type == "delegate" || is_written(value, args.back()));
      }
    } else if (type == "move") {
      mention(instruction["from"], step);
      mention(instruction["to"], step);
    } else if (type == "jump_if_false") {
      mention(instruction["condition"], step);
      const int64_t target = chain_begin + instruction["destination"].get<int64_t>() + 1;
      if (target <= step) loops_.push_back({target, step});
    }
  }

  // Extends the lifetime of values from outside a loop to the loop's end. loops_ has inner loops
  // before outer ones, since they end first.
  void extend_over_loops() {
    if (loops_.size() > kMostLoops) {
      std::pair<int64_t, int64_t> all = loops_[0];
      for (const auto& [begin, end] : loops_) {
        all = {std::min(all.first, begin), std::max(all.second, end)};
      }
      loops_ = {all};
    }
    for (const auto& [begin, end] : loops_) {
      for (Interval& life : lives_) {
        const bool outlives_entry = life.first < begin && life.last >= begin;
        if (!life.empty() && outlives_entry) life.last = std::max(life.last, end);
      }
    }
  }

  const std::string name_;
  const Json& values_;
  size_t n_mentions_ = 0;
  std::vector<Interval> lives_;
  std::vector<int64_t> base_;
  /// (memory id, offset) -> the value there that was mentioned last.
  std::map<std::pair<int64_t, int64_t>, int64_t> last_at_;
  std::vector<std::pair<int64_t, int64_t>> loops_;
  int64_t end_ = 0;
};

std::string type_text(const Json& value) {
  return value["dtype"].get<std::string>() + " " + value["sizes"].dump();
}

std::string operator_of(const Json& method, const Json& instruction) {
  const std::string type = instruction["type"];
  if (type == "delegate") return method["delegates"][instruction["delegate"].get<size_t>()]["id"];
  return type == "kernel" ? instruction["operator"].get<std::string>() : type;
}

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

exir::Block block_of(const PlannedTensor& tensor) {
  return {aligned(tensor.bytes), tensor.first, tensor.last};
}

// Merges tensors that have the same offset at the same time (a tensor and its views) into one block
// for the planner.
std::vector<exir::Block> blocks_without(const MemoryArena& arena, size_t left_out) {
  std::vector<exir::Block> blocks;
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < arena.tensors.size(); ++i) {
    const PlannedTensor& tensor = arena.tensors[i];
    if (i == left_out || tensor.bytes == 0) continue;
    const exir::Block block = block_of(tensor);
    bool merged = false;
    for (size_t b = 0; b < blocks.size() && !merged; ++b) {
      if (offsets[b] == tensor.offset && live_together(blocks[b], block)) {
        blocks[b] = {std::max(blocks[b].size, block.size), std::min(blocks[b].first, block.first),
                     std::max(blocks[b].last, block.last)};
        merged = true;
      }
    }
    if (!merged) {
      blocks.push_back(block);
      offsets.push_back(tensor.offset);
    }
  }
  return blocks;
}

uint64_t plan_without(const MemoryArena& arena, size_t left_out) {
  const auto blocks = blocks_without(arena, left_out);
  return blocks.empty() ? 0 : exir::plan_best(blocks).total;
}

/// Counts the addresses in the union of a changing set of ranges: a segment tree over the ranges'
/// ends, so that adding or removing one takes logarithmic time.
class Coverage {
 public:
  explicit Coverage(std::vector<uint64_t> ends) : ends_(std::move(ends)) {
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    nodes_.resize(4 * std::max<size_t>(ends_.size(), 1));
  }

  /// `count`: 1 or -1. `begin` and `end` are among the ends.
  void add(uint64_t begin, uint64_t end, int count) {
    if (begin < end) add(0, 0, ends_.size() - 1, begin, end, count);
  }
  uint64_t covered() const { return nodes_[0].covered; }

 private:
  struct Node {
    int64_t count = 0;  ///< of ranges that cover all of it, but not of its parent
    uint64_t covered = 0;
  };

  void add(size_t at, size_t first, size_t last, uint64_t begin, uint64_t end, int count) {
    Node& node = nodes_[at];
    if (end <= ends_[first] || ends_[last] <= begin) return;
    if (begin <= ends_[first] && ends_[last] <= end) {
      node.count += count;
    } else {
      const size_t middle = (first + last) / 2;
      add(2 * at + 1, first, middle, begin, end, count);
      add(2 * at + 2, middle, last, begin, end, count);
    }
    node.covered = node.count > 0      ? ends_[last] - ends_[first]
                   : last - first <= 1 ? 0
                                       : nodes_[2 * at + 1].covered + nodes_[2 * at + 2].covered;
  }

  std::vector<uint64_t> ends_;
  std::vector<Node> nodes_;
};

uint64_t end_of(const PlannedTensor& tensor) {
  uint64_t end = 0;
  return __builtin_add_overflow(tensor.offset, tensor.bytes, &end) ? UINT64_MAX : end;
}

std::vector<uint64_t> live_bytes(const std::vector<PlannedTensor>& tensors, int64_t n_steps) {
  std::vector<uint64_t> ends;
  // For each step, the tensors whose lifetime begins then, and those whose lifetime ended one step
  // before.
  std::vector<std::vector<size_t>> begin(static_cast<size_t>(n_steps) + 1), end = begin;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ends.push_back(tensors[i].offset);
    ends.push_back(end_of(tensors[i]));
    begin[static_cast<size_t>(tensors[i].first)].push_back(i);
    end[static_cast<size_t>(tensors[i].last) + 1].push_back(i);
  }
  Coverage coverage(std::move(ends));
  std::vector<uint64_t> live;
  for (size_t step = 0; step + 1 < begin.size(); ++step) {
    for (const size_t i : end[step]) coverage.add(tensors[i].offset, end_of(tensors[i]), -1);
    for (const size_t i : begin[step]) coverage.add(tensors[i].offset, end_of(tensors[i]), 1);
    live.push_back(coverage.covered());
  }
  return live;
}

void measure(MemoryArena& arena, int64_t n_steps) {
  arena.live_bytes = live_bytes(arena.tensors, n_steps);
  const auto peak = std::max_element(arena.live_bytes.begin(), arena.live_bytes.end());
  if (peak != arena.live_bytes.end() && *peak > 0) {
    arena.peak_bytes = *peak;
    arena.peak_step = peak - arena.live_bytes.begin();
  }
  if (arena.tensors.size() > kMostReplanned) return;
  std::vector<size_t> order(arena.tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto at_peak = [&](const PlannedTensor& t) {
    return t.first <= arena.peak_step && arena.peak_step <= t.last;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto &x = arena.tensors[a], &y = arena.tensors[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : at_peak(x) && !at_peak(y);
  });
  arena.replanned = plan_without(arena, order.size());
  for (size_t i = 0; i < std::min(kLargest, order.size()); ++i) {
    arena.without.push_back({order[i], plan_without(arena, order[i])});
  }
}

}  // namespace

MemoryPlan read_memory_plan(const Json& method) {
  MemoryPlan plan;
  plan.method = method["name"];
  const Lifetimes lives(method);
  plan.n_steps = lives.end() + 1;
  plan.operators.push_back("");
  std::vector<std::string> modules = {""};
  for (const Json& chain : method["chains"]) {
    for (const Json& instruction : chain) {
      plan.operators.push_back(operator_of(method, instruction));
      modules.push_back(instruction.value("module", ""));
    }
  }
  plan.operators.push_back("");
  modules.push_back("");
  std::map<Json, size_t> places;
  for (const Json& memory : method["memory"]) {
    places[memory["id"]] = plan.arenas.size();
    plan.arenas.push_back({.id = memory["id"], .bytes = memory["bytes"]});
  }
  if (plan.arenas.size() > kMostLive / static_cast<size_t>(plan.n_steps)) {
    throw InspectError{"method " + plan.method + ": " + std::to_string(plan.arenas.size()) +
                       " arenas in " + std::to_string(plan.n_steps) +
                       " steps are more than can be told"};
  }
  for (size_t i = 0; i < method["values"].size(); ++i) {
    const Json& value = method["values"][i];
    if (value["type"] != "Tensor" || !value.contains("memory")) continue;
    PlannedTensor tensor{.value = static_cast<int64_t>(i)};
    const Interval& life = lives.of(i);
    tensor.first = life.empty() ? 0 : life.first;
    tensor.last = life.empty() ? 0 : life.last;
    tensor.type = type_text(value);
    tensor.offset = value["offset"];
    tensor.bytes = value["bytes"];
    const auto step = static_cast<size_t>(tensor.first);
    tensor.module = modules[step];
    tensor.name = value.contains("name") ? value["name"].get<std::string>()
                  : step == 0            ? "input"
                                         : plan.operators[step];
    const auto arena = places.find(value["memory"]);
    if (arena != places.end()) plan.arenas[arena->second].tensors.push_back(std::move(tensor));
  }
  for (MemoryArena& arena : plan.arenas) measure(arena, plan.n_steps);
  return plan;
}

}  // namespace executorch::devtools
