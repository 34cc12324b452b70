#include <executorch/kernels/optimized/graph.h>
#include <executorch/kernels/optimized/signature.h>
#include <executorch/kernels/portable/own_kernels.h>
#include <executorch/kernels/prim_ops/tables.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace executorch::optimized {
namespace {

// Operators that read or write something besides inputs and outputs.
bool is_pure(std::string_view name) {
  for (const std::string_view impure :
       {"rand.out", "randn.out", "native_dropout.out", "_empty_dim_order.out", "empty.out"}) {
    if (name == impure) return false;
  }
  return true;
}

// Our operators by their functions, so that a kernel of the user's, whatever its name, is never
// taken for one of ours.
struct Known {
  std::string_view name;
  /// Whether the result is a number, which replaces whatever the value held that it is stored in.
  bool makes_number = false;
};
using Names = std::unordered_map<runtime::OpFunction, Known>;

void add_names(Names& names, Span<const runtime::Kernel> kernels, bool make_numbers) {
  for (const auto& kernel : kernels) {
    std::string_view name = kernel.name_;
    // Some of the quantized operators have the names of operators on floats.
    if (!name.starts_with("quantized_decomposed::")) name.remove_prefix(name.find("::") + 2);
    if (!is_pure(name)) continue;
    names.emplace(kernel.op_, Known{name, make_numbers && name != "et_view.default"});
  }
}

const Names& operator_names() {
  static const Names* const names = [] {
    auto all = std::make_unique<Names>();
    const auto* table = torch::executor::native::own_kernels();
    for (; table != nullptr; table = table->next) add_names(*all, table->rows, false);
    add_names(*all, torch::executor::function::symbolic_ops(), true);
    add_names(*all, torch::executor::function::tensor_ops(), true);
    return all.release();
  }();
  return *names;
}

// Whether the arguments tell which values an operator writes: exporters repeat the outputs at the
// end, as a list if there are several.
bool shows_outputs(std::string_view name, Span<EValue*> args) {
  const size_t n = args.size();
  return !args[n - 1]->isTensor() || name == "et_view.default" ||
         (n >= 2 && args[n - 1] == args[n - 2]);
}

// Whether the arguments of index_put_ are as exporters write them: the result is the first
// argument, and no other argument is.
bool puts_in_place(Span<EValue*> args) {
  if (args.size() != 5 || !args[0]->isTensor() || !args[1]->isListOptionalTensor() ||
      !args[2]->isTensor() || !args[3]->isBool() || args[4] != args[0] || args[2] == args[0]) {
    return false;
  }
  bool apart = true;
  for_each_item(*args[1], [&](const EValue* item) { apart &= item != args[0]; });
  return apart;
}

// Whether the arguments of copy_ are as exporters write them: the result is the first argument, and
// the second is another one.
bool copies_to_first(Span<EValue*> args) {
  return args.size() == 4 && args[0]->isTensor() && args[1]->isTensor() && args[2]->isBool() &&
         args[3] == args[0] && args[1] != args[0];
}

}  // namespace

bool default_order(const Tensor& tensor) {
  const auto order = tensor.dim_order();
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

Graph::Graph(const MethodDraft& draft)
    : draft_(draft),
      effort_(size_of(draft)),
      seen_(draft.values.size()),
      seen_outputs_(draft.values.size()) {
  add_values();
  for (Span<Instruction> chain : draft.chains) add_nodes(chain);
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) define(n);
  ok_ = insert_static_views(find_static_views());
  if (!ok_) return;
  find_roots();
  find_uses();
  find_carried();
  find_updates();
  mark_buffers();
  find_uses();
}

Graph::~Graph() {
  for (auto it = forwards_.rbegin(); it != forwards_.rend(); ++it) *it->first = it->second;
}

// Constants under several names are counted once.
size_t Graph::size_of(const MethodDraft& draft) {
  size_t size = draft.values.size();
  for (Span<Instruction> chain : draft.chains) {
    for (const Instruction& instruction : chain) size += 1 + instruction.args.size();
  }
  using Bytes = std::pair<uintptr_t, uintptr_t>;
  std::vector<Bytes> constants;
  for (const EValue& value : draft.values) {
    if (!value.isTensor() || !value.toTensor().unsafeGetTensorImpl()->is_read_only()) continue;
    const auto begin = reinterpret_cast<uintptr_t>(value.toTensor().const_data_ptr());
    constants.emplace_back(begin, begin + value.toTensor().nbytes());
  }
  std::sort(constants.begin(), constants.end());
  uintptr_t end = 0;
  size_t bytes = 0;
  for (const Bytes& c : constants) {
    if (c.second <= end) continue;
    bytes += c.second - std::max(c.first, end);
    end = c.second;
  }
  return size + bytes / sizeof(float);
}

