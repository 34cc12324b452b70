// Valid files that no exporter writes: they end in errors, whatever they ask for.
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>

namespace executorch {
namespace runtime {
namespace {

using aten::ScalarType;
using testing::load_error;
using testing::LoadedMethod;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

constexpr int8_t kDynamic = 1;

size_t n_copies = 0;
uint64_t steps_of_copy = 0;

// (a, out): out = a, with a's shape.
void copy(KernelRuntimeContext& context, Span<EValue*> args) {
  ++n_copies;
  context.add_steps(steps_of_copy);
  const aten::Tensor& a = args[0]->toTensor();
  const aten::Tensor& out = args[1]->toTensor();
  if (resize_tensor(out, a.sizes()) != Error::Ok) {
    return context.fail(Error::InvalidArgument);
  }
  if (a.nbytes() > 0) {
    std::memmove(out.mutable_data_ptr(), a.const_data_ptr(), a.nbytes());
  }
}

// (a, size, out): out borrows a's bytes and takes its shape.
void view(KernelRuntimeContext& context, Span<EValue*> args) {
  const auto& base = *args[0]->toTensor().unsafeGetTensorImpl();
  const aten::Tensor& out = args[2]->toTensor();
  out.unsafeGetTensorImpl()->borrow_data(base.mutable_data(), base.capacity(), base.is_read_only());
  if (resize_tensor(out, base.sizes()) != Error::Ok) context.fail(Error::InvalidArgument);
}

// A kernel of a user's that puts a number where a tensor was.
void overwrite(KernelRuntimeContext&, Span<EValue*> args) {
  *args[0] = EValue(int64_t{1});
}

const std::vector<Kernel> kKernels = {Kernel("test::copy", copy),
                                      Kernel("test::overwrite", overwrite),
                                      Kernel("executorch_prim::et_view.default", view)};

LoadedMethod load(ProgramBuilder& builder) {
  return LoadedMethod(builder.build(), "forward", nullptr, nullptr, kKernels);
}

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

// A loop over one copy of `elements` floats, for ever unless the first byte of the input is 1.
LoadedMethod copy_loop(int32_t elements, int copies = 1) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const auto bytes = static_cast<uint64_t>(elements) * 4;
  const int32_t x = plan.tensor({.sizes = {elements}, .memory_id = 1});
  const int32_t y = plan.tensor({.sizes = {elements}, .memory_id = 1, .offset = bytes});
  const int32_t ends = plan.tensor({.sizes = {1}, .memory_id = 1, .dtype = ScalarType::Bool});
  for (int i = 0; i < copies; ++i) {
    plan.kernel("test::copy", {x, y});
  }
  plan.jump_if_false(ends, 0);
  plan.inputs = {x};
  plan.arenas = {0, static_cast<int64_t>(2 * bytes)};
  return load(builder);
}

Error run(LoadedMethod& loaded, int32_t elements, uint32_t ends) {
  Floats input(static_cast<size_t>(elements));
  std::memcpy(input.data(), &ends, sizeof(ends));
  OwnedTensor<float> value({elements}, input);
  EXPECT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
  return loaded.method->execute();
}

TEST(Work, OfALoopIsBounded) {
  LoadedMethod loaded = copy_loop(1);
  EXPECT_EQ(run(loaded, 1, 0), Error::InvalidProgram);
  EXPECT_EQ(run(loaded, 1, 0), Error::InvalidProgram);
  EXPECT_EQ(run(loaded, 1, 1), Error::Ok);
}

TEST(Work, CountsElements) {
  constexpr int32_t kElements = 1 << 20;
  LoadedMethod loaded = copy_loop(kElements);
  loaded.method->set_max_work(1000000);  // 2 * 1024 + 1 for each copy, not 1
  EXPECT_LT(seconds([&] { EXPECT_EQ(run(loaded, kElements, 0), Error::InvalidProgram); }), 30);
}

TEST(Work, CountsCallsAndSmallTensors) {
  constexpr uint64_t kCopyAndJump = 4 + 2 * 4 + 1;  // tensors of 128 elements
  for (const uint64_t missing : {0, 2}) {
    LoadedMethod loaded = copy_loop(128);
    n_copies = 0;
    loaded.method->set_max_work(10 * kCopyAndJump - missing);
    EXPECT_EQ(run(loaded, 128, 0), Error::InvalidProgram);
    EXPECT_EQ(n_copies, 11 - missing / 2);  // the first is free
  }
}

TEST(Work, CountsTheStepsThatKernelsTellOf) {
  constexpr uint64_t kCopyAndJump = 4 + 2 * 4 + 1, kStepsPerUnit = 256;
  for (const uint64_t steps : {100 * kStepsPerUnit, UINT64_MAX}) {
    LoadedMethod loaded = copy_loop(128);
    n_copies = 0;
    steps_of_copy = steps;
    loaded.method->set_max_work(5 * (kCopyAndJump + 100));
    EXPECT_EQ(run(loaded, 128, 0), Error::InvalidProgram);
    EXPECT_EQ(n_copies, steps == UINT64_MAX ? 2 : 6);  // the first is free
  }
  steps_of_copy = 0;
}

TEST(Work, OfAStraightLineIsFree) {
  LoadedMethod loaded = copy_loop(10240, 100);
  loaded.method->set_max_work(2000);
  EXPECT_EQ(run(loaded, 10240, 1), Error::Ok);
  EXPECT_EQ(run(loaded, 10240, 0), Error::InvalidProgram);
}

TEST(Loading, TakesTimeLinearInTheFile) {
  constexpr size_t kMany = 100000;
  for (const bool shared : {false, true}) {
    ProgramBuilder builder;
    PlanBuilder& plan = builder.method();
    const int32_t x = plan.tensor({.sizes = {1}, .memory_id = 1});
    const std::vector<int32_t> all(kMany, x);
    if (shared) {
      plan.kernel("test::absent", all);
      plan.repeat(kMany);
    } else {
      plan.kernel("test::absent", {x, plan.tensors(all)});
      for (size_t i = 0; i < kMany; ++i) {
        plan.kernel("test::absent", {x, x});
      }
    }
    plan.arenas = {0, 16};
    const auto bytes = builder.build();
    const Error expected = shared ? Error::InvalidProgram : Error::Ok;
    EXPECT_LT(seconds([&] { EXPECT_EQ(load_error(bytes), expected); }), 5);
  }
}

// A call looks at all items of its lists.
TEST(Loading, ListsThatManyCallsShareAreCounted) {
  for (const size_t n_calls : {size_t{2}, size_t{10000}}) {
    ProgramBuilder builder;
    PlanBuilder& plan = builder.method();
    const int32_t x = plan.tensor({.sizes = {1}, .memory_id = 1});
    const int32_t list = plan.tensors(std::vector<int32_t>(10000, x));
    plan.kernel("test::absent", {list, x});
    plan.repeat(n_calls);
    plan.arenas = {0, 16};
    EXPECT_EQ(load_error(builder.build()), n_calls == 2 ? Error::Ok : Error::InvalidProgram);
  }
}

TEST(Loading, OutputsWithoutMemoryAreLookedForOnce) {
  constexpr size_t kMany = 50000;
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  const int32_t seen = plan.tensor({.sizes = {2}});
  plan.kernel("executorch_prim::et_view.default", {constant, plan.integers({}), seen});
  plan.repeat(kMany);
  plan.outputs.assign(kMany, seen);
  plan.text(std::string(8 * kMany, ' '));  // each call counts as two tables of the file
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_LT(seconds([&] { EXPECT_EQ(loaded.method->execute(), Error::Ok); }), 2);
}

TEST(Loading, NamesAreBounded) {
  const auto error = [](const std::function<void(ProgramBuilder&)>& fill) {
    ProgramBuilder builder;
    fill(builder);
    return load_error(builder.build());
  };
  EXPECT_EQ(error([](auto& b) { b.method(std::string(1024, 'a')); }), Error::Ok);
  EXPECT_EQ(error([](auto& b) { b.method(std::string(1025, 'a')); }), Error::InvalidProgram);
  const auto keys = [](int count, size_t length) {
    return [=](ProgramBuilder& b) {
      b.method();
      for (int i = 0; i < count; ++i) {
        std::string key = std::to_string(i);
        key.resize(length, 'a');
        b.named_data.emplace_back(key, std::vector<uint8_t>{1});
      }
    };
  };
  EXPECT_EQ(error(keys(2, 1024)), Error::Ok);
  EXPECT_EQ(error(keys(2, 1025)), Error::InvalidProgram);
  EXPECT_EQ(error(keys(65537, 5)), Error::InvalidProgram);
}

}  // namespace
}  // namespace runtime
}  // namespace executorch
