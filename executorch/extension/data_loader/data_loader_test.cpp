#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/data_loader/file_descriptor_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/data_loader/shared_ptr_data_loader.h>
#include <executorch/runtime/platform/runtime.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace executorch::extension {
namespace {

using runtime::DataLoader;
using runtime::Error;
using Mlock = MmapDataLoader::MlockConfig;

const DataLoader::SegmentInfo kProgram(DataLoader::SegmentInfo::Type::Program);

/// A file of several pages whose bytes tell their position.
class TempFile {
 public:
  explicit TempFile(size_t size = 3 * 4096 + 100) {
    for (size_t i = 0; i < size; ++i) {
      bytes.push_back(static_cast<char>(i * 31 + i / 256));
    }
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~TempFile() { std::remove(path.c_str()); }

  const std::string path = ::testing::TempDir() + "data_loader_test.bin";
  std::string bytes;
};

using Opener = std::function<std::unique_ptr<DataLoader>(const TempFile&)>;

template <typename Loader>
std::unique_ptr<DataLoader> unwrap(runtime::Result<Loader> loader) {
  EXPECT_TRUE(loader.ok());
  return std::make_unique<Loader>(std::move(loader.get()));
}

std::unique_ptr<DataLoader> open_mapped(const TempFile& file, Mlock config) {
  return unwrap(MmapDataLoader::from(file.path.c_str(), config));
}

std::string uri_of(const TempFile& file) {
  return "fd:///" + std::to_string(::open(file.path.c_str(), O_RDONLY));
}

const std::pair<const char*, Opener> kLoaders[] = {
    {"File", [](const TempFile& f) { return unwrap(FileDataLoader::from(f.path.c_str())); }},
    {"FileDescriptor",
     [](const TempFile& f) {
       return unwrap(FileDescriptorDataLoader::fromFileDescriptorUri(uri_of(f).c_str()));
     }},
    {"Mmap", [](const TempFile& f) { return open_mapped(f, Mlock::NoMlock); }},
    {"MmapIgnore", [](const TempFile& f) { return open_mapped(f, Mlock::UseMlockIgnoreErrors); }},
    {"MmapMadvise", [](const TempFile& f) { return open_mapped(f, Mlock::UseMadvise); }},
    {"Buffer",
     [](const TempFile& f) {
       return std::make_unique<BufferDataLoader>(f.bytes.data(), f.bytes.size());
     }},
    {"SharedPtr",
     [](const TempFile& f) {
       std::shared_ptr<void> data(new char[f.bytes.size()],
                                  [](void* p) { delete[] static_cast<char*>(p); });
       std::memcpy(data.get(), f.bytes.data(), f.bytes.size());
       return std::make_unique<SharedPtrDataLoader>(data, f.bytes.size());
     }},
};

class EveryLoader : public ::testing::TestWithParam<std::pair<const char*, Opener>> {
 protected:
  static void SetUpTestSuite() { runtime::runtime_init(); }

