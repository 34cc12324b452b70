#include <executorch/cpu/nn/quantize.h>
#include <executorch/cpu/nn/testing.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

ET_ON_EACH_TARGET(Quantize);

TEST_P(Quantize, QuantizesARowOverItsRange) {
  std::mt19937 random(3);
  for (const int64_t n : {0, 1, 31, 32, 100, 771}) {
    std::vector<float> x(static_cast<size_t>(n));
    std::vector<int8_t> q(x.size());
    std::normal_distribution<float> real(1, 3);
    for (float& v : x) v = real(random);
    const RowQuantization row = quantize_row(x.data(), n, q.data());
    const float low = n == 0 ? 0 : std::min(0.0f, *std::min_element(x.begin(), x.end()));
    const float high = n == 0 ? 0 : std::max(0.0f, *std::max_element(x.begin(), x.end()));
    if (high > low) {
      EXPECT_FLOAT_EQ(row.scale, (high - low) / 255);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(static_cast<float>(q[i] - row.zero_point) * row.scale, x[i], row.scale * 0.51f);
    }
  }
}

TEST_P(Quantize, QuantizesToNearestEvenWithinTheRange) {
  const std::vector<float> x = {0.25f, 0.75f, -0.25f, 1000, -1000, 1e30f, NAN, 0, 3.5f};
  std::vector<int8_t> q(x.size());
  quantize(x.data(), 9, {0.5f, -3, false}, q.data());
  EXPECT_EQ(q, (std::vector<int8_t>{-3, -1, -3, 127, -128, 127, -128, -3, 4}));
  quantize(x.data(), 9, {0.5f, 125, true}, q.data());
  std::vector<float> real(x.size());
  dequantize(q.data(), 9, {0.5f, 125, true}, real.data());
  EXPECT_EQ(real, (std::vector<float>{0, 1, 0, 65, -62.5f, 65, -62.5f, 0, 3.5f}));
}

TEST_P(Quantize, CombinesQuantizedNumbersInFloat) {
  std::mt19937 random(5);
  for (const bool is_unsigned : {false, true}) {
    const Int8Format a{0.1f, 3, is_unsigned}, b{0.07f, -5, is_unsigned}, y{0.15f, 9, is_unsigned};
    std::vector<int8_t> p(101), q(101), found(101), expected(101);
    std::vector<float> left(101), right(101);
    for (size_t i = 0; i < 101; ++i) {
      p[i] = static_cast<int8_t>(random());
      q[i] = static_cast<int8_t>(random());
    }
    dequantize(p.data(), 101, a, left.data());
    dequantize(q.data(), 101, b, right.data());
    for (const auto op :
         {Int8Binary::Op::Add, Int8Binary::Op::Subtract, Int8Binary::Op::Multiply}) {
      Int8Binary{op, 101, p.data(), q.data(), found.data(), a, b, y, -4, 9}.run();
      std::vector<float> exact(101);
      for (size_t i = 0; i < 101; ++i) {
        const float v = op == Int8Binary::Op::Add        ? left[i] + right[i]
                        : op == Int8Binary::Op::Subtract ? left[i] - right[i]
                                                         : left[i] * right[i];
        exact[i] = std::min(std::max(v, -4.0f), 9.0f);
      }
      quantize(exact.data(), 101, y, expected.data());
      EXPECT_EQ(found, expected);
    }
  }
}

TEST_P(Quantize, TakesTheLargestWithinBounds) {
  std::mt19937 random(6);
  for (const int64_t n : {1, 15, 64, 131}) {
    std::vector<int8_t> x(static_cast<size_t>(3 * n)), found(static_cast<size_t>(n));
    for (int8_t& v : x) v = static_cast<int8_t>(random());
    const void* rows[] = {x.data(), x.data() + n, x.data() + 2 * n};
    for (const int64_t n_rows : {0, 1, 3}) {
      for (const bool is_unsigned : {false, true}) {
        const uint8_t low = is_unsigned ? 20 : 0xA0, high = is_unsigned ? 220 : 0x50;
        const auto value = [&](int8_t v) { return is_unsigned ? static_cast<uint8_t>(v) : v; };
        Int8Maximum{rows, n_rows, n, is_unsigned, low, high, found.data()}.run();
        for (int64_t i = 0; i < n; ++i) {
          int most = value(static_cast<int8_t>(low));
          for (int64_t r = 0; r < n_rows; ++r) {
            most = std::max<int>(most, value(x[static_cast<size_t>(r * n + i)]));
          }
          most = std::min<int>(most, value(static_cast<int8_t>(high)));
          EXPECT_EQ(value(found[static_cast<size_t>(i)]), most);
        }
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