void Graph::find_roots() {
  for (const Node& node : nodes_) {
    if (node.op != "et_view.default" && node.op != "static_view") continue;
    Value& view = values_[node.outputs.front()];
    view.root = values_[id(node.instruction->args[0])].root;
    values_[view.root].escapes |= view.escapes;
  }
  // Views of what becomes a view of something else later.
  for (Value& value : values_) value.escapes |= values_[value.root].root != value.root;
}

void Graph::add_values() {
  values_.resize(draft_.values.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    Value& value = values_[i];
    value.value = &draft_.values[i];
    value.root = static_cast<int>(i);
    if (value.value->isTensor()) {
      const Tensor& tensor = value.value->toTensor();
      value.data = static_cast<char*>(tensor.mutable_data_ptr());
      value.nbytes = tensor.nbytes();
      value.constant = tensor.unsafeGetTensorImpl()->is_read_only();
    }
  }
  for (int32_t i : draft_.inputs) values_[i].input = true;
  for (int32_t i : draft_.outputs) {
    values_[i].output = true;
    for_each_item(*values_[i].value, [&](EValue* item) { values_[id(item)].output = true; });
  }
}

void Graph::add_ids(std::vector<int>& list, Seen& seen, const EValue* value) const {
  const auto add = [&](const EValue* v) {
    effort_.spend(1);
    if (seen.insert(id(v))) list.push_back(id(v));
  };
  add(value);
  for_each_item(*value, add);
}

std::vector<int> Graph::ids_of(Span<EValue*> values) const {
  std::vector<int> list;
  seen_.clear();
  for (const EValue* value : values) add_ids(list, seen_, value);
  return list;
}

void Graph::classify(Node& node) const {
  const Instruction& instruction = *node.instruction;
  if (instruction.kind != Instruction::Kind::Kernel || instruction.args.size() == 0) return;
  const auto found = operator_names().find(instruction.kernel);
  if (found == operator_names().end()) return;
  const Known& known = found->second;
  node.name = known.name;
  if (known.name == "et_copy_index.tensor") {  // known by its name alone
    if (instruction.args.size() != 3) node.name = {};
    return;
  }
  if (known.name == "copy_") {
    if (!copies_to_first(instruction.args)) return;
    node.copies = true;
    node.written = id(instruction.args[0]);
    return;
  }
  if (known.name == "index_put_") {
    if (!puts_in_place(instruction.args)) return;
    node.op = known.name;
    node.written = id(instruction.args[0]);
    return;
  }
  const auto signature = check_signature(known.name, instruction.args);
  // A number in the place of a tensor is none of the values that patterns reckon with.
  const EValue& last = *instruction.args[instruction.args.size() - 1];
  const bool replaces_value = known.makes_number && !last.isScalar() && !last.isNone();
  node.pure = signature != Signature::Differs && shows_outputs(known.name, instruction.args) &&
              !replaces_value;
  if (node.pure && signature == Signature::Fits) node.op = known.name;
}

void Graph::add_nodes(Span<Instruction> chain) {
  using Kind = Instruction::Kind;
  std::vector<bool> starts(chain.size() + 1);
  for (const Instruction& instruction : chain) {
    if (instruction.kind == Kind::JumpFalse) starts[instruction.target] = true;
  }
  std::vector<int> basic_block(chain.size() + 1, -1);
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool starts_block = i == 0 || starts[i] || chain[i - 1].kind == Kind::JumpFalse;
    if (starts_block) ++n_basic_blocks_;
    n_blocks_ += starts_block ? 1 : 0;
    basic_block[i] = n_basic_blocks_ - 1;
    add_node(chain[i], static_cast<int>(i));
  }
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].kind == Kind::JumpFalse && basic_block[chain[i].target] >= 0) {
      jumps_.emplace_back(basic_block[i], basic_block[chain[i].target]);
    }
  }
}

