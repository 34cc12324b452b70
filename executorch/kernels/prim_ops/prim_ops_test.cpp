#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorShapeDynamism;
using executorch::runtime::BoxedEvalueList;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::Span;
using executorch::runtime::testing::TensorFactory;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

/// Runs an operator through the registry. `values` are its arguments; the result, if any, last.
Error call(const char* name, std::vector<EValue>& values) {
  executorch::runtime::runtime_init();
  ET_ASSIGN_OR_RETURN(auto op, executorch::runtime::get_op_function_from_registry(name));
  std::vector<EValue*> pointers;
  for (EValue& value : values) pointers.push_back(&value);
  KernelRuntimeContext context;
  (op)(context, Span<EValue*>(pointers.data(), pointers.size()));
  return context.failure_state();
}

/// The result for these arguments, written over a None; None if the operator failed.
EValue result_of(const char* name, std::vector<EValue> values) {
  values.emplace_back();
  EXPECT_EQ(call(name, values), Error::Ok) << name;
  return values.back();
}

Error error_of(const char* name, std::vector<EValue> values) {
  values.emplace_back();
  return call(name, values);
}

EValue i(int64_t value) {
  return EValue(value);
}
EValue d(double value) {
  return EValue(value);
}

}  // namespace

TEST(PrimArithmetic, StaysInIntsAndElseIsDouble) {
  EXPECT_EQ(result_of("executorch_prim::add.Scalar", {i(3), i(4)}).toInt(), 7);
  EXPECT_EQ(result_of("executorch_prim::sub.Scalar", {i(3), d(0.5)}).toDouble(), 2.5);
  EXPECT_EQ(result_of("executorch_prim::mul.Scalar", {d(3), d(4)}).toDouble(), 12);
  EXPECT_EQ(result_of("executorch_prim::truediv.Scalar", {i(7), i(2)}).toDouble(), 3.5);
  EXPECT_EQ(result_of("executorch_prim::neg.Scalar", {i(7)}).toInt(), -7);
  EXPECT_EQ(result_of("executorch_prim::neg.Scalar", {d(7)}).toDouble(), -7);
}

TEST(PrimArithmetic, FloorDivisionIsPythons) {
  const char* op = "executorch_prim::floordiv.Scalar";
  EXPECT_EQ(result_of(op, {i(7), i(2)}).toInt(), 3);
  EXPECT_EQ(result_of(op, {i(-7), i(2)}).toInt(), -4);
  EXPECT_EQ(result_of(op, {i(7), i(-2)}).toInt(), -4);
  EXPECT_EQ(result_of(op, {i(-8), i(2)}).toInt(), -4);
  EXPECT_EQ(result_of(op, {d(-7), d(2)}).toDouble(), -4);
  EXPECT_EQ(result_of(op, {d(7.5), i(2)}).toDouble(), 3);
  EXPECT_EQ(result_of(op, {d(-1), d(0)}).toDouble(), -INFINITY);
}

TEST(PrimArithmetic, OldOperatorsTruncate) {
  EXPECT_EQ(result_of("executorch_prim::floordiv.int", {i(-7), i(2)}).toInt(), -3);
  EXPECT_EQ(result_of("executorch_prim::mod.int", {i(-7), i(2)}).toInt(), -1);
  EXPECT_EQ(result_of("executorch_prim::mod.Scalar", {i(-7), i(2)}).toInt(), -1);
}

TEST(PrimArithmetic, DivisionByZeroAndOverflowAreErrors) {
  for (const char* op : {"executorch_prim::floordiv.Scalar", "executorch_prim::floordiv.int",
                         "executorch_prim::mod.Scalar", "executorch_prim::mod.int"}) {
    EXPECT_EQ(error_of(op, {i(1), i(0)}), Error::InvalidArgument) << op;
    EXPECT_EQ(error_of(op, {i(kMin), i(-1)}), Error::InvalidArgument) << op;
  }
  EXPECT_EQ(error_of("executorch_prim::add.Scalar", {i(kMin), i(-1)}), Error::InvalidArgument);
  EXPECT_EQ(error_of("executorch_prim::sub.Scalar", {i(kMin), i(1)}), Error::InvalidArgument);
  EXPECT_EQ(error_of("executorch_prim::mul.Scalar", {i(kMin), i(2)}), Error::InvalidArgument);
  EXPECT_EQ(error_of("executorch_prim::neg.Scalar", {i(kMin)}), Error::InvalidArgument);
}

