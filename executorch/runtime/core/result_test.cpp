#include <executorch/runtime/core/result.h>

#include <memory>

#include <gtest/gtest.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/freeable_buffer.h>

namespace executorch::runtime {
namespace {

Result<int> half_of(int value) {
  ET_CHECK_OR_RETURN_ERROR(value % 2 == 0, InvalidArgument, "%d is odd", value);
  return value / 2;
}

Result<int> quarter_of(int value) {
  const int half = ET_UNWRAP(half_of(value), "first half of %d", value);
  ET_ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Error check_quarter(int value) {
  ET_CHECK_OK_OR_RETURN_ERROR(half_of(value).error(), "of %d", value);
  ET_CHECK_OK_OR_RETURN_ERROR(quarter_of(value).error());
  return Error::Ok;
}

TEST(Result, HoldsValueOrError) {
  EXPECT_EQ(*half_of(4), 2);
  EXPECT_EQ(half_of(4).error(), Error::Ok);
  EXPECT_FALSE(half_of(3).ok());
  EXPECT_EQ(half_of(3).error(), Error::InvalidArgument);
}

TEST(Result, MadeFromOkHoldsInternal) {
  const Result<int> result = Error::Ok;
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Error::Internal);
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).error(), Error::InvalidArgument);
  EXPECT_EQ(quarter_of(5).error(), Error::InvalidArgument);
  EXPECT_EQ(check_quarter(8), Error::Ok);
  EXPECT_EQ(check_quarter(6), Error::InvalidArgument);
}

TEST(Result, MoveTransfersOwnership) {
  Result<std::unique_ptr<int>> first(std::make_unique<int>(5));
  Result<std::unique_ptr<int>> second(std::move(first));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(**second, 5);
  EXPECT_EQ(first->get(), nullptr);
}

TEST(ResultDeathTest, ValueOfAnErrorAborts) {
  Result<int> result = Error::NotFound;
  EXPECT_DEATH((void)*result, "Error::NotFound");
}

TEST(Error, NamesAreSpelledAsTheEnumerators) {
  EXPECT_STREQ(to_string(Error::DelegateInvalidHandle), "Error::DelegateInvalidHandle");
  EXPECT_STREQ(to_string(static_cast<Error>(0x7f)), "Error::Unknown");
}

int n_freed = 0;
void count_free(void*, void*, size_t) {
  ++n_freed;
}

TEST(FreeableBuffer, IsFreedOnceAlsoWhenMoved) {
  n_freed = 0;
  {
    FreeableBuffer buffer("abc", 3, count_free);
    FreeableBuffer other(std::move(buffer));
    EXPECT_EQ(buffer.size(), 0u);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(other.size(), 3u);
    other.Free();
    EXPECT_EQ(n_freed, 1);
    EXPECT_EQ(other.data(), nullptr);
  }
  EXPECT_EQ(n_freed, 1);
}

TEST(FreeableBuffer, NumberAndPointerAreToldApart) {
  const FreeableBuffer number(uint64_t{7}, 1, FreeableBuffer::FreeUInt64Fn(nullptr));
  EXPECT_EQ(*number.data_uint64_type(), 7u);
  EXPECT_EQ(number.data_safe().error(), Error::InvalidType);
  const FreeableBuffer pointer("a", 1, FreeableBuffer::FreeFn(nullptr));
  EXPECT_TRUE(pointer.data_safe().ok());
  EXPECT_EQ(pointer.data_uint64_type().error(), Error::InvalidType);
}

TEST(AllocationFailure, BecomesAnErrorAndAResultPasses) {
  const auto result = [](int kind) {
    return catch_allocation_failure("test", [&]() -> Result<int> {
      if (kind == 1) throw std::bad_alloc();
      if (kind == 2) throw std::length_error("test");
      return kind;
    });
  };
  EXPECT_EQ(result(0).get(), 0);
  EXPECT_EQ(result(1).error(), Error::MemoryAllocationFailed);
  EXPECT_EQ(result(2).error(), Error::MemoryAllocationFailed);
  EXPECT_EQ(catch_allocation_failure("test", [] { return Error::NotFound; }), Error::NotFound);
}

}  // namespace
}  // namespace executorch::runtime
