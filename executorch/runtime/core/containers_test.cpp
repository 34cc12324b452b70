// Span, ArrayRef, FunctionRef, Tag: the small types that everything is made of.
#include <array>

#include <gtest/gtest.h>

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/function_ref.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/core/tag.h>

namespace executorch::runtime {
namespace {

TEST(Span, ViewsAndWritesTheSameMemory) {
  int values[] = {1, 2, 3};
  Span<int> span(values);
  EXPECT_EQ(span.size(), 3u);
  span[1] = 20;
  EXPECT_EQ(values[1], 20);
  EXPECT_EQ(span.end() - span.begin(), 3);
  EXPECT_TRUE(Span<int>().empty());
  int single = 4;
  EXPECT_EQ(Span<int>(single).size(), 1u);
}

TEST(ArrayRef, ComparesElementByElement) {
  const std::array<int, 3> a = {1, 2, 3};
  const int b[] = {1, 2, 3};
  EXPECT_TRUE(makeArrayRef(a) == makeArrayRef(b));
  EXPECT_TRUE(makeArrayRef(a) != makeArrayRef(b, 2));
  EXPECT_EQ(makeArrayRef(b).slice(1).front(), 2);
  EXPECT_EQ(makeArrayRef(b).slice(1, 1).back(), 2);
}

TEST(ArrayRefDeathTest, AccessOutOfRangeAborts) {
  const int values[] = {1, 2, 3};
  const ArrayRef<int> ref(values);
  EXPECT_DEATH(ref.at(3), "index 3 of 3");
  EXPECT_DEATH(ref.slice(2, 2), "slice");
  EXPECT_DEATH(ref.slice(1, static_cast<size_t>(-1)), "slice");
  EXPECT_DEATH(ArrayRef<int>().back(), "of 0 elements");
}

int call(FunctionRef<int(int)> f, int x) {
  return f(x);
}
int twice(int x) {
  return 2 * x;
}

TEST(FunctionRef, CallsLambdasAndFunctions) {
  int calls = 0;
  const int offset = 10;
  EXPECT_EQ(call([&](int x) { return ++calls, x + offset; }, 1), 11);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(call(twice, 4), 8);
  EXPECT_FALSE(FunctionRef<int(int)>());
}

TEST(Tag, NamesFitTheirBuffer) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(Tag::ListOptionalTensor); ++i) {
    const Tag tag = static_cast<Tag>(i);
    char buffer[kTagNameBufferSize];
    EXPECT_EQ(tag_to_string(tag, buffer, sizeof(buffer)), std::string(tag_to_string(tag)).size());
    EXPECT_STREQ(buffer, tag_to_string(tag));
  }
  EXPECT_STREQ(tag_to_string(static_cast<Tag>(99)), "Unknown");
}

TEST(Tag, ShortBufferIsFilledAndEndedAndTheWholeLengthReturned) {
  char buffer[4];
  EXPECT_EQ(tag_to_string(Tag::Tensor, buffer, sizeof(buffer)), 6u);
  EXPECT_STREQ(buffer, "Ten");
  EXPECT_EQ(tag_to_string(Tag::Int, buffer, sizeof(buffer)), 3u);
  EXPECT_STREQ(buffer, "Int");
  EXPECT_EQ(tag_to_string(Tag::Tensor, buffer, 0), 6u);
  EXPECT_STREQ(buffer, "Int");
  EXPECT_EQ(tag_to_string(Tag::Tensor, nullptr, 0), 6u);
}

}  // namespace
}  // namespace executorch::runtime
