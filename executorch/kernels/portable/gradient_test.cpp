#include <executorch/kernels/portable/internal/testing.h>

#include <chrono>
#include <cstdint>

using namespace torch::executor::native;

namespace {

class AveragePoolGradient : public KernelTest {};

// Rows without columns are of no use to the result, however many there are.
TEST_F(AveragePoolGradient, OfNothingIsZeroAtOnce) {
  Tensor grad = floats.zeros({2, 3, INT32_MAX, 0}), x = floats.ones({2, 3, 7, 6});
  Tensor out = floats.ones({2, 3, 7, 6});
  const auto start = std::chrono::steady_clock::now();
  _adaptive_avg_pool2d_backward_out(ctx, grad, x, out);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 1);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, floats.zeros({2, 3, 7, 6}));
}

}  // namespace
