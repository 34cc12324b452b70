#include <executorch/kernels/portable/internal/testing.h>

#include <limits>
#include <optional>
#include <vector>

using namespace torch::executor::native;

namespace {

class Indexing : public KernelTest {
 protected:
  Tensor at(const Tensor& x, const std::vector<std::optional<Tensor>>& indices, Tensor out) {
    index_Tensor_out(ctx, x, {indices.data(), indices.size()}, out);
    return out;
  }

  Tensor grid = floats.make({2, 3}, {0, 1, 2, 3, 4, 5});
};

TEST_F(Indexing, EmbeddingCopiesRows) {
  Tensor out = floats.zeros({2, 1, 3});
  embedding_out(ctx, grid, longs.make({2, 1}, {1, 0}), -1, false, false, out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 1, 3}, {3, 4, 5, 0, 1, 2}));
}

TEST_F(Indexing, RefusesEveryValueOutsideTheDim) {
  for (int64_t bad : {int64_t{-1}, int64_t{2}, std::numeric_limits<int64_t>::max(),
                      std::numeric_limits<int64_t>::min()}) {
    Tensor out = floats.zeros({1, 3});
    embedding_out(ctx, grid, longs.make({1}, {bad}), -1, false, false, out);
    expect_failure("embedding");
    index_select_out(ctx, grid, 0, longs.make({1}, {bad}), out);
    expect_failure("index_select");
    Tensor index = longs.make({1, 3}, {0, 0, bad});
    gather_out(ctx, grid, 0, index, false, out);
    expect_failure("gather");
    Tensor whole = floats.zeros({2, 3});
    scatter_src_out(ctx, grid, 0, index, floats.ones({1, 3}), whole);
    expect_failure("scatter.src");
    scatter_add_out(ctx, grid, 0, index, floats.ones({1, 3}), whole);
    expect_failure("scatter_add");
    scatter_value_out(ctx, grid, 0, index, Scalar(1), whole);
    expect_failure("scatter.value");
    if (bad == -1) continue;
    at(grid, {longs.make({1}, {bad})}, out);
    expect_failure("index");
    const std::optional<Tensor> indices[] = {longs.make({1}, {bad})};
    index_put_(ctx, whole, ArrayRef<std::optional<Tensor>>(indices, 1), floats.ones({}), true);
    expect_failure("index_put");
  }
}

TEST_F(Indexing, NegativeIndicesCountFromTheEnd) {
  EXPECT_TENSOR_EQ(at(grid, {std::nullopt, ints.make({2}, {-1, 0})}, floats.zeros({2, 2})),
                   floats.make({2, 2}, {2, 0, 5, 3}));
}