  TempFile file_;
  std::unique_ptr<DataLoader> loader_ = GetParam().second(file_);
};

INSTANTIATE_TEST_SUITE_P(Loaders, EveryLoader, ::testing::ValuesIn(kLoaders),
                         [](const auto& param) { return std::string(param.param.first); });

TEST_P(EveryLoader, LoadsAnyRange) {
  const size_t n = file_.bytes.size();
  ASSERT_EQ(loader_->size().get(), n);
  for (const auto& [offset, size] : std::initializer_list<std::pair<size_t, size_t>>{
           {0, n}, {1, 10}, {4095, 2}, {4096, 4096}, {n - 1, 1}, {5000, n - 5000}}) {
    const auto loaded = loader_->load(offset, size, kProgram);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(std::string(static_cast<const char*>(loaded->data()), loaded->size()),
              file_.bytes.substr(offset, size));
    std::string copy(size, '\0');
    ASSERT_EQ(loader_->load_into(offset, size, kProgram, copy.data()), Error::Ok);
    EXPECT_EQ(copy, file_.bytes.substr(offset, size));
  }
}

TEST_P(EveryLoader, LoadsNothingAnywhereUpToTheEnd) {
  for (const size_t offset : {size_t(0), file_.bytes.size()}) {
    const auto loaded = loader_->load(offset, 0, kProgram);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->size(), 0u);
  }
}

TEST_P(EveryLoader, RejectsRangesThatLeaveTheData) {
  const size_t n = file_.bytes.size();
  char byte;
  for (const auto& [offset, size] : std::initializer_list<std::pair<size_t, size_t>>{
           {0, n + 1}, {n, 1}, {n + 1, 0}, {1, SIZE_MAX}, {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX}}) {
    EXPECT_EQ(loader_->load(offset, size, kProgram).error(), Error::InvalidArgument);
    EXPECT_EQ(loader_->load_into(offset, size, kProgram, &byte), Error::InvalidArgument);
  }
}

TEST_P(EveryLoader, RejectsANullTarget) {
  EXPECT_EQ(loader_->load_into(0, 1, kProgram, nullptr), Error::InvalidArgument);
}

TEST(BufferDataLoader, RejectsABufferThatIsNull) {
  char byte = 0;
  const BufferDataLoader loader(nullptr, 100);
  EXPECT_EQ(loader.load(0, 1, kProgram).error(), Error::InvalidArgument);
  EXPECT_EQ(loader.load_into(0, 1, kProgram, &byte), Error::InvalidArgument);
  EXPECT_TRUE(loader.load(100, 0, kProgram).ok());
  const SharedPtrDataLoader shared(nullptr, 100);
  EXPECT_EQ(shared.load(0, 1, kProgram).error(), Error::InvalidArgument);
}

TEST(FileDataLoader, AlignsItsBuffers) {
  const TempFile file;
  for (const size_t alignment : {size_t(1), size_t(16), size_t(64), size_t(4096)}) {
    auto loader = FileDataLoader::from(file.path.c_str(), alignment);
    ASSERT_TRUE(loader.ok());
    const auto loaded = loader->load(3, 100, kProgram);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->data()) % alignment, 0u);
  }
}

TEST(FileDataLoader, RejectsAlignmentsThatAreNoPowerOfTwo) {
  const TempFile file;
  for (const size_t alignment : {size_t(0), size_t(3), size_t(24)}) {
    EXPECT_EQ(FileDataLoader::from(file.path.c_str(), alignment).error(), Error::InvalidArgument);
    EXPECT_EQ(FileDescriptorDataLoader::fromFileDescriptorUri("fd:///1000000", alignment).error(),
              Error::InvalidArgument);
  }
}

TEST(FileLoaders, RejectWhatIsNoRegularFile) {
  for (const char* path : {"/no/such/file", "/tmp", "/dev/null"}) {
    EXPECT_EQ(FileDataLoader::from(path).error(), Error::AccessFailed) << path;
    EXPECT_EQ(MmapDataLoader::from(path).error(), Error::AccessFailed) << path;
  }
  EXPECT_EQ(FileDataLoader::from(nullptr).error(), Error::InvalidArgument);
  EXPECT_EQ(MmapDataLoader::from(nullptr).error(), Error::InvalidArgument);
}

TEST(FileLoaders, NeverWaitForThePipesOtherEnd) {
  const std::string path = ::testing::TempDir() + "data_loader_test_fifo";
  (void)::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(FileDataLoader::from(path.c_str()).error(), Error::AccessFailed);
  EXPECT_EQ(MmapDataLoader::from(path.c_str()).error(), Error::AccessFailed);
  (void)::unlink(path.c_str());
}

TEST(FileLoaders, ReportAFileThatShrankAfterItWasOpened) {
  const TempFile file;
  auto loader = FileDataLoader::from(file.path.c_str());
  ASSERT_TRUE(loader.ok());
  ASSERT_EQ(::truncate(file.path.c_str(), 10), 0);
  EXPECT_EQ(loader->load(0, 100, kProgram).error(), Error::AccessFailed);
  char bytes[100];
  EXPECT_EQ(loader->load_into(0, 100, kProgram, bytes), Error::AccessFailed);
}

TEST(FileLoaders, FailAfterBeingMovedFrom) {
  const TempFile file;
  auto first = FileDataLoader::from(file.path.c_str());
  ASSERT_TRUE(first.ok());
  FileDataLoader second(std::move(first.get()));
  EXPECT_TRUE(second.load(0, 1, kProgram).ok());
  EXPECT_EQ(first->load(0, 1, kProgram).error(), Error::InvalidState);
  EXPECT_EQ(second.size().get(), file.bytes.size());
  EXPECT_EQ(first->size().error(), Error::InvalidState);
}

