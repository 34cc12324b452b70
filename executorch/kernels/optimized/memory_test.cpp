// Which memory of a method holds nothing between executions.
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

using runtime::Error;
using runtime::Span;
using runtime::testing::LoadedMethod;
using runtime::testing::OwnedTensor;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

constexpr uint64_t kBytes = 64;  // of a tensor [4, 4]

/// out = (x + x) * (x + x) + state, and state becomes next = state + x. Each tensor lies at the
/// place that it is given in one arena.
class Program {
 public:
  struct Places {
    uint64_t x, state, sum, product, out, next;
  };
  explicit Program(const Places& at) {
    PlanBuilder& plan = builder_.method();
    const auto tensor = [&](uint64_t place) {
      return plan.tensor({.sizes = {4, 4}, .memory_id = 1, .offset = place * kBytes});
    };
    const int32_t x = tensor(at.x), state = tensor(at.state), sum = tensor(at.sum);
    const int32_t product = tensor(at.product), out = tensor(at.out), one = plan.integer(1);
    plan.kernel("aten::add.out", {x, x, one, sum, sum});
    plan.kernel("aten::mul.out", {sum, sum, product, product});
    plan.kernel("aten::add.out", {product, state, one, out, out});
    const int32_t next = tensor(at.next), blocking = plan.boolean(false);
    plan.kernel("aten::add.out", {state, x, one, next, next});
    plan.kernel("aten::copy_", {state, next, blocking, state});
    plan.inputs = {x};
    plan.outputs = {out};
    plan.arenas = {0, 6 * static_cast<int64_t>(kBytes)};
    bytes_ = builder_.build();
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  ProgramBuilder builder_;
  std::vector<uint8_t> bytes_;
};

TEST(Temporaries, AreNeitherInputsNorOutputsNorState) {
  const Program::Places orders[] = {
      {0, 1, 2, 3, 4, 5}, {4, 3, 2, 1, 0, 5}, {0, 2, 1, 5, 4, 3}, {1, 2, 0, 4, 3, 5}};
  for (const Program::Places& at : orders) {
    LoadedMethod loaded(Program(at).bytes());
    ASSERT_EQ(loaded.error, Error::Ok);
    const auto memory = loaded.method->temporaries().memory;
    size_t bytes = 0;
    for (const Span<uint8_t>& piece : memory) bytes += piece.size();
    EXPECT_EQ(bytes, 2 * kBytes);  // sum and product; that next is copied is not understood
    OwnedTensor<float> x({4, 4}, std::vector<float>(16, 2));
    ASSERT_EQ(loaded.method->set_input(x.value(), 0), Error::Ok);
    for (int call = 0; call < 3; ++call) {
      ASSERT_EQ(loaded.method->execute(), Error::Ok);
      for (const Span<uint8_t>& piece : memory) std::fill(piece.begin(), piece.end(), uint8_t{255});
      EXPECT_EQ(loaded.output(), std::vector<float>(16, static_cast<float>(16 + 2 * call)));
    }
  }
}

}  // namespace
}  // namespace executorch::optimized