TEST(PrimComparison, TakesNumbersAndBools) {
  EXPECT_TRUE(result_of("executorch_prim::eq.Scalar", {i(2), d(2)}).toBool());
  EXPECT_TRUE(result_of("executorch_prim::lt.Scalar", {i(2), i(3)}).toBool());
  EXPECT_FALSE(result_of("executorch_prim::gt.Scalar", {i(2), i(3)}).toBool());
  EXPECT_TRUE(result_of("executorch_prim::ge.Scalar", {d(3), i(3)}).toBool());
  EXPECT_TRUE(result_of("executorch_prim::le.Scalar", {EValue(false), EValue(true)}).toBool());
  // Ints are compared as ints: these two are one double.
  EXPECT_FALSE(
      result_of("executorch_prim::eq.Scalar", {i((1ll << 53) + 1), i(1ll << 53)}).toBool());
  EXPECT_EQ(error_of("executorch_prim::eq.Scalar", {i(1), EValue(true)}), Error::InvalidType);
}

TEST(PrimConversion, RoundsHalfToEven) {
  EXPECT_EQ(result_of("executorch_prim::round.Scalar", {d(2.5)}).toInt(), 2);
  EXPECT_EQ(result_of("executorch_prim::round.Scalar", {d(3.5)}).toInt(), 4);
  EXPECT_EQ(result_of("executorch_prim::round.Scalar", {d(-2.5)}).toInt(), -2);
  EXPECT_EQ(result_of("executorch_prim::round.Scalar", {d(-0.6)}).toInt(), -1);
  EXPECT_EQ(result_of("executorch_prim::ceil.Scalar", {d(-1.5)}).toInt(), -1);
  EXPECT_EQ(result_of("executorch_prim::trunc.Scalar", {d(-1.5)}).toInt(), -1);
  EXPECT_EQ(result_of("executorch_prim::sym_int.Scalar", {d(-1.5)}).toInt(), -1);
  EXPECT_EQ(result_of("executorch_prim::sym_int.Scalar", {EValue(true)}).toInt(), 1);
  EXPECT_EQ(result_of("executorch_prim::sym_float.Scalar", {i(2)}).toDouble(), 2.0);
}

TEST(PrimConversion, RefusesWhatNoIntHolds) {
  for (const char* op : {"executorch_prim::ceil.Scalar", "executorch_prim::sym_int.Scalar"}) {
    EXPECT_EQ(error_of(op, {d(NAN)}), Error::InvalidArgument) << op;
    EXPECT_EQ(error_of(op, {d(1e300)}), Error::InvalidArgument) << op;
  }
  EXPECT_EQ(error_of("executorch_prim::ceil.Scalar", {i(1)}), Error::InvalidType);
}

TEST(PrimLogic, SelectsAndNegates) {
  EXPECT_FALSE(result_of("executorch_prim::sym_not.Scalar", {EValue(true)}).toBool());
  EXPECT_EQ(result_of("executorch_prim::sym_ite.Scalar", {EValue(false), i(1), d(2)}).toDouble(),
            2);
  EXPECT_EQ(result_of("executorch_prim::sym_max.Scalar", {i(1), i(2)}).toInt(), 2);
  EXPECT_EQ(result_of("executorch_prim::sym_min.Scalar", {i(1), i(2)}).toInt(), 1);
  EXPECT_EQ(error_of("executorch_prim::sym_max.Scalar", {i(1), d(2)}), Error::InvalidType);
}

TEST(PrimArguments, AWrongCountIsAnInvalidProgram) {
  EXPECT_EQ(error_of("executorch_prim::add.Scalar", {i(1)}), Error::InvalidProgram);
  EXPECT_EQ(error_of("aten::sym_size.int", {i(1)}), Error::InvalidProgram);
}

TEST(PrimArguments, ANumberDoesNotTakeThePlaceOfATensorOrList) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor t = tf.ones({2});
  const double items[] = {1};
  executorch::aten::ArrayRef<double> list(items, 1);
  for (const EValue& slot : {EValue(t), EValue(&list)}) {
    std::vector<EValue> add = {i(1), i(2), slot};
    EXPECT_EQ(call("executorch_prim::add.Scalar", add), Error::InvalidType);
    EXPECT_EQ(add[2].tag, slot.tag);
    std::vector<EValue> size = {t, i(0), slot};
    EXPECT_EQ(call("aten::sym_size.int", size), Error::InvalidType);
    std::vector<EValue> select = {EValue(true), i(1), i(2), slot};
    EXPECT_EQ(call("executorch_prim::sym_ite.Scalar", select), Error::InvalidType);
  }
}

