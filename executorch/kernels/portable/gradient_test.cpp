#include <executorch/kernels/portable/functions.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::testing::TensorFactory;
using namespace torch::executor::native;

namespace {

// Rows without columns are of no use to the result, however many there are.
TEST(AveragePoolGradient, OfNothingIsZeroAtOnce) {
  executorch::runtime::runtime_init();
  TensorFactory<ScalarType::Float> floats;
  Tensor grad = floats.zeros({2, 3, INT32_MAX, 0}), x = floats.ones({2, 3, 7, 6});
  Tensor out = floats.ones({2, 3, 7, 6});
  KernelRuntimeContext ctx;
  const auto start = std::chrono::steady_clock::now();
  _adaptive_avg_pool2d_backward_out(ctx, grad, x, out);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 1);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, floats.zeros({2, 3, 7, 6}));
}

}  // namespace
