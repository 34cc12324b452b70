#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/testing.h>

#include <cstdlib>
#include <numeric>

namespace executorch::cpu {
namespace {

/// Transposes the last two of [planes, rows, columns], whose src rows have `gap` elements more.
template <class T>
void expect_transposed(int64_t planes, int64_t rows, int64_t columns, int64_t gap) {
  SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, " << rows << " x " << columns);
  const int64_t row = columns + gap;
  std::vector<T> src(static_cast<size_t>(planes * rows * row)), dst;
  std::iota(src.begin(), src.end(), T{});
  dst.resize(static_cast<size_t>(planes * rows * columns));
  const Copy::Dim dims[] = {
      {planes, rows * row, rows * columns}, {columns, 1, rows}, {rows, row, 1}};
  const Copy copy{dims, 3, sizeof(T), src.data(), dst.data()};
  copy.run();
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_EQ(dst[static_cast<size_t>((p * columns + c) * rows + r)],
                  src[static_cast<size_t>((p * rows + r) * row + c)]);
      }
    }
  }
  expect_same_on_any_threads(dst, [&] { copy.run(); });
}

ET_ON_EACH_TARGET(Copy_);

TEST_P(Copy_, TransposesBlocksAndWhatIsLeftOfThem) {
  for (int64_t rows : {2, 3, 16, 64, 130, 300}) {
    for (int64_t columns : {2, 5, 64, 131, 257, 600}) {
      expect_transposed<uint8_t>(2, rows, columns, 1);
      expect_transposed<uint16_t>(2, rows, columns, 0);
      expect_transposed<uint32_t>(3, rows, columns, 7);
      expect_transposed<uint64_t>(1, rows, columns, 0);
    }
  }
}

TEST_P(Copy_, ReversesRepeatsAndSpreads) {
  std::vector<uint32_t> src(1000), dst(3000, 0);
  std::iota(src.begin(), src.end(), 0u);
  const Copy::Dim reversed = {1000, -1, 1}, repeated = {1000, 0, 1}, spread = {1000, 1, 3};
  Copy{&reversed, 1, 4, src.data() + 999, dst.data()}.run();
  EXPECT_EQ(dst[0], 999u);
  EXPECT_EQ(dst[999], 0u);
  Copy{&repeated, 1, 4, src.data() + 7, dst.data()}.run();
  EXPECT_EQ(dst[999], 7u);
  Copy{&spread, 1, 4, src.data(), dst.data()}.run();
  EXPECT_EQ(dst[2997], 999u);
}

/// Takes every `step`-th of n elements, which end at the last one of src, or begin there if it is
/// negative.
template <class T>
void expect_every(int64_t step, int64_t n) {
  SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, " << n << " in steps of " << step);
  std::vector<T> src(static_cast<size_t>((n - 1) * std::abs(step) + 1)), dst(src.size() + 1);
  std::iota(src.begin(), src.end(), T{1});
  const Copy::Dim dim = {n, step, 1};
  const T* const first = step > 0 ? src.data() : src.data() + src.size() - 1;
  Copy{&dim, 1, sizeof(T), first, dst.data()}.run();
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(dst[static_cast<size_t>(i)], first[i * step]) << i;
  ASSERT_EQ(dst[static_cast<size_t>(n)], T{0});
}

TEST_P(Copy_, TakesEveryFewElements) {
  for (int64_t step : {-2, -1, 2, 3, 4, 5}) {
    for (int64_t n = 1; n < 300; n += n < 140 ? 1 : 31) {
      expect_every<uint8_t>(step, n);
      expect_every<uint16_t>(step, n);
      expect_every<uint32_t>(step, n);
      expect_every<uint64_t>(step, n);
    }
  }
}

TEST_P(Copy_, NothingAndOneElementAreCopied) {
  uint64_t src[2] = {1, 2}, dst[2] = {};
  const Copy::Dim none = {0, 1, 1};
  Copy{&none, 1, 8, src, dst}.run();
  EXPECT_EQ(dst[0], 0u);
  Copy{nullptr, 0, 16, src, dst}.run();
  EXPECT_EQ(dst[1], 2u);
}

TEST_P(Copy_, TakesAnyStrideOfDimsWithoutNeighbours) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
  std::vector<uint16_t> src(60), dst(60, 0), expected(60);
  std::iota(src.begin(), src.end(), uint16_t{1});
  for (size_t i = 0; i < 60; ++i) expected[i] = src[i % 10 * 6 + i / 10];
  const Copy::Dim dims[] = {
      {1, kMost, kLeast}, {6, 1, 10}, {1, kLeast, kMost}, {10, 6, 1}, {1, kMost, kMost}};
  Copy{dims, 5, 2, src.data(), dst.data()}.run();
  EXPECT_EQ(dst, expected);
  const Copy::Dim empty[] = {{1 << 30, kMost, kMost}, {0, kMost, 1}, {1 << 30, 1, kLeast}};
  Copy{empty, 3, 2, nullptr, nullptr}.run();
}

}  // namespace
}  // namespace executorch::cpu
