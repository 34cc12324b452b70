#include <executorch/schema/output_file.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace executorch::schema {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / ("output_file_test_" + std::string(test->name()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  static int write(const std::string& path, const std::string& text) {
    return write_file(path, text.data(), text.size());
  }
  std::string content(const char* name) const {
    std::ifstream in(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  size_t n_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, TakesTheOldFilesPlaceWhenKept) {
  ASSERT_EQ(write(path("a"), "old"), 0);
  OutputFile file;
  ASSERT_EQ(file.open(path("a")), 0);
  ASSERT_EQ(file.write("new", 3), 0);
  EXPECT_EQ(content("a"), "old");
  ASSERT_EQ(file.keep(), 0);
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, LeavesNothingWhenNotKept) {
  {
    OutputFile file;
    ASSERT_EQ(file.open(path("a")), 0);
    ASSERT_EQ(file.write("half", 4), 0);
  }
  EXPECT_EQ(n_files(), 0u);
}

TEST_F(OutputFileTest, WritersOfOneFileDoNotMix) {
  OutputFile first, second;
  ASSERT_EQ(first.open(path("a")), 0);
  ASSERT_EQ(second.open(path("a")), 0);
  ASSERT_EQ(first.write("first", 5), 0);
  ASSERT_EQ(second.write("2nd", 3), 0);
  ASSERT_EQ(second.keep(), 0);
  ASSERT_EQ(first.keep(), 0);
  EXPECT_EQ(content("a"), "first");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, LinksAndPermissionsStay) {
  ASSERT_EQ(write(path("a"), "old"), 0);
  const auto owner_only = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(path("a"), owner_only);
  fs::create_symlink("a", path("link"));
  ASSERT_EQ(write(path("link"), "new"), 0);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), owner_only);
}

TEST_F(OutputFileTest, FailuresAreErrnos) {
  EXPECT_EQ(write("/no/such/folder/a", "x"), ENOENT);
  EXPECT_EQ(write(folder_.string(), "x"), EISDIR);
  EXPECT_EQ(write("/dev/null", "x"), 0);
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(write("/dev/full", "x"), ENOSPC);
  }
}

}  // namespace
}  // namespace executorch::schema
