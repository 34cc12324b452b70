#include <executorch/kernels/optimized/graph.h>
#include <executorch/kernels/optimized/signature.h>
#include <executorch/kernels/portable/own_kernels.h>
#include <executorch/kernels/prim_ops/tables.h>

#include <algorithm>
#include <unordered_map>

namespace executorch::optimized {
namespace {

using aten::ScalarType;

// Operators that read or write something besides inputs and outputs.
bool is_pure(std::string_view name) {
  for (const std::string_view impure :
       {"copy_", "index_put_", "et_copy_index.tensor", "rand.out", "randn.out",
        "native_dropout.out", "_empty_dim_order.out", "empty.out"}) {
    if (name == impure) return false;
  }
  return true;
}

// Our operators by their functions, so that a kernel of the user's, whatever its name, is never
// taken for one of ours.
using Names = std::unordered_map<runtime::OpFunction, std::string_view>;

void add_names(Names& names, Span<const runtime::Kernel> kernels) {
  for (const auto& kernel : kernels) {
    std::string_view name = kernel.name_;
    // The quantized operators are others that have the same names.
    if (name.substr(0, name.find("::")) == "quantized_decomposed") continue;
    name.remove_prefix(name.find("::") + 2);
    if (is_pure(name)) names.emplace(kernel.op_, name);
  }
}

const Names& operator_names() {
  static const Names* const names = [] {
    auto* const all = new Names;
    const auto* table = torch::executor::native::own_kernels();
    for (; table != nullptr; table = table->next) add_names(*all, table->rows);
    add_names(*all, torch::executor::function::symbolic_ops());
    add_names(*all, torch::executor::function::tensor_ops());
    return all;
  }();
  return *names;
}

// Exporters repeat the outputs at the end, as a list if there are several. Where that is not so,
// it cannot be told what is written.
bool shows_outputs(std::string_view name, Span<EValue*> args) {
  const size_t n = args.size();
  return !args[n - 1]->isTensor() || name == "et_view.default" ||
         (n >= 2 && args[n - 1] == args[n - 2]);
}

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

bool contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

bool default_order(const Tensor& tensor) {
  const auto order = tensor.dim_order();
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

Graph::Graph(const MethodDraft& draft) : draft_(draft) {
  add_values();
  for (Span<Instruction> chain : draft.chains) {
    std::vector<bool> starts(chain.size() + 1);
    for (const Instruction& instruction : chain) {
      if (instruction.kind == Instruction::Kind::JumpFalse) starts[instruction.target] = true;
    }
    bool starts_block = true;
    for (size_t i = 0; i < chain.size(); ++i) {
      if (starts_block || starts[i]) ++n_blocks_;
      starts_block = chain[i].kind == Instruction::Kind::JumpFalse;
      add_node(chain[i], n_blocks_ - 1, static_cast<int>(i));
    }
  }
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) define(n);
  ok_ = insert_static_views(find_static_views());
  find_roots();
  refresh();
  mark_buffers();
  refresh();
}

void Graph::find_roots() {
  for (const Node& node : nodes_) {
    if (node.op != "et_view.default" && node.op != "static_view") continue;
    Value& view = values_[node.outputs.front()];
    view.root = values_[id(node.instruction->args[0])].root;
    values_[view.root].foreign |= view.foreign;
  }
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

void Graph::mention(std::vector<int>& list, const EValue* value) const {
  if (!contains(list, id(value))) list.push_back(id(value));
  for_each_item(*value, [&](EValue* item) { mention(list, item); });
}

void Graph::add_node(Instruction& instruction, int block, int number) {
  Node node;
  node.instruction = &instruction;
  node.number = number;
  node.block = block;
  if (instruction.kind == Instruction::Kind::Kernel && instruction.args.size() > 0) {
    const auto found = operator_names().find(instruction.kernel);
    const bool ours = found != operator_names().end();
    const auto signature =
        ours ? check_signature(found->second, instruction.args) : Signature::Differs;
    node.pure = signature != Signature::Differs && shows_outputs(found->second, instruction.args);
    node.name = ours ? found->second : std::string_view();
    if (node.pure && signature == Signature::Fits) node.op = found->second;
  }
  const size_t n = instruction.args.size();
  if (node.pure) mention(node.outputs, instruction.args[n - 1]);
  if (instruction.kind == Instruction::Kind::Delegate) {
    const auto first = first_output_of_delegate(instruction.args);
    node.sealed = first.has_value();
    for (size_t i = first.value_or(n); i < n; ++i) mention(node.outputs, instruction.args[i]);
  }
  for (const EValue* arg : instruction.args) {
    std::vector<int> all;
    mention(all, arg);
    for (int v : all) {
      if (!contains(node.outputs, v) && !contains(node.inputs, v)) node.inputs.push_back(v);
      values_[v].foreign |= !node.pure && !node.sealed;
      values_[v].mentioned = true;
    }
  }
  // Programs name outputs twice, also as two lists of the same items.
  const auto lists_outputs = [&](int v) {
    bool found = node.pure && values_[v].value->isTensorList();
    for_each_item(*values_[v].value, [&](EValue* i) { found &= contains(node.outputs, id(i)); });
    return found;
  };
  std::erase_if(node.inputs, lists_outputs);
  std::erase_if(node.outputs, lists_outputs);
  nodes_.push_back(std::move(node));
}

// Inputs of a delegate come first, then outputs, which nothing has mentioned yet. None if that does
// not tell them apart: an input that is a static view is not mentioned before either.
std::optional<size_t> Graph::first_output_of_delegate(Span<EValue*> args) const {
  const auto is_new = [&](const EValue* arg) {
    const Value& value = values_[id(arg)];
    return arg->isTensor() && !value.constant && !value.input && !value.mentioned &&
           value.data != nullptr;
  };
  const auto may_be_view = [&](const EValue* arg) {
    const bool is_static = arg->toTensor().unsafeGetTensorImpl()->shape_dynamism() ==
                           aten::TensorShapeDynamism::STATIC;
    return is_static && find_base(id(arg), static_cast<int>(nodes_.size())).has_value();
  };
  size_t first = args.size();
  while (first > 0 && is_new(args[first - 1])) --first;
  const bool told_apart = std::none_of(args.begin() + first, args.end(), may_be_view);
  return first < args.size() && told_apart ? std::optional(first) : std::nullopt;
}

void Graph::define(int n) {
  for (int v : nodes_[n].outputs) {
    values_[v].def = n;
    ++values_[v].n_defs;
    values_[v].foreign |= values_[v].constant;
  }
}

// A result that was planned into the bytes of a mutable buffer writes the buffer.
void Graph::mark_buffers() {
  std::vector<int> buffers;
  for (size_t v = 0; v < values_.size(); ++v) {
    const Value& value = values_[v];
    if (value.data != nullptr && !value.constant && !value.input && value.n_defs == 0 &&
        !value.uses.empty()) {
      buffers.push_back(static_cast<int>(v));
    }
  }
  for (Value& value : values_) {
    for (int b : buffers) {
      const Value& buffer = values_[b];
      value.foreign |= value.data != nullptr && value.data < buffer.data + buffer.nbytes &&
                       buffer.data < value.data + value.nbytes;
    }
  }
}

void Graph::refresh() {
  for (Value& value : values_) value.uses.clear();
  for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
    Node& node = nodes_[i];
    node.live = !node.pure || node.outputs.empty();
    for (int v : node.outputs) {
      node.live |= values_[v].output || !stable(v) || !values_[v].uses.empty();
    }
    for (int v : node.inputs) {
      if (node.live) values_[v].uses.push_back(i);
    }
  }
  for (Value& value : values_) std::reverse(value.uses.begin(), value.uses.end());
}

int Graph::only_use(int value) const {
  const auto& uses = values_[value].uses;
  return uses.size() == 1 ? uses.front() : -1;
}

bool Graph::is_float(int value) const {
  if (!is_tensor(value)) return false;
  const Tensor& t = tensor(value);
  return t.unsafeGetTensorImpl()->device_type() == aten::DeviceType::CPU &&
         (t.scalar_type() == ScalarType::Float || t.scalar_type() == ScalarType::Half ||
          t.scalar_type() == ScalarType::BFloat16);
}

bool Graph::stable(int v) const {
  const Value& value = values_[v];
  if (value.root != v && !stable(value.root)) return false;
  if (value.constant) return !value.foreign;
  bool items = true;
  for_each_item(*value.value, [&](EValue* item) { items &= stable(id(item)); });
  return items && !value.foreign && value.n_defs + (value.input ? 1 : 0) <= 1 &&
         (!value.value->isTensor() || value.n_defs == 1 || value.input);
}

bool Graph::interior(int v, int block) const {
  const Value& value = values_[v];
  return stable(v) && value.def >= 0 && nodes_[value.def].block == block && !value.output;
}

bool Graph::deferrable(int n) const {
  const Node& node = nodes_[n];
  if (!node.pure || node.fused != nullptr) return false;
  for (int v : node.inputs) {
    if (!stable(v)) return false;
    const int made = values_[v].def;
    if (made >= 0 && (nodes_[made].block != node.block || made > n)) return false;
  }
  return true;
}

std::optional<double> Graph::constant_number(const EValue* value) const {
  const Value& known = values_[id(value)];
  if (known.n_defs > 0 || known.foreign || known.input) return std::nullopt;
  if (value->isInt()) return static_cast<double>(value->toInt());
  if (value->isDouble()) return value->toDouble();
  if (value->isBool()) return value->toBool() ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<double> Graph::constant_element(int v) const {
  if (!is_tensor(v)) return constant_number(values_[v].value);
  const Tensor& t = tensor(v);
  if (!values_[v].constant || t.numel() != 1 || values_[v].data == nullptr) {
    // scalar_tensor(2.0), full([], 2.0) and the like.
    const int d = values_[v].def;
    if (!stable(v) || d < 0 || !deferrable(d)) return std::nullopt;
    if (is(d, "scalar_tensor.out")) return constant_number(arg(d, 0));
    if (is(d, "full.out") && t.numel() == 1) return constant_number(arg(d, 1));
    return std::nullopt;
  }
  switch (t.scalar_type()) {
    case ScalarType::Float:
      return static_cast<double>(*t.const_data_ptr<float>());
    case ScalarType::Half:
      return static_cast<double>(static_cast<float>(*t.const_data_ptr<aten::Half>()));
    case ScalarType::BFloat16:
      return static_cast<double>(static_cast<float>(*t.const_data_ptr<aten::BFloat16>()));
    case ScalarType::Double:
      return *t.const_data_ptr<double>();
    case ScalarType::Long:
      return static_cast<double>(*t.const_data_ptr<int64_t>());
    case ScalarType::Int:
      return static_cast<double>(*t.const_data_ptr<int32_t>());
    default:
      return std::nullopt;
  }
}

std::optional<Step> Graph::step(int n, int output) const {
  struct Row {
    std::string_view op;
    Step::Kind kind;
  };
  using Kind = Step::Kind;
  static constexpr Row kRows[] = {
      {"et_view.default", Kind::Reshape},
      {"static_view", Kind::ReshapeAs},
      {"view_copy.out", Kind::Reshape},
      {"permute_copy.out", Kind::Permute},
      {"transpose_copy.int_out", Kind::Transpose},
      {"t_copy.out", Kind::Transpose2d},
      {"unsqueeze_copy.out", Kind::Unsqueeze},
      {"squeeze_copy.dim_out", Kind::Squeeze},
      {"squeeze_copy.dims_out", Kind::SqueezeDims},
      {"expand_copy.out", Kind::Expand},
      {"slice_copy.Tensor_out", Kind::Slice},
      {"select_copy.int_out", Kind::Select},
      {"split_copy.Tensor_out", Kind::Split},
      {"split_with_sizes_copy.out", Kind::SplitSizes},
      {"unbind_copy.int_out", Kind::Unbind},
      {"clone.out", Kind::Same},
      {"alias_copy.out", Kind::Same},
      {"detach_copy.out", Kind::Same},
      {"lift_fresh_copy.out", Kind::Same},
      {"_clone_dim_order.out", Kind::Same},
      {"_to_dim_order_copy.out", Kind::Same},
      {"_to_copy.out", Kind::Same},
  };
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.op == nodes_[n].op; });
  if (row == std::end(kRows) || !is_tensor(output) || !is_tensor(arg_id(n, 0))) {
    return std::nullopt;
  }
  const Tensor& in = tensor(arg_id(n, 0));
  const Tensor& made = tensor(output);
  if (in.scalar_type() != made.scalar_type()) return std::nullopt;
  // These read bytes in order, whatever the order of the dimensions.
  if (row->kind == Kind::Reshape && !(default_order(in) && default_order(made))) {
    return std::nullopt;
  }
  const auto& outputs = nodes_[n].outputs;
  const auto part = std::find(outputs.begin(), outputs.end(), output) - outputs.begin();
  return Step{row->kind, static_cast<uint32_t>(part), nodes_[n].instruction->args};
}

Graph::Chain Graph::strip(int value, int block, bool (*accepts)(const Step&)) const {
  Chain chain{value, {}};
  for (;;) {
    const int n = def(chain.base);
    if (!interior(chain.base, block) || !deferrable(n)) break;
    const auto found = step(n, chain.base);
    if (!found.has_value() || (accepts != nullptr && !accepts(*found))) break;
    chain.steps.push_back(*found);
    chain.base = arg_id(n, 0);
  }
  std::reverse(chain.steps.begin(), chain.steps.end());
  return chain;
}

void Graph::replace(int n, FusedCall* call, std::vector<int> inputs) {
  Node& node = nodes_[n];
  node.fused = call;
  node.inputs.clear();
  for (int v : inputs) mention(node.inputs, values_[v].value);
}

bool Graph::forward(int from, int to) {
  const std::vector<int> uses = values_[from].uses;
  for (int n : uses) {
    const auto args = nodes_[n].instruction->args;
    const bool direct = std::any_of(args.begin(), args.end(),
                                    [&](const EValue* arg) { return arg == values_[from].value; });
    if (!direct || nodes_[n].fused != nullptr || !nodes_[n].pure) return false;
    for (const EValue* arg : args) {
      bool in_list = false;
      for_each_item(*arg, [&](EValue* item) { in_list |= item == values_[from].value; });
      if (in_list) return false;
    }
  }
  for (int n : uses) {
    for (EValue*& arg : nodes_[n].instruction->args) {
      if (arg != values_[from].value) continue;
      forwards_.emplace_back(&arg, arg);
      arg = values_[to].value;
    }
    std::erase(nodes_[n].inputs, from);
    mention(nodes_[n].inputs, values_[to].value);
  }
  find_roots();
  return true;
}

void Graph::undo_forwards() {
  for (auto it = forwards_.rbegin(); it != forwards_.rend(); ++it) *it->first = it->second;
  forwards_.clear();
}

}  // namespace executorch::optimized
