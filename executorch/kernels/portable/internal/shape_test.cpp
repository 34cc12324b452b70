#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/shape.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorShapeDynamism;
using executorch::runtime::Error;
using executorch::runtime::testing::TensorFactory;
using namespace torch::executor::native::internal;

namespace {

constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(ShapeOfExtents, TakesEveryExtentOfATensor) {
  Shape shape;
  for (int64_t extent : {int64_t{0}, int64_t{1}, int64_t{INT32_MAX}}) shape.push(extent);
  EXPECT_TRUE(shape.ok());
  EXPECT_EQ(shape[2], INT32_MAX);
  EXPECT_EQ(shape.numel().value_or(-1), 0);
}

TEST(ShapeOfExtents, IsInvalidOnceANumberIsNoExtent) {
  const Size bad[] = {-1, int64_t{1} << 31, (int64_t{1} << 32) + 1, Size(kHighest) + 1};
  for (const Size& extent : bad) {
    Shape pushed;
    pushed.push(3);
    pushed.push(extent);
    EXPECT_FALSE(pushed.ok());
    EXPECT_EQ(pushed.bad_dim(), 1);
    EXPECT_EQ(pushed.numel().value_or(-1), 0) << "it reads as a shape of no elements";
    Shape changed;
    changed.push(1);
    changed.set(0, extent);
    EXPECT_FALSE(changed.ok());
    changed.set(0, 1);
    EXPECT_FALSE(changed.ok()) << "what was wrong stays wrong";
  }
}

TEST(ShapeOfExtents, HasAtMostTheDimsOfATensor) {
  Shape shape;
  for (int64_t d = 0; d < kMaxDims; ++d) shape.push(1);
  EXPECT_TRUE(shape.ok());
  shape.push(1);
  EXPECT_FALSE(shape.ok());
  EXPECT_EQ(shape.ndim(), kMaxDims);
  EXPECT_EQ(shape.numel().value_or(-1), 0);
}

TEST(ShapeText, PrintsAsManyOfTheLongestNumbersAsItHasRoomFor) {
  for (size_t n = 0; n <= 20; ++n) {
    for (int64_t number : {int64_t{7}, int64_t{1} << 53, std::numeric_limits<int64_t>::min()}) {
      const std::vector<int64_t> numbers(n, number);
      const ShapeText text(executorch::aten::ArrayRef<int64_t>(numbers.data(), n));
      const std::string printed = text.c_str();
      EXPECT_LT(printed.size(), sizeof(ShapeText)) << printed;
      EXPECT_EQ(printed.back(), ']');
      const bool is_cut = printed.find("...") != std::string::npos;
      EXPECT_EQ(is_cut, n * std::to_string(number).size() > 115) << printed;
    }
  }
}

TEST(ShapeOfExtents, CountsElementsWithoutWrapping) {
  Shape shape;
  for (int i = 0; i < 3; ++i) shape.push(int64_t{1} << 30);
  EXPECT_FALSE(shape.numel().ok());
  EXPECT_EQ(Loop(shape).numel, kHighest);
  shape.push(0);
  EXPECT_EQ(shape.numel().value_or(-1), 0);
  EXPECT_EQ(Loop(shape).numel, 0);
}

TEST(ResizeOut, RefusesAnInvalidShape) {
  executorch::runtime::runtime_init();
  TensorFactory<ScalarType::Float> tf;
  Tensor out = tf.zeros({4}, TensorShapeDynamism::DYNAMIC_BOUND);
  const Size bad[] = {-1, int64_t{1} << 32, Size(kHighest) + 1};
  for (const Size& extent : bad) {
    KernelRuntimeContext ctx;
    Shape shape;
    shape.push(extent);
    EXPECT_FALSE(resize_out(ctx, "test", out, shape));
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
    EXPECT_EQ(out.size(0), 4);
  }
}

TEST(RequireAffordable, AsksOfStepsNotOfElements) {
  executorch::runtime::runtime_init();
  KernelRuntimeContext ctx;
  EXPECT_TRUE(require_affordable(ctx, "test", 1000, 0));
  EXPECT_TRUE(require_affordable(ctx, "test", int64_t{1} << 40, int64_t{1} << 30));
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_FALSE(require_affordable(ctx, "test", int64_t{1} << 40, 100));
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  EXPECT_FALSE(require_affordable(ctx, "test", Size(kHighest) + 1, kHighest));
}

}  // namespace
