// Operators are called under their conventional names, as kernels and tests of users do.
#include <executorch/kernels/portable/Functions.h>
#include <executorch/kernels/portable/NativeFunctions.h>
#include <executorch/kernels/quantized/Functions.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_includes.h>

#include <gtest/gtest.h>

using namespace ::testing;
using executorch::runtime::testing::TensorFactory;
using torch::executor::Error;
using torch::executor::RuntimeContext;
using torch::executor::Scalar;
using torch::executor::ScalarType;
using torch::executor::Tensor;

namespace {

class NativeFunctions : public ::testing::Test {
 protected:
  TensorFactory<ScalarType::Float> tf_;
  TensorFactory<ScalarType::Long> tl_;
  RuntimeContext context_{};
  Tensor a_ = tf_.make({2, 2}, {1, 2, 3, 4});
  Tensor b_ = tf_.make({2, 2}, {10, 20, 30, 40});
  Tensor out_ = tf_.zeros({2, 2});
};

TEST_F(NativeFunctions, ElementwiseTakesScalarsAndReturnsOut) {
  Tensor& result = torch::executor::native::add_out(context_, a_, b_, Scalar(2), out_);
  EXPECT_EQ(&result, &out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {21, 42, 63, 84}));
  torch::executor::native::mul_scalar_out(context_, a_, 3, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {3, 6, 9, 12}));
  torch::executor::native::clamp_out(context_, a_, Scalar(2), {}, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {2, 2, 3, 4}));
  torch::executor::native::div_out_mode(context_, b_, a_, "floor", out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {10, 10, 10, 10}));
}

TEST_F(NativeFunctions, ListsAndOptionalsConvert) {
  const Tensor tensors[] = {a_, b_};
  Tensor wide = tf_.zeros({2, 4});
  torch::executor::native::cat_out(context_, {tensors, 2}, 1, wide);
  EXPECT_TENSOR_EQ(wide, tf_.make({2, 4}, {1, 2, 10, 20, 3, 4, 30, 40}));
  const int64_t dims[] = {0};
  Tensor column = tf_.zeros({2});
  torch::executor::native::mean_dim_out(context_, a_, torch::executor::ArrayRef<int64_t>(dims),
                                        /*keepdim=*/false, /*dtype=*/{}, column);
  EXPECT_TENSOR_EQ(column, tf_.make({2}, {2, 3}));
  const int64_t order[] = {1, 0};
  torch::executor::native::permute_copy_out(context_, a_, {order, 2}, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {1, 3, 2, 4}));
}

TEST_F(NativeFunctions, SeveralOutsAreReturnedTogether) {
  Tensor values = tf_.zeros({2});
  Tensor indices = tl_.zeros({2});
  auto result = torch::executor::native::max_out(context_, a_, 1, false, values, indices);
  EXPECT_EQ(&std::get<0>(result), &values);
  EXPECT_TENSOR_EQ(values, tf_.make({2}, {2, 4}));
  EXPECT_TENSOR_EQ(indices, tl_.make({2}, {1, 1}));
}

TEST_F(NativeFunctions, MatrixProductsSoftmaxAndViewsAreThere) {
  torch::executor::native::mm_out(context_, a_, b_, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {70, 100, 150, 220}));
  torch::executor::native::softmax_out(context_, tf_.zeros({2, 2}), 1, false, out_);
  EXPECT_TENSOR_CLOSE(out_, tf_.full({2, 2}, 0.5f));
  const int64_t sizes[] = {4};
  Tensor flat = tf_.zeros({4});
  torch::executor::native::view_copy_out(context_, a_, {sizes, 1}, flat);
  EXPECT_TENSOR_EQ(flat, tf_.make({4}, {1, 2, 3, 4}));
}

TEST_F(NativeFunctions, OperatorsOfOneNameAreChosenByArguments) {
  namespace aten = torch::executor::aten;
  Tensor& result = aten::add_outf(context_, a_, b_, 2, out_);
  EXPECT_EQ(&result, &out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {21, 42, 63, 84}));
  aten::add_outf(context_, a_, 1, 3, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {4, 5, 6, 7}));
  aten::div_outf(context_, b_, a_, "floor", out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {10, 10, 10, 10}));
  Tensor values = tf_.zeros({2});
  Tensor indices = tl_.zeros({2});
  aten::max_outf(context_, a_, 1, false, values, indices);
  EXPECT_TENSOR_EQ(indices, tl_.make({2}, {1, 1}));
  const int64_t order[] = {1, 0};
  aten::permute_copy_outf(context_, a_, order, out_);
  EXPECT_TENSOR_EQ(out_, tf_.make({2, 2}, {1, 3, 2, 4}));
}

TEST_F(NativeFunctions, OperatorsOfOtherNamespacesAndInPlaceHaveNamesToo) {
  torch::executor::aten::copy_(context_, out_, b_, /*non_blocking=*/false);
  EXPECT_TENSOR_EQ(out_, b_);
  torch::executor::dim_order_ops::_to_dim_order_copy_outf(context_, a_, false, {}, out_);
  EXPECT_TENSOR_EQ(out_, a_);
  TensorFactory<ScalarType::Byte> tb;
  Tensor bytes = tb.zeros({2, 2});
  torch::executor::quantized_decomposed::quantize_per_tensor_outf(context_, a_, 0.5, 1, 0, 255,
                                                                  ScalarType::Byte, bytes);
  EXPECT_TENSOR_EQ(bytes, tb.make({2, 2}, {3, 5, 7, 9}));
}

TEST_F(NativeFunctions, FailureIsInTheContext) {
  Tensor wrong = tf_.zeros({3, 3});
  torch::executor::native::mm_out(context_, a_, wrong, out_);
  EXPECT_NE(context_.failure_state(), Error::Ok);
}

}  // namespace
