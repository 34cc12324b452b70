// Valid files that no exporter writes: they end in errors, whatever they ask for.
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/executor/testing_util/hostile_programs.h>

#include <algorithm>
#include <string>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using testing::load;
using testing::load_error;
using testing::LoadedMethod;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

constexpr int8_t kDynamic = 1;

/// The file with a byte 0 in the place of the _ of a name.
std::vector<uint8_t> with_zero(std::vector<uint8_t> file, const std::string& name) {
  const auto at = std::search(file.begin(), file.end(), name.begin(), name.end());
  if (at != file.end()) *std::find(at, file.end(), '_') = 0;
  return file;
}

// Who asks for the name that C strings end early would not find it.
TEST(Program, NamesHaveNoByteOfZero) {
  ProgramBuilder builder;
  (void)builder.method("for_ward");
  builder.named_data.emplace_back("we_ight", std::vector<uint8_t>(4));
  const std::vector<uint8_t> file = builder.build();
  EXPECT_EQ(load_error(file), Error::Ok);
  EXPECT_EQ(load_error(with_zero(file, "for_ward")), Error::InvalidProgram);
  EXPECT_EQ(load_error(with_zero(file, "we_ight")), Error::InvalidProgram);
}

TEST(FreeInstruction, TakesOnlyWhatHasNoMemoryOfItsOwn) {
  for (const bool planned : {true, false}) {
    ProgramBuilder builder;
    builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
    PlanBuilder& plan = builder.method();
    const int32_t x = planned ? plan.tensor({.sizes = {2}, .memory_id = 1})
                              : plan.tensor({.sizes = {2}, .data = 1});
    plan.free(x);
    plan.outputs = {x};
    plan.arenas = {0, 16};
    EXPECT_EQ(load_error(builder.build()), Error::InvalidProgram);
  }
}

TEST(FreeInstruction, LeavesNoOutputWithoutMemory) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  const int32_t seen = plan.tensor({.sizes = {2}});
  const int32_t moved = plan.tensor({.sizes = {2}});
  plan.kernel("executorch_prim::et_view.default", {constant, plan.integers({}), seen});
  plan.move(seen, moved);
  plan.free(seen);
  plan.outputs = {moved};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
  }
  for (int run = 0; run < 2; ++run) {  // by steps: the error leads back to the beginning
    EXPECT_EQ(loaded.method->step(), Error::Ok);
    EXPECT_EQ(loaded.method->step(), Error::Ok);
    EXPECT_EQ(loaded.method->step(), Error::InvalidState);
    EXPECT_FALSE(loaded.method->in_progress());
  }
}

// Frees a planned tensor by another name, then sets it as an input.
TEST(FreeInstruction, InputWhoseMemoryWasTakenCannotBeSet) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1});
  const int32_t alias = plan.tensor({.sizes = {2}});
  const int32_t out = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 16});
  plan.kernel("test::copy", {x, out});
  plan.move(x, alias);
  plan.free(alias);
  plan.inputs = {x};
  plan.outputs = {out};
  plan.arenas = {0, 32};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> value({2}, {1, 2});
  ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->set_input(value.value(), 0), Error::InvalidState);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
}

// What lost its memory while it had no elements cannot grow.
TEST(FreeInstruction, LeavesNoRoomToGrow) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {4}, .dynamism = kDynamic});
  const int32_t row = plan.tensor({.sizes = {2}, .memory_id = 1});
  plan.free(x);
  plan.kernel("test::copy", {row, x});
  plan.inputs = {x};
  plan.outputs = {row};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> value({0}, {});
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
    EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);
  }
}

// The first call makes a view without elements; the second writes to it before it is made again.
TEST(View, HasNoRoomToGrowBeforeItIsMade) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t writes = plan.tensor({.sizes = {1}, .dtype = ScalarType::Bool});
  const int32_t x = plan.tensor({.sizes = {4}, .dynamism = kDynamic});
  const int32_t row = plan.tensor({.sizes = {2}, .memory_id = 1});
  const int32_t seen = plan.tensor({.sizes = {4}, .dynamism = kDynamic});
  plan.jump_if_false(writes, 2);
  plan.kernel("test::copy", {row, seen});
  plan.kernel("executorch_prim::et_view.default", {x, plan.integers({}), seen});
  plan.inputs = {writes, x};
  plan.outputs = {row};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> value({0}, {});
  for (const bool now : {false, true}) {
    OwnedTensor<uint8_t> flag({1}, {now}, ScalarType::Bool);
    ASSERT_EQ(loaded.method->set_input(flag.value(), 0), Error::Ok);
    ASSERT_EQ(loaded.method->set_input(value.value(), 1), Error::Ok);
    EXPECT_EQ(loaded.method->execute(), now ? Error::InvalidArgument : Error::Ok);
  }
}