TEST(MmapDataLoader, BuffersOutliveTheLoader) {
  const TempFile file;
  auto loader = std::make_unique<MmapDataLoader>(
      std::move(MmapDataLoader::from(file.path.c_str(), Mlock::NoMlock).get()));
  const auto loaded = loader->load(4100, 50, kProgram);
  loader.reset();
  EXPECT_EQ(std::string(static_cast<const char*>(loaded->data()), 50), file.bytes.substr(4100, 50));
}

TEST(MmapDataLoader, MapsLargeFilesWhereHugePagesFit) {
  constexpr size_t kHugePage = 2 << 20;
  const TempFile file(kHugePage + 12345);
  auto loader = MmapDataLoader::from(file.path.c_str(), Mlock::NoMlock);
  ASSERT_TRUE(loader.ok());
  const auto loaded = loader->load(10, 20, kProgram);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->data()) % kHugePage, 10u);
}

TEST(MmapDataLoader, ABufferThatIsFreedLeavesItsNeighboursAlone) {
  const TempFile file(5 * 4096 + 7);
  auto loader = MmapDataLoader::from(file.path.c_str(), Mlock::UseMlockIgnoreErrors);
  ASSERT_TRUE(loader.ok());
  const auto before = loader->load(0, 4100, kProgram);
  auto middle = loader->load(4100, 9000, kProgram);
  const auto after = loader->load(13100, file.bytes.size() - 13100, kProgram);
  middle->Free();
  EXPECT_EQ(std::string(static_cast<const char*>(before->data()), before->size()),
            file.bytes.substr(0, 4100));
  EXPECT_EQ(std::string(static_cast<const char*>(after->data()), after->size()),
            file.bytes.substr(13100));
  const auto again = loader->load(4100, 9000, kProgram);
  EXPECT_EQ(std::string(static_cast<const char*>(again->data()), again->size()),
            file.bytes.substr(4100, 9000));
}

TEST(MmapDataLoaderDeathTest, MapsRangesOfFilesThatTheAddressSpaceHasNoRoomFor) {
  EXPECT_EXIT(
      {
        const TempFile file(3 << 20);
        ::rlimit limit;
        ::getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 1;  // what is mapped stays
        ::setrlimit(RLIMIT_AS, &limit);
        auto loader = MmapDataLoader::from(file.path.c_str(), Mlock::NoMlock);
        const bool refuses = !loader->load(5000, 100, kProgram).ok();
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_AS, &limit);
        const auto loaded = loader->load(5000, 100, kProgram);
        const bool same = loaded.ok() && std::memcmp(loaded->data(), &file.bytes[5000], 100) == 0;
        std::remove(file.path.c_str());
        std::_Exit(refuses && same ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "cannot map 100 bytes at offset 5000");
}

TEST(MmapDataLoader, LocksPagesOrSaysThatItCannot) {
  const TempFile file;
  auto loader = MmapDataLoader::from(file.path.c_str());
  ASSERT_TRUE(loader.ok());
  const auto loaded = loader->load(0, 4096, kProgram);
  EXPECT_TRUE(loaded.ok() || loaded.error() == Error::NotSupported);
}

TEST(FileDescriptorDataLoader, RejectsWhatIsNoDescriptorUri) {
  for (const char* uri : {"", "fd://", "fd:///", "fd:///x", "fd:///1x", "fd:///-1", "file:///1",
                          "fd:///99999999999999999999"}) {
    EXPECT_EQ(FileDescriptorDataLoader::fromFileDescriptorUri(uri).error(), Error::InvalidArgument)
        << uri;
  }
  EXPECT_EQ(FileDescriptorDataLoader::fromFileDescriptorUri(nullptr).error(),
            Error::InvalidArgument);
  EXPECT_EQ(FileDescriptorDataLoader::fromFileDescriptorUri("fd:///1000000").error(),
            Error::AccessFailed);
}

TEST(SharedPtrDataLoader, KeepsTheDataAlive) {
  auto data = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = data;
  auto loader = std::make_unique<SharedPtrDataLoader>(std::move(data), sizeof(int));
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(*static_cast<const int*>(loader->load(0, sizeof(int), kProgram)->data()), 7);
  loader.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace executorch::extension
