// Adds nodes for views of static shape. These have no instruction in the file, because memory
// planning put both values at the same address.

#include <executorch/kernels/optimized/graph.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

void point_at(runtime::KernelRuntimeContext&, Span<EValue*> args) {
  const auto& base = *args[0]->toTensor().unsafeGetTensorImpl();
  args[1]->toTensor().unsafeGetTensorImpl()->borrow_data(base.mutable_data(), base.capacity(),
                                                         base.is_read_only());
}

}  // namespace

// An instruction of the program's own; a view of one is a new tensor on the same bytes, which does
// not write them.
void Graph::note_writes(LastWriters& writers, int n) const {
  const Node& node = nodes_[n];
  const bool tells = node.pure || node.delegate_call;
  if (node.op == "et_view.default") return;
  const auto note = [&](int v, bool known) {
    const Value& value = values_[v];
    if (value.data == nullptr || value.constant) return;
    writers.write(value.data, value.nbytes, {n, known ? v : -1});
  };
  if (node.written >= 0) return note(node.written, true);
  for (int v : tells ? node.outputs : node.inputs) note(v, tells);
}

// Finds values that are read although no node writes them, and the values that they are views of.
std::vector<Graph::StaticView> Graph::find_static_views() const {
  std::vector<StaticView> views;
  std::vector<bool> seen(values_.size());
  LastWriters writers;
  const auto read = [&](int v, int node) {
    const Value& value = values_[v];
    if (seen[v]) return;
    seen[v] = true;
    if (value.data == nullptr || value.constant || value.input || value.n_defs > 0) return;
    if (const auto view = find_base(writers, v, node)) views.push_back(*view);
  };
  const int end = static_cast<int>(nodes_.size());
  for (int n = 0; n < end; ++n) {
    for (int v : nodes_[n].inputs) read(v, n);
    note_writes(writers, n);
  }
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    if (values_[v].output) read(v, end);
  }
  return views;
}

// Finds the value that was written last to the bytes of `view` before its first use, in the same
// basic block. Inputs are written before the first one, if no jump leads back to it; what copies
// write, such as the result of a loop, lasts beyond a block.
std::optional<Graph::StaticView> Graph::find_base(const LastWriters& writers, int view,
                                                  int first_use) const {
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
  const int block = first_use < n_nodes ? nodes_[first_use].basic_block : n_basic_blocks_ - 1;
  const auto writer =
      writers.last(wanted.data, wanted.nbytes, [this](size_t steps) { effort_.spend(steps); });
  if (writer.node >= 0 &&
      (nodes_[writer.node].basic_block == block || nodes_[writer.node].copies)) {
    if (writer.value < 0 || writer.value == view || !fits(writer.value)) return std::nullopt;
    return StaticView{writer.node, writer.value, view};
  }
  const bool is_first =
      block == 0 && writer.node < 0 &&
      std::none_of(jumps_.begin(), jumps_.end(), [](const auto& jump) { return jump.second == 0; });
  for (int32_t v : draft_.inputs) {
    if (!is_first) break;
    effort_.spend(1);
    if (values_[v].value->isTensor() && overlaps(v) && fits(v)) return StaticView{-1, v, view};
  }
  return std::nullopt;
}

bool Graph::add_static_view(const StaticView& view, std::vector<Node>& nodes) const {
  auto* const instruction = draft_.allocator.allocateInstance<Instruction>();
  auto** const args = draft_.allocator.allocateList<EValue*>(2);
  if (instruction == nullptr || args == nullptr) return false;
  args[0] = values_[view.base].value;
  args[1] = values_[view.view].value;
  *instruction = {Instruction::Kind::Kernel, false, false, 0, point_at, {args, 2}};
  Node node;
  node.instruction = instruction;
  node.op = node.name = "static_view";
  node.block = nodes.empty() ? 0 : nodes.back().block;
  node.basic_block = nodes.empty() ? 0 : nodes.back().basic_block;
  node.pure = true;
  node.inputs = {view.base};
  node.outputs = {view.view};
  nodes.push_back(std::move(node));
  return true;
}

bool Graph::insert_static_views(std::vector<StaticView> views) {
  if (views.empty()) return true;
  std::stable_sort(views.begin(), views.end(),
                   [](const StaticView& a, const StaticView& b) { return a.behind < b.behind; });
  std::vector<Node> nodes;
  nodes.reserve(nodes_.size() + views.size());
  auto next = views.begin();
  for (int n = -1; n < static_cast<int>(nodes_.size()); ++n) {
    for (; next != views.end() && next->behind == n; ++next) {
      if (!add_static_view(*next, nodes)) return false;
    }
    if (n + 1 < static_cast<int>(nodes_.size())) nodes.push_back(std::move(nodes_[n + 1]));
  }
  nodes_ = std::move(nodes);
  for (Value& value : values_) value.n_defs = 0;
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) define(n);
  return true;
}

}  // namespace executorch::optimized
