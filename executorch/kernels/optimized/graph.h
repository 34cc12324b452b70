/// A method's instructions as a graph, while it is being loaded.
#pragma once

#include <executorch/kernels/optimized/effort.h>
#include <executorch/kernels/optimized/fused_call.h>
#include <executorch/kernels/optimized/last_writers.h>
#include <executorch/kernels/optimized/view.h>
#include <executorch/runtime/executor/method_rewriter.h>

#include <optional>
#include <string_view>
#include <vector>

namespace executorch::optimized {

using runtime::Instruction;
using runtime::MethodDraft;

/// Whether dims lie in memory in their order.
bool default_order(const Tensor& tensor);

/// The items of a value that is a list.
template <typename F>
void for_each_item(const EValue& value, const F& f) {
  const auto& payload = value.payload.copyable_union;
  const auto all = [&](const auto& items) {
    for (EValue* item : items) {
      if (item != nullptr) f(item);
    }
  };
  if (value.isIntList()) all(payload.as_int_list_ptr->values());
  if (value.isTensorList()) all(payload.as_tensor_list_ptr->values());
  if (value.isListOptionalTensor()) all(payload.as_list_optional_tensor_ptr->values());
}

/// A set of small numbers that is emptied at once.
class Seen {
 public:
  explicit Seen(size_t n) : marks_(n) {}
  void clear() { ++now_; }
  bool contains(int i) const { return marks_[static_cast<size_t>(i)] == now_; }
  /// False if it was there.
  bool insert(int i) {
    if (contains(i)) return false;
    marks_[static_cast<size_t>(i)] = now_;
    return true;
  }

 private:
  std::vector<size_t> marks_;
  size_t now_ = 1;
};

/// Nodes are the instructions in the order of the file, values those of the method, both by number.
/// Views of static shape have no instruction: two values are planned at one place. The graph has
/// nodes of its own for them, "static_view", behind the node that defines the first.
///   pure    an operator of ours that only writes its outputs, from its inputs alone
///   stable  a value that has, wherever it can be read, what its one definition gave it, and that
///           memory planning may not have given to something else on purpose: constants, inputs
///           that nothing writes, results of pure nodes that only pure nodes of one basic block see
///   sealed  a call of a delegate: it reads its inputs and writes its outputs, in a way of its own
///   update  index_put_ of ours: it reads its arguments and writes a part of the first. A buffer of
///           the program that one update of a block writes before all that read it is stable too,
///           though it is never interior and stays where it is.
/// Arguments of all other nodes are `foreign`: nothing is known about them.
/// Its functions throw std::bad_alloc, and TooMuchEffort; instructions are then as they were once
/// the graph is destroyed.
class Graph {
 public:
  /// Of the chain that strip() follows from one value; a longer one ends there.
  static constexpr size_t kMostSteps = 64;

  struct Node {
    /// Of a static view one that this graph made, with the arguments base and view.
    Instruction* instruction = nullptr;
    /// The instruction's index in its chain of the program; -1 for a static view.
    int number = -1;
    /// "addmm.out" for "aten::addmm.out", if the arguments fit the operator (signature.h); else
    /// empty.
    std::string_view op;
    /// The same without that condition.
    std::string_view name;
    /// Basic blocks are numbered in the order of the program.
    int block = 0;
    bool pure = false;
    bool sealed = false;
    /// False once nothing needs its outputs.
    bool live = true;
    /// Of an update: the value that it writes; else -1.
    int written = -1;
    /// What replaced it; else null.
    FusedCall* fused = nullptr;
    /// Values that it reads and writes, each once, items of lists too.
    std::vector<int> inputs;
    std::vector<int> outputs;
  };
  struct Value {
    EValue* value = nullptr;
    /// The node that writes it, -1 if none does, and how many do.
    int def = -1;
    int n_defs = 0;
    /// The update that writes this buffer before all nodes that read it; -1 if there is none.
    int updated = -1;
    bool constant = false;
    bool input = false;
    bool output = false;
    bool foreign = false;
    /// Whether it is an argument of a node, or an item of one.
    bool mentioned = false;
    /// The value whose bytes it shares: itself, or the base of a view.
    int root = -1;
    /// A tensor's address, and the bytes of its largest size, when the method is loaded.
    char* data = nullptr;
    size_t nbytes = 0;
    /// The live nodes that read it, in order, each once.
    std::vector<int> uses;
  };
  /// The value `base`, read through views: an Operand whose steps are not yet in the method's
  /// memory.
  struct Chain {
    int base = -1;
    std::vector<Step> steps;
  };

  explicit Graph(const MethodDraft& draft);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  /// False if the method's memory was too small to look at it.
  bool ok() const { return ok_; }

