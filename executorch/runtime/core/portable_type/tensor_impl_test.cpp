#include <executorch/runtime/core/portable_type/tensor_impl.h>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/portable_type/tensor.h>

namespace executorch::runtime::etensor {
namespace {

using SizesType = TensorImpl::SizesType;

TEST(TensorImpl, KnowsItsShapeAndBytes) {
  SizesType sizes[] = {2, 3};
  float data[6] = {};
  const TensorImpl impl(ScalarType::Float, 2, sizes, data);
  EXPECT_EQ(impl.numel(), 6);
  EXPECT_EQ(impl.nbytes(), 24u);
  EXPECT_EQ(impl.size(1), 3);
  EXPECT_EQ(impl.element_size(), 4);
  EXPECT_EQ(impl.data<float>(), data);
  EXPECT_TRUE(impl.device().is_cpu());
}

TEST(TensorImpl, ScalarHasOneElement) {
  EXPECT_EQ(TensorImpl(ScalarType::Long, 0, nullptr).numel(), 1);
}

TEST(TensorImplDeathTest, NonsenseAborts) {
  SizesType negative[] = {2, -1};
  SizesType sizes[] = {1};
  EXPECT_DEATH(TensorImpl(ScalarType::Float, 2, negative), "negative");
  EXPECT_DEATH(TensorImpl(ScalarType::Undefined, 1, sizes), "element type");
  EXPECT_DEATH((void)TensorImpl(ScalarType::Float, 1, sizes).size(1), "dimension 1");
}

TEST(SafeNumel, OverflowAndNegativeAreErrors) {
  const SizesType huge[] = {INT32_MAX, INT32_MAX, INT32_MAX};
  EXPECT_EQ(safe_numel(huge, 3).error(), Error::InvalidArgument);
  const SizesType negative[] = {-1};
  EXPECT_EQ(safe_numel(negative, 1).error(), Error::InvalidArgument);
  EXPECT_EQ(safe_numel(nullptr, 1).error(), Error::InvalidArgument);
  EXPECT_EQ(*safe_numel(huge, 2), int64_t{INT32_MAX} * INT32_MAX);
}

/// A 2 x 3 tensor in column-major memory.
struct Resizable {
  explicit Resizable(TensorShapeDynamism dynamism)
      : impl(ScalarType::Float, 2, sizes, data, dim_order, strides, dynamism), tensor(&impl) {}

  Error resize(std::initializer_list<SizesType> to) {
    return resize_tensor(tensor, {to.begin(), to.size()});
  }

  SizesType sizes[2] = {2, 3};
  uint8_t dim_order[2] = {1, 0};
  SizesType strides[2] = {1, 2};
  float data[6] = {};
  TensorImpl impl;
  Tensor tensor;
};

TEST(ResizeTensor, StaticTakesOnlyItsOwnSizes) {
  Resizable t(TensorShapeDynamism::STATIC);
  EXPECT_EQ(t.resize({2, 3}), Error::Ok);
  EXPECT_EQ(t.resize({3, 2}), Error::NotSupported);
  EXPECT_EQ(t.resize({2, 3, 1}), Error::NotSupported);
  EXPECT_EQ(t.tensor.size(0), 2);
}

TEST(ResizeTensor, DynamicChangesSizesAndStrides) {
  for (const auto dynamism :
       {TensorShapeDynamism::DYNAMIC_BOUND, TensorShapeDynamism::DYNAMIC_UNBOUND}) {
    Resizable t(dynamism);
    ASSERT_EQ(t.resize({1, 4}), Error::Ok);
    EXPECT_EQ(t.tensor.numel(), 4);
    EXPECT_EQ(t.strides[0], 1);
    EXPECT_EQ(t.strides[1], 1);
    ASSERT_EQ(t.resize({3, 2}), Error::Ok);
    EXPECT_EQ(t.strides[1], 3);
  }
}

TEST(ResizeTensor, CapacityIsThatOfTheFirstSizes) {
  Resizable t(TensorShapeDynamism::DYNAMIC_BOUND);
  ASSERT_EQ(t.resize({1, 1}), Error::Ok);
  EXPECT_EQ(t.resize({6, 1}), Error::Ok);
  EXPECT_EQ(t.resize({7, 1}), Error::NotSupported);
  EXPECT_EQ(t.resize({-1, 1}), Error::InvalidArgument);
  EXPECT_EQ(t.resize({1}), Error::NotSupported);
  EXPECT_EQ(t.tensor.size(0), 6);
}

TEST(ResizeTensor, WithoutADimOrderStridesStayContiguous) {
  SizesType sizes[] = {2, 3};
  SizesType strides[] = {3, 1};
  TensorImpl impl(ScalarType::Float, 2, sizes, nullptr, nullptr, strides,
                  TensorShapeDynamism::DYNAMIC_BOUND);
  const SizesType other[] = {3, 2};
  ASSERT_EQ(resize_tensor(Tensor(&impl), other), Error::Ok);
  EXPECT_EQ(strides[0], 2);
  EXPECT_EQ(strides[1], 1);
}

TEST(ResizeTensor, WideSizesAreNarrowedWithCare) {
  Resizable t(TensorShapeDynamism::DYNAMIC_BOUND);
  const int64_t fine[] = {1, 2};
  EXPECT_EQ(resize_tensor(t.tensor, ArrayRef<int64_t>(fine)), Error::Ok);
  const int64_t wide[] = {(int64_t{1} << 32) + 1, 1};
  EXPECT_EQ(resize_tensor(t.tensor, ArrayRef<int64_t>(wide)), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::runtime::etensor
