#include <executorch/cpu/machine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace executorch::cpu {
namespace {

TEST(Machine, HasCachesThatGrowWithTheirDistanceFromTheCore) {
  const Machine& m = machine();
  EXPECT_GE(m.cores, 1u);
  EXPECT_LE(m.cores, std::max(1u, std::thread::hardware_concurrency()));
  EXPECT_GE(m.l1, 4 << 10);
  EXPECT_LE(m.l1, m.l2);
  EXPECT_GE(m.l3, 256 << 10);
  EXPECT_GE(m.l1_set_stride, 1 << 10);
  EXPECT_EQ(m.l1_set_stride & (m.l1_set_stride - 1), 0);
}

TEST(Machine, IsAskedOnce) {
  EXPECT_EQ(&machine(), &machine());
}

}  // namespace
}  // namespace executorch::cpu