  const MethodDraft& draft() const { return draft_; }
  Effort& effort() const { return effort_; }
  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  int n_blocks() const { return n_blocks_; }
  int id(const EValue* value) const { return static_cast<int>(value - draft_.values.data()); }

  bool is(int node, std::string_view op) const { return node >= 0 && nodes_[node].op == op; }
  /// Whether its output has the bytes of its input.
  bool is_view(int node) const { return is(node, "et_view.default") || is(node, "static_view"); }
  EValue* arg(int node, size_t i) const { return nodes_[node].instruction->args[i]; }
  int arg_id(int node, size_t i) const { return id(arg(node, i)); }
  size_t n_args(int node) const { return nodes_[node].instruction->args.size(); }
  /// The first output.
  int out(int node) const { return nodes_[node].outputs.front(); }
  int def(int value) const { return values_[value].def; }
  /// The only live node that uses a value; -1 if there are none or several.
  int only_use(int value) const;
  const Tensor& tensor(int value) const { return values_[value].value->toTensor(); }
  bool is_tensor(int value) const { return values_[value].value->isTensor(); }
  /// Float, Half or BFloat16 on the CPU.
  bool is_float(int value) const;
  /// Whether a node copies from one of these types to one of them, maybe the same.
  bool is_cast(int node) const;

  bool stable(int value) const;
  /// Stable, written by a node of `block`, and no output of the method: it need not be computed
  /// where all nodes that read it are replaced.
  bool interior(int value, int block) const;
  /// Whether a pure node can be computed later, or not at all.
  bool deferrable(int node) const;
  /// The node that makes a value interior to `block`, if it is of that block and deferrable; else -1.
  int maker(int value, int block) const {
    const int node = def(value);
    return interior(value, block) && deferrable_in(node, block) ? node : -1;
  }
  bool deferrable_in(int node, int block) const {
    return node >= 0 && nodes_[node].block == block && deferrable(node);
  }
  /// A number that is the same in every call, also one in a constant tensor of one element.
  std::optional<double> constant_number(const EValue* value) const;
  std::optional<double> constant_element(int value) const;

  /// The view that a node makes of its first argument as `output`; none if the node is no view.
  std::optional<Step> step(int node, int output) const;
  /// Follows steps back from `value` as far as they can be deferred to `block` and `accepts` them.
  Chain strip(int value, int block, bool (*accepts)(const Step&) = nullptr) const;

  /// Puts a call in the place of a pure node. `inputs` are the values it reads. Node::live and
  /// Value::uses are those from before until refresh().
  void replace(int node, FusedCall* call, const std::vector<int>& inputs);
  void refresh();
  /// Makes the live nodes read `to` where they read `from`; false (and no change) for list items.
  /// After the last one: finish_forwards().
  bool forward(int from, int to);
  void finish_forwards();
  /// Without this call the destructor takes back what forward() changed.
  void keep_forwards() { forwards_.clear(); }
  /// Values, each once, and the items of those that are lists.
  std::vector<int> mentioned(Span<EValue*> values) const;

 private:
  static size_t size_of(const MethodDraft& draft);
  bool is_stable_item(int value) const;
  void add_node(Instruction& instruction, int block, int number);
  void classify(Node& node) const;
  void mention(std::vector<int>& list, Seen& seen, const EValue* value) const;
  void note_writes(LastWriters& writers, int node) const;
  void drop_listed_outputs(Node& node) const;
  std::optional<size_t> first_output_of_delegate(Span<EValue*> args) const;
  void define(int node);

  void add_values();
  struct StaticView {
    int behind;  // node
    int base;
    int view;
  };
  std::vector<StaticView> find_static_views() const;
  std::optional<StaticView> find_base(const LastWriters& writers, int view, int first_use) const;
  bool insert_static_views(std::vector<StaticView> views);
  bool add_static_view(const StaticView& view, std::vector<Node>& nodes) const;
  void find_roots();
  void find_updates();
  bool is_plain_buffer(int value) const;
  bool is_read_after(int value, int update) const;
  void refuse_shared_bytes(std::vector<int>& updates) const;
  void mark_buffers();
  void find_uses();
  bool is_needed(const Node& node) const;
  void remove_use(int value, int node, std::vector<int>& unused);
  bool add_use(int value, int node);

  const MethodDraft& draft_;
  mutable Effort effort_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  // Nodes that were replaced since the last refresh(), with the inputs that they had.
  std::vector<std::pair<int, std::vector<int>>> replaced_;
  std::vector<std::pair<EValue**, EValue*>> forwards_;
  // While nodes are added.
  LastWriters writers_;
  mutable Seen seen_, seen_outputs_;
  int n_blocks_ = 0;
  bool ok_ = true;
};

}  // namespace executorch::optimized
