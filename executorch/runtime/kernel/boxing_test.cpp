#include <executorch/runtime/kernel/boxing.h>

#include <tuple>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using aten::Tensor;

int n_calls = 0;

Tensor& fill_out(KernelRuntimeContext& ctx, int64_t n, double x, bool flag, std::string_view text,
                 ScalarType type, Tensor& out) {
  ++n_calls;
  if (n == 13) ctx.fail(Error::NotSupported);
  out.mutable_data_ptr<double>()[0] = static_cast<double>(n) + x + (flag ? 100 : 0) +
                                      static_cast<double>(text.size()) * 1000 +
                                      static_cast<double>(type) * 10000;
  return out;
}

std::tuple<Tensor&, Tensor&> two_out(const Tensor& in, const std::optional<Tensor>& maybe,
                                     aten::IntArrayRef sizes, const aten::Scalar& s, Tensor& a,
                                     Tensor& b) {
  ++n_calls;
  a.mutable_data_ptr<double>()[0] = in.const_data_ptr<double>()[0] + s.to<double>();
  b.mutable_data_ptr<double>()[0] = static_cast<double>(sizes[0]) + (maybe.has_value() ? 1 : 0);
  return {a, b};
}

int64_t count(aten::ArrayRef<std::optional<Tensor>> tensors) {
  return static_cast<int64_t>(tensors.size());
}

class BoxingTest : public ::testing::Test {
 protected:
  void SetUp() override { n_calls = 0; }

  /// Calls `op` on pointers to `values`; what it reported.
  template <size_t N>
  Error call(OpFunction op, EValue (&values)[N]) {
    EValue* args[N];
    for (size_t i = 0; i < N; ++i) args[i] = &values[i];
    KernelRuntimeContext context;
    // Opaque, so that no compiler warns of the accesses that the check of the arity prevents.
    OpFunction volatile opaque = op;
    opaque(context, {args, N});
    return context.failure_state();
  }

  testing::TensorFactory<ScalarType::Double> tf_;
  aten::ArrayRef<char> text_{"ab", 2};
};

TEST_F(BoxingTest, ArgumentsArriveByType) {
  Tensor out = tf_.zeros({1});
  EValue values[] = {3, 0.5, true, &text_, 6, out, out};
  EXPECT_EQ(call(boxed<&fill_out>, values), Error::Ok);
  EXPECT_EQ(out.const_data_ptr<double>()[0], 3 + 0.5 + 100 + 2000 + 60000);
}

TEST_F(BoxingTest, IntegerServesAsDouble) {
  Tensor out = tf_.zeros({1});
  EValue values[] = {3, 2, false, &text_, 0, out};
  EXPECT_EQ(call(boxed<&fill_out>, values), Error::Ok);
  EXPECT_EQ(out.const_data_ptr<double>()[0], 2005);
}

TEST_F(BoxingTest, FailureOfTheKernelIsSeen) {
  Tensor out = tf_.zeros({1});
  EValue values[] = {13, 2.0, false, &text_, 0, out};
  EXPECT_EQ(call(boxed<&fill_out>, values), Error::NotSupported);
}

TEST_F(BoxingTest, ConstantIsReadButNotWritten) {
  Tensor constant = tf_.ones({1});
  constant.unsafeGetTensorImpl()->borrow_data(constant.mutable_data_ptr(), 1, /*read_only=*/true);
  Tensor out = tf_.zeros({1});
  EValue written[] = {3, 0.5, true, &text_, 6, constant};
  EXPECT_EQ(call(boxed<&fill_out>, written), Error::InvalidProgram);
  EXPECT_EQ(n_calls, 0);
  EValue two = 2;
  EValue* items[] = {&two};
  int64_t unboxed[1];
  BoxedEvalueList<int64_t> sizes(items, unboxed, 1);
  EValue read[] = {constant, EValue(), &sizes, 1.5, out, tf_.zeros({1})};
  EXPECT_EQ(call(boxed<&two_out>, read), Error::Ok);
}

