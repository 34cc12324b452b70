// Facts about the values of a graph: stability, constants, views.
#include <executorch/kernels/optimized/graph.h>

#include <algorithm>

namespace executorch::optimized {

using aten::ScalarType;

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

bool Graph::is_bool(int value) const {
  return is_tensor(value) && tensor(value).scalar_type() == ScalarType::Bool &&
         tensor(value).unsafeGetTensorImpl()->device_type() == aten::DeviceType::CPU;
}

bool Graph::is_cast(int n) const {
  return (is(n, "_to_copy.out") || is(n, "_to_dim_order_copy.out")) && is_float(arg_id(n, 0)) &&
         is_float(out(n));
}

bool Graph::stable(int v) const {
  bool stable = is_stable_item(v);
  if (!stable || values_[v].constant) return stable;
  for_each_item(*values_[v].value, [&](EValue* item) {
    effort_.spend(1);
    stable &= is_stable_item(id(item));
  });
  return stable;
}

bool Graph::is_stable_item(int v) const {
  const auto in_itself = [](const Value& value) {
    if (value.escapes || value.constant) return !value.escapes;
    return value.n_defs + (value.input ? 1 : 0) <= 1 &&
           (!value.value->isTensor() || value.n_defs == 1 || value.input || value.updated >= 0 ||
            value.carried);
  };
  return in_itself(values_[v]) && in_itself(values_[values_[v].root]);
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
  if (known.n_defs > 0 || known.escapes || known.input) return std::nullopt;
  if (value->isInt()) return static_cast<double>(value->toInt());
  if (value->isDouble()) return value->toDouble();
  if (value->isBool()) return value->toBool() ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<double> Graph::constant_element(int v) const {
  if (!is_tensor(v)) return constant_number(values_[v].value);
  const Tensor& t = tensor(v);
  if (!values_[v].constant || t.numel() != 1 || values_[v].data == nullptr) {
    // Look for nodes such as scalar_tensor(2.0) and full([], 2.0).
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
  if (row == std::end(kRows) || !is_tensor(output) || !is_tensor(arg_id(n, 0))) return std::nullopt;
  const Tensor& in = tensor(arg_id(n, 0));
  const Tensor& made = tensor(output);
  if (in.scalar_type() != made.scalar_type()) return std::nullopt;
  // The operators that reshape read bytes in order, whatever the dim order of the tensor.
  if (row->kind == Kind::Reshape && !(default_order(in) && default_order(made))) {
    return std::nullopt;
  }
  const auto& outputs = nodes_[n].outputs;
  const auto part = std::find(outputs.begin(), outputs.end(), output) - outputs.begin();
  return Step{row->kind, static_cast<uint32_t>(part), nodes_[n].instruction->args};
}

Graph::Chain Graph::strip(int value, int block, bool (*accepts)(const Step&)) const {
  Chain chain{value, {}};
  while (chain.steps.size() < kMostSteps) {
    effort_.spend(1);
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

}  // namespace executorch::optimized
