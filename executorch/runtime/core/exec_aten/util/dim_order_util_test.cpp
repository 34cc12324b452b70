#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>

namespace executorch::runtime {
namespace {

TEST(DimOrder, EveryOrderGivesStridesAndBack) {
  std::vector<uint8_t> order = {0, 1, 2, 3};
  const std::vector<int32_t> sizes = {2, 3, 5, 7};
  do {
    std::vector<int32_t> strides(4);
    ASSERT_EQ(dim_order_to_stride(sizes.data(), order.data(), 4, strides.data()), Error::Ok);
    EXPECT_EQ(strides[order[3]], 1);
    EXPECT_EQ(strides[order[0]] * sizes[order[0]], 2 * 3 * 5 * 7);
    std::vector<uint8_t> back(4);
    ASSERT_EQ(stride_to_dim_order(strides.data(), 4, back.data()), Error::Ok);
    EXPECT_EQ(back, order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(DimOrder, EmptyDimensionCountsAsOne) {
  const int32_t sizes[] = {2, 0, 3};
  const uint8_t order[] = {0, 1, 2};
  int32_t strides[3];
  ASSERT_EQ(dim_order_to_stride(sizes, order, 3, strides), Error::Ok);
  EXPECT_EQ(strides[0], 3);
  EXPECT_EQ(strides[1], 3);
  EXPECT_EQ(strides[2], 1);
}

TEST(DimOrder, StridesThatDoNotFitAreRefused) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const uint8_t order[] = {0, 1, 2, 3};
  int32_t strides[4] = {7, 7, 7, 7};
  int64_t wide[4];
  const int32_t fits[] = {2, 1, kMost, 1};
  EXPECT_EQ(dim_order_to_stride(fits, order, 4, strides), Error::Ok);
  EXPECT_EQ(strides[0], kMost);
  const int32_t large[] = {1, 2, 1 << 30, 1};
  EXPECT_EQ(dim_order_to_stride(large, order, 4, strides), Error::InvalidArgument);
  EXPECT_EQ(strides[0], kMost);  // nothing was changed
  EXPECT_EQ(dim_order_to_stride(large, order, 4, wide), Error::Ok);
  EXPECT_EQ(wide[0], int64_t{1} << 31);
  const int32_t huge[] = {1, kMost, kMost, kMost};
  EXPECT_EQ(dim_order_to_stride(huge, order, 4, wide), Error::InvalidArgument);
}

TEST(DimOrder, StridesOfEmptyTensorsAreHeld) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const uint8_t order[] = {0, 1, 2, 3};
  int32_t strides[4];
  const int32_t empty[] = {0, kMost, kMost, 3};
  EXPECT_EQ(dim_order_to_stride(empty, order, 4, strides), Error::Ok);
  EXPECT_EQ(std::vector<int32_t>(strides, strides + 4), (std::vector<int32_t>{kMost, kMost, 3, 1}));
}

TEST(DimOrder, OnlyPermutationsAreValid) {
  const uint8_t twice[] = {0, 0};
  const uint8_t too_large[] = {0, 2};
  const int32_t sizes[] = {2, 2};
  int32_t strides[2];
  EXPECT_EQ(dim_order_to_stride(sizes, twice, 2, strides), Error::InvalidArgument);
  EXPECT_EQ(dim_order_to_stride(sizes, too_large, 2, strides), Error::InvalidArgument);
  std::vector<uint8_t> many(17);
  std::iota(many.begin(), many.end(), uint8_t{0});
  EXPECT_FALSE(validate_dim_order(many.data(), 17));
  EXPECT_TRUE(validate_dim_order(many.data(), 16));
}

TEST(DimOrder, StrideZeroHasNoOrder) {
  const int32_t broadcast[] = {0, 1};
  uint8_t order[2];
  EXPECT_EQ(stride_to_dim_order(broadcast, 2, order), Error::InvalidArgument);
}

TEST(DimOrder, EqualStridesKeepTheirPlace) {
  const int32_t strides[] = {3, 1, 1};
  uint8_t order[3];
  ASSERT_EQ(stride_to_dim_order(strides, 3, order), Error::Ok);
  EXPECT_EQ(std::vector<uint8_t>(order, order + 3), (std::vector<uint8_t>{0, 1, 2}));
}

TEST(DimOrder, ChannelsLastIsForFourAndFiveDimensions) {
  const uint8_t nhwc[] = {0, 2, 3, 1};
  const uint8_t ndhwc[] = {0, 2, 3, 4, 1};
  const uint8_t three[] = {0, 2, 1};
  EXPECT_TRUE(is_channels_last_dim_order(nhwc, 4));
  EXPECT_TRUE(is_channels_last_dim_order(ndhwc, 5));
  EXPECT_FALSE(is_channels_last_dim_order(three, 3));
  EXPECT_FALSE(is_contiguous_dim_order(nhwc, 4));
}

TEST(ShapeText, ListsSizes) {
  const int32_t shape[] = {2, -3, 4};
  EXPECT_STREQ(tensor_shape_to_c_string(Span<const int32_t>(shape)).data(), "(2, ERR, 4)");
  EXPECT_STREQ(tensor_shape_to_c_string(Span<const int32_t>()).data(), "()");
}

TEST(ShapeText, LongestShapeFits) {
  const std::vector<int64_t> widest(kTensorDimensionLimit, INT32_MAX);
  const auto text = tensor_shape_to_c_string(Span<const int64_t>(widest.data(), widest.size()));
  EXPECT_EQ(std::string(text.data()).size(), 1 + 16 * 10 + 15 * 2 + 1u);
  const std::vector<int64_t> too_many(kTensorDimensionLimit + 1, 1);
  EXPECT_STREQ(
      tensor_shape_to_c_string(Span<const int64_t>(too_many.data(), too_many.size())).data(),
      "(ERR: tensor ndim exceeds limit)");
}

}  // namespace
}  // namespace executorch::runtime
