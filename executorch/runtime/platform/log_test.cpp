#include <executorch/runtime/platform/log.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

namespace executorch::runtime {
namespace {

struct Line {
  et_pal_log_level_t level;
  std::string file;
  std::string message;
};
std::vector<Line> lines;

void capture(et_timestamp_t, et_pal_log_level_t level, const char* file, const char*, size_t,
             const char* message, size_t length) {
  lines.push_back({level, file, std::string(message, length)});
}

/// Captures what is logged during each test.
class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime_init();
    lines.clear();
    before_ = *get_pal_impl();
    ASSERT_TRUE(register_pal(PalImpl::create(capture, __FILE__)));
  }
  void TearDown() override { ASSERT_TRUE(register_pal(before_)); }

  PalImpl before_;
};

TEST_F(LogTest, LineHasLevelFileAndText) {
  ET_LOG(Error, "value %d of %s", 3, "x");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].level, kError);
  EXPECT_EQ(lines[0].file, "log_test.cpp");
  EXPECT_EQ(lines[0].message, "value 3 of x");
}

TEST_F(LogTest, LevelsBelowTheMinimumAreSilent) {
  ET_LOG(Debug, "not heard");
  EXPECT_TRUE(lines.empty());
}

TEST_F(LogTest, LongMessageIsCutTo255Bytes) {
  ET_LOG(Info, "%s", std::string(1000, 'a').c_str());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].message, std::string(255, 'a'));
}

TEST_F(LogTest, CutNeverSplitsACharacter) {
  // Three bytes each: the 255th byte ends a character. One byte before them moves the cut inside.
  std::string text = "a";
  for (int i = 0; i < 200; ++i) {
    text += "\xE2\x82\xAC";
  }
  ET_LOG(Info, "%s", text.c_str());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].message, text.substr(0, 253));
}

TEST_F(LogTest, MessageOfExactly255BytesStaysWhole) {
  const std::string text = std::string(252, 'a') + "\xE2\x82\xAC";
  ET_LOG(Info, "%s", text.c_str());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].message, text);
}

TEST(AssertDeathTest, FailedCheckSaysWhatAndAborts) {
  runtime_init();
  EXPECT_DEATH(ET_CHECK_MSG(1 == 2, "with %d", 7), "1 == 2.*with 7");
  EXPECT_DEATH(ET_CHECK(false), "assert failed");
}

}  // namespace
}  // namespace executorch::runtime
