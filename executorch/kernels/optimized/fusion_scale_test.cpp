// Programs of many instructions, or made to be hard to look at, load about as fast with fusion as
// without it.
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <ctime>
#include <functional>

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using runtime::Error;
using runtime::testing::BytesLoader;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

constexpr int kMany = 100000;
constexpr uint64_t kTensorBytes = 64;  // [2, 4] floats, and padding

/// A program of one method over tensors [2, 4], each planned at a place of its own or at one given.
class Program {
 public:
  Program() : plan(builder_.method()) {}

  int32_t tensor(int64_t place = -1, std::vector<int32_t> sizes = {2, 4},
                 ScalarType dtype = ScalarType::Float) {
    const auto at = static_cast<uint64_t>(place < 0 ? n_places_++ : place);
    return plan.tensor(
        {.sizes = std::move(sizes), .memory_id = 1, .offset = at * kTensorBytes, .dtype = dtype});
  }
  int64_t place() { return n_places_++; }
  std::vector<uint8_t> build() {
    plan.arenas = {0, n_places_ * static_cast<int64_t>(kTensorBytes)};
    return builder_.build();
  }

 private:
  ProgramBuilder builder_;
  int64_t n_places_ = 0;

 public:
  PlanBuilder& plan;
};

/// Seconds of this process's processor time that loading the method takes.
double load_seconds(const std::vector<uint8_t>& bytes, bool fused) {
  runtime::runtime_init();
  const bool before = set_fusion_enabled(fused);
  BytesLoader loader(bytes);
  auto program = runtime::Program::load(&loader);
  EXPECT_EQ(program.error(), Error::Ok);
  if (!program.ok()) return 0;
  std::vector<uint8_t> pool(size_t{1} << 29), arena(size_t{1} << 26);
  std::vector<runtime::Span<uint8_t>> arenas = {{arena.data(), arena.size()}};
  runtime::HierarchicalAllocator planned({arenas.data(), arenas.size()});
  runtime::MemoryAllocator allocator(static_cast<uint32_t>(pool.size()), pool.data());
  runtime::MemoryManager memory(&allocator, &planned);
  const std::clock_t begin = std::clock();
  const auto method = program->load_method("forward", &memory);
  const std::clock_t taken = std::clock() - begin;
  EXPECT_EQ(method.error(), Error::Ok);
  set_fusion_enabled(before);
  return static_cast<double>(taken) / CLOCKS_PER_SEC;
}

void expect_loads_fast(Program& program) {
  const std::vector<uint8_t> bytes = program.build();
  const double plain = load_seconds(bytes, false), fused = load_seconds(bytes, true);
  printf("plain %.3f s, fused %.3f s\n", plain, fused);
  // Keeps out quadratic steps, under sanitizers too.
  EXPECT_LT(fused, 10 * plain + 4);
}

TEST(FusionScale, MovesBetweenManyTensors) {
  Program p;
  int32_t last = p.tensor();
  p.plan.inputs = {last};
  for (int i = 0; i < kMany; ++i) {
    const int32_t next = p.tensor();
    p.plan.move(last, next);
    last = next;
  }
  p.plan.outputs = {last};
  expect_loads_fast(p);
}

TEST(FusionScale, MovesBetweenTwoTensors) {
  Program p;
  const int32_t a = p.tensor(), b = p.tensor();
  for (int i = 0; i < kMany; ++i) p.plan.move(i % 2 == 0 ? a : b, i % 2 == 0 ? b : a);
  p.plan.outputs = {a};
  expect_loads_fast(p);
}

/// Each of `n` instructions reads the result before it, and the first tensor; results lie at
/// `n_places` places in turn (0: each at its own).
void chain(Program& p, int n, int n_places,
           const std::function<void(int i, int32_t x, int32_t first, int32_t out)>& add) {
  const int32_t first = p.tensor();
  int32_t last = first;
  std::vector<int64_t> places;
  for (int i = 0; i < n_places; ++i) places.push_back(p.place());
  for (int i = 0; i < n; ++i) {
    const int32_t next =
        n_places == 0 ? p.tensor() : p.tensor(places[static_cast<size_t>(i % n_places)]);
    add(i, last, first, next);
    last = next;
  }
  p.plan.inputs = {first};
  p.plan.outputs = {last};
}

TEST(FusionScale, ElementwiseOperators) {
  for (int n_places : {0, 2, 3}) {
    Program p;
    const int32_t one = p.plan.integer(1);
    chain(p, kMany, n_places, [&](int, int32_t x, int32_t first, int32_t out) {
      p.plan.kernel("aten::add.out", {x, first, one, out, out});
    });
    expect_loads_fast(p);
  }
}

TEST(FusionScale, Copies) {
  for (int n_places : {0, 2}) {
    Program p;
    const int32_t none = p.plan.none();
    chain(p, kMany, n_places, [&](int, int32_t x, int32_t, int32_t out) {
      p.plan.kernel("aten::clone.out", {x, none, out, out});
    });
    expect_loads_fast(p);
  }
}

TEST(FusionScale, Views) {
  Program p;
  const int32_t two = p.plan.integer(2), four = p.plan.integer(4), one = p.plan.integer(1);
  (void)two, (void)four;
  const int32_t shape = p.plan.integers({two, four});
  int32_t viewed = -1;
  chain(p, kMany, 0, [&](int i, int32_t x, int32_t first, int32_t out) {
    if (i < kMany / 2) {
      p.plan.kernel("aten::view_copy.out", {x, shape, out, out});
      viewed = out;
    } else {
      p.plan.kernel("aten::add.out", {viewed, first, one, out, out});
    }
  });
  expect_loads_fast(p);
}

TEST(FusionScale, StaticViews) {
  Program p;
  const int64_t places[] = {p.place(), p.place()};
  int32_t last = p.tensor(places[0]);
  p.plan.inputs = {last};
  for (int i = 1; i < kMany; ++i) {
    const int64_t place = places[i % 2];
    const int32_t out = p.tensor(place), view = p.tensor(place, {4, 2});
    p.plan.kernel("aten::relu.out", {last, out, out});
    last = i % 2 == 0 ? view : p.tensor(place, {2, 4});
  }
  p.plan.outputs = {last};
  expect_loads_fast(p);
}

TEST(FusionScale, MatrixProducts) {
  Program p;
  const int32_t weight = p.tensor(-1, {4, 4});
  chain(p, kMany, 0, [&](int i, int32_t x, int32_t first, int32_t out) {
    if (i % 3 == 0) p.plan.kernel("aten::mm.out", {x, weight, out, out});
    if (i % 3 == 1) p.plan.kernel("aten::relu.out", {x, out, out});
    if (i % 3 == 2) p.plan.kernel("aten::mul.out", {x, first, out, out});
  });
  p.plan.inputs.push_back(weight);
  expect_loads_fast(p);
}

}  // namespace
}  // namespace executorch::optimized
