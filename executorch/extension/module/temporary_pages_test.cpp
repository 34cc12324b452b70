#include <executorch/extension/module/temporary_pages.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <gtest/gtest.h>

#if defined(__linux__)

#include <sys/mman.h>

#include <cstring>
#include <vector>

namespace executorch::extension::internal {
namespace {

using aten::TensorImpl;
using runtime::Span;
using runtime::Temporaries;

constexpr size_t kPage = 4096, kBytes = 16 << 20;

/// Temporary memory of 16 MiB, but for its first page, and a result of a size that varies.
class TemporaryPagesTest : public ::testing::Test {
 protected:
  TemporaryPagesTest()
      : bytes_(static_cast<uint8_t*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        memory_(bytes_ + 1, kBytes - 1),
        impl_(aten::ScalarType::Byte, 1, sizes_, bytes_ + kPage, order_, strides_,
              aten::TensorShapeDynamism::DYNAMIC_BOUND),
        tensor_(&impl_),
        pages_(Temporaries{memory_, tensor_}) {}
  ~TemporaryPagesTest() override { ::munmap(bytes_, kBytes); }

  void execute(size_t nbytes) {
    const auto size = static_cast<int32_t>(nbytes);
    ASSERT_EQ(runtime::resize_tensor(aten::Tensor(&impl_), {&size, 1}), runtime::Error::Ok);
    std::memset(bytes_ + kPage, 1, nbytes);
    bytes_[0] = 7;
    pages_.fit();
  }
  size_t resident() const {
    std::vector<unsigned char> in_memory(kBytes / kPage);
    EXPECT_EQ(::mincore(bytes_, kBytes, in_memory.data()), 0);
    size_t n = 0;
    for (const unsigned char page : in_memory) n += page & 1;
    return n * kPage;
  }

  int32_t sizes_[1] = {static_cast<int32_t>(kBytes - kPage)}, strides_[1] = {1};
  uint8_t order_[1] = {0};
  uint8_t* const bytes_;
  Span<uint8_t> memory_;
  TensorImpl impl_;
  const TensorImpl* tensor_;
  TemporaryPages pages_;
};

TEST_F(TemporaryPagesTest, MemoryGoesBackAfterTwoSmallExecutions) {
  for (const size_t large : {size_t{1} << 20, kBytes - kPage}) {
    execute(large);
    execute(large);
    EXPECT_GE(resident(), large);
    execute(100);
    EXPECT_GE(resident(), large);
    execute(large);
    execute(100);
    EXPECT_GE(resident(), large);  // these were not one after another
    execute(100);
    EXPECT_EQ(resident(), kPage);  // the page that is only in part temporary memory
    EXPECT_EQ(bytes_[0], 7);
  }
}

TEST_F(TemporaryPagesTest, ItStaysWhileResultsKeepTheirSize) {
  for (int i = 0; i < 20; ++i) execute(i % 2 == 0 ? 1 << 20 : 400 << 10);
  EXPECT_GE(resident(), 1 << 20);
  execute(100 << 10);
  for (int i = 0; i < 20; ++i) execute(30 << 10);
  EXPECT_GE(resident(), 30 << 10);  // too little to give back
}

TEST_F(TemporaryPagesTest, WithoutTemporariesNothingHappens) {
  TemporaryPages none{Temporaries{}};
  for (int i = 0; i < 4; ++i) none.fit();
}

}  // namespace
}  // namespace executorch::extension::internal

#endif