TEST_F(BoxingTest, WrongCountIsInvalidProgram) {
  Tensor out = tf_.zeros({1});
  EValue too_few[] = {3, 0.5, true, &text_, 6};
  EValue too_many[] = {3, 0.5, true, &text_, 6, out, out, out};
  EXPECT_EQ(call(boxed<&fill_out>, too_few), Error::InvalidProgram);
  EXPECT_EQ(call(boxed<&fill_out>, too_many), Error::InvalidProgram);
  EXPECT_EQ(n_calls, 0);
}

TEST_F(BoxingTest, WrongTagIsInvalidType) {
  Tensor out = tf_.zeros({1});
  EValue bool_for_int[] = {true, 0.5, true, &text_, 6, out};
  EValue none_for_tensor[] = {3, 0.5, true, &text_, 6, EValue()};
  EValue double_for_int[] = {3.0, 0.5, true, &text_, 6, out};
  EXPECT_EQ(call(boxed<&fill_out>, bool_for_int), Error::InvalidType);
  EXPECT_EQ(call(boxed<&fill_out>, none_for_tensor), Error::InvalidType);
  EXPECT_EQ(call(boxed<&fill_out>, double_for_int), Error::InvalidType);
  EXPECT_EQ(n_calls, 0);
}

TEST_F(BoxingTest, UnknownElementTypeIsRefused) {
  Tensor out = tf_.zeros({1});
  for (const int64_t bad : {int64_t{-1}, int64_t{30}, int64_t{256 + 6}}) {
    EValue values[] = {3, 0.5, true, &text_, bad, out};
    EXPECT_EQ(call(boxed<&fill_out>, values), Error::InvalidArgument);
  }
  EXPECT_EQ(n_calls, 0);
}

TEST_F(BoxingTest, ListsAndOptionalsAreRead) {
  Tensor a = tf_.zeros({1});
  Tensor b = tf_.zeros({1});
  EValue seven(7);
  EValue* wrapped[] = {&seven};
  int64_t unwrapped[1];
  BoxedEvalueList<int64_t> sizes(wrapped, unwrapped, 1);
  EValue values[] = {tf_.ones({1}), EValue(), &sizes, 0.5, a, b};
  EXPECT_EQ(call(boxed<&two_out>, values), Error::Ok);
  EXPECT_EQ(a.const_data_ptr<double>()[0], 1.5);
  EXPECT_EQ(b.const_data_ptr<double>()[0], 7.0);

  seven = EValue(0.5);
  EXPECT_EQ(call(boxed<&two_out>, values), Error::InvalidType);
  EXPECT_EQ(n_calls, 1);
}

void split(const Tensor& in, aten::ArrayRef<Tensor> parts) {
  ++n_calls;
  parts[0].mutable_data_ptr<double>()[0] = in.const_data_ptr<double>()[0];
}

Tensor& join(aten::ArrayRef<Tensor> parts, Tensor& out) {
  ++n_calls;
  return (out.mutable_data_ptr<double>()[0] = static_cast<double>(parts.size())), out;
}

Tensor& add_in_place(Tensor& self, const Tensor& other) {
  ++n_calls;
  return (self.mutable_data_ptr<double>()[0] += other.const_data_ptr<double>()[0]), self;
}

