/// Normalization and softmax.
#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>

using namespace torch::executor::native;

namespace {

class Norm : public KernelTest {};

TEST_F(Norm, LayerNormScalesRowsToUnitVariance) {
  Tensor x = floats.make({2, 4}, {1, 2, 3, 4, -10, 10, -10, 10});
  Tensor w = floats.make({4}, {1, 1, 2, 2}), b = floats.make({4}, {0, 0, 0, 1});
  Tensor y = floats.zeros({2, 4}), mean = floats.zeros({2, 1}), rstd = floats.zeros({2, 1});
  const int64_t shape = 4;
  native_layer_norm_out(ctx, x, IntArrayRef(&shape, 1), w, b, 0.0, y, mean, rstd);
  const float s = 1 / std::sqrt(1.25f);
  EXPECT_TENSOR_CLOSE(y,
                      floats.make({2, 4}, {-1.5f * s, -0.5f * s, 1 * s, 3 * s + 1, -1, 1, -2, 3}));
  EXPECT_TENSOR_CLOSE(mean, floats.make({2, 1}, {2.5, 0}));
  EXPECT_TENSOR_CLOSE(rstd, floats.make({2, 1}, {s, 0.1f}));
}

TEST_F(Norm, LayerNormOfALongRowMatchesTheFormula) {
  const int32_t n = 5000;  // several chunks
  Tensor x = floats.zeros({n}), y = floats.zeros({n});
  Tensor mean = floats.zeros({1}), rstd = floats.zeros({1});
  for (int32_t i = 0; i < n; ++i) x.mutable_data_ptr<float>()[i] = static_cast<float>(i);
  const int64_t shape = n;
  native_layer_norm_out(ctx, x, IntArrayRef(&shape, 1), std::nullopt, std::nullopt, 1e-5, y, mean,
                        rstd);
  const double exact_mean = (n - 1) / 2.0, exact_var = (static_cast<double>(n) * n - 1) / 12;
  for (int32_t i = 0; i < n; ++i) {
    const double exact = (i - exact_mean) / std::sqrt(exact_var + 1e-5);
    ASSERT_NEAR(y.const_data_ptr<float>()[i], exact, 4 * 0x1p-24 * std::fabs(exact) + 1e-7);
  }
}

TEST_F(Norm, LayerNormRefusesAShapeThatIsNotTheEnd) {
  Tensor x = floats.ones({2, 4}), y = floats.zeros({2, 4});
  Tensor mean = floats.zeros({2, 1}), rstd = floats.zeros({2, 1});
  const int64_t shape = 3;
  native_layer_norm_out(ctx, x, IntArrayRef(&shape, 1), std::nullopt, std::nullopt, 1e-5, y, mean,
                        rstd);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Norm, GroupNormIsTheSameInChannelsLast) {
  Tensor x = floats.make({1, 4, 1, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  Tensor w = floats.make({4}, {1, 2, 3, 4}), b = floats.make({4}, {0, 1, 2, 3});
  Tensor y = floats.zeros({1, 4, 1, 2}), mean = floats.zeros({1, 2}), rstd = floats.zeros({1, 2});
  native_group_norm_out(ctx, x, w, b, 1, 4, 2, 2, 1e-5, y, mean, rstd);
  Tensor z = floats.zeros_channels_last({1, 4, 1, 2});
  native_group_norm_out(ctx, floats.channels_last_like(x), w, b, 1, 4, 2, 2, 1e-5, z, mean, rstd);
  EXPECT_TENSOR_CLOSE(floats.channels_last_like(y), z);
  EXPECT_TENSOR_CLOSE(mean, floats.make({1, 2}, {2.5, 25}));
}

TEST_F(Norm, BatchNormIsTheSameInBothLayoutsAndUpdatesRunningStatistics) {
  Tensor x = floats.make({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  Tensor mean = floats.zeros({2}), var = floats.ones({2});
  Tensor y = floats.zeros({1, 2, 2, 2}), save_mean = floats.zeros({2}), save = floats.zeros({2});
  _native_batch_norm_legit_out(ctx, x, std::nullopt, std::nullopt, mean, var, true, 0.5, 0.0, y,
                               save_mean, save);
  EXPECT_TENSOR_CLOSE(save_mean, floats.make({2}, {2.5, 25}));
  EXPECT_TENSOR_CLOSE(mean, floats.make({2}, {1.25, 12.5}));
  EXPECT_TENSOR_CLOSE(var, floats.make({2}, {0.5f + 2.5f / 3, 0.5f + 250.0f / 3}));
  Tensor z = floats.zeros_channels_last({1, 2, 2, 2});
  _native_batch_norm_legit_no_stats_out(ctx, floats.channels_last_like(x), std::nullopt,
                                        std::nullopt, true, 0.5, 0.0, z, save_mean, save);
  EXPECT_TENSOR_CLOSE(floats.channels_last_like(y), z);
}

TEST_F(Norm, BatchNormForInferenceLeavesSavedStatisticsEmpty) {
  Tensor x = floats.make({2, 2}, {1, 10, 3, 30}), y = floats.zeros({2, 2});
  Tensor none0 = floats.zeros({0}), none1 = floats.zeros({0});
  _native_batch_norm_legit_no_training_out(ctx, x, floats.make({2}, {2, 1}), floats.ones({2}),
                                           floats.make({2}, {1, 10}), floats.make({2}, {4, 100}),
                                           0.1, 0.0, y, none0, none1);
  EXPECT_TENSOR_CLOSE(y, floats.make({2, 2}, {1, 1, 3, 3}));
  EXPECT_EQ(none0.numel(), 0);
}

TEST_F(Norm, BatchNormRefusesParametersOfAnotherLength) {
  Tensor x = floats.ones({2, 2}), y = floats.zeros({2, 2});
  Tensor none0 = floats.zeros({0}), none1 = floats.zeros({0});
  _native_batch_norm_legit_no_training_out(ctx, x, std::nullopt, std::nullopt, floats.ones({3}),
                                           floats.ones({2}), 0.1, 0.0, y, none0, none1);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Norm, SoftmaxOfALongLineSumsToOne) {
  const int32_t n = 4000;  // several chunks
  Tensor x = floats.zeros({n}), y = floats.zeros({n});
  for (int32_t i = 0; i < n; ++i) {
    x.mutable_data_ptr<float>()[i] = 80.0f * std::sin(static_cast<float>(i));
  }
  softmax_out(ctx, x, 0, false, y);
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += y.const_data_ptr<float>()[i];
  EXPECT_NEAR(sum, 1, 8 * 0x1p-24);
}

TEST_F(Norm, SoftmaxWorksAlongAnyDimAndInHalf) {
  Tensor x = floats.make({2, 2}, {0, 1, 0, 1}), y = floats.zeros({2, 2});
  softmax_out(ctx, x, 0, false, y);
  EXPECT_TENSOR_CLOSE(y, floats.full({2, 2}, 0.5));
  Tensor h = halves.make({2}, {1, 1}), out = halves.zeros({2});
  log_softmax_out(ctx, h, -1, false, out);
  EXPECT_TENSOR_CLOSE(out, halves.full({2}, -0.69314718f));
}

TEST_F(Norm, SoftmaxRefusesIntegersAndBadDims) {
  Tensor out = floats.zeros({2});
  softmax_out(ctx, longs.ones({2}), 0, false, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  KernelRuntimeContext second;
  softmax_out(second, floats.ones({2}), 1, false, out);
  EXPECT_EQ(second.failure_state(), Error::InvalidArgument);
}

}  // namespace
