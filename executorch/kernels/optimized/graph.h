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

/// Whether the dimensions of `tensor` lie in memory in their default order.
bool default_order(const Tensor& tensor);

/// Calls f for each non-null item of a value that is a list of values.
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

/// A set of numbers < n that clear() empties in constant time.
class Seen {
 public:
  explicit Seen(size_t n) : marks_(n) {}
  void clear() { ++now_; }
  bool contains(int i) const { return marks_[static_cast<size_t>(i)] == now_; }
  /// Adds i. Returns false if it was in the set already.
  bool insert(int i) {
    if (contains(i)) return false;
    marks_[static_cast<size_t>(i)] = now_;
    return true;
  }

 private:
  std::vector<size_t> marks_;
  size_t now_ = 1;
};

/// A method's instructions as nodes, in the order of the file, and its values. Both have numbers.
/// Views of static shape have no instruction in the file: memory planning puts both values at the
/// same address. For each of them the graph has a node of its own, "static_view", behind the node
/// that writes the viewed value.
///   pure    a node whose operator is this project's and only computes its outputs from its inputs
///   stable  a value that, wherever it can be read, holds what its one definition wrote, and whose
///           bytes are not reused on purpose: constants, inputs that nothing writes, and results
///           of pure nodes that only pure nodes of one basic block read
///   delegate_call  a call of a delegate whose inputs and outputs could be told apart: it reads
///           its inputs and writes its outputs
///   update  index_put_ of this project: it reads its arguments and writes a part of the first. A
///           buffer of the program is stable too if one update of a block writes it before all
///           nodes that read it, though it is never interior and keeps its address
///   copy    copy_ of this project: it writes the whole of its first argument and reads the second.
///           What only copies write, such as the values that a loop carries from round to round, is
///           stable too, since copies begin blocks; it is never interior and keeps its address
/// The arguments of all other nodes escape: nothing is known about who reads or writes them.
/// Functions may throw std::bad_alloc and TooMuchEffort; instructions are then as they were once
/// the graph is destroyed.
class Graph {
 public:
  /// The most steps of a chain that strip() returns.
  static constexpr size_t kMostSteps = 64;

  struct Node {
    /// For a static view: an instruction that this graph made, with the arguments base and view.
    Instruction* instruction = nullptr;
    /// The instruction's index in its chain of the program; -1 for a static view.
    int number = -1;
    /// The operator's name, such as "addmm.out", if the arguments fit the operator (signature.h);
    /// otherwise empty. Only quantized operators' names begin with their namespace.
    std::string_view op;
    /// The same name, whether or not the arguments fit.
    std::string_view name;
    /// Blocks are numbered in the order of the program. They are basic blocks, divided further in
    /// front of copies, so that no value that is carried is written between two nodes of a block
    /// that read it.
    int block = 0;
    int basic_block = 0;
    bool pure = false;
    bool copies = false;
    bool delegate_call = false;
    /// False if nothing needs the node's outputs any more.
    bool live = true;
    /// Whether another node does what the node did, though it is not pure.
    bool removed = false;
    /// The value that the node writes if it is an update or a copy; otherwise -1.
    int written = -1;
    /// The call that replaced the node, or null.
    FusedCall* fused = nullptr;
    /// The values that the node reads and writes, including items of lists, each listed once.
    std::vector<int> inputs;
    std::vector<int> outputs;
  };
  struct Value {
    EValue* value = nullptr;
    /// A node that writes the value, -1 if none does, and the number of nodes that do.
    int def = -1;
    int n_defs = 0;
    /// The update that writes this buffer before all nodes that read it; -1 if there is none.
    int updated = -1;
    /// Whether copies alone write the value (graph_updates.cpp).
    bool carried = false;
    bool constant = false;
    bool input = false;
    bool output = false;
    bool escapes = false;
    /// Whether the value is an argument of a node, or an item of such an argument.
    bool is_argument = false;
    /// The value whose bytes this value shares: itself, or the base if it is a view.
    int root = -1;
    /// For tensors: the address and the number of bytes of the largest size, at the time of
    /// loading.
    char* data = nullptr;
    size_t nbytes = 0;
    /// The live nodes that read the value, in order, each listed once.
    std::vector<int> uses;
  };
  /// The value `base`, read through views. It is an Operand whose steps are not yet in the method's
  /// memory.
  struct Chain {
    int base = -1;
    std::vector<Step> steps;
  };

  explicit Graph(const MethodDraft& draft);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  /// False if the method's memory was too small to build the graph.
  bool ok() const { return ok_; }

  const MethodDraft& draft() const { return draft_; }
  Effort& effort() const { return effort_; }
  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  /// Whether each instruction runs once, in the order of the program.
  bool is_straight() const { return n_basic_blocks_ == 1; }
  int id(const EValue* value) const { return static_cast<int>(value - draft_.values.data()); }

