#include <executorch/kernels/portable/internal/testing.h>
#include <executorch/kernels/quantized/native_functions.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace torch::executor::native;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class Quantized : public KernelTest {
 protected:
  const std::vector<float> numbers = {0,   1,        -1.5f,     1e30f, -1e30f,
                                      NAN, INFINITY, -INFINITY, 0.5f,  2};
};

TEST_F(Quantized, ResultsStayInTheirRangeWhateverTheParametersAre) {
  Tensor x = floats.make({10}, numbers);
  for (const double zero :
       {0.0, 0.6, 1e300, -1e300, 1e18, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    for (const double scale : {1.0, 1e-300, 1e300, static_cast<double>(NAN), 5e-324}) {
      Tensor s = doubles.make({1}, {scale}), z = doubles.make({1}, {zero});
      KernelRuntimeContext ctx;
      Tensor narrow = chars.zeros({10});
      quantize_per_tensor_tensor_args_out(ctx, x, s, z, -100, 90, ScalarType::Char, narrow);
      for (int i = 0; i < 10; ++i) {
        EXPECT_GE(narrow.const_data_ptr<int8_t>()[i], -100);
        EXPECT_LE(narrow.const_data_ptr<int8_t>()[i], 90);
      }
      Tensor wide = longs.zeros({10});
      quantize_per_tensor_tensor_args_out(ctx, x, s, z, kLeast, kMost, ScalarType::Long, wide);
      Tensor scales = doubles.full({10}, scale), zeros = doubles.full({10}, zero);
      quantize_per_channel_out(ctx, x, scales, zeros, 0, kLeast, kMost, ScalarType::Long, wide);
      quantize_per_channel_out(ctx, x, scales, zeros, 0, -100, 90, ScalarType::Char, narrow);
      for (int i = 0; i < 10; ++i) EXPECT_LE(narrow.const_data_ptr<int8_t>()[i], 90);
      Tensor faked = floats.zeros({10});
      fake_quant_per_channel_out(ctx, x, scales, zeros, 0, -100, 90, faked);
      EXPECT_EQ(ctx.failure_state(), Error::Ok);
    }
  }
}

TEST_F(Quantized, SumsOfAnyParametersAreDefined) {
  Tensor a = chars.make({4}, {-128, 127, 0, 1}), out = chars.zeros({4});
  for (const int64_t zero : {int64_t{0}, kLeast, kMost}) {
    KernelRuntimeContext ctx;
    quantized_add_out(ctx, a, 1e30, zero, kLeast, kMost, a, 1, zero, kLeast, kMost, 1e-30, zero,
                      -100, 90, out);
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
    for (int i = 0; i < 4; ++i) {
      EXPECT_GE(out.const_data_ptr<int8_t>()[i], -100);
      EXPECT_LE(out.const_data_ptr<int8_t>()[i], 90);
    }
  }
}

TEST_F(Quantized, RangesThatTheDtypeLacksAreRefused) {
  Tensor x = floats.ones({2}), scales = doubles.ones({2}), zeros = longs.zeros({2});
  Tensor a = chars.ones({2}), out = chars.zeros({2});
  const std::pair<int64_t, int64_t> ranges[] = {
      {-129, 127}, {-128, 128}, {kLeast, kMost}, {0, 255}, {5, 4}};
  Tensor real = floats.zeros({2});
  for (const auto& [low, high] : ranges) {
    KernelRuntimeContext add, tensor, channel, token, real_channel;
    dequantize_per_channel_out(real_channel, a, scales, zeros, 0, low, high, ScalarType::Char,
                               std::nullopt, real);
    EXPECT_EQ(real_channel.failure_state(), Error::InvalidArgument) << low << ' ' << high;
    quantized_add_out(add, a, 1, 0, -128, 127, a, 1, 0, -128, 127, 1, 0, low, high, out);
    EXPECT_EQ(add.failure_state(), Error::InvalidArgument) << low << ' ' << high;
    quantize_per_tensor_out(tensor, x, 1, 0, low, high, ScalarType::Char, out);
    EXPECT_EQ(tensor.failure_state(), Error::InvalidArgument) << low << ' ' << high;
    quantize_per_channel_out(channel, x, scales, zeros, 0, low, high, ScalarType::Char, out);
    EXPECT_EQ(channel.failure_state(), Error::InvalidArgument) << low << ' ' << high;
    quantize_per_token_out(token, x, doubles.ones({1}), longs.zeros({1}), low, high,
                           ScalarType::Char, out);
    EXPECT_EQ(token.failure_state(), Error::InvalidArgument) << low << ' ' << high;
  }
  // Of operands, and of tensors with one scale, the range says nothing: eager PyTorch does not look at
  // it either.
  KernelRuntimeContext ctx;
  dequantize_per_tensor_out(ctx, a, 1, 0, kLeast, kMost, ScalarType::Char, std::nullopt, real);
  quantized_add_out(ctx, a, 1, 0, kLeast, kMost, a, 1, 0, 0, 255, 1, 0, -128, 127, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_EQ(out.const_data_ptr<int8_t>()[0], 2);
}

TEST_F(Quantized, ParametersOfTokensBesideHugeExtentsAreRefused) {
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  Tensor x = floats.zeros({0, kHuge, kHuge, kHuge, 1}),
         out = chars.zeros({0, kHuge, kHuge, kHuge, 1});
  KernelRuntimeContext ctx;
  quantize_per_token_out(ctx, x, doubles.zeros({1}), longs.zeros({1}), -128, 127, ScalarType::Char,
                         out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Quantized, RowsOfATableAreChecked) {
  Tensor table = bytes.zeros({3, 4}), scales = floats.ones({3}), out = floats.zeros({1, 8});
  for (const int64_t row : {int64_t{-1}, int64_t{3}, kLeast, kMost, int64_t{1} << 32}) {
    KernelRuntimeContext ctx;
    quantized_embedding_4bit_out(ctx, table, scales, std::nullopt, -8, 7, longs.make({1}, {row}),
                                 out);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument) << row;
  }
}

TEST_F(Quantized, KernelsAreCalledWithoutAContextToo) {
  Tensor out = bytes.zeros({2}), again = floats.zeros({2});
  EXPECT_EQ(
      &quantize_per_tensor_out(floats.make({2}, {1, 2}), 0.5, 10, 0, 255, ScalarType::Byte, out),
      &out);
  EXPECT_TENSOR_EQ(out, bytes.make({2}, {12, 14}));
  torch::executor::quantized_decomposed::dequantize_per_tensor_outf(
      ctx, out, 0.5, 10, 0, 255, ScalarType::Byte, std::nullopt, again);
  EXPECT_TENSOR_EQ(again, floats.make({2}, {1, 2}));
}

TEST_F(Quantized, Bits16HoldsUInt16) {
  TensorFactory<ScalarType::Bits16> words;
  Tensor x = floats.make({2}, {1, 30000}), out = words.zeros({2}), again = floats.zeros({2});
  quantize_per_tensor_out(ctx, x, 0.5, 10, 0, 65535, ScalarType::Bits16, out);
  EXPECT_TENSOR_EQ(out, words.make({2}, {12, 60010}));
  dequantize_per_tensor_out(ctx, out, 0.5, 10, 0, 65535, ScalarType::Bits16, std::nullopt, again);
  EXPECT_TENSOR_EQ(again, x);
}

}  // namespace