TEST_F(Indexing, SeparatedIndicesComeFirstInTheResult) {
  Tensor x = floats.make({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor i = longs.make({3}, {0, 1, 1}), j = longs.make({3}, {1, 0, 1});
  EXPECT_TENSOR_EQ(at(x, {i, std::nullopt, j}, floats.zeros({3, 2})),
                   floats.make({3, 2}, {1, 3, 4, 6, 5, 7}));
}

TEST_F(Indexing, WithoutIndexTensorsEverythingIsKept) {
  EXPECT_TENSOR_EQ(at(grid, {}, floats.zeros({2, 3})), grid);
  EXPECT_TENSOR_EQ(at(grid, {std::nullopt, std::nullopt}, floats.zeros({2, 3})), grid);
  at(grid, {std::nullopt, std::nullopt, std::nullopt}, floats.zeros({2, 3}));
  expect_failure("more indices than dims");
}

TEST_F(Indexing, MasksStandForTheirTruePositions) {
  Tensor mask = bools.make({2, 3}, {false, true, false, true, false, true});
  Tensor out = floats.zeros({6}, TensorShapeDynamism::DYNAMIC_BOUND);
  EXPECT_TENSOR_EQ(at(grid, {mask}, out), floats.make({3}, {1, 3, 5}));
  Tensor rows = bools.make({2}, {false, true});
  EXPECT_TENSOR_EQ(at(grid, {rows, longs.make({3}, {2, 1, 0})}, floats.zeros({3})),
                   floats.make({3}, {5, 4, 3}));
  at(grid, {bools.make({3}, {true, true, true})}, floats.zeros({3, 3}));
  expect_failure("a mask of another extent");
}

TEST_F(Indexing, PutAccumulatesRepeatedPositions) {
  Tensor x = floats.zeros({3});
  const std::optional<Tensor> indices[] = {longs.make({3}, {1, 1, 2})};
  index_put_(ctx, x, ArrayRef<std::optional<Tensor>>(indices, 1), floats.make({3}, {1, 2, 4}),
             true);
  EXPECT_TENSOR_EQ(x, floats.make({3}, {0, 3, 4}));
}

TEST_F(Indexing, ScatterAddMatchesGather) {
  Tensor index = longs.make({2, 2}, {2, 0, 1, 1}), out = floats.zeros({2, 3});
  scatter_add_out(ctx, floats.zeros({2, 3}), 1, index, floats.make({2, 2}, {1, 2, 3, 4}), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {2, 0, 1, 0, 7, 0}));
}

TEST_F(Indexing, NonzeroListsPositionsInOrder) {
  Tensor out = longs.zeros({6, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  nonzero_out(ctx, floats.make({2, 3}, {0, 1, 0, 2, 0, 0}), out);
  EXPECT_TENSOR_EQ(out, longs.make({2, 2}, {0, 1, 1, 0}));
}

TEST_F(Indexing, MaskedScatterNeedsEnoughValues) {
  Tensor mask = bools.make({3}, {true, false, true}), out = floats.zeros({2, 3});
  masked_scatter_out(ctx, grid, mask, floats.make({4}, {9, 8, 7, 6}), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {9, 1, 8, 7, 4, 6}));
  masked_scatter_out(ctx, grid, mask, floats.make({3}, {9, 8, 7}), out);
  expect_failure("four places, three values");
}

TEST_F(Indexing, TopkPutsNaNFirstAndKeepsTheOrderOfEquals) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = floats.make({5}, {1, nan, 3, 3, 2}), values = floats.zeros({4});
  Tensor positions = longs.zeros({4});
  topk_values(ctx, x, 4, 0, true, true, values, positions);
  EXPECT_TENSOR_EQ(positions, longs.make({4}, {1, 2, 3, 4}));
  topk_values(ctx, x, 6, 0, true, true, values, positions);
  expect_failure("k beyond the dim");
}

TEST_F(Indexing, SortsAlongAnOuterDim) {
  PlatformMemoryAllocator memory;
  KernelRuntimeContext ctx(nullptr, &memory);
  Tensor values = floats.zeros({3, 2}), positions = longs.zeros({3, 2});
  sort_values(ctx, floats.make({3, 2}, {3, 10, 1, 30, 2, 20}), 0, false, values, positions);
  EXPECT_TENSOR_EQ(values, floats.make({3, 2}, {1, 10, 2, 20, 3, 30}));
  EXPECT_TENSOR_EQ(positions, longs.make({3, 2}, {1, 0, 2, 2, 0, 1}));
}

TEST_F(Indexing, TakesRowsAndColumnsFromAnyThread) {
  const int32_t rows = 300, columns = 200;
  Tensor x = floats.zeros({rows, columns});
  for (int32_t i = 0; i < rows * columns; ++i) {
    x.mutable_data_ptr<float>()[i] = static_cast<float>(i);
  }
  Tensor wanted = longs.zeros({columns});
  for (int32_t i = 0; i < columns; ++i) wanted.mutable_data_ptr<int64_t>()[i] = (i * 7) % columns;
  Tensor by_column = floats.zeros({rows, columns}), by_row = floats.zeros({columns, columns});
  index_select_out(ctx, x, 1, wanted, by_column);
  embedding_out(ctx, x, wanted, -1, false, false, by_row);
  for (int32_t r = 0; r < columns; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      ASSERT_EQ(by_column.const_data_ptr<float>()[r * columns + c],
                static_cast<float>(r * columns + c * 7 % columns));
      ASSERT_EQ(by_row.const_data_ptr<float>()[r * columns + c],
                static_cast<float>(r * 7 % columns * columns + c));
    }
  }
}

