// Programs that no exporter writes: fusion leaves them as they are, or runs them as they are.
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

/// Allocations from the C++ heap until one fails; negative: none does.
std::atomic<int64_t> allocations_left{-1};

bool is_refused() {
  if (allocations_left.load() < 0) return false;
  return allocations_left.fetch_sub(1) <= 0;
}

}  // namespace

void* operator new(size_t size) {
  if (is_refused()) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);  // what asks so does without
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using runtime::Error;
using runtime::testing::LoadedMethod;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

class Hostile : public ::testing::Test {
 protected:
  Hostile() : plan_(builder_.method()) {}

  int32_t tensor(std::vector<int32_t> sizes = {2, 4}, ScalarType dtype = ScalarType::Float) {
    n_bytes_ += 256;
    return plan_.tensor({.sizes = std::move(sizes),
                         .memory_id = 1,
                         .offset = static_cast<uint64_t>(n_bytes_) - 256,
                         .dtype = dtype});
  }
  int32_t input(std::vector<int32_t> sizes = {2, 4}) {
    plan_.inputs.push_back(tensor(std::move(sizes)));
    return plan_.inputs.back();
  }
  std::vector<uint8_t> build(int32_t output) {
    plan_.outputs = {output};
    plan_.arenas = {0, n_bytes_};
    return builder_.build();
  }
  // Loads it, and runs it if it loads; neither may do more than fail.
  void expect_survives(int32_t output) {
    LoadedMethod loaded(build(output));
    if (loaded.error == Error::Ok) (void)loaded.method->execute();
  }

  ProgramBuilder builder_;
  PlanBuilder& plan_;
  int64_t n_bytes_ = 0;
};

TEST_F(Hostile, ViewsOfEachOtherInACircle) {
  const int32_t x = input(), a = tensor(), b = tensor(), c = tensor(), y = tensor();
  const int32_t shape = plan_.integers({plan_.integer(2), plan_.integer(4)});
  for (const auto& [from, to] :
       std::vector<std::pair<int32_t, int32_t>>{{a, b}, {c, a}, {b, c}, {x, a}, {a, b}, {b, a}}) {
    plan_.kernel("executorch_prim::et_view.default", {from, shape, to, to});
    plan_.kernel("aten::relu.out", {to, y, y});
  }
  expect_survives(y);
}

TEST_F(Hostile, NumbersInThePlacesOfTensors) {
  const int32_t x = input({2, 2}), a = tensor({2, 2}), y = tensor({2, 2});
  const int32_t one = plan_.integer(1);
  plan_.kernel("executorch_prim::add.Scalar", {one, one, a});
  plan_.kernel("aten::mm.out", {a, x, y, y});
  plan_.kernel("aten::relu.out", {y, x, x});
  expect_survives(y);
}

TEST_F(Hostile, NumbersOfAnotherKindThanAtLoad) {
  const int32_t x = input({1, 1, 4, 4}), w = input({1, 1, 1, 1}), y = tensor({1, 1, 4, 4});
  const int32_t z = tensor({1, 1, 4, 4});
  const int32_t groups = plan_.integer(1), none = plan_.none(), no = plan_.boolean(false);
  const int32_t ones = plan_.integers({groups}), zeros = plan_.integers({plan_.integer(0)});
  plan_.kernel("executorch_prim::add.Scalar", {plan_.number(1), plan_.number(2), groups});
  plan_.kernel("aten::convolution.out", {x, w, none, ones, zeros, ones, no, zeros, groups, y, y});
  plan_.kernel("aten::relu.out", {y, z, z});
  expect_survives(z);
}

TEST_F(Hostile, WeightsWithoutDims) {
  const int32_t x = input({}), w = input({}), y = tensor({}), z = tensor({});
  const int32_t one = plan_.integer(1), none = plan_.none(), no = plan_.boolean(false);
  const int32_t ones = plan_.integers({one}), zeros = plan_.integers({plan_.integer(0)});
  plan_.kernel("aten::convolution.out", {x, w, none, ones, zeros, ones, no, zeros, one, y, y});
  plan_.kernel("aten::relu.out", {y, z, z});
  expect_survives(z);
}

TEST_F(Hostile, OperatorsWithEmptyListsOfOutputs) {
  const int32_t x = input(), y = tensor(), one = plan_.integer(1), none = plan_.tensors({});
  plan_.kernel("aten::split_copy.Tensor_out", {x, one, one, none, none});
  plan_.kernel("aten::unbind_copy.int_out", {x, one, none, none});
  const int32_t ones = plan_.integers({one}), no = plan_.boolean(false);
  plan_.kernel("aten::max_pool2d_with_indices.out", {x, ones, ones, ones, ones, no, none, none});
  plan_.kernel("aten::relu.out", {x, y, y});
  expect_survives(y);
}

