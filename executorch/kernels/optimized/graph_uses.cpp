// Tracks which nodes are live and which nodes read a value, while nodes are replaced.
#include <executorch/kernels/optimized/graph.h>

#include <algorithm>

namespace executorch::optimized {

bool Graph::is_needed(const Node& node) const {
  if (node.removed) return false;
  bool needed = !node.pure || node.outputs.empty();
  for (int v : node.outputs) needed |= values_[v].output || !values_[v].uses.empty() || !stable(v);
  return needed;
}

void Graph::find_uses() {
  for (Value& value : values_) value.uses.clear();
  for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
    nodes_[i].live = is_needed(nodes_[i]);
    for (int v : nodes_[i].inputs) {
      if (nodes_[i].live) values_[v].uses.push_back(i);
    }
  }
  for (Value& value : values_) std::reverse(value.uses.begin(), value.uses.end());
}

void Graph::remove_use(int v, int n, std::vector<int>& unused) {
  auto& uses = values_[v].uses;
  const auto found = std::lower_bound(uses.begin(), uses.end(), n);
  if (found == uses.end() || *found != n) return;
  effort_.spend(1 + static_cast<size_t>(uses.end() - found) / 16);
  uses.erase(found);
  if (uses.empty() && values_[v].def >= 0) unused.push_back(values_[v].def);
}

// Adds node n to the readers of value v. Returns false if the node that writes v is not live.
bool Graph::add_use(int v, int n) {
  auto& uses = values_[v].uses;
  const auto place = std::lower_bound(uses.begin(), uses.end(), n);
  if (place != uses.end() && *place == n) return true;
  effort_.spend(1 + static_cast<size_t>(uses.end() - place) / 16);
  uses.insert(place, n);
  return values_[v].def < 0 || nodes_[values_[v].def].live;
}

void Graph::refresh() {
  std::vector<int> unused;
  bool all_live = true;
  for (const auto& [n, before] : replaced_) {
    if (!nodes_[n].live) continue;
    seen_.clear();
    for (int v : nodes_[n].inputs) {
      seen_.insert(v);
      all_live &= add_use(v, n);
    }
    for (int v : before) {
      if (!seen_.contains(v)) remove_use(v, n, unused);
    }
  }
  replaced_.clear();
  while (!unused.empty()) {
    Node& node = nodes_[unused.back()];
    const int n = unused.back();
    unused.pop_back();
    if (!node.live || is_needed(node)) continue;
    node.live = false;
    for (int v : node.inputs) remove_use(v, n, unused);
  }
  if (!all_live) find_uses();
}

void Graph::replace(int n, FusedCall* call, const std::vector<int>& inputs) {
  Node& node = nodes_[n];
  std::vector<EValue*> values;
  for (int v : inputs) values.push_back(values_[v].value);
  std::vector<int> now = ids_of({values.data(), values.size()});
  replaced_.emplace_back(n, node.inputs);
  node.fused = call;
  node.inputs = std::move(now);
}

bool Graph::repeats_block(int n) const {
  const Instruction& jump = *nodes_[n].instruction;
  if (jump.kind != Instruction::Kind::JumpFalse) return false;
  const int block = nodes_[n].basic_block;
  const auto leads_here = [&](const auto& each) { return each.second == block; };
  effort_.spend(jumps_.size());
  return std::count(jumps_.begin(), jumps_.end(), std::pair(block, block)) == 1 &&
         std::count_if(jumps_.begin(), jumps_.end(), leads_here) == 1;
}

void Graph::replace_loop(int first, int last, int node, FusedCall* call,
                         const std::vector<int>& inputs) {
  for (int n = first; n <= last; ++n) nodes_[n].removed = n != node;
  nodes_[node].fused = call;
  nodes_[node].inputs = inputs;
  find_uses();
}

bool Graph::forward(int from, int to) {
  EValue* const old = values_[from].value;
  EValue* const made = values_[to].value;
  const std::vector<int>& uses = values_[from].uses;
  const bool is_carried = values_[values_[to].root].carried;
  for (int n : uses) {
    const auto args = nodes_[n].instruction->args;
    if (nodes_[n].fused != nullptr || !nodes_[n].pure) return false;
    if (is_carried && nodes_[n].block != nodes_[values_[from].def].block) return false;
    bool direct = false, in_list = false;
    for (const EValue* arg : args) {
      effort_.spend(1);
      direct |= arg == old;
      for_each_item(*arg, [&](EValue* item) {
        effort_.spend(1);
        in_list |= item == old;
      });
    }
    if (!direct || in_list) return false;
  }
  for (int n : uses) {
    for (EValue*& arg : nodes_[n].instruction->args) {
      if (arg != old) continue;
      forwards_.emplace_back(&arg, arg);
      arg = made;
    }
    auto& inputs = nodes_[n].inputs;
    effort_.spend(inputs.size());
    std::erase(inputs, from);
    if (std::find(inputs.begin(), inputs.end(), to) == inputs.end()) inputs.push_back(to);
  }
  return true;
}

void Graph::finish_forwards() {
  if (forwards_.empty()) return;
  find_roots();
  find_uses();
}

}  // namespace executorch::optimized
