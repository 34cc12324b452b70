#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/tensor/tensor_impl_ptr.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace executorch::extension {
namespace {

using aten::ScalarType;
using aten::TensorShapeDynamism;
using runtime::Error;

template <typename T>
std::vector<T> values(const TensorPtr& tensor) {
  const T* const data = tensor->const_data_ptr<T>();
  return std::vector<T>(data, data + tensor->numel());
}

std::vector<int> sizes(const TensorPtr& tensor) {
  return {tensor->sizes().begin(), tensor->sizes().end()};
}

std::vector<int> strides(const TensorPtr& tensor) {
  return {tensor->strides().begin(), tensor->strides().end()};
}

std::vector<int> dim_order(const TensorPtr& tensor) {
  return {tensor->dim_order().begin(), tensor->dim_order().end()};
}

using Ints = std::vector<int>;

class TensorPtrTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { runtime::runtime_init(); }
};
using TensorPtrDeathTest = TensorPtrTest;

TEST_F(TensorPtrTest, FromRawMemoryUsesTheMemory) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  const auto tensor = make_tensor_ptr({2, 3}, data);
  EXPECT_EQ(tensor->const_data_ptr(), data);
  EXPECT_EQ(sizes(tensor), (Ints{2, 3}));
  EXPECT_EQ(strides(tensor), (Ints{3, 1}));
  EXPECT_EQ(tensor->scalar_type(), ScalarType::Float);
  EXPECT_EQ(tensor->shape_dynamism(), TensorShapeDynamism::DYNAMIC_BOUND);
}

TEST_F(TensorPtrTest, DeleterRunsOnceWhenTheLastOwnerGoes) {
  int calls = 0;
  int data[2] = {1, 2};
  auto tensor =
      make_tensor_ptr({2}, data, ScalarType::Int, TensorShapeDynamism::STATIC, [&](void* p) {
        EXPECT_EQ(p, data);
        ++calls;
      });
  auto second = tensor;
  tensor.reset();
  EXPECT_EQ(calls, 0);
  second.reset();
  EXPECT_EQ(calls, 1);
}

