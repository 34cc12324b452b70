#include <executorch/runtime/backend/options.h>

#include <string>

#include <gtest/gtest.h>

#include <executorch/runtime/backend/backend_init_context.h>
#include <executorch/runtime/backend/backend_options_map.h>

namespace executorch::runtime {
namespace {

TEST(BackendOptions, KeepsValuesByKeyAndType) {
  BackendOptions<3> options;
  ASSERT_EQ(options.set_option("threads", 4), Error::Ok);
  ASSERT_EQ(options.set_option("fast", true), Error::Ok);
  ASSERT_EQ(options.set_option("mode", "slow"), Error::Ok);
  int threads = 0;
  bool fast = false;
  const char* mode = nullptr;
  EXPECT_EQ(options.get_option("threads", threads), Error::Ok);
  EXPECT_EQ(options.get_option("fast", fast), Error::Ok);
  EXPECT_EQ(options.get_option("mode", mode), Error::Ok);
  EXPECT_EQ(threads, 4);
  EXPECT_TRUE(fast);
  EXPECT_STREQ(mode, "slow");
  EXPECT_EQ(options.get_option("mode", threads), Error::InvalidArgument);
  EXPECT_EQ(options.get_option("none", threads), Error::NotFound);
}

TEST(BackendOptions, SameKeyIsReplacedAndCapacityIsKept) {
  BackendOptions<1> options;
  ASSERT_EQ(options.set_option("a", 1), Error::Ok);
  ASSERT_EQ(options.set_option("a", 2), Error::Ok);
  EXPECT_EQ(options.set_option("b", 1), Error::InvalidArgument);
  EXPECT_EQ(options.view().size(), 1u);
  int a = 0;
  ASSERT_EQ(options.get_option("a", a), Error::Ok);
  EXPECT_EQ(a, 2);
}

TEST(BackendOptions, StringMustFit) {
  BackendOptions<1> options;
  EXPECT_EQ(options.set_option("s", std::string(256, 'x').c_str()), Error::InvalidArgument);
  EXPECT_EQ(options.view().size(), 0u);
  EXPECT_EQ(options.set_option("s", std::string(255, 'x').c_str()), Error::Ok);
  EXPECT_EQ(options.set_option("s", static_cast<const char*>(nullptr)), Error::InvalidArgument);
}

TEST(BackendInitContext, FindsRuntimeSpecs) {
  BackendOptions<2> options;
  ASSERT_EQ(options.set_option("threads", 4), Error::Ok);
  const auto view = options.view();
  const BackendInitContext context(nullptr, nullptr, "forward", nullptr,
                                   {view.data(), view.size()});
  EXPECT_EQ(*context.get_runtime_spec<int>("threads"), 4);
  EXPECT_EQ(context.get_runtime_spec<bool>("threads").error(), Error::InvalidArgument);
  EXPECT_EQ(context.get_runtime_spec<int>("x").error(), Error::NotFound);
}

TEST(LoadBackendOptionsMap, HoldsEightBackends) {
  BackendOptions<1> options;
  ASSERT_EQ(options.set_option("a", 1), Error::Ok);
  LoadBackendOptionsMap map;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(map.set_options(std::to_string(i).c_str(), options.view()), Error::Ok);
  }
  EXPECT_EQ(map.set_options("9", options.view()), Error::InvalidArgument);
  EXPECT_EQ(map.set_options("3", options.view()), Error::Ok);
  EXPECT_EQ(map.size(), 8u);
  EXPECT_TRUE(map.has_options("7"));
  EXPECT_EQ(map.get_options("7").size(), 1u);
  EXPECT_TRUE(map.get_options("x").empty());
  EXPECT_STREQ(map.entry_at(2).backend_id, "2");
  EXPECT_EQ(map.entry_at(8).backend_id, nullptr);
}

TEST(LoadBackendOptionsMap, NameMustBeThereAndFit) {
  LoadBackendOptionsMap map;
  EXPECT_EQ(map.set_options("", {}), Error::InvalidArgument);
  EXPECT_EQ(map.set_options(nullptr, {}), Error::InvalidArgument);
  EXPECT_EQ(map.set_options(std::string(64, 'x').c_str(), {}), Error::InvalidArgument);
  EXPECT_EQ(map.set_options(std::string(63, 'x').c_str(), {}), Error::Ok);
}

struct Builder {
  BackendOptions<1> options;
  const char* backend_id() const { return "Built"; }
  Span<BackendOption> view() { return options.view(); }
};

TEST(LoadBackendOptionsMap, TakesBuilders) {
  Builder builder;
  LoadBackendOptionsMap map;
  EXPECT_EQ(map.set_options(builder), Error::Ok);
  EXPECT_TRUE(map.has_options("Built"));
}

}  // namespace
}  // namespace executorch::runtime
