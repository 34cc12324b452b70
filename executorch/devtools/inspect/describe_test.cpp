#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/table.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

namespace executorch::devtools {
namespace {

using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

class DescribeTest : public ::testing::Test {
 protected:
  void SetUp() override { runtime::runtime_init(); }

  std::string write(const std::vector<uint8_t>& bytes) {
    const std::string path = ::testing::TempDir() + "describe_test_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".pte";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  static std::vector<uint8_t> program() {
    ProgramBuilder builder;
    builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
    builder.named_data = {{"w", {1, 2, 3}}};
    PlanBuilder& plan = builder.method();
    plan.tensor({.sizes = {2}, .data = 1});
    plan.tensor({.sizes = {2, 1}, .memory_id = 1, .offset = 8, .dynamism = 1, .dim_order = {1, 0}});
    plan.integer(3);
    plan.integers({2, 2});
    plan.optional_tensors({-1, 0});
    plan.boolean(false);
    plan.delegates = {{"Backend", {9}, true, {{"key", "A"}}}};
    plan.kernel("aten::op.out", {0, 2, 3, 4, 1, 1});
    plan.call_delegate(0, {0, 1});
    plan.jump_if_false(5, 0);
    plan.move(0, 1);
    plan.inputs = {2};
    plan.outputs = {1, 2};
    plan.arenas = {0, 64};
    return builder.build();
  }
};

TEST_F(DescribeTest, TextSaysEverythingOnALineEach) {
  const std::string text = to_text(describe_file(write(program())));
  const std::string method = text.substr(text.find("method"));
  EXPECT_EQ(method,
            "method forward(%2) -> (%1, %2)\n"
            "  memory 1: 64 bytes\n"
            "  %0: Tensor Float [2] constant 1\n"
            "  %1: Tensor Float [2, 1] order [1, 0] bounded memory 1 @8\n"
            "  %2: Int 3\n"
            "  %3: IntList [%2, %2]\n"
            "  %4: OptionalTensorList [None, %0]\n"
            "  %5: Bool false\n"
            "  delegate 0: Backend, segment 1, 1 bytes\n"
            "    \"key\" = [65]\n"
            "  0: aten::op.out(%0, %2=3, %3=[%2=3, %2=3], %4=[None, %0], %1, %1)\n"
            "  1: delegate 0 Backend(%0, %1)\n"
            "  2: jump if not %5=false -> 0\n"
            "  3: move %0 -> %1\n");
  EXPECT_NE(text.find("constants: segment 0, offsets [0, 0]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("data \"w\": segment 2, 3 bytes\n"), std::string::npos) << text;
}

TEST_F(DescribeTest, JsonHasTheSameFacts) {
  const Json out = describe_file(write(program()));
  EXPECT_EQ(out["kind"], "program");
  const Json& method = out["methods"][0];
  EXPECT_EQ(method["values"][1]["sizes"], Json({2, 1}));
  EXPECT_EQ(method["chains"][0][0]["operator"], "aten::op.out");
  EXPECT_EQ(out["named_data"][0]["bytes"], 3);
}

TEST_F(DescribeTest, DamagedAndMissingFilesAreErrorsThatNameTheFile) {
  auto bytes = program();
  bytes.pop_back();
  const std::string path = write(bytes);
  for (const std::string& name : {path, std::string("/no/such/file.pte"), write({1, 2, 3})}) {
    try {
      describe_file(name);
      ADD_FAILURE() << name;
    } catch (const InspectError& error) {
      EXPECT_EQ(error.message.find(name), 0u) << error.message;
    }
  }
}

TEST(Printable, ShowsTheCodesOfWhatATerminalWouldActOn) {
  EXPECT_EQ(printable("a\x1b[1m\x7f\n\t", false), "a\\x1b[1m\\x7f\\x0a\\x09");
  EXPECT_EQ(printable("a\n\t\r", true), "a\n\t\\x0d");
  EXPECT_EQ(printable("\u00e9\U0001f600", true), "\u00e9\U0001f600");
  EXPECT_EQ(printable("\xc3(\xff\xed\xa0\x80", true), "\\xc3(\\xff\\xed\\xa0\\x80");
  EXPECT_EQ(printable(std::string_view("\0b", 2), true), "\\x00b");
}

TEST_F(DescribeTest, ExternalTensorsThatTheDataLacksAreNamed) {
  ProgramBuilder builder;
  builder.method().tensor({.sizes = {2}, .name = "w", .external = true});
  const Json program = describe_file(write(builder.build()));
  Json data = {
      {"named_data", {{{"key", "w"}, {"dtype", "Float"}, {"sizes", {2}}, {"dim_order", {0}}}}}};
  EXPECT_TRUE(missing_external_data(program, data).empty());
  data["named_data"][0]["sizes"] = {3};
  const auto missing = missing_external_data(program, data);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0], "forward: w Float [2]");
}

TEST_F(DescribeTest, ExternalTensorsAreFoundByTheirKeys) {
  Json program = {{"methods", {{{"name", "forward"}, {"values", Json::array()}}}}};
  Json data = {{"named_data", Json::array()}};
  for (int i = 0; i < 20000; ++i) {
    const std::string key = "w" + std::to_string(i);
    const Json layout = {{"dtype", "Float"}, {"sizes", {2}}, {"dim_order", {0}}};
    Json value = layout, entry = layout;
    value["external"] = key;
    entry["key"] = key;
    program["methods"][0]["values"].push_back(value);
    data["named_data"].push_back(entry);
  }
  data["named_data"][7]["sizes"] = {3};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(missing_external_data(program, data),
            std::vector<std::string>{"forward: w7 Float [2]"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace executorch::devtools
