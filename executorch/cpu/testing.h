/// What the tests of the engine share: every instruction set's vector code, and memory.
#pragma once

#include <executorch/cpu/instruction_sets.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace executorch::cpu {

constexpr int64_t kTwo31 = int64_t{1} << 31;
/// Numbers that a file may give for any stride, padding, dilation or extent.
constexpr int64_t kExtremes[] = {0,
                                 1,
                                 2,
                                 3,
                                 1 << 15,
                                 1 << 16,
                                 1 << 24,
                                 1 << 30,
                                 kTwo31 - 1,
                                 kTwo31,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max(),
                                 -1,
                                 -3,
                                 -(1 << 16),
                                 -kTwo31,
                                 std::numeric_limits<int64_t>::min()};

/// The types of a table in types.h: TypesOf<void ET_OPERANDS(ET_TYPE)>
template <class First, class... T>
using TypesOf = testing::Types<T...>;
#define ET_TYPE(T, name) , T

/// What an operand means, by arithmetic.
template <class T>
double value(T x) {
  if constexpr (std::is_same_v<T, BF16>) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16));
  } else if constexpr (std::is_same_v<T, F16>) {
    const int exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
    const double size = exponent == 0    ? std::ldexp(mantissa, -24)
                        : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                         : std::ldexp(1024 + mantissa, exponent - 25);
    return x.bits >> 15 ? -size : size;
  } else {
    return static_cast<double>(x);
  }
}
/// The operand that means x, or the next one nearer to 0; for F16 not a denormal one.
template <class T>
T stored(float x) {
  if constexpr (std::is_same_v<T, BF16>) {
    return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
  } else if constexpr (std::is_same_v<T, F16>) {
    int exponent;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    const int sign = x < 0 ? 0x8000 : 0, mantissa = static_cast<int>(fraction * 2048) & 1023;
    if (std::isinf(x)) return {static_cast<uint16_t>(sign | 0x7C00)};
    if (x == 0 || exponent < -13) return {static_cast<uint16_t>(sign)};
    return {static_cast<uint16_t>(sign | (exponent + 14) << 10 | mantissa)};
  } else {
    return static_cast<T>(x);
  }
}
/// The most that rounding to T changes a number near 1, about.
template <class T>
constexpr double epsilon() {
  return std::is_same_v<T, BF16>     ? 1.0 / 256
         : std::is_same_v<T, F16>    ? 1.0 / 2048
         : std::is_same_v<T, double> ? 0x1p-53
                                     : 0x1p-24;
}

/// The vector code that runs from now on; 0: the best for this machine.
inline void use_target(int64_t target) {
  ASSERT_TRUE(use_instruction_set(target == 0 ? "" : hwy::TargetName(target)));
}

/// Calls f with the vector code of each instruction set that the build contains and this machine
/// has.
template <class F>
void for_each_target(const F& f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    use_target(target);
    f();
  }
  use_target(0);
}

/// The same for every TEST_P of a fixture that ET_ON_EACH_TARGET declares.
class OnEachTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { use_target(GetParam()); }
  void TearDown() override { use_target(0); }
};
#define ET_ON_EACH_TARGET(Fixture)                                              \
  class Fixture : public OnEachTarget {};                                       \
  INSTANTIATE_TEST_SUITE_P(                                                     \
      Targets, Fixture, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
      [](const auto& test) -> std::string { return hwy::TargetName(test.param); })

/// Runs an operation with all the memory that it wants.
template <class Operation>
void run(const Operation& operation) {
  HeapScratch scratch;
  ASSERT_TRUE(operation.run(scratch));
}

/// Expects that an operation is refused where it gets no memory, or little of what it wants.
template <class Operation>
void expect_refusal(const Operation& operation) {
  for (const size_t bytes : {size_t{0}, size_t{256}}) {
    HeapScratch scratch(bytes);
    EXPECT_FALSE(operation.run(scratch));
  }
}

}  // namespace executorch::cpu
