#include <executorch/runtime/core/exec_aten/util/layout_of.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace executorch::runtime::internal {
namespace {

using aten::ScalarType;
using aten::Tensor;
using aten::TensorImpl;
using Ints = std::vector<int>;

Ints order(const TensorImpl& impl) {
  const auto found = dim_order_of(Tensor(const_cast<TensorImpl*>(&impl)));
  EXPECT_TRUE(found.ok());
  return found.ok() ? Ints{found->begin(), found->end()} : Ints{-1};
}

Ints strides(const TensorImpl& impl) {
  aten::StridesType room[kTensorDimensionLimit];
  const auto found = strides_of(Tensor(const_cast<TensorImpl*>(&impl)), room);
  EXPECT_TRUE(found.ok());
  return found.ok() ? Ints{found->begin(), found->end()} : Ints{-1};
}

TEST(LayoutOf, WhatATensorHasIsGivenAsItIs) {
  int32_t sizes[] = {2, 3};
  uint8_t columns[] = {1, 0};
  int32_t by_column[] = {1, 2};
  TensorImpl impl(ScalarType::Float, 2, sizes, nullptr, columns, by_column);
  const Tensor tensor(&impl);
  aten::StridesType room[kTensorDimensionLimit];
  EXPECT_EQ(dim_order_of(tensor)->data(), columns);
  EXPECT_EQ(strides_of(tensor, room)->data(), by_column);
}

TEST(LayoutOf, WhatATensorLacksFollowsFromTheRest) {
  int32_t sizes[] = {2, 3, 4};
  uint8_t last_first[] = {2, 0, 1};
  const TensorImpl neither(ScalarType::Float, 3, sizes);
  EXPECT_EQ(order(neither), (Ints{0, 1, 2}));
  EXPECT_EQ(strides(neither), (Ints{12, 4, 1}));
  const TensorImpl ordered(ScalarType::Float, 3, sizes, nullptr, last_first);
  EXPECT_EQ(order(ordered), (Ints{2, 0, 1}));
  EXPECT_EQ(strides(ordered), (Ints{3, 1, 6}));
}

TEST(LayoutOf, EveryRankHasOne) {
  const TensorImpl number(ScalarType::Float, 0, nullptr);
  EXPECT_EQ(order(number), Ints{});
  EXPECT_EQ(strides(number), Ints{});
  int32_t empty[] = {2, 0, 3};
  EXPECT_EQ(strides(TensorImpl(ScalarType::Float, 3, empty)), (Ints{3, 3, 1}));
  std::vector<int32_t> most(kTensorDimensionLimit, 1);
  const TensorImpl deep(ScalarType::Float, kTensorDimensionLimit, most.data());
  EXPECT_EQ(order(deep).back(), 15);
  EXPECT_EQ(strides(deep), Ints(kTensorDimensionLimit, 1));
}

TEST(LayoutOf, WhereNoneFollowsThereIsAnError) {
  aten::StridesType room[kTensorDimensionLimit];
  std::vector<int32_t> many(kTensorDimensionLimit + 1, 1);
  TensorImpl deep(ScalarType::Float, kTensorDimensionLimit + 1, many.data());
  EXPECT_EQ(dim_order_of(Tensor(&deep)).error(), Error::InvalidArgument);
  EXPECT_EQ(strides_of(Tensor(&deep), room).error(), Error::InvalidArgument);
  int32_t sizes[] = {2, 3};
  uint8_t twice[] = {1, 1};
  TensorImpl unordered(ScalarType::Float, 2, sizes, nullptr, twice);
  EXPECT_EQ(strides_of(Tensor(&unordered), room).error(), Error::InvalidArgument);
  int32_t large[] = {2, 1 << 16, 1 << 16};
  TensorImpl wide(ScalarType::Byte, 3, large);
  EXPECT_EQ(strides_of(Tensor(&wide), room).error(), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::runtime::internal
