#include <executorch/schema/output_file.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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

  /// Calls f in a process of its own; how that ended, as waitpid() says.
  template <class F>
  static int in_child(F f) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(f());
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
  /// Writes half of a file and is killed.
  static int killed_while_writing(const std::string& path, bool may_be_unnamed) {
    return in_child([&] {
      OutputFile file(may_be_unnamed);
      const std::string half(1 << 20, 'x');
      if (file.open(path) == 0 && file.write(half.data(), half.size()) == 0) {
        ::kill(::getpid(), SIGKILL);
      }
      return 1;
    });
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

TEST_F(OutputFileTest, AKilledWriterLeavesNothingBehind) {
  const int status = killed_while_writing(path("a"), true);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(n_files(), 0u);
  ASSERT_EQ(write(path("a"), "old"), 0);
  (void)killed_while_writing(path("a"), true);
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, WhereFilesNeedNamesTheNextWriterRemovesWhatAKilledOneLeft) {
  const int status = killed_while_writing(path("a"), false);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(n_files(), 1u);
  OutputFile file(false), other(false);
  ASSERT_EQ(file.open(path("a")), 0);
  EXPECT_EQ(n_files(), 1u);
  // One that is being written stays.
  ASSERT_EQ(other.open(path("a")), 0);
  EXPECT_EQ(n_files(), 2u);
  ASSERT_EQ(file.write("new", 3), 0);
  ASSERT_EQ(file.keep(), 0);
  EXPECT_EQ(content("a"), "new");
  ASSERT_EQ(other.keep(), 0);
  EXPECT_EQ(content("a"), "");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, ALimitOfTheFilesSizeIsAnErrorAndLeavesNothing) {
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return write(path("a"), std::string(100000, 'x')) == EFBIG ? 0 : 1;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(n_files(), 0u);
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
  EXPECT_EQ(write("", "x"), ENOENT);
  EXPECT_EQ(write(folder_.string(), "x"), EISDIR);
  EXPECT_EQ(write("/dev/null", "x"), 0);
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(write("/dev/full", "x"), ENOSPC);
  }
}

}  // namespace
}  // namespace executorch::schema