// A result would change the shape of what is still read.
TEST_F(BoxingTest, ResultIsNoOtherArgument) {
  Tensor x = tf_.ones({1});
  Tensor a = tf_.zeros({1});
  Tensor b = tf_.zeros({1});
  EValue seven(7);
  EValue* wrapped[] = {&seven};
  int64_t unwrapped[1];
  BoxedEvalueList<int64_t> sizes(wrapped, unwrapped, 1);
  EValue is_operand[] = {x, EValue(), &sizes, 0.5, x, b};
  EXPECT_EQ(call(boxed<&two_out>, is_operand), Error::InvalidProgram);
  EValue is_optional_operand[] = {x, a, &sizes, 0.5, b, a};
  EXPECT_EQ(call(boxed<&two_out>, is_optional_operand), Error::InvalidProgram);
  EValue is_other_result[] = {x, EValue(), &sizes, 0.5, a, a};
  EXPECT_EQ(call(boxed<&two_out>, is_other_result), Error::InvalidProgram);

  EValue parts[] = {a, x};
  EValue* part_values[] = {&parts[0], &parts[1]};
  Tensor part_tensors[] = {a, x};
  BoxedEvalueList<Tensor> list(part_values, part_tensors, 2);
  EValue is_list_item[] = {x, &list};
  EXPECT_EQ(call(boxed<&split>, is_list_item), Error::InvalidProgram);
  EValue is_item_of_operand[] = {&list, x};
  EXPECT_EQ(call(boxed<&join>, is_item_of_operand), Error::InvalidProgram);
  EXPECT_EQ(n_calls, 0);
}

TEST_F(BoxingTest, ResultMayBeRepeatedAtTheEndOrLieInPlace) {
  Tensor a = tf_.zeros({1});
  Tensor b = tf_.ones({1});
  EValue parts[] = {a, b};
  EValue* part_values[] = {&parts[0], &parts[1]};
  Tensor part_tensors[] = {a, b};
  BoxedEvalueList<Tensor> list(part_values, part_tensors, 2);
  EValue is_repeated[] = {tf_.ones({1}), &list, &list};
  EXPECT_EQ(call(boxed<&split>, is_repeated), Error::Ok);
  EValue in_place[] = {b, b, b};
  EXPECT_EQ(call(boxed<&add_in_place>, in_place), Error::Ok);
  EXPECT_EQ(b.const_data_ptr<double>()[0], 2);
}

TEST_F(BoxingTest, NumberReturnedGoesToTheLastSlot) {
  EValue* wrapped[] = {nullptr, nullptr};
  std::optional<Tensor> unwrapped[2];
  BoxedEvalueList<std::optional<Tensor>> list(wrapped, unwrapped, 2);
  EValue values[] = {&list, EValue()};
  EXPECT_EQ(call(boxed<&count>, values), Error::Ok);
  EXPECT_EQ(values[1].toInt(), 2);
  EValue without_slot[] = {&list};
  EXPECT_EQ(call(boxed<&count>, without_slot), Error::InvalidProgram);
}

TEST_F(BoxingTest, RowsAndFunctorsWrapTheSameFunction) {
  constexpr Kernel kRow = ET_OP("test::count", count);
  EXPECT_EQ(kRow.op_, &boxed<&count>);
  const Kernel made = extension::make_boxed_kernel("test::count", EXECUTORCH_FN(count, "count"));
  EXPECT_EQ(made.op_, &extension::WrapUnboxedIntoFunctor<EXECUTORCH_FN_TYPE(count)>::call);
}

TEST_F(BoxingTest, NumberDoesNotTakeThePlaceOfATensor) {
  EValue* wrapped[] = {nullptr};
  std::optional<Tensor> unwrapped[1];
  BoxedEvalueList<std::optional<Tensor>> list(wrapped, unwrapped, 1);
  EValue values[] = {&list, tf_.ones({2})};
  EXPECT_EQ(call(boxed<&count>, values), Error::InvalidType);
  EXPECT_TRUE(values[1].isTensor());
}

TEST(KernelRuntimeContext, TemporaryMemoryMayBeMissingOrUsedUp) {
  KernelRuntimeContext without;
  EXPECT_EQ(without.allocate_temp(1).error(), Error::NotFound);
  uint8_t buffer[8];
  MemoryAllocator allocator(sizeof(buffer), buffer);
  KernelRuntimeContext context(nullptr, &allocator);
  EXPECT_TRUE(context.allocate_temp(8, 1).ok());
  EXPECT_EQ(context.allocate_temp(1, 1).error(), Error::MemoryAllocationFailed);
}

}  // namespace
}  // namespace executorch::runtime
