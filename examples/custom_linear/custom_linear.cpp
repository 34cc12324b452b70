#include "custom_linear.h"

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;

namespace {

bool is_float(const Tensor& t) {
  return t.scalar_type() == ScalarType::Float && executorch::runtime::tensor_is_contiguous(t);
}

}  // namespace

Tensor& custom_linear_out(KernelRuntimeContext& ctx, const Tensor& weight, const Tensor& input,
                          const std::optional<Tensor>& bias, Tensor& out) {
  ET_KERNEL_CHECK(ctx, is_float(weight) && is_float(input) && is_float(out), InvalidArgument, out);
  ET_KERNEL_CHECK(ctx, !bias.has_value() || is_float(*bias), InvalidArgument, out);
  ET_KERNEL_CHECK(ctx, weight.dim() == 2 && input.dim() >= 1, InvalidArgument, out);
  const auto n = weight.size(0);
  const auto k = weight.size(1);
  ET_KERNEL_CHECK(ctx, input.size(input.dim() - 1) == k, InvalidArgument, out);
  ET_KERNEL_CHECK(ctx, !bias.has_value() || bias->numel() == n, InvalidArgument, out);

  int32_t sizes[executorch::runtime::kTensorDimensionLimit];
  for (ssize_t d = 0; d < input.dim(); ++d) {
    sizes[d] = static_cast<int32_t>(d + 1 < input.dim() ? input.size(d) : n);
  }
  const auto resized = executorch::runtime::resize_tensor(
      out, executorch::aten::ArrayRef<int32_t>(sizes, static_cast<size_t>(input.dim())));
  ET_KERNEL_CHECK(ctx, resized == executorch::runtime::Error::Ok, InvalidArgument, out);

  const float* x = input.const_data_ptr<float>();
  const float* const w = weight.const_data_ptr<float>();
  const float* const b = bias.has_value() ? bias->const_data_ptr<float>() : nullptr;
  float* y = out.mutable_data_ptr<float>();
  for (float* const end = y + out.numel(); y != end; y += n, x += k) {
    for (ssize_t i = 0; i < n; ++i) {
      float sum = b == nullptr ? 0.0f : b[i];
      for (ssize_t j = 0; j < k; ++j) sum += x[j] * w[i * k + j];
      y[i] = sum;
    }
  }
  return out;
}

// Registers myop::custom_linear.out with the runtime, in the application or in Python.
EXECUTORCH_LIBRARY(myop, "custom_linear.out", custom_linear_out);
