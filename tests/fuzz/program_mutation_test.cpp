#include "program_mutation.h"

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

namespace executorch::fuzz {
namespace {

using runtime::Program;

Seed seed() {
  runtime::testing::ProgramBuilder builder;
  auto& plan = builder.method();
  plan.arenas = {0, 64};
  const int32_t x = plan.tensor({{2, 3}, 1, 0}), y = plan.tensor({{2, 3}, 1, 32});
  plan.kernel("aten::leaky_relu.out", {x, plan.number(0.5), y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  return Seed("leaky_relu", builder.build());
}

bool loads(const Bytes& bytes) {
  void* copy = nullptr;
  EXPECT_EQ(posix_memalign(&copy, 64, bytes.size()), 0);
  std::memcpy(copy, bytes.data(), bytes.size());
  extension::BufferDataLoader loader(copy, bytes.size());
  const bool ok = Program::load(&loader).ok();
  std::free(copy);
  return ok;
}

TEST(ProgramMutation, IsTheSameForTheSameNumber) {
  const Seed one = seed(), same = seed();
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(one.mutate(Random(i)), same.mutate(Random(i)));
  }
}

TEST(ProgramMutation, ChangesMostProgramsAndLeavesThemLoadable) {
  const Seed one = seed();
  std::set<Bytes> different;
  int loaded = 0;
  constexpr int kMutants = 400;
  for (uint64_t i = 0; i < kMutants; ++i) {
    const Bytes mutant = one.mutate(Random(i));
    different.insert(mutant);
    loaded += loads(mutant);
  }
  EXPECT_GT(different.size(), kMutants / 2u);
  EXPECT_GT(loaded, kMutants * 3 / 4);
  EXPECT_LT(loaded, kMutants);
}

TEST(ProgramMutation, TellsWhatIsNoProgram) {
  EXPECT_TRUE(seed().ok());
  EXPECT_FALSE(Seed("text", Bytes(200, 'a')).ok());
}

TEST(ProgramMutation, NamesWhatAnInstructionCalls) {
  EXPECT_EQ(operator_at(seed().bytes(), 0, 0, 0), "aten::leaky_relu.out");
  EXPECT_EQ(operator_at(seed().bytes(), 0, 0, 1), "");
  EXPECT_NE(describe(seed().bytes()).find("FLOAT[2,3]"), std::string::npos);
}

}  // namespace
}  // namespace executorch::fuzz