TEST_F(Hostile, MasksThatAreMadeInManySteps) {
  // Each step reads the one before it twice: as an expression it has 2^n parts.
  const int32_t q = input({1, 4, 4}), k = input({1, 4, 4}), one = plan_.integer(1);
  int32_t mask = tensor({4, 4});
  plan_.kernel("aten::full.out",
               {plan_.integers({plan_.integer(4), plan_.integer(4)}), plan_.number(0), mask, mask});
  for (int i = 0; i < 500; ++i) {
    const int32_t next = tensor({4, 4});
    plan_.kernel("aten::add.out", {mask, mask, one, next, next});
    mask = next;
  }
  const int32_t scores = tensor({1, 4, 4}), masked = tensor({1, 4, 4}), weights = tensor({1, 4, 4});
  const int32_t y = tensor({1, 4, 4});
  plan_.kernel("aten::bmm.out", {q, k, scores, scores});
  plan_.kernel("aten::add.out", {scores, mask, one, masked, masked});
  plan_.kernel("aten::_softmax.out",
               {masked, plan_.integer(-1), plan_.boolean(false), weights, weights});
  plan_.kernel("aten::bmm.out", {weights, k, y, y});
  expect_survives(y);
}

TEST_F(Hostile, SizesBeyondAnyTensor) {
  const int32_t x = input({1, 4}), w = input({4, 4}), y = tensor({1, 4}), z = tensor({1, 4});
  const int32_t huge = tensor({1, 4});
  const int32_t sizes = plan_.integers({plan_.integer(int64_t{1} << 33), plan_.integer(4)});
  plan_.kernel("aten::expand_copy.out", {x, sizes, plan_.boolean(false), huge, huge});
  plan_.kernel("aten::mul.out", {huge, x, y, y});
  plan_.kernel("aten::mm.out", {y, w, z, z});
  plan_.kernel("aten::relu.out", {z, x, x});
  LoadedMethod loaded(build(x));
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_NE(loaded.method->execute(), Error::Ok);
}

TEST_F(Hostile, WhatACopyOverwritesIsReadBefore) {
  // c = x; y = c * x; copy of c; c = z; y + copy.
  const int32_t x = input(), z = input(), c = tensor(), y = tensor(), copy = tensor(), w = tensor();
  const int32_t no = plan_.boolean(false), one = plan_.integer(1);
  plan_.kernel("aten::copy_", {c, x, no, c});
  plan_.kernel("aten::mul.out", {c, x, y, y});
  plan_.kernel("aten::clone.out", {c, plan_.none(), copy, copy});
  plan_.kernel("aten::copy_", {c, z, no, c});
  plan_.kernel("aten::add.out", {y, copy, one, w, w});
  LoadedMethod loaded(build(w));
  ASSERT_EQ(loaded.error, Error::Ok);
  runtime::testing::OwnedTensor<float> first({2, 4}, std::vector<float>(8, 3)),
      second({2, 4}, std::vector<float>(8, 100));
  ASSERT_EQ(loaded.method->set_input(first.value(), 0), Error::Ok);
  ASSERT_EQ(loaded.method->set_input(second.value(), 1), Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->get_output(0).toTensor().const_data_ptr<float>()[7], 12);
}

TEST_F(Hostile, EveryRefusedAllocationLeavesAMethodThatRuns) {
  const int32_t x = input({2, 4}), w = input({4, 4}), m = tensor({2, 4}), y = tensor({2, 4});
  const int32_t copy = tensor({2, 4}), z = tensor({2, 4}), last = tensor({2, 4});
  plan_.kernel("aten::clone.out", {x, plan_.none(), copy, copy});
  plan_.kernel("aten::mm.out", {copy, w, m, m});
  plan_.kernel("aten::relu.out", {m, y, y});
  plan_.kernel("aten::mul.out", {y, x, z, z});
  plan_.kernel("aten::neg.out", {z, last, last});
  const std::vector<uint8_t> bytes = build(last);
  LoadedMethod loaded(bytes);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_FALSE(last_fusion().empty());
  int refused = 0;
  for (bool more = true; more; ++refused) {
    loaded.method.reset();
    const auto set_up = [&](int64_t left) { allocations_left = left; };
    // What the test allocates itself is not refused: only the runtime's call is counted.
    std::vector<uint8_t> pool(1 << 16), arena(1 << 16);
    std::vector<runtime::Span<uint8_t>> arenas = {{arena.data(), arena.size()}};
    runtime::HierarchicalAllocator planned({arenas.data(), arenas.size()});
    runtime::MemoryAllocator allocator(1 << 16, pool.data());
    runtime::MemoryManager memory(&allocator, &planned);
    set_up(refused);
    auto method = loaded.program->load_method("forward", &memory);
    more = allocations_left.load() < 0;
    set_up(-1);
    ASSERT_EQ(method.error(), Error::Ok);
    std::vector<float> ones(16, 1);
    runtime::testing::OwnedTensor<float> a({2, 4}, std::vector<float>(8, 1)), b({4, 4}, ones);
    ASSERT_EQ(method->set_input(a.value(), 0), Error::Ok);
    ASSERT_EQ(method->set_input(b.value(), 1), Error::Ok);
    ASSERT_EQ(method->execute(), Error::Ok);
    EXPECT_EQ(method->get_output(0).toTensor().const_data_ptr<float>()[0], -4);
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace executorch::optimized