  bool is(int node, std::string_view op) const { return node >= 0 && nodes_[node].op == op; }
  /// Whether the node is a view whose output shares the bytes of its input.
  bool is_view(int node) const { return is(node, "et_view.default") || is(node, "static_view"); }
  EValue* arg(int node, size_t i) const { return nodes_[node].instruction->args[i]; }
  int arg_id(int node, size_t i) const { return id(arg(node, i)); }
  size_t n_args(int node) const { return nodes_[node].instruction->args.size(); }
  /// The first output of a node.
  int out(int node) const { return nodes_[node].outputs.front(); }
  int def(int value) const { return values_[value].def; }
  /// The only live node that reads a value; -1 if none or several do.
  int only_use(int value) const;
  const Tensor& tensor(int value) const { return values_[value].value->toTensor(); }
  bool is_tensor(int value) const { return values_[value].value->isTensor(); }
  /// Whether a value is a tensor of Float, Half or BFloat16 on the CPU.
  bool is_float(int value) const;
  /// Whether a value is a tensor of type Bool on the CPU.
  bool is_bool(int value) const;
  /// Whether a node copies a tensor of one of these types to one of these types, maybe the same
  /// one.
  bool is_cast(int node) const;

  bool stable(int value) const;
  /// Whether a value is stable, written by a node of `block`, and no output of the method. Such a
  /// value need not be computed if all nodes that read it are replaced.
  bool interior(int value, int block) const;
  /// Whether a pure node can be computed later, or not at all.
  bool deferrable(int node) const;
  /// The node that writes a value interior to `block`, if the node is in that block and deferrable;
  /// otherwise -1.
  int maker(int value, int block) const {
    const int node = def(value);
    return interior(value, block) && deferrable_in(node, block) ? node : -1;
  }
  bool deferrable_in(int node, int block) const {
    return node >= 0 && nodes_[node].block == block && deferrable(node);
  }
  /// The number in `value` if it is the same in every call; it may also be in a constant tensor of
  /// one element.
  std::optional<double> constant_number(const EValue* value) const;
  std::optional<double> constant_element(int value) const;

  /// The step that leads from the first argument of a node to its output `output`; nothing if the
  /// node is no view.
  std::optional<Step> step(int node, int output) const;
  /// Returns the chain that ends at `value`. It goes back as far as steps can be deferred to
  /// `block` and accepts() is true for them.
  Chain strip(int value, int block, bool (*accepts)(const Step&) = nullptr) const;

  /// Replaces a pure node by `call`, which reads the values `inputs`. Node::live and Value::uses do
  /// not change before refresh().
  void replace(int node, FusedCall* call, const std::vector<int>& inputs);
  void refresh();
  /// Whether node n jumps to the beginning of its basic block, to which no other node jumps.
  bool repeats_block(int n) const;
  /// Replaces nodes [first, last], a loop, by `call` in the place of `node`, which is one of them.
  /// It reads and writes the values `inputs`.
  void replace_loop(int first, int last, int node, FusedCall* call, const std::vector<int>& inputs);
  /// Makes the live nodes that read `from` read `to` instead. Returns false and changes nothing if
  /// `from` is an item of a list, or if one of them may run after `to` was written anew. Call
  /// finish_forwards() after the last forward().
  bool forward(int from, int to);
  void finish_forwards();
  /// Keeps the changes of forward(), which the destructor otherwise takes back.
  void keep_forwards() { forwards_.clear(); }
  /// The ids of `values` and of the items of those that are lists, each listed once.
  std::vector<int> ids_of(Span<EValue*> values) const;

 private:
  static size_t size_of(const MethodDraft& draft);
  bool is_stable_item(int value) const;
  void add_nodes(Span<Instruction> chain);
  void add_node(Instruction& instruction, int number);
  void classify(Node& node) const;
  void add_ids(std::vector<int>& list, Seen& seen, const EValue* value) const;
  void note_writes(LastWriters& writers, int node) const;
  void drop_listed_outputs(Node& node) const;
  std::optional<size_t> first_output_of_delegate(const Instruction& call) const;
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
  /// From the first to the last node that reads or writes a value.
  struct Period {
    int first = -1;
    int last = -1;
    bool is_copied = false;  // the first one is a copy to the value
  };
  std::vector<Period> find_periods() const;
  bool is_entered(const Period& period) const;
  void find_carried();
  void refuse(int carried);
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
  // The nodes that were replaced since the last refresh(), with their former inputs.
  std::vector<std::pair<int, std::vector<int>>> replaced_;
  std::vector<std::pair<EValue**, EValue*>> forwards_;
  // While nodes are added.
  LastWriters writers_;
  mutable Seen seen_, seen_outputs_;
  int n_blocks_ = 0;
  int n_basic_blocks_ = 0;
  std::vector<std::pair<int, int>> jumps_;  // between basic blocks
  bool ok_ = true;
};

}  // namespace executorch::optimized
