#include <executorch/kernels/portable/internal/sorted_order.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace torch::executor::native::internal;
using executorch::aten::BFloat16;
using executorch::aten::Half;

namespace {

template <class T>
bool before(T a, T b) {
  if constexpr (kIsFloat<T>) {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    return x < y || (x == x && y != y);
  } else {
    return a < b;
  }
}

/// Compares with a stable sort of the standard library, in both directions.
template <class T>
void check(const std::vector<T>& data, int64_t step) {
  const auto n = static_cast<int64_t>(data.size()) / step;
  for (const bool largest : {false, true}) {
    std::vector<int64_t> expected(static_cast<size_t>(n)), order(expected);
    for (int64_t i = 0; i < n; ++i) expected[static_cast<size_t>(i)] = i;
    const auto at = [&](int64_t i) { return data[static_cast<size_t>(i * step)]; };
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      return largest ? before(at(b), at(a)) : before(at(a), at(b));
    });
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto key = [&](int64_t i) { return largest ? ~order_key(at(i)) : order_key(at(i)); };
    sort_by_key(key, n, order.data());
    EXPECT_EQ(order, expected) << n << " elements, largest first: " << largest;
  }
}

template <class T>
class SortByKey : public ::testing::Test {};
using Types =
    ::testing::Types<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, Half, BFloat16>;
TYPED_TEST_SUITE(SortByKey, Types);

TYPED_TEST(SortByKey, IsAStableSort) {
  using T = TypeParam;
  std::mt19937_64 random(7);
  for (const size_t n : {0, 1, 2, 100, 129, 1000, 20000}) {
    for (const int bits : {1, 6, 20, 63}) {  // few distinct values, and all of them
      std::vector<T> data(n);
      for (T& x : data) {
        const uint64_t half = uint64_t{1} << (bits - 1);
        const auto number = static_cast<int64_t>((random() >> (64 - bits)) - half);
        if constexpr (kIsFloat<T>) {
          x = static_cast<T>(static_cast<float>(number) * 0.37f);
        } else {
          x = static_cast<T>(number);
        }
      }
      check(data, 1);
      check(data, 3);
    }
  }
}

TYPED_TEST(SortByKey, KnowsTheEndsOfItsType) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  std::vector<T> data;
  for (int i = 0; i < 100; ++i) {
    data.insert(data.end(), {Limits::max(), static_cast<T>(0), Limits::lowest(), Limits::min()});
    if constexpr (kIsFloat<T>) {
      data.insert(data.end(), {Limits::quiet_NaN(), static_cast<T>(-0.0f), Limits::infinity(),
                               static_cast<T>(-Limits::quiet_NaN()), Limits::denorm_min()});
    }
  }
  check(data, 1);
}

TEST(SortByKeyOf64Bits, ThatDifferInTheirLowestOnly) {
  std::vector<int64_t> data;
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    data.push_back((i % 3 - 1) * (int64_t{1} << 62) + static_cast<int64_t>(random() % 8));
  }
  check(data, 1);
}

}  // namespace