TEST(PrimTensor, ReadsSizesStridesAndElements) {
  TensorFactory<ScalarType::Int> tf;
  TensorFactory<ScalarType::Bool> bools;
  TensorFactory<ScalarType::Half> halves;
  EValue t(tf.make({2, 3}, {7, 1, 2, 3, 4, 5}));
  EXPECT_EQ(result_of("aten::sym_size.int", {t, i(-1)}).toInt(), 3);
  EXPECT_EQ(result_of("aten::sym_stride.int", {t, i(0)}).toInt(), 3);
  EXPECT_EQ(result_of("aten::sym_numel", {t}).toInt(), 6);
  EXPECT_EQ(result_of("aten::sym_storage_offset", {t}).toInt(), 0);
  EXPECT_EQ(result_of("aten::_local_scalar_dense", {t}).toInt(), 7);
  EXPECT_TRUE(result_of("aten::_local_scalar_dense", {EValue(bools.ones({1}))}).toBool());
  EXPECT_EQ(result_of("aten::_local_scalar_dense", {EValue(halves.ones({}))}).toDouble(), 1.0);
  EXPECT_EQ(error_of("aten::sym_size.int", {t, i(2)}), Error::InvalidArgument);
  EXPECT_EQ(error_of("aten::sym_size.int", {i(2), i(2)}), Error::InvalidType);
  EXPECT_EQ(error_of("aten::_local_scalar_dense", {EValue(tf.zeros({0}))}), Error::InvalidArgument);
}

namespace {

/// et_view of `self` as `size` into `out`.
Error view(const Tensor& self, std::vector<int64_t> size, const Tensor& out) {
  std::vector<EValue> items(size.begin(), size.end());
  std::vector<EValue*> pointers;
  for (EValue& item : items) pointers.push_back(&item);
  std::vector<int64_t> scratch(size.size());
  BoxedEvalueList<int64_t> list(pointers.data(), scratch.data(), static_cast<int>(size.size()));
  std::vector<EValue> values{EValue(self), EValue(&list), EValue(out)};
  return call("executorch_prim::et_view.default", values);
}

}  // namespace

TEST(PrimTensor, ReadsAnyByteButZeroAsTrue) {
  TensorFactory<ScalarType::Bool> bools;
  EXPECT_TRUE(result_of("aten::_local_scalar_dense", {EValue(bools.make({1}, {6}))}).toBool());
  EXPECT_FALSE(result_of("aten::_local_scalar_dense", {EValue(bools.make({1}, {0}))}).toBool());
}

