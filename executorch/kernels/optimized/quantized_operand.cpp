#include <executorch/kernels/optimized/quantized_operand.h>

#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

using aten::ScalarType;

// n numbers that a constant tensor holds, as floats; null if memory is refused.
const float* numbers(const Tensor& tensor, cpu::Scratch& scratch) {
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

// The operator's arguments (Tensor input, Tensor scales, Tensor? zero_points, ...), with constants
// that belong together.
class Dequantization {
 public:
  Dequantization(const Graph& graph, int node) : graph_(graph), node_(node) {}

  bool find(QuantizedOperand& found) const {
    const bool in_groups =
        graph_.is(node_, "quantized_decomposed::dequantize_per_channel_group.out");
    if (!in_groups && !graph_.is(node_, "quantized_decomposed::dequantize_per_channel.out"))
      return false;
    if (!is_constant(0) || !is_constant(1)) return false;
    const Tensor& weight = tensor(0);
    if (weight.dim() != 2 || weight.numel() == 0 || weight.scalar_type() != ScalarType::Char ||
        !default_order(weight) || number(in_groups ? 5 : 6) != static_cast<int>(ScalarType::Char)) {
      return false;
    }
    found.group = weight.size(1);
    if (in_groups) {
      const int64_t group = number(6);
      if (group > 0 && group < found.group) found.group = group;
    } else if (number(3) != 0) {
      return false;
    }
    if (weight.size(1) % found.group != 0 || !are_parameters(1, found.group)) return false;
    found.scales = graph_.arg(node_, 1);
    const EValue* const zero_points = graph_.arg(node_, 2);
    if (zero_points->isNone()) return true;
    if (!are_parameters(2, found.group)) return false;
    if (!is_all_zero(graph_, tensor(2))) found.zero_points = zero_points;
    return true;
  }

 private:
  const Tensor& tensor(size_t i) const { return graph_.arg(node_, i)->toTensor(); }
  bool is_constant(size_t i) const {
    const auto& value = graph_.values()[graph_.arg_id(node_, i)];
    return value.value->isTensor() && value.constant && value.data != nullptr;
  }
  // -1 if it is not the same in every call.
  int64_t number(size_t i) const {
    return static_cast<int64_t>(graph_.constant_number(graph_.arg(node_, i)).value_or(-1));
  }
  // One number for each group. Scales of Double would have weights computed in double.
  bool are_parameters(size_t i, int64_t group) const {
    if (!is_constant(i)) return false;
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
  weights.scales = numbers(scales->toTensor(), scratch);
  if (zero_points != nullptr) weights.zero_points = numbers(zero_points->toTensor(), scratch);
  return weights.scales != nullptr && (zero_points == nullptr || weights.zero_points != nullptr);
}

bool find_quantized(const Graph& graph, int block, Graph::Chain& chain, QuantizedOperand& found) {
  const int node = graph.maker(chain.base, block);
  if (node < 0 || !Dequantization(graph, node).find(found)) return false;
  chain.base = graph.arg_id(node, 0);
  return true;
}

}  // namespace executorch::optimized
