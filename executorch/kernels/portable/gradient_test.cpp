#include <executorch/kernels/portable/internal/testing.h>

#include <cstdint>

using namespace torch::executor::native;

namespace {

class AveragePool : public KernelTest {};

// Rows without columns are of no use to the result, however many there are.
TEST_F(AveragePool, GradientOfNothingIsZeroAtOnce) {
  Tensor grad = floats.zeros({2, 3, INT32_MAX, 0}), x = floats.ones({2, 3, 7, 6});
  Tensor out = floats.ones({2, 3, 7, 6});
  expect_within(1, [&] { _adaptive_avg_pool2d_backward_out(ctx, grad, x, out); });
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, floats.zeros({2, 3, 7, 6}));
}

// Many windows that cover wide rows: 16 * 65536 * 2 * 287 steps, if each is visited by itself.
TEST_F(AveragePool, GradientOfManyWideWindowsIsSpreadByAxes) {
  Tensor grad = floats.ones({1, 16, 65536, 2}), x = floats.ones({1, 16, 7, 574});
  Tensor out = floats.zeros({1, 16, 7, 574});
  expect_within(1, [&] { _adaptive_avg_pool2d_backward_out(ctx, grad, x, out); });
  // One window in 65536 / 7 rows covers two of them; a row has two windows of 287 columns each.
  const float all = 1.0f * 65536 * 2 * 16;
  float sum = 0;
  for (int64_t i = 0; i < out.numel(); ++i) sum += out.const_data_ptr<float>()[i];
  EXPECT_NEAR(sum / all, 1, 1e-3);
}

// 400 windows of one depth over 2 x 211 or 3 x 212 positions are one.
TEST_F(AveragePool, EqualWindowsAreSummedOnce) {
  Tensor x = floats.ones({3000, 1, 5, 423}), out = floats.zeros({3000, 400, 3, 2});
  const int64_t sizes[] = {400, 3, 2};
  expect_within(1, [&] { _adaptive_avg_pool3d_out(ctx, x, {sizes, 3}, out); });
  EXPECT_TENSOR_EQ(out, floats.ones({3000, 400, 3, 2}));
}

}  // namespace