// The second call reads, before it is made again, a view of the first call's input.
TEST(View, WithoutArgumentsIsAnError) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1});
  plan.kernel("executorch_prim::et_view.default", {});
  plan.outputs = {x};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  if (loaded.error == Error::Ok) {
    EXPECT_NE(loaded.method->execute(), Error::Ok);
  }
}

TEST(View, LeadsToNothingBeforeItIsMade) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {1024}});
  const int32_t seen = plan.tensor({.sizes = {1024}, .memory_id = 1});
  const int32_t out = plan.tensor({.sizes = {1024}, .memory_id = 1, .offset = 4096});
  plan.kernel("test::copy", {seen, out});
  plan.kernel("executorch_prim::et_view.default", {x, plan.integers({}), seen});
  plan.inputs = {x};
  plan.outputs = {out};
  plan.arenas = {0, 8192};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  for (int run = 0; run < 2; ++run) {
    OwnedTensor<float> value({1024}, Floats(1024, 1));  // freed at the end of the round
    ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
    EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
  }
}

// A caller's constant, of a file that is mapped for reading, stays one where it is not copied.
TEST(Input, ThatMayOnlyBeReadIsNotHandedOutAsWritable) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t borrowed = plan.tensor({.sizes = {2}});
  const int32_t copied = plan.tensor({.sizes = {2}, .memory_id = 1});
  plan.inputs = {borrowed, copied};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> value({2}, {1, 2});
  for (const bool read_only : {true, false}) {
    const EValue given = value.value();
    given.toTensor().unsafeGetTensorImpl()->borrow_data(value.data().data(), 2, read_only);
    for (const size_t i : {0, 1}) ASSERT_EQ(loaded.method->set_input(given, i), Error::Ok);
    const auto of = [&](size_t i) {
      return internal::writable_data(loaded.method->get_input(i).toTensor()).error();
    };
    EXPECT_EQ(of(0), read_only ? Error::InvalidProgram : Error::Ok);
    EXPECT_EQ(of(1), Error::Ok);
  }
}

TEST(View, CannotBeMadeOfWhatWasMovedThere) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}});
  const int32_t planned = plan.tensor({.sizes = {2}, .memory_id = 1});
  const int32_t seen = plan.tensor({.sizes = {2}});
  plan.move(planned, seen);
  plan.kernel("executorch_prim::et_view.default", {x, plan.integers({}), seen});
  plan.inputs = {x};
  plan.outputs = {planned};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> value({2}, {1, 2});
  ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidProgram);
}

// Before the view is made again the input that it stands for has no memory, and no elements.
TEST(View, InThePlaceOfAnEmptyInputIsNotWritten) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1, .dynamism = kDynamic});
  const int32_t other = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 16});
  const int32_t late = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 32});
  plan.kernel("test::copy", {late, other});  // fails
  plan.kernel("executorch_prim::et_view.default", {other, plan.integers({}), late});
  plan.kernel("executorch_prim::et_view.default", {other, plan.integers({}), x});
  plan.inputs = {x};
  plan.arenas = {0, 48};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> none({0}, {}), some({2}, {1, 2});
  ASSERT_EQ(loaded.method->set_input(none.value(), 0), Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
  EXPECT_EQ(loaded.method->set_input(some.value(), 0), Error::InvalidState);
  EXPECT_EQ(loaded.method->set_input(none.value(), 0), Error::Ok);
}

TEST(View, OfAConstantKeepsAnInputFromBeingWritten) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2, 3}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  for (const uint32_t memory_id : {1u, 0u}) {
    const int32_t x = plan.tensor(
        {.sizes = {2}, .memory_id = memory_id, .dynamism = memory_id ? int8_t{0} : kDynamic});
    plan.kernel("executorch_prim::et_view.default", {constant, plan.integers({}), x});
    plan.inputs.push_back(x);
  }
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  Method& method = *loaded.method;
  OwnedTensor<float> value({2}, {8, 9});
  OwnedTensor<float> large({3}, {7, 8, 9});
  for (const size_t i : {0, 1}) {
    ASSERT_EQ(method.set_input(value.value(), i), Error::Ok);
  }
  ASSERT_EQ(method.execute(), Error::Ok);
  EXPECT_EQ(method.set_input(value.value(), 0), Error::InvalidProgram);
  // Borrowed memory takes the place of the constant's, but not for an input that is refused.
  EXPECT_EQ(method.set_input(large.value(), 1), Error::InvalidArgument);
  EXPECT_TRUE(method.get_input(1).toTensor().unsafeGetTensorImpl()->is_read_only());
  ASSERT_EQ(method.set_input(value.value(), 1), Error::Ok);
  EXPECT_FALSE(method.get_input(1).toTensor().unsafeGetTensorImpl()->is_read_only());
}

