#include <executorch/kernels/optimized/fusion.h>
#include <executorch/kernels/optimized/memory.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/executor/method_rewriter.h>

#include <atomic>
#include <mutex>
#include <set>

namespace executorch::optimized {
namespace {

std::atomic<bool> enabled{true};
std::mutex report_mutex;
std::string report;

// Makes readers of a copy that changes neither the elements nor their order read its source
// instead.
void forward_copies(Graph& graph) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const auto& node = graph.nodes()[n];
    if (!node.live || !graph.deferrable(n) || node.outputs.size() != 1) continue;
    const int out = graph.out(n);
    const auto step = graph.step(n, out);
    if (!step.has_value() || step->kind != Step::Kind::Same || !graph.interior(out, node.block)) {
      continue;
    }
    const int in = graph.arg_id(n, 0);
    const auto a = graph.tensor(in).dim_order(), b = graph.tensor(out).dim_order();
    // An input may have no bytes yet, so that its reader's arguments have none.
    const bool is_same = a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
    if (is_same) graph.forward(out, in);
  }
  graph.finish_forwards();
}

/// Turns the matches into instructions. All allocations come first. Until they have succeeded, it
/// makes no change that the destructor of the graph does not take back.
class Rewriter {
 public:
  explicit Rewriter(const MethodDraft& draft) : arena_(draft.allocator), graph_(draft) {}

  void run() {
    if (!graph_.ok()) return;
    fuse_recurrent(graph_, arena_);
    forward_copies(graph_);
    fuse_attention(graph_, arena_);
    fuse_norm(graph_, arena_);
    fuse_rotary(graph_, arena_);
    fuse_put(graph_, arena_);
    fuse_gather(graph_, arena_);
    graph_.refresh();
    fuse_linear(graph_, arena_);
    fuse_convolution(graph_, arena_);
    drop_pool_indices(graph_, arena_);
    graph_.refresh();
    select_rows(graph_, arena_);
    graph_.refresh();
    fuse_convolution_chains(graph_, arena_);
    fuse_elementwise(graph_, arena_);
    graph_.refresh();
    for (int n = 0; n < n_nodes(); ++n) {
      if (node(n).live && node(n).fused != nullptr) prepare(n);
    }
    Placement placement;
    if (!arena_.ok() || !place_values(graph_, placement)) {
      text_ = "nothing fused: values cannot be placed\n";
      return;
    }
    const runtime::Temporaries temporaries = copy_temporaries(placement);
    describe();
    // Nothing can fail from here on.
    graph_.keep_forwards();
    for (const auto& [value, address] : placement.addresses) {
      graph_.tensor(value).unsafeGetTensorImpl()->set_data(address);
    }
    for (int n = 0; n < n_nodes(); ++n) commit(n);
    graph_.draft().temporaries = temporaries;
  }

  const std::string& text() const { return text_; }

 private:
  struct Prepared {
    int node;
    Span<EValue*> args;
    std::string operators;
  };

  int n_nodes() const { return static_cast<int>(graph_.nodes().size()); }
  Graph::Node& node(int n) { return graph_.nodes()[n]; }

  // Collects the instructions that node `root` replaces: itself, and those whose results only they
  // or other fused nodes need. `leaves` are the values that these instructions read.
  void collect(int root, std::set<int>& originals, std::set<int>& leaves) {
    std::vector<int> to_visit = {root};
    while (!to_visit.empty()) {
      const int n = to_visit.back();
      to_visit.pop_back();
      graph_.effort().spend(32);
      if (!originals.insert(n).second) continue;
      const auto& outputs = node(n).outputs;
      for (int v : graph_.ids_of(node(n).instruction->args)) {
        const int def = graph_.def(v);
        if (std::find(outputs.begin(), outputs.end(), v) != outputs.end()) continue;
        if (def >= 0 && !node(def).live && def < n) {
          to_visit.push_back(def);
        } else {
          leaves.insert(v);
        }
      }
    }
  }

