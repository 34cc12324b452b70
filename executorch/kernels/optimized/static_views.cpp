// Views of static shape have no instruction in the file: memory planning put two values at one
// place. They become nodes of the graph.

#include <executorch/kernels/optimized/graph.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

void point_at(runtime::KernelRuntimeContext&, Span<EValue*> args) {
  args[1]->toTensor().unsafeGetTensorImpl()->set_data(args[0]->toTensor().mutable_data_ptr());
}

}  // namespace

// Values that are read though nothing writes them.
std::vector<Graph::StaticView> Graph::find_static_views() const {
  std::vector<StaticView> views;
  std::vector<bool> seen(values_.size());
  const auto read = [&](int v, int node) {
    const Value& value = values_[v];
    if (seen[v]) return;
    seen[v] = true;
    if (value.data == nullptr || value.constant || value.input || value.n_defs > 0) return;
    if (const auto view = find_base(v, node)) views.push_back(*view);
  };
  const int end = static_cast<int>(nodes_.size());
  for (int n = 0; n < end; ++n) {
    for (int v : nodes_[n].inputs) read(v, n);
  }
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    if (values_[v].output) read(v, end);
  }
  return views;
}

// What wrote the bytes of `view` last before its first use.
std::optional<Graph::StaticView> Graph::find_base(int view, int first_use) const {
  const Value& wanted = values_[view];
  const auto overlaps = [&](int v) {
    const Value& value = values_[v];
    return value.data != nullptr && !value.constant && value.data < wanted.data + wanted.nbytes &&
           wanted.data < value.data + value.nbytes;
  };
  const auto fits = [&](int v) {
    const Value& value = values_[v];
    return value.data == wanted.data && value.nbytes == wanted.nbytes &&
           tensor(v).scalar_type() == tensor(view).scalar_type() && default_order(tensor(v)) &&
           default_order(tensor(view));
  };
  const int n_nodes = static_cast<int>(nodes_.size());
  const int block = first_use < n_nodes ? nodes_[first_use].block : n_blocks_ - 1;
  for (int n = first_use - 1; n >= 0 && nodes_[n].block == block; --n) {
    for (int v : nodes_[n].outputs) {
      if (!overlaps(v) || nodes_[n].op == "et_view.default") continue;
      if (!fits(v)) return std::nullopt;
      return StaticView{n, v, view};
    }
    const bool may_write = !nodes_[n].pure && !nodes_[n].sealed &&
                           std::any_of(nodes_[n].inputs.begin(), nodes_[n].inputs.end(), overlaps);
    if (may_write) return std::nullopt;
  }
  for (int32_t v : draft_.inputs) {
    if (n_blocks_ == 1 && values_[v].value->isTensor() && overlaps(v) && fits(v)) {
      return StaticView{-1, v, view};
    }
  }
  return std::nullopt;
}

bool Graph::insert_static_views(const std::vector<StaticView>& views) {
  std::vector<Node> nodes;
  const auto insert_behind = [&](int behind) {
    for (const StaticView& view : views) {
      if (view.behind != behind) continue;
      auto* const instruction = draft_.allocator.allocateInstance<Instruction>();
      auto** const args = draft_.allocator.allocateList<EValue*>(2);
      if (instruction == nullptr || args == nullptr) return false;
      args[0] = values_[view.base].value;
      args[1] = values_[view.view].value;
      *instruction = {Instruction::Kind::Kernel, false, false, 0, point_at, {args, 2}};
      Node node;
      node.instruction = instruction;
      node.op = node.name = "static_view";
      node.block = behind < 0 ? 0 : nodes_[behind].block;
      node.pure = true;
      node.inputs = {view.base};
      node.outputs = {view.view};
      nodes.push_back(std::move(node));
    }
    return true;
  };
  if (!insert_behind(-1)) return false;
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
    nodes.push_back(nodes_[n]);
    if (!insert_behind(n)) return false;
  }
  nodes_ = std::move(nodes);
  for (Value& value : values_) value.n_defs = 0;
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) define(n);
  return true;
}

}  // namespace executorch::optimized
