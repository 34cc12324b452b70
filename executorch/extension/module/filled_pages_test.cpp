#include <executorch/extension/module/filled_pages.h>
#include <gtest/gtest.h>

#if defined(__linux__)

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace executorch::extension::internal {
namespace {

using runtime::Span;

constexpr size_t kPage = 4096, kHugePage = 2 << 20, kBytes = 10 * kHugePage;

/// Untouched memory that begins on the boundary of a huge page.
class FilledPagesTest : public ::testing::Test {
 protected:
  FilledPagesTest() {
    void* const mapped = ::mmap(nullptr, kBytes + kHugePage, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    mapped_ = static_cast<uint8_t*>(mapped);
    bytes_ = mapped_ + -reinterpret_cast<uintptr_t>(mapped_) % kHugePage;
    EXPECT_EQ(::madvise(mapped_, kBytes + kHugePage, MADV_NOHUGEPAGE), 0);
  }
  ~FilledPagesTest() override { ::munmap(mapped_, kBytes + kHugePage); }

  /// Whether the system moves memory to huge pages when it is asked to.
  bool can_collapse() {
    if (::sysconf(_SC_PAGESIZE) != kPage) return false;
    ::madvise(bytes_, kHugePage, MADV_HUGEPAGE);
    bytes_[0] = 1;
    const bool can = ::madvise(bytes_, kHugePage, 25) == 0;
    ::madvise(bytes_, kBytes, MADV_DONTNEED);
    ::madvise(bytes_, kBytes, MADV_HUGEPAGE);
    return can;
  }
  /// Writes the first n pages of huge page `i`, in small pages.
  void write(size_t i, size_t n) {
    uint8_t* const at = bytes_ + i * kHugePage;
    ::madvise(at, kHugePage, MADV_NOHUGEPAGE);
    for (size_t p = 0; p < n; ++p) at[p * kPage] = static_cast<uint8_t>(p + i + 1);
    ::madvise(at, kHugePage, MADV_HUGEPAGE);
  }
  size_t resident(size_t i) const {
    std::vector<unsigned char> pages(kHugePage / kPage);
    EXPECT_EQ(::mincore(bytes_ + i * kHugePage, kHugePage, pages.data()), 0);
    size_t n = 0;
    for (const unsigned char page : pages) n += page & 1;
    return n;
  }

  uint8_t* mapped_ = nullptr;
  uint8_t* bytes_ = nullptr;
};

TEST_F(FilledPagesTest, HalfFilledMemoryMovesAndTheRestStays) {
  if (!can_collapse()) GTEST_SKIP() << "the system does not move memory to huge pages";
  // Not a whole huge page at either end.
  const Span<uint8_t> memory[] = {{}, {bytes_ + 1, kBytes - 2}};
  const std::vector<size_t> expected = {300, 255, 512, 512, 300};
  std::vector<size_t> found;
  // The system itself may move memory at any time, but hardly does so five times.
  for (int attempt = 0; attempt < 5 && found != expected; ++attempt) {
    ::madvise(bytes_, kBytes, MADV_DONTNEED);
    FilledPages pages{Span<const Span<uint8_t>>(memory, 2)};
    write(0, 300), write(3, 255), write(5, 256), write(8, 512), write(9, 300);
    for (int i = 0; i < 40; ++i) pages.collapse();
    found = {resident(0), resident(3), resident(5), resident(8), resident(9)};
    for (size_t p = 0; p < 256; ++p) {
      EXPECT_EQ(bytes_[5 * kHugePage + p * kPage], static_cast<uint8_t>(p + 6));
    }
    write(3, 400);  // as the text grows
    for (int i = 0; i < 40; ++i) pages.collapse();
    EXPECT_EQ(resident(3), 512);
  }
  EXPECT_EQ(found, expected);
}

TEST_F(FilledPagesTest, AnExecutionMovesAPartOfLargeMemory) {
  if (!can_collapse()) GTEST_SKIP() << "the system does not move memory to huge pages";
  const Span<uint8_t> memory(bytes_, kBytes);
  FilledPages pages{Span<const Span<uint8_t>>(&memory, 1)};
  for (size_t i = 0; i < 10; ++i) write(i, 256);
  for (size_t moved = 1; moved <= 10; ++moved) {
    pages.collapse();
    size_t n = 0;
    for (size_t i = 0; i < 10; ++i) n += resident(i) == 512 ? 1 : 0;
    EXPECT_GE(n, moved);
    EXPECT_TRUE(moved > 1 || n < 10) << n;
  }
}

TEST_F(FilledPagesTest, SmallAndEmptyMemoryStays) {
  const Span<uint8_t> memory[] = {{}, {bytes_, 100}, {bytes_ + kPage, kHugePage}};
  FilledPages pages{Span<const Span<uint8_t>>(memory, 3)};
  write(0, 400);
  for (int i = 0; i < 4; ++i) pages.collapse();
  EXPECT_EQ(resident(0), 400);
}

}  // namespace
}  // namespace executorch::extension::internal

#endif
