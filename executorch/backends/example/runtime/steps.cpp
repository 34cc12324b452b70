#include <executorch/backends/example/runtime/steps.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

namespace executorch::backends::example {
namespace {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::Span;

constexpr size_t kMaxRank = 16;

struct Value {
  std::vector<int32_t> sizes;
  const float* data = nullptr;

  size_t numel() const {
    size_t n = 1;
    for (const int32_t size : sizes) n *= static_cast<size_t>(size);
    return n;
  }
};

Error read_input(const EValue& value, size_t index, Value& out) {
  if (!value.isTensor()) {
    ET_LOG(Error, "ExampleBackend: input %zu is no tensor", index);
    return Error::InvalidArgument;
  }
  const Tensor& tensor = value.toTensor();
  if (tensor.scalar_type() != ScalarType::Float || tensor.dim() > ssize_t{kMaxRank} ||
      !runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
    ET_LOG(Error, "ExampleBackend: input %zu is %s of rank %zd; expected contiguous Float", index,
           runtime::toString(tensor.scalar_type()), static_cast<ssize_t>(tensor.dim()));
    return Error::InvalidArgument;
  }
  out.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  out.data = tensor.const_data_ptr<float>();
  return Error::Ok;
}

// Whether the bytes of so many elements can be counted.
bool is_countable(const std::vector<int32_t>& sizes) {
  size_t bytes = sizeof(float);
  for (const int32_t size : sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) return false;
  }
  return bytes < SIZE_MAX;
}

// Sizes of the result, right-aligned and with 1 standing for any size, as in PyTorch.
bool broadcast(const Value& a, const Value& b, std::vector<int32_t>& sizes) {
  const size_t rank = std::max(a.sizes.size(), b.sizes.size());
  sizes.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int32_t x = i < a.sizes.size() ? a.sizes[a.sizes.size() - 1 - i] : 1;
    const int32_t y = i < b.sizes.size() ? b.sizes[b.sizes.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    sizes[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

bool result_sizes(Op op, const Value& a, const Value& b, std::vector<int32_t>& sizes) {
  if (operand_count(op) == 1) {
    sizes = a.sizes;
    return true;
  }
  if (op != Op::Mm) return broadcast(a, b, sizes);
  if (a.sizes.size() != 2 || b.sizes.size() != 2 || a.sizes[1] != b.sizes[0]) return false;
  sizes = {a.sizes[0], b.sizes[1]};
  return true;
}

// Where element `index` of a result of `sizes` comes from in an operand that was broadcast to it.
size_t source_index(const Value& operand, const std::vector<int32_t>& sizes, size_t index) {
  size_t source = 0;
  size_t stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<size_t>(sizes[sizes.size() - 1 - i]);
    const size_t at = index % size;
    index /= size;
    if (i < operand.sizes.size()) {
      const auto own = static_cast<size_t>(operand.sizes[operand.sizes.size() - 1 - i]);
      source += own == 1 ? 0 : at * stride;
      stride *= own;
    }
  }
  return source;
}

void compute_binary(Op op, const Value& a, const Value& b, const std::vector<int32_t>& sizes,
                    size_t numel, float* out) {
  for (size_t i = 0; i < numel; ++i) {
    const float x = a.data[source_index(a, sizes, i)];
    const float y = b.data[source_index(b, sizes, i)];
    out[i] = op == Op::Add ? x + y : op == Op::Sub ? x - y : x * y;
  }
}

// out[m, n] = sum_k a[m, k] * b[k, n]
void compute_mm(const Value& a, const Value& b, float* out) {
  const auto m = static_cast<size_t>(a.sizes[0]);
  const auto k = static_cast<size_t>(a.sizes[1]);
  const auto n = static_cast<size_t>(b.sizes[1]);
  std::fill(out, out + m * n, 0.0f);
  for (size_t row = 0; row < m; ++row) {
    for (size_t i = 0; i < k; ++i) {
      for (size_t col = 0; col < n; ++col) {
        out[row * n + col] += a.data[row * k + i] * b.data[i * n + col];
      }
    }
  }
}

void compute(Op op, const Value& a, const Value& b, const Value& result, float* out) {
  const size_t numel = result.numel();
  if (op == Op::Mm) {
    compute_mm(a, b, out);
  } else if (operand_count(op) == 2) {
    compute_binary(op, a, b, result.sizes, numel, out);
  } else {
    for (size_t i = 0; i < numel; ++i) {
      out[i] = op == Op::Sin ? std::sin(a.data[i]) : std::max(a.data[i], 0.0f);
    }
  }
}

Error write_output(const Value& value, EValue& out, size_t index) {
  if (!out.isTensor() || out.toTensor().scalar_type() != ScalarType::Float) {
    ET_LOG(Error, "ExampleBackend: output %zu is no Float tensor", index);
    return Error::InvalidArgument;
  }
  Tensor& tensor = out.toTensor();
  const Error error = runtime::resize_tensor(
      tensor, aten::ArrayRef<int32_t>(value.sizes.data(), value.sizes.size()));
  if (error != Error::Ok) return error;
  if (tensor.nbytes() > 0) std::memcpy(tensor.mutable_data_ptr(), value.data, tensor.nbytes());
  return Error::Ok;
}

}  // namespace

int operand_count(Op op) {
  return op == Op::Relu || op == Op::Sin ? 1 : 2;
}

Error Steps::check(size_t n_inputs) const {
  size_t known = n_inputs + constants.size();
  for (const Step& step : steps) {
    for (int i = 0; i < operand_count(step.op); ++i) {
      if (step.operands[i] >= known) {
        ET_LOG(Error, "ExampleBackend: a step reads value %" PRIu32 " of %zu", step.operands[i],
               known);
        return Error::InvalidProgram;
      }
    }
    ++known;
  }
  for (const uint32_t output : outputs) {
    if (output >= known) {
      ET_LOG(Error, "ExampleBackend: an output is value %" PRIu32 " of %zu", output, known);
      return Error::InvalidProgram;
    }
  }
  return Error::Ok;
}

Error Steps::run(runtime::BackendExecutionContext& context, Span<EValue*> args) const {
  if (args.size() < outputs.size()) {
    ET_LOG(Error, "ExampleBackend: %zu arguments for %zu outputs", args.size(), outputs.size());
    return Error::InvalidProgram;
  }
  const size_t n_inputs = args.size() - outputs.size();
  Error error = check(n_inputs);
  if (error != Error::Ok) return error;
  std::vector<Value> values(n_inputs);
  values.reserve(n_inputs + constants.size() + steps.size());
  for (size_t i = 0; i < n_inputs; ++i) {
    error = read_input(*args[i], i, values[i]);
    if (error != Error::Ok) return error;
  }
  for (const Constant& constant : constants) {
    values.push_back({constant.sizes, static_cast<const float*>(constant.bytes.data())});
  }
  for (const Step& step : steps) {
    const Value& a = values[step.operands[0]];
    const Value& b = values[step.operands[1]];
    Value result;
    if (!result_sizes(step.op, a, b, result.sizes) || !is_countable(result.sizes)) {
      ET_LOG(Error, "ExampleBackend: the shapes of values %" PRIu32 " and %" PRIu32 " do not fit",
             step.operands[0], step.operands[1]);
      return Error::InvalidArgument;
    }
    auto* const out = static_cast<float*>(context.allocate(result.numel() * sizeof(float) + 1));
    if (out == nullptr) return Error::MemoryAllocationFailed;
    compute(step.op, a, b, result, out);
    result.data = out;
    values.push_back(result);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    error = write_output(values[outputs[i]], *args[n_inputs + i], i);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

}  // namespace executorch::backends::example
