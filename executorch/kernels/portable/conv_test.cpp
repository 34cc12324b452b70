#include <executorch/kernels/portable/internal/testing.h>

#include <optional>
#include <vector>

using namespace torch::executor::native;

namespace {

struct Windows {
  std::vector<int64_t> stride = {1}, padding = {0}, dilation = {1}, output_padding = {0};
  bool transposed = false;
  int64_t groups = 1;
};

class Convolution : public KernelTest {
 protected:
  Tensor run(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
             const Windows& w, Tensor out) {
    const auto ref = [](const std::vector<int64_t>& v) { return IntArrayRef(v.data(), v.size()); };
    convolution_out(ctx, input, weight, bias, ref(w.stride), ref(w.padding), ref(w.dilation),
                    w.transposed, ref(w.output_padding), w.groups, out);
    return out;
  }
};

TEST_F(Convolution, OneDimensional) {
  Tensor x = floats.make({1, 1, 4}, {1, 2, 3, 4});
  EXPECT_TENSOR_EQ(
      run(x, floats.make({1, 1, 2}, {1, 10}), std::nullopt, {}, floats.zeros({1, 1, 3})),
      floats.make({1, 1, 3}, {21, 32, 43}));
}

TEST_F(Convolution, PaddingStrideDilationAndBias) {
  Tensor x = floats.make({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  Windows w;
  w.stride = {2, 2};
  w.padding = {1, 1};
  w.dilation = {2, 2};
  EXPECT_TENSOR_EQ(
      run(x, floats.ones({1, 1, 2, 2}), floats.full({1}, 100), w, floats.zeros({1, 1, 2, 2})),
      floats.full({1, 1, 2, 2}, 105))
      << "each window has one tap inside: the centre";
}

TEST_F(Convolution, LargeWindowsAreForTheEngine) {
  Windows w;
  w.stride = w.dilation = {1, 1};
  w.padding = {31, 31};
  w.output_padding = {0, 0};
  const Tensor y = run(floats.ones({1, 8, 160, 160}), floats.ones({32, 8, 63, 63}), std::nullopt, w,
                       floats.zeros({1, 32, 160, 160}));
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_EQ(y.const_data_ptr<float>()[80 * 160 + 80], 8.0f * 63 * 63);
  TensorFactory<ScalarType::Double> doubles;  // take too long one by one
  run(doubles.ones({1, 8, 160, 160}), doubles.ones({32, 8, 63, 63}), std::nullopt, w,
      doubles.zeros({1, 32, 160, 160}));
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Convolution, GroupsSeeTheirOwnChannels) {
  Tensor x = floats.make({1, 2, 2}, {1, 2, 3, 4});
  Windows w;
  w.groups = 2;
  EXPECT_TENSOR_EQ(
      run(x, floats.make({2, 1, 1}, {10, 100}), std::nullopt, w, floats.zeros({1, 2, 2})),
      floats.make({1, 2, 2}, {10, 20, 300, 400}));
}

TEST_F(Convolution, TransposedSpreadsTheInput) {
  Windows w;
  w.transposed = true;
  w.stride = {2};
  w.output_padding = {1};
  EXPECT_TENSOR_EQ(run(floats.make({1, 1, 2}, {1, 2}), floats.make({1, 1, 2}, {1, 10}),
                       std::nullopt, w, floats.zeros({1, 1, 5})),
                   floats.make({1, 1, 5}, {1, 10, 2, 20, 0}));
}

TEST_F(Convolution, ChannelsLastGivesTheSameNumbers) {
  std::vector<float> values(2 * 3 * 4 * 5), taps(4 * 3 * 2 * 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 11);
  for (size_t i = 0; i < taps.size(); ++i) taps[i] = static_cast<float>(i % 5);
  Tensor x = floats.make({2, 3, 4, 5}, values), weight = floats.make({4, 3, 2, 2}, taps);
  Tensor plain = run(x, weight, std::nullopt, {}, floats.zeros({2, 4, 3, 4}));
  Tensor last = run(floats.channels_last_like(x), floats.channels_last_like(weight), std::nullopt,
                    {}, floats.full_channels_last({2, 4, 3, 4}, 0));
  EXPECT_TENSOR_EQ(last, floats.channels_last_like(plain));
}

TEST_F(Convolution, RefusesMismatchedChannelsAndOversizedKernels) {
  run(floats.ones({1, 3, 4}), floats.ones({1, 2, 2}), std::nullopt, {}, floats.zeros({1, 1, 3}));
  expect_failure();
  run(floats.ones({1, 1, 2}), floats.ones({1, 1, 3}), std::nullopt, {}, floats.zeros({1, 1, 1}));
  expect_failure();
  Windows still;
  still.stride = {0};
  run(floats.ones({1, 1, 2}), floats.ones({1, 1, 1}), std::nullopt, still, floats.zeros({1, 1, 2}));
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Convolution, SpreadsTheInputByAnyStride) {
  Windows w;
  w.transposed = true;
  for (const int64_t stride : {65535, 2147483647}) {
    w.stride = {stride, stride};
    w.padding = {stride / 2, stride / 2};
    w.output_padding = {0, 0};
    EXPECT_TENSOR_EQ(run(floats.ones({1, 1, 2, 2}), floats.full({1, 1, 1, 1}, 3), floats.ones({1}),
                         w, floats.zeros({1, 1, 2, 2})),
                     floats.ones({1, 1, 2, 2}));
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
  }
}

TEST_F(Convolution, LeavesOutTapsThatMeetNothing) {
  Windows w;
  for (const int64_t dilation : {1 << 24, 2147483647}) {
    w.padding = w.dilation = {dilation};
    EXPECT_TENSOR_EQ(run(floats.make({1, 1, 3}, {1, 2, 3}), floats.make({1, 1, 3}, {5, 10, 7}),
                         std::nullopt, w, floats.zeros({1, 1, 3})),
                     floats.make({1, 1, 3}, {10, 20, 30}));
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
  }
}

TEST_F(Convolution, RefusesAResultLargerThanAnyTensor) {
  Windows w;
  w.padding = {2147483647};
  run(floats.ones({1, 1, 3}), floats.ones({1, 1, 1}), std::nullopt, w, floats.zeros({1, 1, 2}));
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Convolution, TakesAnImageOfNoColumns) {
  TensorFactory<ScalarType::BFloat16> shorts;
  Windows w;
  w.padding = {2};
  EXPECT_TENSOR_EQ(run(halves.zeros({1, 2, 0}), halves.ones({3, 2, 3}), halves.full({3}, 5), w,
                       halves.zeros({1, 3, 2})),
                   halves.full({1, 3, 2}, 5));
  EXPECT_TENSOR_EQ(run(shorts.zeros({1, 2, 0}), shorts.ones({3, 2, 3}), shorts.full({3}, 5), w,
                       shorts.zeros({1, 3, 2})),
                   shorts.full({1, 3, 2}, 5));
  EXPECT_TENSOR_EQ(run(floats.zeros({0, 2, 4}), floats.ones({3, 2, 3}), std::nullopt, {},
                       floats.zeros({0, 3, 2})),
                   floats.zeros({0, 3, 2}));
}

// The one pixel meets every tap, each of another output.
TEST_F(Convolution, GivesGradientsOfWhatEachTapMeets) {
  constexpr int32_t kTaps = 1 << 15;
  std::vector<float> taps(kTaps), grads(kTaps), flipped(kTaps);
  float sum = 0;
  for (size_t i = 0; i < kTaps; ++i) {
    taps[i] = static_cast<float>(i % 7);
    grads[i] = static_cast<float>(i % 5);
    flipped[kTaps - 1 - i] = 3 * grads[i];
  }
  for (size_t i = 0; i < kTaps; ++i) sum += grads[i] * taps[kTaps - 1 - i];
  Tensor to_x = floats.zeros({1, 1, 1}), to_weight = floats.zeros({1, 1, kTaps});
  Tensor to_bias = floats.zeros({1});
  const int64_t one = 1, padding = kTaps - 1, zero = 0;
  const bool all[] = {true, true, false};
  convolution_backward_out(ctx, floats.make({1, 1, kTaps}, grads), floats.full({1, 1, 1}, 3),
                           floats.make({1, 1, kTaps}, taps), std::nullopt, {&one, 1}, {&padding, 1},
                           {&one, 1}, false, {&zero, 1}, 1, {all, 3}, to_x, to_weight, to_bias);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(to_x, floats.full({1, 1, 1}, sum));
  EXPECT_TENSOR_EQ(to_weight, floats.make({1, 1, kTaps}, flipped));
}

TEST_F(Convolution, MaxPoolReportsPositionsOfThePlane) {
  Tensor x = floats.make({1, 1, 2, 4}, {1, 5, 2, 0, 3, 4, 7, 8});
  Tensor out = floats.zeros({1, 1, 1, 2}), indices = longs.zeros({1, 1, 1, 2});
  const int64_t two = 2, zero = 0, one = 1;
  max_pool2d_with_indices_out(ctx, x, {&two, 1}, {}, {&zero, 1}, {&one, 1}, false, out, indices);
  EXPECT_TENSOR_EQ(out, floats.make({1, 1, 1, 2}, {5, 8}));
  EXPECT_TENSOR_EQ(indices, longs.make({1, 1, 1, 2}, {1, 7}));
}

TEST_F(Convolution, AveragePoolCountsPaddingOnlyWhenAsked) {
  Tensor x = floats.full({1, 1, 1, 1}, 9), out = floats.zeros({1, 1, 1, 1});
  const int64_t three = 3, one = 1;
  avg_pool2d_out(ctx, x, {&three, 1}, {}, {&one, 1}, false, true, std::nullopt, out);
  EXPECT_TENSOR_EQ(out, floats.full({1, 1, 1, 1}, 1));
  avg_pool2d_out(ctx, x, {&three, 1}, {}, {&one, 1}, false, false, std::nullopt, out);
  EXPECT_TENSOR_EQ(out, floats.full({1, 1, 1, 1}, 9));
}

TEST_F(Convolution, BackwardGivesTheThreeGradients) {
  Tensor x = floats.make({1, 1, 3}, {1, 2, 3}), weight = floats.make({1, 1, 2}, {10, 100});
  Tensor grad = floats.make({1, 1, 2}, {1, 2});
  Tensor to_x = floats.zeros({1, 1, 3}), to_weight = floats.zeros({1, 1, 2});
  Tensor to_bias = floats.zeros({1});
  const int64_t one = 1, zero = 0;
  const bool all[] = {true, true, true};
  convolution_backward_out(ctx, grad, x, weight, std::nullopt, {&one, 1}, {&zero, 1}, {&one, 1},
                           false, {&zero, 1}, 1, {all, 3}, to_x, to_weight, to_bias);
  EXPECT_TENSOR_EQ(to_x, floats.make({1, 1, 3}, {10, 120, 200}));
  EXPECT_TENSOR_EQ(to_weight, floats.make({1, 1, 2}, {5, 8}));
  EXPECT_TENSOR_EQ(to_bias, floats.make({1}, {3}));
}

// More taps than a panel of any instruction set has columns: x is all ones, so that the gradient of
// each tap is the sum of the output's.
TEST_F(Convolution, BackwardGivesGradientsOfManyTaps) {
  for (const int taps : {31, 32, 33, 47, 48, 49, 97}) {
    const int n = 20;  // results
    Tensor x = floats.ones({1, 1, taps + n - 1}), weight = floats.ones({2, 1, taps});
    Tensor grad = floats.ones({1, 2, n}), to_weight = floats.zeros({2, 1, taps});
    Tensor to_x = floats.zeros({1, 1, taps + n - 1}), to_bias = floats.zeros({2});
    const int64_t one = 1, zero = 0;
    const bool weights_only[] = {false, true, false};
    convolution_backward_out(ctx, grad, x, weight, std::nullopt, {&one, 1}, {&zero, 1}, {&one, 1},
                             false, {&zero, 1}, 1, {weights_only, 3}, to_x, to_weight, to_bias);
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
    EXPECT_TENSOR_EQ(to_weight, floats.full({2, 1, taps}, n));
  }
}

TEST_F(Convolution, MaxPoolBackwardRefusesPositionsOutsideThePlane) {
  Tensor x = floats.zeros({1, 1, 2, 2}), grad = floats.full({1, 1, 1, 1}, 3);
  const int64_t two = 2, one = 1, zero = 0;
  const auto backward = [&](int64_t position) {
    max_pool2d_with_indices_backward_out(ctx, grad, x, {&two, 1}, {}, {&zero, 1}, {&one, 1}, false,
                                         longs.full({1, 1, 1, 1}, position), x);
  };
  backward(2);
  EXPECT_TENSOR_EQ(x, floats.make({1, 1, 2, 2}, {0, 0, 3, 0}));
  backward(4);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

}  // namespace
