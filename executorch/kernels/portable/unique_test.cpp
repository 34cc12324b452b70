#include <executorch/kernels/portable/internal/testing.h>

#include <limits>
#include <vector>

using namespace torch::executor::native;

namespace {

class Unique : public KernelTest {
 protected:
  PlatformMemoryAllocator memory;
};

constexpr TensorShapeDynamism kBound = TensorShapeDynamism::DYNAMIC_BOUND;

TEST_F(Unique, CountsOfMoreBinsThanATensorCanHaveAreRefused) {
  for (const int64_t bins : {int64_t{1} << 33, (int64_t{1} << 33) + 4, (int64_t{1} << 32) + 8,
                             int64_t{1} << 31, std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    KernelRuntimeContext ctx(nullptr, &memory);
    Tensor counts = longs.zeros({8}, kBound);
    bincount_out(ctx, longs.make({3}, {1, 2, 7}), std::nullopt, bins, counts);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument) << bins;
  }
  for (const int64_t value : {int64_t{-1}, std::numeric_limits<int64_t>::min(), int64_t{8},
                              int64_t{1} << 33, std::numeric_limits<int64_t>::max()}) {
    KernelRuntimeContext ctx(nullptr, &memory);
    Tensor counts = longs.zeros({8}, kBound);
    bincount_out(ctx, longs.make({2}, {1, value}), std::nullopt, 0, counts);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument) << value;
  }
}

// A file may plan its tensors over one another: what was counted would be other when it is written.
TEST_F(Unique, ResultsOverWhatIsReadTwiceAreRefused) {
  using executorch::aten::TensorImpl;
  std::vector<int64_t> shared(40);
  int32_t sizes[] = {4, 5}, strides[] = {5, 1}, length[] = {20}, step[] = {1};
  uint8_t order[] = {0, 1};
  const auto grid = [&](ScalarType type) {
    return TensorImpl(type, 2, sizes, shared.data(), order, strides);
  };
  const auto list = [&](ScalarType type, int32_t* size) {
    return TensorImpl(type, 1, size, shared.data(), order, step, kBound);
  };
  int32_t places[] = {20, 2};
  const auto expect_refused = [&](auto&& call) {
    KernelRuntimeContext ctx(nullptr, &memory);
    call(ctx);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  };
  TensorImpl bools_there = grid(ScalarType::Bool), longs_there = grid(ScalarType::Long);
  Tensor mask(&bools_there), x(&longs_there);
  TensorImpl over = list(ScalarType::Long, length);
  TensorImpl pairs(ScalarType::Long, 2, places, shared.data(), order, strides, kBound);
  Tensor out(&over), rows(&pairs);
  Tensor values = longs.zeros({20}, kBound), counts = longs.zeros({20}, kBound);
  Tensor inverse = longs.zeros({4, 5}, kBound);
  expect_refused([&](auto& ctx) { nonzero_out(ctx, mask, rows); });
  expect_refused([&](auto& ctx) { masked_select_out(ctx, longs.ones({4, 5}), mask, out); });
  TensorImpl same = grid(ScalarType::Long);
  Tensor scattered(&same);
  expect_refused([&](auto& ctx) {
    masked_scatter_out(ctx, longs.ones({4, 5}), mask, longs.ones({20}), scattered);
  });
  expect_refused([&](auto& ctx) {
    unique_consecutive_out(ctx, x, true, true, std::nullopt, out, inverse, counts);
  });
  expect_refused([&](auto& ctx) {
    unique_consecutive_out(ctx, x, true, true, std::nullopt, values, inverse, out);
  });
}

TEST_F(Unique, SlicesWithoutElementsAreRefused) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const std::vector<int32_t>& shape :
       std::vector<std::vector<int32_t>>{{kMost, 0}, {2, 0, kMost}, {kMost, kMost, 0}}) {
    KernelRuntimeContext ctx(nullptr, &memory);
    Tensor values = floats.zeros(std::vector<int32_t>(shape.size(), 1), kBound);
    Tensor inverse = longs.zeros({1}, kBound), counts = longs.zeros({1}, kBound);
    unique_dim_out(ctx, floats.zeros(shape), 0, true, true, true, values, inverse, counts);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  }
}

TEST_F(Unique, ManyEqualSlicesAreFoundSoon) {
  constexpr int32_t kSlices = 3000, kLength = 300;
  std::vector<float> data(size_t{kSlices} * kLength, 1);
  data.back() = 2;  // the last slice is another
  Tensor values = floats.zeros({kSlices, kLength}, kBound);
  Tensor inverse = longs.zeros({kSlices}), counts = longs.zeros({kSlices}, kBound);
  const Tensor slices = floats.make({kSlices, kLength}, data);
  KernelRuntimeContext ctx(nullptr, &memory);
  expect_within(2,
                [&] { unique_dim_out(ctx, slices, 0, true, true, true, values, inverse, counts); });
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(counts, longs.make({2}, {kSlices - 1, 1}));
}

// The mask repeats in the result as often as its rank and extents are smaller.
TEST_F(Unique, ABroadcastMaskSelectsInEveryRepetition) {
  KernelRuntimeContext ctx(nullptr, &memory);
  Tensor out = longs.zeros({8}, kBound);
  masked_select_out(ctx, longs.make({3, 1}, {1, 2, 3}), bools.make({4}, {1, 0, 0, 1}), out);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, longs.make({6}, {1, 1, 2, 2, 3, 3}));
  masked_select_out(ctx, longs.make({4}, {1, 2, 3, 4}), bools.make({2, 1}, {0, 1}), out);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, longs.make({4}, {1, 2, 3, 4}));
  masked_select_out(ctx, longs.zeros({0, 1}), bools.zeros({4}), out);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_EQ(out.numel(), 0);
}

TEST_F(Unique, AnyByteButZeroIsTrue) {
  KernelRuntimeContext ctx(nullptr, &memory);
  Tensor values = bools.zeros({4}, kBound);
  Tensor inverse = longs.zeros({4}), counts = longs.zeros({4}, kBound);
  _unique2_out(ctx, bools.make({4}, {1, 0, 5, 255}), true, true, true, values, inverse, counts);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(counts, longs.make({2}, {1, 3}));
  EXPECT_TENSOR_EQ(inverse, longs.make({4}, {1, 0, 1, 1}));

  Tensor sorted = bools.zeros({4}), places = longs.zeros({4});
  sort_values(ctx, bools.make({4}, {1, 0, 5, 0}), 0, false, sorted, places);
  EXPECT_TENSOR_EQ(places, longs.make({4}, {1, 3, 0, 2}));
  cummax_out(ctx, bools.make({4}, {0, 7, 1, 0}), 0, sorted, places);
  EXPECT_TENSOR_EQ(places, longs.make({4}, {0, 1, 2, 2}));
}

}  // namespace