TEST(PrimView, SharesMemoryAndInfersOneExtent) {
  TensorFactory<ScalarType::Float> tf;
  Tensor self = tf.ones({2, 3});
  Tensor out = tf.zeros({6, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  ASSERT_EQ(view(self, {-1, 2}, out), Error::Ok);
  EXPECT_EQ(out.size(0), 3);
  EXPECT_EQ(out.const_data_ptr(), self.const_data_ptr());
}

TEST(PrimView, CannotGrowBeyondItsBaseNorMakeItWritable) {
  TensorFactory<ScalarType::Float> tf;
  Tensor self = tf.ones({2, 3});
  self.unsafeGetTensorImpl()->borrow_data(self.mutable_data_ptr(), 6, /*read_only=*/true);
  Tensor out = tf.zeros({6, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  ASSERT_EQ(view(self, {3, 2}, out), Error::Ok);
  EXPECT_TRUE(out.unsafeGetTensorImpl()->is_read_only());
  const executorch::aten::SizesType larger[] = {4, 2};
  EXPECT_EQ(executorch::runtime::resize_tensor(
                out, executorch::aten::ArrayRef<executorch::aten::SizesType>(larger)),
            Error::NotSupported);
}

TEST(PrimView, LeavesAResultThatCannotTakeTheShapeItsMemory) {
  TensorFactory<ScalarType::Float> tf;
  Tensor self = tf.ones({2, 3});
  Tensor out = tf.zeros({2, 3});  // static
  const void* const own = out.const_data_ptr();
  EXPECT_NE(view(self, {3, 2}, out), Error::Ok);
  EXPECT_EQ(out.const_data_ptr(), own);
}

TEST(PrimView, SeesChannelsLastMemoryWhereTheOrderOfElementsStays) {
  TensorFactory<ScalarType::Float> tf;
  Tensor self = tf.full_channels_last({2, 3, 4, 5}, 1);
  EXPECT_EQ(view(self, {2, 3, 4, 5}, tf.full_channels_last({2, 3, 4, 5}, 0)), Error::Ok);
  EXPECT_EQ(view(self, {2, 3, 4, 5}, tf.zeros({2, 3, 4, 5})), Error::InvalidArgument);
  EXPECT_EQ(view(self, {2, 3, 20}, tf.zeros({2, 3, 20})), Error::InvalidArgument);
  EXPECT_EQ(view(tf.ones({2, 3, 4, 5}), {2, 3, 4, 5}, tf.full_channels_last({2, 3, 4, 5}, 0)),
            Error::InvalidArgument);
  Tensor pixels = tf.full_channels_last({2, 3, 1, 1}, 1);  // as good as contiguous
  EXPECT_EQ(view(pixels, {6}, tf.zeros({6})), Error::Ok);
}

TEST(PrimView, CutsDimsAnew) {
  TensorFactory<ScalarType::Float> tf;
  EXPECT_EQ(view(tf.ones({4, 6}), {6, 1, 4}, tf.zeros({6, 1, 4})), Error::Ok);
  EXPECT_EQ(view(tf.ones({}), {1, 1}, tf.zeros({1, 1})), Error::Ok);
  EXPECT_EQ(view(tf.ones({2, 3, 4}), {24}, tf.zeros({24})), Error::Ok);
}

TEST(PrimView, RefusesShapesOfAnotherSize) {
  TensorFactory<ScalarType::Float> tf;
  TensorFactory<ScalarType::Int> ints;
  Tensor self = tf.ones({2, 3});
  Tensor out = tf.zeros({6, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  EXPECT_EQ(view(self, {4, 2}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {-1, -1}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {-1, 4}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {-1, 0}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {6}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {-2, -3}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {3, 2}, ints.zeros({3, 2})), Error::InvalidArgument);
  EXPECT_EQ(view(self, {13, 2}, out), Error::InvalidArgument);
  // What leaves 32 or 64 bits.
  EXPECT_EQ(view(self, {int64_t{1} << 33, 2}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {int64_t{1} << 62, int64_t{1} << 62}, out), Error::InvalidArgument);
  EXPECT_EQ(view(self, {(int64_t{1} << 32) + 3, 2}, out), Error::InvalidArgument);
  Tensor none = tf.zeros({0, 2});
  EXPECT_EQ(view(none, {0, int64_t{1} << 32}, out), Error::InvalidArgument);
}

TEST(PrimCopyIndex, GrowsTheStackByOneRow) {
  TensorFactory<ScalarType::Int> tf;
  Tensor to = tf.zeros({3, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  std::vector<EValue> values{EValue(to), EValue(tf.make({2}, {5, 6})), i(1)};
  ASSERT_EQ(call("executorch_prim::et_copy_index.tensor", values), Error::Ok);
  EXPECT_EQ(to.size(0), 2);
  EXPECT_EQ(to.const_data_ptr<int32_t>()[3], 6);
}

TEST(PrimCopyIndex, RefusesBadRowsAndIndices) {
  const char* op = "executorch_prim::et_copy_index.tensor";
  TensorFactory<ScalarType::Int> tf;
  Tensor to = tf.zeros({3, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  std::vector<EValue> negative{EValue(to), EValue(tf.zeros({2})), i(-1)};
  EXPECT_EQ(call(op, negative), Error::InvalidArgument);
  std::vector<EValue> beyond{EValue(to), EValue(tf.zeros({2})), i(3)};
  EXPECT_EQ(call(op, beyond), Error::InvalidArgument);
  std::vector<EValue> wider{EValue(to), EValue(tf.zeros({3})), i(1)};
  EXPECT_EQ(call(op, wider), Error::InvalidArgument);
  std::vector<EValue> too_wide{EValue(to), EValue(tf.zeros({7})), i(0)};
  EXPECT_EQ(call(op, too_wide), Error::InvalidArgument);
  EXPECT_EQ(to.numel(), 6);
}

TEST(PrimCopyIndex, TakesTheSizeOfRowsFromTheFirst) {
  const char* op = "executorch_prim::et_copy_index.tensor";
  TensorFactory<ScalarType::Int> tf;
  Tensor to = tf.zeros({3, 2}, TensorShapeDynamism::DYNAMIC_BOUND);
  for (const int32_t row : {0, 1}) {
    std::vector<EValue> values{EValue(to), EValue(tf.make({3}, {row, 8, 9})), i(row)};
    ASSERT_EQ(call(op, values), Error::Ok);
  }
  EXPECT_EQ(to.size(0), 2);
  EXPECT_EQ(to.size(1), 3);
  EXPECT_EQ(to.const_data_ptr<int32_t>()[3], 1);
}