TEST_F(TensorPtrTest, OwnsVectorsListsAndScalars) {
  std::vector<float> data{1, 2, 3, 4};
  const float* const memory = data.data();
  const auto moved = make_tensor_ptr({2, 2}, std::move(data));
  EXPECT_EQ(moved->const_data_ptr(), memory);
  EXPECT_EQ(values<int32_t>(make_tensor_ptr({1, 2, 3})), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(values<double>(make_tensor_ptr({2, 1}, {0.5, 1.5})), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(values<bool>(make_tensor_ptr({true, false})), (std::vector<bool>{true, false}));
  const auto scalar = make_tensor_ptr(3.14);
  EXPECT_EQ(scalar->dim(), 0);
  EXPECT_EQ(scalar->numel(), 1);
  EXPECT_EQ(scalar->const_data_ptr<double>()[0], 3.14);
  EXPECT_EQ(scalar->shape_dynamism(), TensorShapeDynamism::STATIC);
  EXPECT_EQ(make_tensor_ptr(std::vector<int64_t>{})->numel(), 0);
}

TEST_F(TensorPtrTest, ConvertsWhenTheTypeIsAnother) {
  const auto floats = make_tensor_ptr({2, 2}, {1, 2, 3, 4}, ScalarType::Float);
  EXPECT_EQ(values<float>(floats), (std::vector<float>{1, 2, 3, 4}));
  const auto halves = make_tensor_ptr(std::vector<float>{1.5f, -2.0f}, ScalarType::Half);
  EXPECT_EQ(static_cast<float>(halves->const_data_ptr<aten::Half>()[0]), 1.5f);
  const auto from_bools = make_tensor_ptr(std::vector<bool>{true, false}, ScalarType::Long);
  EXPECT_EQ(values<int64_t>(from_bools), (std::vector<int64_t>{1, 0}));
}

TEST_F(TensorPtrTest, ConvertsUnsignedTypesToo) {
  const auto wrapped = make_tensor_ptr(std::vector<int32_t>{-1, 65536}, aten::ScalarType::UInt16);
  EXPECT_EQ(wrapped->const_data_ptr<uint16_t>()[0], 65535);
  EXPECT_EQ(wrapped->const_data_ptr<uint16_t>()[1], 0);
  const auto large = make_tensor_ptr(std::vector<uint32_t>{4000000000u}, aten::ScalarType::Float);
  EXPECT_EQ(large->const_data_ptr<float>()[0], 4e9f);
  const auto whole = make_tensor_ptr(std::vector<float>{1.5f, -1.0f}, aten::ScalarType::UInt32);
  EXPECT_EQ(whole->const_data_ptr<uint32_t>()[0], 1u);
  EXPECT_EQ(whole->const_data_ptr<uint32_t>()[1], 4294967295u);
  const auto halves = make_tensor_ptr(std::vector<float>{2.5f, -1.0f}, ScalarType::Half);
  const auto shorts = clone_tensor_ptr(halves, aten::ScalarType::UInt16);
  EXPECT_EQ(shorts->const_data_ptr<uint16_t>()[0], 2);
  EXPECT_EQ(shorts->const_data_ptr<uint16_t>()[1], 65535);
}

TEST_F(TensorPtrDeathTest, StopsOnConversionsThatLoseTheKind) {
  EXPECT_DEATH(make_tensor_ptr({1.5f}, ScalarType::Int), "Float cannot be cast to Int");
}

TEST_F(TensorPtrTest, TakesRawBytesOfAnyType) {
  const float numbers[2] = {1.5f, 2.5f};
  const auto* const bytes = reinterpret_cast<const uint8_t*>(numbers);
  const auto tensor = make_tensor_ptr({2}, std::vector<uint8_t>(bytes, bytes + 8));
  EXPECT_EQ(values<float>(tensor), (std::vector<float>{1.5f, 2.5f}));
}

TEST_F(TensorPtrTest, DerivesTheDimOrderFromStrides) {
  float data[24] = {};
  const auto nhwc = make_tensor_ptr({1, 2, 3, 4}, data, {}, {24, 1, 8, 2});
  EXPECT_EQ(dim_order(nhwc), (Ints{0, 2, 3, 1}));
  const auto by_order = make_tensor_ptr({1, 2, 3, 4}, data, {0, 2, 3, 1}, {});
  EXPECT_EQ(strides(by_order), (Ints{24, 1, 8, 2}));
}

TEST_F(TensorPtrTest, AcceptsAnyStrideWhereTheSizeIsOne) {
  float data[6] = {};
  EXPECT_EQ(strides(make_tensor_ptr({1, 6}, data, {}, {99, 1}))[1], 1);
}

TEST_F(TensorPtrDeathTest, StopsOnShapesThatDoNotFit) {
  float data[6] = {};
  EXPECT_DEATH(make_tensor_ptr({2, 3}, data, {}, {4, 1}), "stride 4 of dimension 0");
  EXPECT_DEATH(make_tensor_ptr({2, 3}, data, {0, 0}, {}), "no permutation");
  EXPECT_DEATH(make_tensor_ptr({2, 3}, data, {0, 1, 2}, {}), "3 entries for 2 sizes");
  EXPECT_DEATH(make_tensor_ptr({2, 3}, data, {}, {1}), "1 strides for 2 sizes");
  EXPECT_DEATH(make_tensor_ptr({-1, 3}, data), "negative size");
  EXPECT_DEATH(make_tensor_ptr({2, 2}, {1.0f, 2.0f}), "2 values for 4 elements");
  EXPECT_DEATH(make_tensor_ptr({2}, std::vector<uint8_t>(7)), "7 bytes for a tensor of 8");
  EXPECT_DEATH(make_tensor_ptr(std::vector<aten::SizesType>(17, 1), data), "17 dimensions");
}

TEST_F(TensorPtrTest, WhatComesFromOutsideIsRefusedWhereNoTensorHasIt) {
  float data[6] = {};
  const auto made = internal::try_make_tensor_ptr(nullptr, data, {2, 3}, {1, 0}, ScalarType::Float);
  ASSERT_EQ(made.error(), runtime::Error::Ok);
  EXPECT_EQ((*made)->strides(), (aten::ArrayRef<aten::StridesType>({1, 2})));
  const auto error_of = [&](std::vector<aten::SizesType> sizes,
                            std::vector<aten::DimOrderType> dim_order) {
    return internal::try_make_tensor_ptr(nullptr, data, sizes, dim_order, ScalarType::Float)
        .error();
  };
  EXPECT_EQ(error_of({-1, 3}, {0, 1}), runtime::Error::InvalidArgument);
  EXPECT_EQ(error_of({2, 3}, {0, 0}), runtime::Error::InvalidArgument);
  EXPECT_EQ(error_of({2, 3}, {0}), runtime::Error::InvalidArgument);
  EXPECT_EQ(error_of(std::vector<aten::SizesType>(17, 1), {}), runtime::Error::InvalidArgument);
  // The stride of dimension 0 is 2^32.
  EXPECT_EQ(error_of({1, 1 << 16, 1 << 16}, {0, 1, 2}), runtime::Error::InvalidArgument);
}

TEST_F(TensorPtrTest, ViewsShareMemoryAndKeepTheirSourceAlive) {
  auto source = make_tensor_ptr({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::weak_ptr<aten::Tensor> watch = source;
  auto view = make_tensor_ptr(source, {3, 2});
  EXPECT_EQ(view->const_data_ptr(), source->const_data_ptr());
  EXPECT_EQ(sizes(view), (Ints{3, 2}));
  source.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(values<int32_t>(view)[5], 6);
  view.reset();
  EXPECT_TRUE(watch.expired());
}

TEST_F(TensorPtrTest, ADeleterKeepsWhatAViewIsOf) {
  auto source = make_tensor_ptr({1.0f, 2.0f});
  void* deleted = nullptr;
  auto view = make_tensor_ptr(*source, {2, 1}, {}, {}, [&, source](void* data) { deleted = data; });
  void* const data = source->mutable_data_ptr();
  source.reset();
  EXPECT_EQ(view->const_data_ptr<float>()[1], 2.0f);
  EXPECT_EQ(deleted, nullptr);
  view.reset();
  EXPECT_EQ(deleted, data);
}

TEST_F(TensorPtrTest, ViewsMayOnlyBeReadWhereTheirSourceMay) {
  float data[] = {1, 2, 3, 4};
  const TensorPtr source = from_blob(data, {2, 2});
  for (const bool read_only : {true, false}) {
    source->unsafeGetTensorImpl()->borrow_data(data, 4, read_only);
    for (const TensorPtr& view : {make_tensor_ptr(*source), make_tensor_ptr(source, {4})}) {
      EXPECT_EQ(view->unsafeGetTensorImpl()->is_read_only(), read_only);
      EXPECT_EQ(view->const_data_ptr(), data);
    }
    EXPECT_FALSE(clone_tensor_ptr(source)->unsafeGetTensorImpl()->is_read_only());
  }
}

TEST_F(TensorPtrTest, ViewsOfTheSameRankKeepTheDimOrder) {
  float data[24] = {};
  const auto nhwc = make_tensor_ptr({1, 2, 3, 4}, data, {0, 2, 3, 1}, {});
  EXPECT_EQ(dim_order(make_tensor_ptr(*nhwc)), (Ints{0, 2, 3, 1}));
  EXPECT_EQ(dim_order(make_tensor_ptr(*nhwc, {4, 6})), (Ints{0, 1}));
}

TEST_F(TensorPtrDeathTest, StopsOnAViewWithMoreElementsThanItsSource) {
  EXPECT_DEATH(make_tensor_ptr(make_tensor_ptr({1, 2}), {3}), "view of 3 elements");
}

TEST_F(TensorPtrTest, ClonesHaveTheirOwnMemory) {
  const auto source = make_tensor_ptr({2, 2}, {1, 2, 3, 4});
  const auto clone = clone_tensor_ptr(source);
  EXPECT_NE(clone->const_data_ptr(), source->const_data_ptr());
  EXPECT_EQ(values<int32_t>(clone), values<int32_t>(source));
  const auto floats = clone_tensor_ptr(*source, ScalarType::Float);
  EXPECT_EQ(values<float>(floats), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(clone_tensor_ptr(make_tensor_ptr({2}, nullptr))->const_data_ptr(), nullptr);
}

/// Tensors made by hand, without strides and perhaps without a dim order.
struct ByHand {
  explicit ByHand(aten::DimOrderType* dim_order = nullptr)
      : impl(ScalarType::Int, 4, sizes, data, dim_order) {}

  aten::SizesType sizes[4] = {1, 2, 2, 2};
  int32_t data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  aten::TensorImpl impl;
  aten::Tensor tensor{&impl};
  /// Owns nothing.
  TensorPtr ptr{std::shared_ptr<void>(), &tensor};
};

TEST_F(TensorPtrTest, TensorsWithoutDimOrderOrStridesAreCopiedAsContiguous) {
  const ByHand made;
  for (const TensorPtr& tensor :
       {clone_tensor_ptr(made.tensor), clone_tensor_ptr(made.tensor, ScalarType::Double),
        make_tensor_ptr(made.tensor), make_tensor_ptr(made.ptr), zeros_like(made.ptr)}) {
    EXPECT_EQ(dim_order(tensor), (Ints{0, 1, 2, 3}));
    EXPECT_EQ(strides(tensor), (Ints{8, 4, 2, 1}));
  }
  EXPECT_EQ(values<int32_t>(clone_tensor_ptr(made.tensor))[7], 7);
  EXPECT_EQ(sizes(make_tensor_ptr(made.tensor, {2, 4})), (Ints{2, 4}));
}

TEST_F(TensorPtrTest, TensorsWithoutStridesAreCopiedInTheirDimOrder) {
  aten::DimOrderType channels_last[4] = {0, 2, 3, 1};
  const ByHand made(channels_last);
  for (const TensorPtr& tensor :
       {clone_tensor_ptr(made.tensor), make_tensor_ptr(made.tensor), empty_like(made.ptr),
        full_like(made.ptr, 2), ones_like(made.ptr), rand_like(made.ptr, ScalarType::Float),
        randn_like(made.ptr, ScalarType::Float), randint_like(made.ptr, 0, 5)}) {
    EXPECT_EQ(dim_order(tensor), (Ints{0, 2, 3, 1}));
    EXPECT_EQ(strides(tensor), (Ints{8, 1, 4, 2}));
  }
}

TEST_F(TensorPtrTest, ChannelsLastStaysWithOneChannelAndWithNone) {
  for (const std::vector<aten::SizesType>& shape : std::vector<std::vector<aten::SizesType>>{
           {2, 0, 4, 4}, {2, 1, 4, 4}, {0, 3, 4, 4}, {2, 3, 0, 4}, {2, 3, 4, 0}, {2, 1, 1, 4}}) {
    const auto original = make_tensor_ptr(shape, nullptr, {0, 2, 3, 1}, {});
    for (const TensorPtr& tensor : {empty_like(original), zeros_like(original),
                                    make_tensor_ptr(shape, nullptr, {}, strides(original))}) {
      EXPECT_EQ(dim_order(tensor), (Ints{0, 2, 3, 1}));
      EXPECT_EQ(strides(tensor), strides(original));
    }
  }
}

TEST_F(TensorPtrDeathTest, StopsOnTensorsByHandThatHaveNoLayout) {
  aten::DimOrderType twice[4] = {0, 1, 1, 2};
  const ByHand made(twice);
  EXPECT_DEATH(clone_tensor_ptr(made.tensor), "no permutation");
  EXPECT_DEATH(ones_like(made.ptr), "no permutation");
  std::vector<aten::SizesType> many(17, 1);
  float data[1] = {};
  aten::TensorImpl impl(ScalarType::Float, 17, many.data(), data);
  EXPECT_DEATH(clone_tensor_ptr(aten::Tensor(&impl)), "17 dimensions");
}

TEST_F(TensorPtrTest, ResizesUpToTheCapacity) {
  auto tensor = make_tensor_ptr({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(resize_tensor_ptr(tensor, {1, 3}), Error::Ok);
  EXPECT_EQ(tensor->numel(), 3);
  EXPECT_EQ(resize_tensor_ptr(tensor, {3, 2}), Error::Ok);
  EXPECT_NE(resize_tensor_ptr(tensor, {4, 2}), Error::Ok);
  auto fixed = make_tensor_ptr({2}, {1.0f, 2.0f}, ScalarType::Float, TensorShapeDynamism::STATIC);
  EXPECT_EQ(resize_tensor_ptr(fixed, {1}), Error::NotSupported);
}

TEST_F(TensorPtrDeathTest, StopsOnNullPointers) {
  const TensorPtr null;
  EXPECT_DEATH(make_tensor_ptr(null, {2}), "make_tensor_ptr: the TensorPtr is null");
  EXPECT_DEATH(clone_tensor_ptr(null), "clone_tensor_ptr: the TensorPtr is null");
  EXPECT_DEATH(clone_tensor_ptr(null, ScalarType::Int), "clone_tensor_ptr: the TensorPtr is null");
  EXPECT_DEATH(clone_tensor_ptr_to(null, aten::Device(aten::DeviceType::CPU)),
               "clone_tensor_ptr_to: the TensorPtr is null");
  EXPECT_DEATH(empty_like(null), "empty_like: the TensorPtr is null");
  EXPECT_DEATH(zeros_like(null), "full_like: the TensorPtr is null");
  EXPECT_DEATH(rand_like(null), "rand_like: the TensorPtr is null");
  EXPECT_DEATH(randn_like(null), "randn_like: the TensorPtr is null");
  EXPECT_DEATH(randint_like(null, 0, 2), "randint_like: the TensorPtr is null");
  EXPECT_DEATH(make_tensor_ptr(TensorImplPtr()), "make_tensor_ptr: the TensorImplPtr is null");
}

TEST_F(TensorPtrTest, NothingIsNotResized) {
  TensorPtr null;
  EXPECT_EQ(resize_tensor_ptr(null, {2}), Error::InvalidArgument);
  TensorImplPtr no_impl;
  EXPECT_EQ(resize_tensor_impl_ptr(no_impl, {2}), Error::InvalidArgument);
}

TEST_F(TensorPtrTest, BecomesAnEValue) {
  const runtime::EValue value(make_tensor_ptr({1.0f}));
  EXPECT_TRUE(value.isTensor());
}

TEST_F(TensorPtrTest, BlobsLieOnTheDeviceNamed) {
  const aten::Device cuda(aten::DeviceType::CUDA, 0);
  float data[6] = {};
  int freed = 0;
  const auto count = [&](void*) { ++freed; };
  for (const TensorPtr& tensor :
       {make_tensor_ptr({2, 3}, data, ScalarType::Float, cuda, TensorShapeDynamism::STATIC, count),
        make_tensor_ptr({2, 3}, data, {0, 1}, {3, 1}, ScalarType::Float, cuda,
                        TensorShapeDynamism::STATIC, count),
        from_blob(data, {2, 3}, ScalarType::Float, cuda, count, TensorShapeDynamism::STATIC),
        from_blob(data, {2, 3}, {3, 1}, ScalarType::Float, cuda, count),
        from_blob(data, {2, 3}, ScalarType::Float, cuda),
        from_blob(data, {2, 3}, {3, 1}, ScalarType::Float, cuda)}) {
    EXPECT_EQ(tensor->device(), cuda);
    EXPECT_EQ(tensor->const_data_ptr(), data);
    EXPECT_EQ(tensor->numel(), 6);
  }
  EXPECT_EQ(freed, 4);
  EXPECT_TRUE(make_tensor_ptr({2, 3}, data, ScalarType::Float, TensorShapeDynamism::STATIC)
                  ->device()
                  .is_cpu());
}

TEST_F(TensorPtrTest, BlobsAreDescribedStepByStep) {
  int64_t tokens[3] = {5, 6, 7};
  const auto blob = from_blob(tokens, {1, 3}, ScalarType::Long);
  EXPECT_EQ(blob->const_data_ptr(), tokens);
  bool freed = false;
  TensorPtr made = for_blob(tokens, {3, 1})
                       .type(ScalarType::Long)
                       .strides({1, 3})
                       .dim_order({1, 0})
                       .dynamism(TensorShapeDynamism::STATIC)
                       .deleter([&](void*) { freed = true; });
  EXPECT_EQ(strides(made), (Ints{1, 3}));
  EXPECT_EQ(made->shape_dynamism(), TensorShapeDynamism::STATIC);
  made.reset();
  EXPECT_TRUE(freed);
}

TEST_F(TensorPtrTest, FactoriesFillEveryType) {
  EXPECT_EQ(values<float>(ones({2})), (std::vector<float>{1, 1}));
  EXPECT_EQ(values<int64_t>(zeros({2}, ScalarType::Long)), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(values<bool>(full({2}, true, ScalarType::Bool)), (std::vector<bool>{true, true}));
  EXPECT_EQ(values<double>(full({1}, 2.5, ScalarType::Double)), (std::vector<double>{2.5}));
  EXPECT_EQ(values<int8_t>(full({1}, -7, ScalarType::Char)), (std::vector<int8_t>{-7}));
  EXPECT_EQ(
      static_cast<float>(ones({1}, ScalarType::BFloat16)->const_data_ptr<aten::BFloat16>()[0]),
      1.0f);
  EXPECT_EQ(scalar_tensor(4)->dim(), 0);
  const auto like = full_like(make_tensor_ptr({2, 1}, {1.0, 2.0}), 3);
  EXPECT_EQ(values<double>(like), (std::vector<double>{3, 3}));
  EXPECT_EQ(empty({2, 0})->numel(), 0);
  EXPECT_EQ(strides(empty_strided({2, 3}, {1, 2})), (Ints{1, 2}));
  EXPECT_EQ(ones_like(like, ScalarType::Int)->scalar_type(), ScalarType::Int);
}

TEST_F(TensorPtrTest, RandomNumbersKeepToTheirRange) {
  for (const auto type : {ScalarType::Float, ScalarType::Double}) {
    const auto tensor = clone_tensor_ptr(rand({1000}, type), ScalarType::Double);
    double sum = 0;
    for (const double value : values<double>(tensor)) {
      EXPECT_GE(value, 0.0);
      EXPECT_LT(value, 1.0);
      sum += value;
    }
    // Six standard errors of the mean of 1000 uniform numbers.
    EXPECT_NEAR(sum / 1000, 0.5, 6 * 0.2887 / 31.6);
  }
  const auto halves = rand({5000}, ScalarType::Half);
  for (ssize_t i = 0; i < halves->numel(); ++i) {
    EXPECT_LT(static_cast<float>(halves->const_data_ptr<aten::Half>()[i]), 1.0f);
  }
  bool seen[3] = {};
  for (const int32_t value : values<int32_t>(randint(-1, 2, {200}))) {
    ASSERT_GE(value, -1);
    ASSERT_LE(value, 1);
    seen[value + 1] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]);
  EXPECT_EQ(randn({3, 4})->numel(), 12);
  EXPECT_EQ(randint_like(make_tensor_ptr({1, 2}), 0, 5)->scalar_type(), ScalarType::Int);
}

TEST_F(TensorPtrTest, ImplPtrsShareTheBlockOfATensorPtr) {
  auto impl = make_tensor_impl_ptr({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  EXPECT_EQ(impl->numel(), 4);
  const auto tensor = make_tensor_ptr(impl);
  EXPECT_EQ(tensor->unsafeGetTensorImpl(), impl.get());
  EXPECT_EQ(resize_tensor_impl_ptr(impl, {1, 2}), Error::Ok);
  EXPECT_EQ(tensor->numel(), 2);
  float data[2] = {};
  EXPECT_EQ(make_tensor_impl_ptr({2}, data)->data(), data);
}

TEST_F(TensorPtrTest, AccessorIndexesElements) {
  const auto tensor = make_tensor_ptr({2, 3, 4}, std::vector<int32_t>(24, 0));
  for (int i = 0; i < 24; ++i) tensor->mutable_data_ptr<int32_t>()[i] = i;
  auto accessor = make_tensor_accessor<int32_t, 3>(*tensor);
  ASSERT_TRUE(accessor.ok());
  EXPECT_EQ((*accessor)[1][2][3], 23);
  (*accessor)[0][1][0] = -5;
  EXPECT_EQ(tensor->const_data_ptr<int32_t>()[4], -5);
  EXPECT_EQ(accessor->size(2), 4);
  EXPECT_EQ(accessor->stride(0), 12);
}

TEST_F(TensorPtrTest, AccessorIndexesTensorsWithoutDimOrderOrStrides) {
  aten::DimOrderType dim_order[4] = {0, 1, 2, 3};
  for (aten::DimOrderType* const order : {dim_order, static_cast<aten::DimOrderType*>(nullptr)}) {
    ByHand made(order);
    auto accessor = make_tensor_accessor<int32_t, 4>(made.tensor);
    ASSERT_TRUE(accessor.ok());
    EXPECT_EQ(accessor->stride(1), 4);
    auto row = (*accessor)[0][1][0];
    EXPECT_EQ(row[1], 5);
    row[0] = -4;
    EXPECT_EQ(made.data[4], -4);
  }
}

TEST_F(TensorPtrTest, AccessorRejectsOtherTensors) {
  const auto tensor = make_tensor_ptr({2, 3}, std::vector<float>(6));
  EXPECT_EQ((make_tensor_accessor<float, 1>(*tensor).error()), Error::InvalidArgument);
  EXPECT_EQ((make_tensor_accessor<double, 2>(*tensor).error()), Error::InvalidArgument);
  const auto transposed = make_tensor_ptr({2, 3}, std::vector<float>(6), {1, 0});
  EXPECT_EQ((make_tensor_accessor<float, 2>(*transposed).error()), Error::NotSupported);
  const auto nowhere = from_blob(nullptr, {2, 3});
  EXPECT_EQ((make_tensor_accessor<float, 2>(*nowhere).error()), Error::InvalidState);
  EXPECT_TRUE((make_tensor_accessor<float, 2>(*from_blob(nullptr, {0, 3})).ok()));
}

TEST_F(TensorPtrDeathTest, AccessorStopsOnDimensionsItDoesNotHave) {
  const auto tensor = make_tensor_ptr({1.0f});
  const auto accessor = make_tensor_accessor<float, 1>(*tensor);
  EXPECT_DEATH(accessor->size(1), "dimension 1 of 1");
  EXPECT_DEATH(accessor->stride(-1), "dimension -1 of 1");
}

}  // namespace
}  // namespace executorch::extension
