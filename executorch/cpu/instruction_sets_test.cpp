#include <executorch/cpu/instruction_sets.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

namespace executorch::cpu {
namespace {

TEST(InstructionSets, AnArgumentThatNamesNoneIsToldThoseThatThereAre) {
  const int64_t before = hwy::SupportedTargets();
  testing::internal::CaptureStderr();
  const bool used = use_instruction_set_argument("program", "AVX99");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(used);
  EXPECT_EQ(hwy::SupportedTargets(), before);
  EXPECT_EQ(text.find("program: found instruction set AVX99, expected one"), 0u) << text;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    EXPECT_NE(text.find(hwy::TargetName(target)), std::string::npos) << text;
    EXPECT_TRUE(use_instruction_set_argument("program", hwy::TargetName(target)));
    EXPECT_TRUE(use_instruction_set_argument("program", ""));
  }
}

}  // namespace
}  // namespace executorch::cpu
