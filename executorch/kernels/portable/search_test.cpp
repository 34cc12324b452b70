#include <executorch/kernels/portable/internal/testing.h>

using namespace torch::executor::native;

namespace {

class Search : public KernelTest {};

TEST_F(Search, FindsPlacesOnEitherSideOfEqualValues) {
  Tensor sorted = floats.make({3}, {1, 2, 3}), values = floats.make({2, 2}, {0, 1, 2.5, 9});
  Tensor out = longs.zeros({2, 2});
  bucketize_Tensor_out(ctx, values, sorted, false, false, out);
  EXPECT_TENSOR_EQ(out, longs.make({2, 2}, {0, 0, 2, 3}));
  bucketize_Tensor_out(ctx, values, sorted, false, true, out);
  EXPECT_TENSOR_EQ(out, longs.make({2, 2}, {0, 1, 2, 3}));
}

TEST_F(Search, OutHasTheTypeThatIsAskedFor) {
  Tensor sorted = floats.make({2}, {1, 2}), values = floats.make({1}, {1.5});
  Tensor as_long = longs.zeros({1}), as_int = ints.zeros({1});
  bucketize_Tensor_out(ctx, values, sorted, true, false, as_int);
  EXPECT_TENSOR_EQ(as_int, ints.make({1}, {1}));
  bucketize_Tensor_out(ctx, values, sorted, true, false, as_long);
  expect_failure("Int was asked for");
  searchsorted_Tensor_out(ctx, sorted, values, false, false, {}, {}, as_int);
  expect_failure("Long was asked for");
}

}  // namespace
