#include <executorch/runtime/platform/platform.h>

#include <gtest/gtest.h>

#include <executorch/runtime/platform/clock.h>
#include <executorch/runtime/platform/runtime.h>
#include <executorch/runtime/platform/system.h>

namespace executorch::runtime {
namespace {

class PlatformTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime_init();
    before_ = *get_pal_impl();
  }
  void TearDown() override { ASSERT_TRUE(register_pal(before_)); }

  PalImpl before_;
};

et_timestamp_t fixed_ticks() {
  return 6;
}
et_tick_ratio_t five_halves() {
  return {5, 2};
}

TEST_F(PlatformTest, ClockDoesNotGoBack) {
  const et_timestamp_t first = pal_current_ticks();
  EXPECT_LE(first, pal_current_ticks());
}

TEST_F(PlatformTest, NullEntriesKeepTheFunctionInUse) {
  ASSERT_TRUE(register_pal(PalImpl::create(nullptr, nullptr, fixed_ticks, nullptr, nullptr, nullptr,
                                           nullptr, __FILE__)));
  EXPECT_EQ(pal_current_ticks(), 6u);
  EXPECT_EQ(get_pal_impl()->allocate, before_.allocate);
  EXPECT_EQ(get_pal_impl()->emit_log_message, before_.emit_log_message);
}

TEST_F(PlatformTest, RegisteringInitialises) {
  static int n_calls;
  n_calls = 0;
  ASSERT_TRUE(register_pal(PalImpl::create([] { ++n_calls; }, nullptr, nullptr, nullptr, nullptr,
                                           nullptr, nullptr, __FILE__)));
  EXPECT_EQ(n_calls, 1);
}

TEST_F(PlatformTest, TicksAreConvertedByTheRatio) {
  ASSERT_TRUE(register_pal(PalImpl::create(nullptr, nullptr, nullptr, five_halves, nullptr, nullptr,
                                           nullptr, __FILE__)));
  EXPECT_EQ(ticks_to_ns(6), 15u);
}

TEST_F(PlatformTest, AllocateWithoutFreeIsRejected) {
  EXPECT_FALSE(register_pal(PalImpl::create(nullptr, nullptr, nullptr, nullptr, nullptr,
                                            before_.allocate, nullptr, __FILE__)));
}

TEST_F(PlatformTest, AllocatedMemoryIsUsable) {
  auto* memory = static_cast<char*>(pal_allocate(16));
  ASSERT_NE(memory, nullptr);
  memory[15] = 1;
  pal_free(memory);
}

TEST_F(PlatformTest, FunctionOfThisProgramIsInANamedFile) {
  EXPECT_STRNE(et_pal_get_shared_library_name(reinterpret_cast<const void*>(&fixed_ticks)),
               DYNAMIC_LIBRARY_NOT_FOUND);
  EXPECT_STREQ(et_pal_get_shared_library_name(nullptr), DYNAMIC_LIBRARY_NOT_FOUND);
}

}  // namespace
}  // namespace executorch::runtime