TEST_F(Indexing, GatherRefusesABadIndexOfAnyLine) {
  const int32_t rows = 500, columns = 100;
  Tensor x = floats.ones({rows, columns}), out = floats.zeros({rows, columns});
  Tensor index = longs.zeros({rows, columns});
  gather_out(ctx, x, 1, index, false, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, x);
  for (int64_t bad : {int64_t{columns}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    index.mutable_data_ptr<int64_t>()[rows * columns - 1] = bad;
    gather_out(ctx, x, 1, index, false, out);
    expect_failure("gather");
  }
}

TEST_F(Indexing, MasksAreReadOnceHoweverOftenTheyAreBroadcast) {
  constexpr int32_t kRows = 3000, kLast = 30000;
  PlatformMemoryAllocator memory;
  KernelRuntimeContext ctx(nullptr, &memory);
  // One true position behind many others, beside 3000 rows: x[rows, mask].
  Tensor x = bytes.zeros({2, kLast}), mask = bools.zeros({kLast}), rows = longs.zeros({kRows});
  x.mutable_data_ptr<uint8_t>()[2 * kLast - 1] = 7;
  mask.mutable_data_ptr<bool>()[kLast - 1] = true;
  rows.mutable_data_ptr<int64_t>()[1] = 1;
  const std::optional<Tensor> indices[] = {rows, mask};
  Tensor out = bytes.zeros({kRows});
  expect_within(0.5, [&] { index_Tensor_out(ctx, x, {indices, 2}, out); });
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_EQ(out.const_data_ptr<uint8_t>()[0], 0);
  EXPECT_EQ(out.const_data_ptr<uint8_t>()[1], 7);
  // x[rows of shape [2,1], mask] with two true positions.
  mask.mutable_data_ptr<bool>()[0] = true;
  const std::optional<Tensor> pairs[] = {longs.make({2, 1}, {1, 0}), mask};
  Tensor four = bytes.zeros({2, 2});
  index_Tensor_out(ctx, x, {pairs, 2}, four);
  EXPECT_TENSOR_EQ(four, bytes.make({2, 2}, {0, 7, 0, 0}));
}

TEST_F(Indexing, PositionsThatOnlyBroadcastingMakesMustBeAffordable) {
  constexpr int32_t kMany = 1 << 17;  // their square would take a minute
  Tensor x = floats.zeros({1, 1}), down = longs.zeros({kMany, 1}), right = longs.zeros({kMany});
  const std::optional<Tensor> indices[] = {down, right};
  index_put_(ctx, x, {indices, 2}, floats.ones({}), true);
  expect_failure("index_put");
  // Of nothing there is nothing to do.
  Tensor none = floats.zeros({1, 1, 0});
  index_put_(ctx, none, {indices, 2}, floats.ones({}), true);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
}

TEST_F(Indexing, AnyByteButZeroIsTrue) {
  Tensor x = bools.make({3}, {0, 4, 0}), index = longs.make({3}, {0, 1, 2});
  Tensor src = bools.make({3}, {8, 0, 0}), out = bools.zeros({3});
  scatter_add_out(ctx, x, 0, index, src, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  const auto* flags = static_cast<const uint8_t*>(out.const_data_ptr());
  EXPECT_TRUE(flags[0] != 0 && flags[1] != 0 && flags[2] == 0);
  const std::optional<Tensor> indices[] = {index};
  index_put_(ctx, x, {indices, 1}, src, true);
  flags = static_cast<const uint8_t*>(x.const_data_ptr());
  EXPECT_TRUE(flags[0] != 0 && flags[1] != 0 && flags[2] == 0);
}

}  // namespace