void Graph::add_node(Instruction& instruction, int number) {
  Node node;
  node.instruction = &instruction;
  node.number = number;
  classify(node);
  const bool divides = node.copies && number > 0 && !nodes_.back().copies &&
                       nodes_.back().basic_block == n_basic_blocks_ - 1;
  n_blocks_ += divides ? 1 : 0;
  node.block = n_blocks_ - 1;
  node.basic_block = n_basic_blocks_ - 1;
  const size_t n = instruction.args.size();
  seen_outputs_.clear();
  if (node.pure) add_ids(node.outputs, seen_outputs_, instruction.args[n - 1]);
  if (instruction.kind == Instruction::Kind::Delegate) {
    const auto first = first_output_of_delegate(instruction);
    node.delegate_call = first.has_value();
    for (size_t i = first.value_or(n); i < n; ++i) {
      add_ids(node.outputs, seen_outputs_, instruction.args[i]);
    }
  }
  for (int v : ids_of(instruction.args)) {
    const bool is_written = node.copies && v == node.written;
    if (!seen_outputs_.contains(v) && !is_written) node.inputs.push_back(v);
    const bool is_read = node.name == "et_copy_index.tensor" && v == id(instruction.args[1]);
    values_[v].escapes |= !node.pure && !node.delegate_call && node.written < 0 && !is_read;
    values_[v].is_argument = true;
  }
  drop_listed_outputs(node);
  if (node.outputs.empty() && node.written < 0) node.op = {};  // an empty list
  nodes_.push_back(std::move(node));
  note_writes(writers_, static_cast<int>(nodes_.size()) - 1);
}

// Programs name outputs twice, also as two lists of the same items.
void Graph::drop_listed_outputs(Node& node) const {
  const auto lists_outputs = [&](int v) {
    bool found = node.pure && values_[v].value->isTensorList();
    if (found) {
      for_each_item(*values_[v].value,
                    [&](EValue* item) { found &= seen_outputs_.contains(id(item)); });
    }
    return found;
  };
  std::erase_if(node.inputs, lists_outputs);
  std::erase_if(node.outputs, lists_outputs);
}

// The inputs of a delegate come first, then its outputs, which have not been arguments of an
// earlier node. Returns nothing if that does not tell them apart and the backend does not either:
// an input that is a static view has not been an argument before, as an output whose bytes another
// result of that size had.
std::optional<size_t> Graph::first_output_of_delegate(const Instruction& call) const {
  const Span<EValue*> args = call.args;
  const auto is_new = [&](const EValue* arg) {
    const Value& value = values_[id(arg)];
    return arg->isTensor() && !value.constant && !value.input && !value.is_argument &&
           value.data != nullptr;
  };
  const auto may_be_view = [&](const EValue* arg) {
    const bool is_static = arg->toTensor().unsafeGetTensorImpl()->shape_dynamism() ==
                           aten::TensorShapeDynamism::STATIC;
    return is_static && find_base(writers_, id(arg), static_cast<int>(nodes_.size())).has_value();
  };
  size_t first = args.size();
  while (first > 0 && is_new(args[first - 1])) --first;
  const size_t told = call.first_written;
  if (first <= told && told < args.size()) {
    seen_.clear();
    for (size_t i = told; i < args.size(); ++i) seen_.insert(id(args[i]));
    for (size_t i = 0; i < told; ++i) {
      if (seen_.contains(id(args[i]))) return std::nullopt;
    }
    return told;
  }
  const bool told_apart = std::none_of(args.begin() + first, args.end(), may_be_view);
  return first < args.size() && told_apart ? std::optional(first) : std::nullopt;
}

void Graph::define(int n) {
  for (int v : nodes_[n].outputs) {
    values_[v].def = n;
    ++values_[v].n_defs;
    values_[v].escapes |= values_[v].constant;
  }
}

// A result that was planned into the bytes of a mutable buffer writes the buffer.
void Graph::mark_buffers() {
  LastWriters buffers;
  for (size_t v = 0; v < values_.size(); ++v) {
    const Value& value = values_[v];
    if (value.data != nullptr && !value.constant && !value.input && value.n_defs == 0 &&
        !value.uses.empty() && value.updated < 0 && !value.carried) {
      buffers.write(value.data, value.nbytes, {0, static_cast<int>(v)});
    }
  }
  const auto spend = [this](size_t steps) { effort_.spend(steps); };
  for (Value& value : values_) {
    value.escapes |=
        value.data != nullptr && buffers.last(value.data, value.nbytes, spend).node == 0;
  }
}

}  // namespace executorch::optimized
