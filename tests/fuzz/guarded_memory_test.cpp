#include "guarded_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace executorch::fuzz {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

constexpr size_t kSlotBytes = 8192;

class GuardedMemoryTest : public testing::TestWithParam<size_t> {
 protected:
  GuardedMemory memory_{4, kSlotBytes};
};

TEST_P(GuardedMemoryTest, GivesBytesThatCanBeUsed) {
  auto* block = memory_.allocate(GetParam(), 16, GuardedMemory::Guard::After, 7);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
  std::memset(block, 1, GetParam());
  EXPECT_TRUE(memory_.clear());
  EXPECT_EQ(memory_.live(), 0u);
}

TEST_P(GuardedMemoryTest, EndsTheProcessThatGoesPastTheEnd) {
  volatile uint8_t* block = memory_.allocate(GetParam(), 1);
  EXPECT_DEATH(block[GetParam()] = 1, "");
}

TEST_P(GuardedMemoryTest, EndsTheProcessThatReadsBeforeTheBeginning) {
  const volatile uint8_t* block = memory_.allocate(GetParam(), 16, GuardedMemory::Guard::Before);
  EXPECT_DEATH((void)*(block - 1), "");
}

TEST_P(GuardedMemoryTest, NoticesBytesWrittenBetweenABlockAndItsGuard) {
  if (kHasSanitizer) {
    GTEST_SKIP() << "the sanitizer ends the process";
  }
  volatile uint8_t* block = memory_.allocate(GetParam() - 3, 16);
  block[GetParam() - 3] = 1;
  EXPECT_FALSE(memory_.clear());
  EXPECT_TRUE(memory_.clear());
}

INSTANTIATE_TEST_SUITE_P(InASlotAndMapped, GuardedMemoryTest,
                         testing::Values(size_t{64}, 4 * kSlotBytes));

TEST(GuardedMemory, ProtectsWhatIsMapped) {
  if (kHasSanitizer) {
    GTEST_SKIP() << "blocks come from the heap";
  }
  GuardedMemory memory(0, 0);
  volatile uint8_t* block = memory.allocate(100, 64);
  *block = 1;
  memory.protect(const_cast<uint8_t*>(block));
  EXPECT_EQ(*block, 1);
  EXPECT_DEATH(*block = 2, "");
}

}  // namespace
}  // namespace executorch::fuzz
