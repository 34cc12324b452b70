#include <executorch/extension/llm/custom_ops/op_moe.h>
#include <executorch/extension/llm/custom_ops/packed_linear.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::testing::TensorFactory;
using torch::executor::native::quantized_moe_ffn_out;
using torch::executor::native::internal::PackedLinear;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

/// Two experts of 16 columns and 16 hidden ones, one scale a row, 8 bits.
struct Arguments {
  int64_t active = 1, experts = 2, hidden = 16, dim = 16, group = 16, bits = 8;
  std::string_view score = "sigmoid";
};

class Moe : public ::testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }

  /// The same number everywhere in a layer of n rows, 16 columns and scale 1, for each expert.
  std::vector<uint8_t> layers(int64_t n, const std::vector<int8_t>& numbers) {
    const PackedLinear layer = {n, 16, 16, 8};
    std::vector<uint8_t> bytes;
    for (const int8_t number : numbers) {
      const int32_t header[16] = {6712, 1, 8, 0, 0, 8, 16, 2};
      append(bytes, header, sizeof header);
      for (int64_t block = 0; block < n; block += 8) {
        bytes.insert(bytes.end(), 128, static_cast<uint8_t>(number));
        const float scales[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        append(bytes, scales, sizeof scales);
        bytes.insert(bytes.end(), 32, 0);
      }
    }
    EXPECT_EQ(layer.bytes().value() * static_cast<int64_t>(numbers.size()),
              static_cast<int64_t>(bytes.size()));
    return bytes;
  }

  static void append(std::vector<uint8_t>& bytes, const void* from, size_t n) {
    const auto* begin = static_cast<const uint8_t*>(from);
    bytes.insert(bytes.end(), begin, begin + n);
  }

  Tensor packed(const std::vector<uint8_t>& bytes) {
    return bytes_.make({2, static_cast<int32_t>(bytes.size() / 2)}, bytes);
  }

  Error run(const Arguments& a, const Tensor& x, const Tensor& gate, const Tensor& bias,
            const Tensor& w13, const Tensor& w2, Tensor& out) {
    KernelRuntimeContext ctx;
    quantized_moe_ffn_out(ctx, x, gate, bias, w13, w2, a.active, a.experts, a.hidden, a.dim,
                          a.group, a.bits, a.score, 1.0, out);
    return ctx.failure_state();
  }

  TensorFactory<ScalarType::Float> floats;
  TensorFactory<ScalarType::Byte> bytes_;
};

TEST_F(Moe, IsRegistered) {
  EXPECT_TRUE(executorch::runtime::registry_has_op_function("llama::quantized_moe_ffn.out"));
}

TEST_F(Moe, TheExpertWithTheLargestScoreIsTaken) {
  Tensor x = floats.full({3, 16}, 0.25f), gate = floats.zeros({2, 16}), bias = floats.zeros({2}),
         out = floats.zeros({3, 16});
  gate.mutable_data_ptr<float>()[16] = 1;
  Tensor w13 = packed(layers(32, {7, 1})), w2 = packed(layers(16, {7, 2}));
  EXPECT_EQ(run({}, x, gate, bias, w13, w2, out), Error::Ok);
  // Sums of 16 quarters are 4; silu(4) * 4, 16 times, times 2.
  const float expected = 4 / (1 + std::exp(-4.0f)) * 4 * 16 * 2;
  for (int64_t i = 0; i < out.numel(); ++i) {
    EXPECT_NEAR(out.const_data_ptr<float>()[i], expected, 1e-3);
  }
  bias.mutable_data_ptr<float>()[0] = 1;
  EXPECT_EQ(run({}, x, gate, bias, w13, w2, x), Error::Ok) << "the result may be x";
  EXPECT_GT(x.const_data_ptr<float>()[0], 7 * expected);
}

TEST_F(Moe, RefusesWhatDoesNotFit) {
  Tensor x = floats.ones({3, 16}), gate = floats.zeros({2, 16}), bias = floats.zeros({2}),
         out = floats.zeros({3, 16});
  std::vector<uint8_t> up = layers(32, {1, 2}), down = layers(16, {1, 2});
  Tensor w13 = packed(up), w2 = packed(down);
  const Arguments good;
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{17}, kMost, kLeast}) {
    for (int64_t Arguments::*field : {&Arguments::active, &Arguments::experts, &Arguments::hidden,
                                      &Arguments::dim, &Arguments::group, &Arguments::bits}) {
      Arguments bad = good;
      bad.*field = n;
      EXPECT_EQ(run(bad, x, gate, bias, w13, w2, out), Error::InvalidArgument) << n;
    }
  }
  for (const std::string_view score : {"", "gelu", "softmax"}) {
    Arguments bad = good;
    bad.score = score;
    EXPECT_EQ(run(bad, x, gate, bias, w13, w2, out), Error::InvalidArgument) << score;
  }
  Arguments large = good;
  large.hidden = int64_t{1} << 40;  // a multiple of the group size
  EXPECT_EQ(run(large, x, gate, bias, w13, w2, out), Error::InvalidArgument);
  large.hidden = int64_t{1} << 62;
  EXPECT_EQ(run(large, x, gate, bias, w13, w2, out), Error::InvalidArgument);
  Tensor flat = floats.ones({16}), other = bytes_.zeros({3, 16});
  EXPECT_EQ(run(good, flat, gate, bias, w13, w2, out), Error::InvalidArgument);
  EXPECT_EQ(run(good, other, gate, bias, w13, w2, out), Error::InvalidArgument);
  EXPECT_EQ(run(good, x, flat, bias, w13, w2, out), Error::InvalidArgument);
  EXPECT_EQ(run(good, x, gate, flat, w13, w2, out), Error::InvalidArgument);
  EXPECT_EQ(run(good, x, gate, bias, w2, w2, out), Error::InvalidArgument);
  EXPECT_EQ(run(good, x, gate, bias, w13, other, out), Error::InvalidArgument);
}

TEST_F(Moe, RefusesBytesThatAreNoWeights) {
  Tensor x = floats.ones({1, 16}), gate = floats.zeros({2, 16}), bias = floats.zeros({0}),
         out = floats.zeros({1, 16});
  for (int field = 0; field < 8; ++field) {
    std::vector<uint8_t> up = layers(32, {1, 2});
    up[static_cast<size_t>(field) * 4] ^= 1;
    Tensor w13 = packed(up), w2 = packed(layers(16, {1, 2}));
    EXPECT_EQ(run({}, x, gate, bias, w13, w2, out), Error::InvalidArgument) << field;
  }
}

}  // namespace
