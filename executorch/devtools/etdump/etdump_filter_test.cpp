#include <executorch/devtools/etdump/etdump_filter.h>
#include <gtest/gtest.h>

namespace executorch::etdump {
namespace {

using runtime::Error;
using runtime::kUnsetDelegateDebugIntId;

TEST(ETDumpFilter, ANameMatchesWhereAPatternMatchesTheWholeOfIt) {
  ETDumpFilter filter;
  EXPECT_TRUE(filter.filter("conv1", kUnsetDelegateDebugIntId).get());
  ASSERT_TRUE(filter.add_regex("conv[0-9]+").ok());
  ASSERT_TRUE(filter.add_regex(".*add").ok());
  EXPECT_EQ(filter.get_n_regex(), 2u);
  EXPECT_TRUE(filter.filter("conv12", kUnsetDelegateDebugIntId).get());
  EXPECT_FALSE(filter.filter("my_conv12_relu", kUnsetDelegateDebugIntId).get());
  EXPECT_TRUE(filter.filter("badd", kUnsetDelegateDebugIntId).get());
  EXPECT_FALSE(filter.filter("adds", kUnsetDelegateDebugIntId).get());
  ASSERT_TRUE(filter.add_regex("").ok());
  EXPECT_TRUE(filter.filter("my\nconv", kUnsetDelegateDebugIntId).get());
}

TEST(ETDumpFilter, ANumberMatchesWithinTheRange) {
  ETDumpFilter filter;
  EXPECT_TRUE(filter.filter(nullptr, 0).get());
  ASSERT_TRUE(filter.set_debug_handle_range(3, 5).ok());
  EXPECT_FALSE(filter.filter(nullptr, 2).get());
  EXPECT_TRUE(filter.filter(nullptr, 3).get());
  EXPECT_TRUE(filter.filter(nullptr, 4).get());
  EXPECT_FALSE(filter.filter(nullptr, 5).get());
}

TEST(ETDumpFilter, RefusesWhatMakesNoSense) {
  ETDumpFilter filter;
  EXPECT_EQ(filter.add_regex("(").error(), Error::InvalidArgument);
  EXPECT_EQ(filter.get_n_regex(), 0u);
  EXPECT_EQ(filter.set_debug_handle_range(5, 5).error(), Error::InvalidArgument);
  EXPECT_EQ(filter.filter(nullptr, kUnsetDelegateDebugIntId).error(), Error::InvalidArgument);
  EXPECT_EQ(filter.filter("add", 1).error(), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::etdump
