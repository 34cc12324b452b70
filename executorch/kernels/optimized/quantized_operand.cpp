#include <executorch/kernels/optimized/quantized_operand.h>

#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>
#include <limits>

namespace executorch::optimized {
namespace {

using aten::ScalarType;

// n numbers that a constant tensor holds, as floats; null if memory is refused.
const float* numbers(const EValue* value, cpu::Scratch& scratch) {
  const Tensor& tensor = value->toTensor();
  if (tensor.scalar_type() == ScalarType::Float) return tensor.const_data_ptr<float>();
  const int64_t n = tensor.numel();
  float* const converted = scratch.array<float>(n);
  if (converted != nullptr) {
    torch::executor::native::internal::load(tensor.const_data_ptr(), tensor.scalar_type(), 1, n,
                                            converted);
  }
  return converted;
}

bool is_all_zero(const Graph& graph, const Tensor& tensor) {
  graph.effort().spend(1 + tensor.nbytes() / 64);
  const char* const bytes = static_cast<const char*>(tensor.const_data_ptr());
  return std::all_of(bytes, bytes + tensor.nbytes(), [](char byte) { return byte == 0; });
}

bool is_constant(const Graph& graph, int v) {
  const auto& value = graph.values()[v];
  return value.value->isTensor() && value.constant && value.data != nullptr;
}

// Whether a value is a matrix of int8 that is the same in every call.
bool is_weight(const Graph& graph, int v) {
  if (!is_constant(graph, v)) return false;
  const Tensor& t = graph.tensor(v);
  return t.dim() == 2 && t.numel() > 0 && t.scalar_type() == ScalarType::Char && default_order(t);
}

// The operator's arguments (Tensor input, Tensor scales, Tensor? zero_points, ...), with constants
// that belong together.
class Dequantization {
 public:
  Dequantization(const Graph& graph, int node) : graph_(graph), node_(node) {}

  bool find(QuantizedOperand& found) const {
    if (graph_.is(node_, "quantized_decomposed::dequantize_per_tensor.out")) return find_one(found);
    constexpr std::string_view kRows = "quantized_decomposed::dequantize_per_channel.out";
    constexpr std::string_view kGroups = "quantized_decomposed::dequantize_per_channel_group.out";
    const bool in_groups = graph_.is(node_, kGroups);
    if (!in_groups && !graph_.is(node_, kRows)) return false;
    if (!is_weight(graph_, graph_.arg_id(node_, 0)) ||
        number(in_groups ? 5 : 6) != static_cast<int64_t>(ScalarType::Char)) {
      return false;
    }
    const int64_t columns = tensor(0).size(1);
    int64_t group = columns;
    if (in_groups) {
      group = std::min(number(6), columns);
    } else if (number(3) != 0) {
      return false;
    }
    if (group <= 0 || columns % group != 0 || !are_parameters(1, group)) return false;
    const EValue* const zero_points = graph_.arg(node_, 2);
    if (!zero_points->isNone() && !are_parameters(2, group)) return false;
    found.group = group;
    found.scales = graph_.arg(node_, 1);
    if (!zero_points->isNone() && !is_all_zero(graph_, tensor(2))) found.zero_points = zero_points;
    return true;
  }

 private:
  // The operator's arguments (Tensor input, float scale, int zero_point, ...).
  bool find_one(QuantizedOperand& found) const {
    const auto scale = graph_.constant_number(graph_.arg(node_, 1));
    if (!is_weight(graph_, graph_.arg_id(node_, 0)) || !scale.has_value() || number(2) != 0 ||
        number(5) != static_cast<int64_t>(ScalarType::Char)) {
      return false;
    }
    found.group = tensor(0).size(1);
    found.scale = static_cast<float>(*scale);
    return true;
  }
  const Tensor& tensor(size_t i) const { return graph_.arg(node_, i)->toTensor(); }
  // -1 if it is not the same in every call, or no size of a dimension.
  int64_t number(size_t i) const {
    const double x = graph_.constant_number(graph_.arg(node_, i)).value_or(-1);
    return x >= 0 && x <= std::numeric_limits<int32_t>::max() ? static_cast<int64_t>(x) : -1;
  }
  // One number for each group. Scales of Double would have weights computed in double.
  bool are_parameters(size_t i, int64_t group) const {
    if (!is_constant(graph_, graph_.arg_id(node_, i))) return false;
    const Tensor& t = tensor(i);
    const ScalarType type = t.scalar_type();
    return t.numel() == tensor(0).numel() / group && default_order(t) &&
           (runtime::isIntegralType(type, false) || type == ScalarType::Float ||
            type == ScalarType::Half || type == ScalarType::BFloat16);
  }

  const Graph& graph_;
  const int node_;
};

}  // namespace

bool QuantizedOperand::read(const Tensor& integers, cpu::Scratch& scratch,
                            cpu::QuantizedWeights& weights) const {
  weights.data = integers.const_data_ptr<int8_t>();
  weights.row_stride = integers.size(1);
  weights.group = group;
  const auto read = [&](const EValue* parameters, const float*& to) {
    if (parameters != nullptr) to = numbers(parameters, scratch);
    return parameters == nullptr || to != nullptr;
  };
  return read(scales, weights.scales) && read(zero_points, weights.zero_points);
}

bool find_quantized(const Graph& graph, int block, Graph::Chain& chain, QuantizedOperand& found) {
  const int node = graph.maker(chain.base, block);
  if (node < 0) return false;
  if (Dequantization(graph, node).find(found)) {
    chain.base = graph.arg_id(node, 0);
    return true;
  }
  if (!graph.is(node, "_to_dim_order_copy.out") && !graph.is(node, "_to_copy.out")) return false;
  Graph::Chain integers = graph.strip(graph.arg_id(node, 0), block);
  if (!is_weight(graph, integers.base)) return false;
  found.group = graph.tensor(integers.base).size(1);
  integers.steps.insert(integers.steps.end(), chain.steps.begin(), chain.steps.end());
  chain = std::move(integers);
  return true;
}

}  // namespace executorch::optimized
