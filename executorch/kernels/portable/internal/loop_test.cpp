#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::testing::TensorFactory;
using namespace torch::executor::native::internal;

TEST(Loop, CollapsesDenseOperandsIntoOneDim) {
  TensorFactory<ScalarType::Float> tf;
  Tensor a = tf.zeros({2, 3, 4}), b = tf.zeros({2, 3, 4});
  Loop loop(a.sizes());
  loop.add(a).add(b).order_by(0);
  loop.collapse();
  EXPECT_EQ(loop.ndim, 1);
  EXPECT_EQ(loop.sizes[0], 24);
  EXPECT_TRUE(loop.is_dense(1));
}

TEST(Loop, CollapsesChannelsLastOperandsIntoOneDim) {
  TensorFactory<ScalarType::Float> tf;
  Tensor a = tf.zeros_channels_last({2, 3, 4, 5}), b = tf.zeros_channels_last({2, 3, 4, 5});
  Loop loop(a.sizes());
  loop.add(a).add(b).order_by(0);
  loop.collapse();
  EXPECT_EQ(loop.ndim, 1);
}

TEST(Loop, GivesBroadcastDimsStrideZero) {
  TensorFactory<ScalarType::Float> tf;
  Tensor out = tf.zeros({2, 3, 4}), row = tf.zeros({4}), column = tf.zeros({3, 1});
  Loop loop(out.sizes());
  loop.add(out).add(row).add(column);
  EXPECT_EQ(loop.strides[1][0], 0);
  EXPECT_EQ(loop.strides[1][1], 0);
  EXPECT_EQ(loop.strides[1][2], 1);
  EXPECT_EQ(loop.strides[2][1], 1);
  EXPECT_EQ(loop.strides[2][2], 0);
}

TEST(Loop, GathersAnyPieceOfAPermutedOperandInOrder) {
  TensorFactory<ScalarType::Int> tf;
  std::vector<int32_t> values(24);
  std::iota(values.begin(), values.end(), 0);
  // Memory order of dims 2, 0, 1: element (i, j, k) is at 6 * k + 3 * i + j.
  Tensor t = tf.make_with_dimorder({2, 3, 4}, values, {2, 0, 1});
  Loop loop(t.sizes());
  loop.add(t);
  for (int64_t pos = 0; pos < 24; ++pos) {
    for (int64_t n = 1; pos + n <= 24; ++n) {
      std::vector<int64_t> piece(static_cast<size_t>(n));
      gather(loop, 0, t.const_data_ptr(), ScalarType::Int, pos, n, piece.data());
      for (int64_t x = 0; x < n; ++x) {
        const int64_t at = pos + x, i = at / 12, j = at / 4 % 3, k = at % 4;
        ASSERT_EQ(piece[static_cast<size_t>(x)], 6 * k + 3 * i + j);
      }
    }
  }
}

TEST(Cast, WrapsRoundsAndTests) {
  const float from[] = {-1.0f, 300.0f, 0.5f, NAN};
  uint8_t wrapped[2];
  store(from, 2, wrapped, ScalarType::Byte, 1);
  EXPECT_EQ(wrapped[0], 255);
  EXPECT_EQ(wrapped[1], 44);
  bool flags[4];
  store(from, 4, flags, ScalarType::Bool, 1);
  for (bool flag : flags) EXPECT_TRUE(flag);
  EXPECT_EQ(load_one<int64_t>(&from[3], ScalarType::Float), INT64_MIN);
  float rounded[] = {1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f};  // ties go to even
  round_through(ScalarType::Half, rounded, 2);
  EXPECT_EQ(rounded[0], 1.0f);
  EXPECT_EQ(rounded[1], 1.0f + 0x1p-9f);
}
