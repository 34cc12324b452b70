// What a file makes the runtime do: loops are bounded by their work, loading by the file's size.
#include <executorch/runtime/executor/testing_util/hostile_programs.h>

#include <cstring>
#include <functional>
#include <string>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using testing::load;
using testing::load_error;
using testing::LoadedMethod;
using testing::n_copies;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::seconds;
using testing::steps_of_copy;
using Floats = std::vector<float>;

// A loop over one copy of `elements` floats, for ever unless the first byte of the input is 1.
LoadedMethod copy_loop(int32_t elements, int copies = 1) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const auto bytes = static_cast<uint64_t>(elements) * 4;
  const int32_t x = plan.tensor({.sizes = {elements}, .memory_id = 1});
  const int32_t y = plan.tensor({.sizes = {elements}, .memory_id = 1, .offset = bytes});
  const int32_t ends = plan.tensor({.sizes = {1}, .memory_id = 1, .dtype = ScalarType::Bool});
  for (int i = 0; i < copies; ++i) plan.kernel("test::copy", {x, y});
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

TEST(Work, WithoutALimitIsThatOfTenMillionInstructions) {
  constexpr int64_t kMost = 10000000;
  LoadedMethod loaded = copy_loop(1);
  n_copies = 0;
  EXPECT_EQ(run(loaded, 1, 0), Error::InvalidProgram);
  EXPECT_EQ(n_copies, kMost / 2 + 1);  // every other one is a jump, and the first copy is free
  loaded.method->set_max_work(100 * kMost);
  n_copies = 0;
  EXPECT_EQ(run(loaded, 1, 0), Error::InvalidProgram);
  EXPECT_EQ(n_copies, 100 * kMost / (4 + 1) + 1);
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
    EXPECT_EQ(loaded.method->steps(), steps == UINT64_MAX ? UINT64_MAX : 6 * steps);
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
      for (size_t i = 0; i < kMany; ++i) plan.kernel("test::absent", {x, x});
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
}  // namespace executorch::runtime