TEST(Move, OfAConstantLeavesItWhereItIs) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  const int32_t out = plan.tensor({.sizes = {2}});
  plan.move(constant, out);
  plan.outputs = {out};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  Floats buffer(2);
  EXPECT_EQ(loaded.method->set_output_data_ptr(buffer.data(), 8, 0), Error::InvalidState);
  EXPECT_EQ(loaded.output(), (Floats{1, 2}));
}

// What was moved to the output may grow to more than the output's own bound.
TEST(Move, OutputMemoryOfTheCallersIsNotOverrun) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {100}, .memory_id = 1, .dynamism = kDynamic});
  const int32_t large =
      plan.tensor({.sizes = {100}, .memory_id = 1, .offset = 400, .dynamism = kDynamic});
  const int32_t out = plan.tensor({.sizes = {2}});
  plan.kernel("test::copy", {x, large});
  plan.move(large, out);
  plan.inputs = {x};
  plan.outputs = {out};
  plan.arenas = {0, 800};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  Method& method = *loaded.method;
  OwnedTensor<float> small({2}, {1, 2});
  OwnedTensor<float> full({100}, Floats(100, 3));
  ASSERT_EQ(method.set_input(small.value(), 0), Error::Ok);
  ASSERT_EQ(method.execute(), Error::Ok);
  Floats buffer(2);
  ASSERT_EQ(method.set_output_data_ptr(buffer.data(), 8, 0), Error::Ok);
  ASSERT_EQ(method.set_input(full.value(), 0), Error::Ok);
  EXPECT_EQ(method.execute(), Error::InvalidArgument);
}

TEST(Method, InputThatBecameANumberIsAnError) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1});
  plan.kernel("test::overwrite", {x});
  plan.inputs = {x};
  plan.outputs = {x};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  OwnedTensor<float> value({2}, {1, 2});
  Floats buffer(2);
  ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->set_input(value.value(), 0), Error::InvalidType);
  EXPECT_EQ(loaded.method->set_output_data_ptr(buffer.data(), 8, 0), Error::InvalidArgument);
}

TEST(Method, InputOfAnyRankIsAnErrorAtMost) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const std::vector<int32_t> ones(16, 1);
  plan.inputs = {plan.tensor({.sizes = ones, .memory_id = 1}), plan.tensor({.sizes = {1}})};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  for (const size_t rank : {17u, 64u, 1000u}) {
    OwnedTensor<float> value(std::vector<int32_t>(rank, 1), {1});
    EXPECT_EQ(loaded.method->set_input(value.value(), 0), Error::InvalidArgument);
    EXPECT_EQ(loaded.method->set_input(value.value(), 1), Error::InvalidArgument);
  }
}

TEST(Method, OpenBoundOfAnInputHasNoSize) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  for (const std::vector<int32_t>& sizes :
       std::vector<std::vector<int32_t>>{{kMax, kMax, 4},
                                         {kMax, kMax, kMax, 0},
                                         {0, kMax, kMax, kMax},
                                         {kMax, kMax, kMax, kMax}}) {
    ProgramBuilder builder;
    PlanBuilder& plan = builder.method();
    plan.inputs = {plan.tensor({.sizes = sizes, .dynamism = kDynamic})};
    LoadedMethod loaded = load(builder);
    ASSERT_EQ(loaded.error, Error::Ok);
    EXPECT_EQ(loaded.method->method_meta().input_tensor_meta(0).error(), Error::InvalidArgument);
    OwnedTensor<float> value(std::vector<int32_t>(sizes.size(), 1), {1});
    const bool holds_one = std::count(sizes.begin(), sizes.end(), 0) == 0;
    const Error expected = holds_one ? Error::Ok : Error::InvalidArgument;
    EXPECT_EQ(loaded.method->set_input(value.value(), 0), expected);
    EXPECT_EQ(loaded.method->execute(), expected);
  }
}

TEST(Method, MovedFromCannotBeUsed) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1, .name = "x"});
  plan.inputs = {x};
  plan.outputs = {x};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  Method& from = *loaded.method;
  Method to = std::move(from);
  OwnedTensor<float> value({2}, {1, 2});
  EValue outputs[1];
  EXPECT_EQ(from.execute(), Error::InvalidState);
  EXPECT_EQ(from.experimental_step(), Error::EndOfMethod);
  EXPECT_EQ(from.inputs_size(), 0u);
  EXPECT_EQ(from.set_input(value.value(), 0), Error::InvalidArgument);
  EXPECT_EQ(from.set_output_data_ptr(value.data().data(), 8, 0), Error::InvalidArgument);
  EXPECT_EQ(from.get_outputs(outputs, 1), Error::Ok);
  EXPECT_TRUE(outputs[0].isNone());
  EXPECT_EQ(from.get_attribute("x").error(), Error::NotFound);
  ASSERT_EQ(to.set_input(value.value(), 0), Error::Ok);
  EXPECT_EQ(to.execute(), Error::Ok);
}

}  // namespace
}  // namespace executorch::runtime
