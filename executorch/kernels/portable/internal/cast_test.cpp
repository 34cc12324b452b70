#include <executorch/kernels/portable/internal/cast.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

using executorch::aten::ScalarType;
using namespace torch::executor::native::internal;

namespace {

constexpr size_t kCount = 1000;  // vectors, and a rest

TEST(Cast, RoundsIntegersToFloatOnceWhetherTheyFitInt32OrNot) {
  for (const int shift : {0, 8, 24, 32}) {
    std::vector<int64_t> from(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      from[i] = (static_cast<int64_t>(i) - 500) * 4'000'001 * (int64_t{1} << shift) / 250 + 1;
    }
    from[300] = int64_t{1} << 31;                             // the least that does not fit
    from[700] = (int64_t{1} << 53) + (int64_t{1} << 29) + 1;  // rounding to double first ties
    std::vector<float> to(kCount);
    convert(from.data(), ScalarType::Long, 1, to.data(), ScalarType::Float, 1, kCount);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], static_cast<float>(from[i])) << from[i];
  }
}

TEST(Cast, RoundsIntsToFloatAsTheNearest) {
  std::vector<int32_t> from(kCount);
  for (size_t i = 0; i < kCount; ++i) from[i] = (static_cast<int32_t>(i) - 500) * 4'000'001;
  std::vector<float> to(kCount);
  convert(from.data(), ScalarType::Int, 1, to.data(), ScalarType::Float, 1, kCount);
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], static_cast<float>(from[i]));
}

TEST(Cast, KeepsUnsignedIntegersPositiveInFloats) {
  std::vector<uint64_t> from(kCount);
  for (size_t i = 0; i < kCount; ++i) from[i] = UINT64_MAX - i * (UINT64_MAX / kCount);
  std::vector<float> floats(kCount);
  std::vector<double> doubles(kCount);
  convert(from.data(), ScalarType::UInt64, 1, floats.data(), ScalarType::Float, 1, kCount);
  convert(from.data(), ScalarType::UInt64, 1, doubles.data(), ScalarType::Double, 1, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(floats[i], static_cast<float>(from[i])) << from[i];
    ASSERT_EQ(doubles[i], static_cast<double>(from[i])) << from[i];
  }
}

TEST(Cast, TakesBoolsForZeroAndOneInEveryType) {
  const auto from = std::make_unique<bool[]>(kCount);
  for (size_t i = 0; i < kCount; ++i) from[i] = i % 3 == 0;
  std::vector<float> floats(kCount);
  std::vector<int64_t> longs(kCount);
  convert(from.get(), ScalarType::Bool, 1, floats.data(), ScalarType::Float, 1, kCount);
  convert(from.get(), ScalarType::Bool, 1, longs.data(), ScalarType::Long, 1, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(floats[i], from[i] ? 1.0f : 0.0f);
    ASSERT_EQ(longs[i], from[i] ? 1 : 0);
  }
}

TEST(Cast, TakesEveryByteOfABoolButZeroForOne) {
  std::vector<uint8_t> from(kCount);
  for (size_t i = 0; i < kCount; ++i) from[i] = static_cast<uint8_t>(i % 5 * 63);
  const auto bools = std::make_unique<bool[]>(kCount);
  std::vector<int64_t> longs(kCount);
  load(from.data(), ScalarType::Bool, 1, kCount, bools.get());
  load(from.data(), ScalarType::Bool, 1, kCount, longs.data());
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(reinterpret_cast<const uint8_t*>(bools.get())[i], from[i] != 0 ? 1 : 0);
    ASSERT_EQ(longs[i], from[i] != 0 ? 1 : 0);
  }
}

}  // namespace
