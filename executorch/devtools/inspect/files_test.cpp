// What reads and writes whole programs: strip and diff.

#include <executorch/devtools/inspect/diff.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace executorch::devtools {
namespace {

using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;
using NamedData = std::vector<std::pair<std::string, std::vector<uint8_t>>>;

constexpr char kIdentity[] = "executorch.debug_identity";

std::vector<uint8_t> program(const NamedData& named_data, float weight = 1,
                             const std::string& op = "aten::add.out", int64_t arena = 64) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({weight, 2}));
  builder.named_data = named_data;
  PlanBuilder& plan = builder.method();
  const auto x = plan.tensor({.sizes = {2}, .memory_id = 1});
  const auto w = plan.tensor({.sizes = {2}, .data = 1});
  const auto y = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 16});
  plan.kernel(op, {x, w, y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  plan.arenas = {0, arena};
  return builder.build();
}

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override { runtime::runtime_init(); }

  static std::string path(const std::string& name) {
    return ::testing::TempDir() + "files_test_" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name;
  }
  static std::string write(const std::string& name, const std::vector<uint8_t>& bytes) {
    write_file(path(name), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return path(name);
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// The bytes of named data, by the description's places.
  static std::string named_bytes(const std::string& file, const std::string& key) {
    const Json description = describe_file(file);
    for (const Json& entry : description["named_data"]) {
      if (entry["key"] != key) continue;
      const Json& segment = description["segments"][entry["segment"].get<size_t>()];
      return read(file).substr(
          description["segment_base"].get<size_t>() + segment["offset"].get<size_t>(),
          segment["bytes"].get<size_t>());
    }
    return "";
  }
};

TEST_F(FilesTest, StripRemovesOneEntryAndKeepsTheRest) {
  for (const NamedData& data :
       {NamedData{{"a", {1, 2, 3}}, {kIdentity, std::vector<uint8_t>(999)}, {"z", {4, 5}}},
        NamedData{{"a", {1, 2, 3}}, {kIdentity, std::vector<uint8_t>(999)}},
        NamedData{{kIdentity, std::vector<uint8_t>(999)}}}) {
    const std::string before = write("before.pte", program(data));
    const StripResult result = strip_program(before, path("after.pte"));
    EXPECT_LT(result.after, result.before);
    EXPECT_EQ(result.after, std::filesystem::file_size(path("after.pte")));
    const Json a = describe_file(before), b = describe_file(path("after.pte"));
    EXPECT_EQ(b["named_data"].size(), data.size() - 1);
    EXPECT_EQ(a["methods"], b["methods"]);
    for (const auto& [key, bytes] : data) {
      if (key == kIdentity) continue;
      EXPECT_EQ(named_bytes(path("after.pte"), key), std::string(bytes.begin(), bytes.end()));
    }
    EXPECT_TRUE(diff_programs(before, path("after.pte"))["equal"].get<bool>());
  }
}

TEST_F(FilesTest, StripOfAStrippedProgramChangesNothing) {
  const std::string file = write("plain.pte", program({{"a", {1}}}));
  const std::string before = read(file);
  const StripResult result = strip_program(file, file);
  EXPECT_EQ(result.before, result.after);
  EXPECT_EQ(read(file), before);
}

TEST_F(FilesTest, StripLeavesWhatItCannotReadOrWrite) {
  auto bytes = program({{kIdentity, {1}}});
  bytes.pop_back();
  const std::string damaged = write("damaged.pte", bytes);
  EXPECT_THROW(strip_program(damaged, damaged), InspectError);
  EXPECT_EQ(read(damaged).size(), bytes.size());
  const std::string whole = write("whole.pte", program({{kIdentity, {1}}}));
  EXPECT_THROW(strip_program(whole, "/no/such/folder/x.pte"), InspectError);
}

TEST_F(FilesTest, EqualProgramsDifferInNothing) {
  const std::string a = write("a.pte", program({})), b = write("b.pte", program({}));
  const Json diff = diff_programs(a, b);
  EXPECT_TRUE(diff["equal"].get<bool>());
  EXPECT_EQ(diff_text(diff), "");
}

TEST_F(FilesTest, DiffNamesOperatorsWeightsAndMemory) {
  const std::string a = write("a.pte", program({}, 1, "aten::add.out", 64));
  const std::string b = write("b.pte", program({}, 3, "aten::mul.out", 128));
  const Json diff = diff_programs(a, b);
  EXPECT_FALSE(diff["equal"].get<bool>());
  const std::string text = diff_text(diff);
  for (const char* line : {"planned memory: [64] -> [128] bytes", "aten::add.out: 1 -> 0 (-1)",
                           "aten::mul.out: 0 -> 1 (+1)", "- 0: aten::add.out(input 0 Float [2], ",
                           "+ 0: aten::mul.out(input 0 Float [2], "}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  EXPECT_EQ(diff["constants"]["only_in"][0].size(), 1u);
}

TEST_F(FilesTest, DiffFindsEachBitOfAConstant) {
  const auto weights = [](size_t bit) {
    ProgramBuilder builder;
    std::vector<uint8_t> bytes(76);  // more than one block of the hash, and a rest
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    builder.constants.push_back(bytes);
    PlanBuilder& plan = builder.method();
    const auto x = plan.tensor({.sizes = {19}, .memory_id = 1});
    plan.kernel("aten::op.out", {x, plan.tensor({.sizes = {19}, .data = 1}), x});
    plan.inputs = plan.outputs = {x};
    plan.arenas = {0, 128};
    return builder.build();
  };
  const std::string a = write("a.pte", weights(0));
  for (size_t bit = 1; bit < 76 * 8; ++bit) {
    EXPECT_FALSE(diff_programs(a, write("b.pte", weights(bit)))["equal"].get<bool>()) << bit;
  }
  EXPECT_TRUE(diff_programs(a, write("b.pte", weights(0)))["equal"].get<bool>());
}

TEST_F(FilesTest, FilesOfOtherKindsAreCalledByTheirName) {
  const auto error = [](const std::string& head) {
    std::vector<uint8_t> bytes(head.begin(), head.end());
    bytes.resize(200);
    try {
      describe_file(write("other", bytes));
    } catch (const InspectError& e) {
      return e.message;
    }
    return std::string();
  };
  EXPECT_NE(error("....BP08").find("executor_runner --bundled_program"), std::string::npos);
  EXPECT_NE(error("........ED00").find("it is an ETDump"), std::string::npos);
  EXPECT_NE(error("PK\x03\x04").find("an ETRecord"), std::string::npos);
  EXPECT_EQ(error("something").find("; it is"), std::string::npos);
}

}  // namespace
}  // namespace executorch::devtools
