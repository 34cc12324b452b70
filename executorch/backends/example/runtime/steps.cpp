#include <executorch/backends/example/runtime/steps.h>
#include <executorch/cpu/size.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <memory>

namespace executorch::backends::example {
namespace {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::Span;

struct Value {
  size_t rank = 0;
  int32_t sizes[kMaxRank] = {};
  const float* data = nullptr;

  int32_t from_end(size_t i) const { return i < rank ? sizes[rank - 1 - i] : 1; }
  /// Sizes come from tensors, files and products of them: invalid beyond int64.
  cpu::Size numel() const {
    cpu::Size n = 1;
    for (size_t i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }
};

/// A Float tensor of contiguous order, the only kind that there is here.
bool is_taken(const EValue& value, const char* what, size_t index) {
  if (!value.isTensor()) {
    ET_LOG(Error, "ExampleBackend: %s %zu is no tensor", what, index);
    return false;
  }
  const Tensor& tensor = value.toTensor();
  if (tensor.scalar_type() != ScalarType::Float || static_cast<size_t>(tensor.dim()) > kMaxRank ||
      !runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
    ET_LOG(Error, "ExampleBackend: %s %zu is %s of rank %zd; expected contiguous Float", what,
           index, runtime::toString(tensor.scalar_type()), static_cast<ssize_t>(tensor.dim()));
    return false;
  }
  return true;
}

Error read_input(const EValue& value, size_t index, Value& out) {
  if (!is_taken(value, "input", index)) return Error::InvalidArgument;
  const Tensor& tensor = value.toTensor();
  out.rank = static_cast<size_t>(tensor.dim());
  std::copy_n(tensor.sizes().data(), out.rank, out.sizes);
  out.data = static_cast<const float*>(tensor.const_data_ptr());
  if (out.data != nullptr || tensor.numel() == 0) return Error::Ok;
  ET_LOG(Error, "ExampleBackend: input %zu has no data", index);
  return Error::InvalidArgument;
}

// Sizes of the result, right-aligned and with 1 standing for any size, as in PyTorch.
bool broadcast(const Value& a, const Value& b, Value& out) {
  out.rank = std::max(a.rank, b.rank);
  for (size_t i = 0; i < out.rank; ++i) {
    const int32_t x = a.from_end(i), y = b.from_end(i);
    if (x != y && x != 1 && y != 1) return false;
    out.sizes[out.rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

bool result_sizes(Op op, const Value& a, const Value& b, Value& out) {
  if (operand_count(op) == 1) {
    out = a;
    return true;
  }
  if (op != Op::Mm) return broadcast(a, b, out);
  if (a.rank != 2 || b.rank != 2 || a.sizes[1] != b.sizes[0]) return false;
  out = {2, {a.sizes[0], b.sizes[1]}};
  return true;
}

// Where element `index` of a result comes from in an operand that was broadcast to it.
int64_t source_index(const Value& operand, const Value& result, int64_t index) {
  int64_t source = 0, stride = 1;
  for (size_t i = 0; i < operand.rank; ++i) {
    const int64_t at = index % result.from_end(i);
    index /= result.from_end(i);
    const int64_t own = operand.from_end(i);
    source += own == 1 ? 0 : at * stride;
    stride *= own;
  }
  return source;
}

void compute_binary(Op op, const Value& a, const Value& b, const Value& result, float* out) {
  for (int64_t i = 0; i < result.numel().value(); ++i) {
    const float x = a.data[source_index(a, result, i)];
    const float y = b.data[source_index(b, result, i)];
    out[i] = op == Op::Add ? x + y : op == Op::Sub ? x - y : x * y;
  }
}

// out[m, n] = sum_k a[m, k] * b[k, n]
void compute_mm(const Value& a, const Value& b, float* out) {
  const int64_t m = a.sizes[0], k = a.sizes[1], n = b.sizes[1];
  std::fill(out, out + m * n, 0.0f);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t col = 0; col < n; ++col) {
        out[row * n + col] += a.data[row * k + i] * b.data[i * n + col];
      }
    }
  }
}

void compute(Op op, const Value& a, const Value& b, const Value& result, float* out) {
  if (op == Op::Mm) {
    compute_mm(a, b, out);
  } else if (operand_count(op) == 2) {
    compute_binary(op, a, b, result, out);
  } else {
    for (int64_t i = 0; i < result.numel().value(); ++i) {
      out[i] = op == Op::Sin ? std::sin(a.data[i]) : std::max(a.data[i], 0.0f);
    }
  }
}

Error write_output(const Value& value, const EValue& out, size_t index) {
  if (!is_taken(out, "output", index)) return Error::InvalidArgument;
  const Tensor& tensor = out.toTensor();
  const Error error = runtime::resize_tensor(tensor, {value.sizes, value.rank});
  if (error != Error::Ok) return error;
  const auto data = runtime::internal::writable_data(tensor);
  if (!data.ok()) return data.error();
  // An output may be an input that no step changed.
  if (tensor.nbytes() > 0) std::memmove(*data, value.data, tensor.nbytes());
  return Error::Ok;
}

// Memory for `count` Ts until the call ends; null if that is refused.
template <class T>
T* allocate(runtime::BackendExecutionContext& context, cpu::Size count) {
  const cpu::Size bytes = count * sizeof(T) + 1;
  return bytes.fits<size_t>()
             ? static_cast<T*>(context.allocate(static_cast<size_t>(bytes.value()), alignof(T)))
             : nullptr;
}

// The values of a call, and what was computed and is held so far, in elements.
struct Call {
  runtime::BackendExecutionContext& context;
  Value* values = nullptr;
  cpu::Size work, held;
};

Error run_step(const Step& step, Value& result, Call& call) {
  const Value &a = call.values[step.operands[0]], &b = call.values[step.operands[1]];
  ET_CHECK_OR_RETURN_ERROR(
      result_sizes(step.op, a, b, result) && result.numel().ok(), InvalidArgument,
      "ExampleBackend: the shapes of values %" PRIu32 " and %" PRIu32 " do not fit",
      step.operands[0], step.operands[1]);
  // Results can be larger than all that the file and the caller bring, and products of them.
  call.work += result.numel() * (step.op == Op::Mm ? a.sizes[1] : 1);
  ET_CHECK_OR_RETURN_ERROR(cpu::is_affordable(call.work, call.held), NotSupported,
                           "ExampleBackend: too much to compute from so few elements");
  auto* const out = allocate<float>(call.context, result.numel());
  if (out == nullptr) return Error::MemoryAllocationFailed;
  compute(step.op, a, b, result, out);
  result.data = out;
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
      ET_CHECK_OR_RETURN_ERROR(step.operands[i] < known, InvalidProgram,
                               "ExampleBackend: a step reads value %" PRIu32 " of %zu",
                               step.operands[i], known);
    }
    ++known;
  }
  for (const uint32_t output : outputs) {
    ET_CHECK_OR_RETURN_ERROR(output < known, InvalidProgram,
                             "ExampleBackend: an output is value %" PRIu32 " of %zu", output,
                             known);
  }
  return Error::Ok;
}

Error Steps::run(runtime::BackendExecutionContext& context, Span<EValue*> args) const {
  ET_CHECK_OR_RETURN_ERROR(args.size() >= outputs.size(), InvalidProgram,
                           "ExampleBackend: %zu arguments for %zu outputs", args.size(),
                           outputs.size());
  const size_t n_inputs = args.size() - outputs.size();
  ET_CHECK_OK_OR_RETURN_ERROR(check(n_inputs));
  Call call{context, nullptr, 0, 0};
  const size_t n_values = n_inputs + constants.size() + steps.size();
  call.values = allocate<Value>(context, n_values);
  if (call.values == nullptr) return Error::MemoryAllocationFailed;
  std::uninitialized_fill_n(call.values, n_values, Value());
  Value* next = call.values;
  for (size_t i = 0; i < n_inputs; ++i, ++next) {
    ET_CHECK_OK_OR_RETURN_ERROR(read_input(*args[i], i, *next));
    call.held += next->numel();
  }
  for (const Constant& constant : constants) {
    next->rank = constant.rank;
    std::copy_n(constant.sizes, constant.rank, next->sizes);
    next->data = static_cast<const float*>(data[constant.data].data());
    ++next;
  }
  for (const auto& buffer : data) call.held += buffer.size() / sizeof(float);
  for (const Step& step : steps) {
    ET_CHECK_OK_OR_RETURN_ERROR(run_step(step, *next++, call));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(write_output(call.values[outputs[i]], *args[n_inputs + i], i));
  }
  return Error::Ok;
}

}  // namespace executorch::backends::example