  void prepare(int n) {
    std::set<int> nodes, leaves;
    collect(n, nodes, leaves);
    FusedCall& call = *node(n).fused;
    std::vector<Original> originals;
    std::vector<uint32_t> numbers;
    std::vector<EValue*> intermediates;
    Prepared prepared{n, {}, {}};
    for (int i : nodes) {
      const char* const op = arena_.copy(std::string(node(i).name));
      originals.push_back(
          {op, node(i).number, node(i).instruction->kernel, node(i).instruction->args});
      if (node(i).number >= 0) numbers.push_back(static_cast<uint32_t>(node(i).number));
      prepared.operators.append(prepared.operators.empty() ? "" : " ").append(node(i).name);
      for (int v : node(i).outputs) {
        const bool has_bytes = graph_.is_tensor(v) && graph_.values()[v].root == v;
        if (has_bytes && (i != n || graph_.values()[v].value != call.out)) {
          intermediates.push_back(graph_.values()[v].value);
        }
      }
    }
    const auto copied = arena_.copy(originals);
    call.traced_name = arena_.copy(std::string("native_call_") + call.name);
    call.originals = {copied.data(), copied.size()};
    call.intermediates = arena_.copy(intermediates);
    const auto copied_numbers = arena_.copy(numbers);
    call.numbers = {copied_numbers.data(), copied_numbers.size()};
    // Its arguments keep the values that it reads alive until it runs.
    std::vector<EValue*> args = {arena_.make<EValue>()};
    if (args[0] == nullptr) return;
    *args[0] = EValue(static_cast<int64_t>(reinterpret_cast<intptr_t>(&call)));
    for (int v : node(n).inputs) leaves.erase(v);
    node(n).inputs.insert(node(n).inputs.end(), leaves.begin(), leaves.end());
    for (int v : node(n).inputs) {
      if (graph_.is_tensor(v)) args.push_back(graph_.values()[v].value);
    }
    args.push_back(call.out);
    prepared.args = arena_.copy(args);
    prepared_.push_back(std::move(prepared));
  }

  void describe() {
    for (const Prepared& call : prepared_) {
      text_.append(std::to_string(node(call.node).number)).append(": ");
      text_.append(node(call.node).fused->name).append(" <- ").append(call.operators).append("\n");
    }
  }

  void commit(int n) {
    Instruction& instruction = *node(n).instruction;
    if (graph_.is(n, "static_view")) {
      const char* const bytes = graph_.tensor(graph_.arg_id(n, 0)).const_data_ptr<char>();
      graph_.tensor(graph_.out(n)).unsafeGetTensorImpl()->set_data(const_cast<char*>(bytes));
      return;
    }
    if (!node(n).live) {
      instruction.kind = Instruction::Kind::Skip;
      return;
    }
    if (committed_ == prepared_.size() || prepared_[committed_].node != n) return;
    const Prepared& call = prepared_[committed_++];
    instruction.kernel = run_fused;
    instruction.traces_itself = true;
    instruction.points_last_argument = false;
    instruction.args = call.args;
  }

  runtime::Temporaries copy_temporaries(const Placement& placement) {
    std::vector<const aten::TensorImpl*> tensors;
    for (const auto& [value, address] : placement.addresses) {
      tensors.push_back(graph_.tensor(value).unsafeGetTensorImpl());
    }
    const auto copied = arena_.copy(tensors);
    const auto memory = arena_.copy(placement.temporary);
    if (!arena_.ok()) return {};
    return {{memory.data(), memory.size()}, {copied.data(), copied.size()}};
  }

  Arena arena_;
  Graph graph_;
  std::vector<Prepared> prepared_;  // in the order of nodes
  size_t committed_ = 0;            // of them
  std::string text_;
};

std::string fuse(const MethodDraft& draft) {
  try {
    Rewriter rewriter(draft);
    rewriter.run();
    return rewriter.text();
  } catch (const TooMuchEffort&) {
    return "nothing fused: it would take too long\n";
  }
}

/// The method rewriter, which the runtime calls. It throws nothing; if memory runs out, the method
/// stays as it is.
void rewrite(const MethodDraft& draft) {
  std::string text;
  if (enabled) {
    (void)runtime::catch_allocation_failure("fusion", [&] {
      text = fuse(draft);
      return runtime::Error::Ok;
    });
  }
  const std::lock_guard lock(report_mutex);
  report = std::move(text);
}

int add_rewriter() {
  runtime::set_method_rewriter(rewrite);
  return 1;
}

}  // namespace

bool set_fusion_enabled(bool value) {
  return enabled.exchange(value);
}

std::string last_fusion() {
  const std::lock_guard lock(report_mutex);
  return report;
}

bool describe_fused(const runtime::Instruction& instruction, runtime::Rewritten& out) {
  if (instruction.kind != Instruction::Kind::Kernel || instruction.kernel != run_fused) {
    return false;
  }
  const FusedCall& call = fused_call(instruction.args);
  out = {call.name, call.numbers};
  return true;
}

}  // namespace executorch::optimized

extern "C" int et_fusion_registered;
int et_fusion_registered = executorch::optimized::add_rewriter();
