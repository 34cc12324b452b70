/// Shared by the tests of the engine: running the vector code of every instruction set, granting or
/// refusing scratch memory, and the values of stored numbers.
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

/// The number that a stored operand represents, computed by arithmetic on its bits.
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
/// The operand that represents x, or else the next one towards 0. For F16 denormals become 0.
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
/// About the largest change that rounding to T makes to a number near 1.
template <class T>
constexpr double epsilon() {
  return std::is_same_v<T, BF16>     ? 1.0 / 256
         : std::is_same_v<T, F16>    ? 1.0 / 2048
         : std::is_same_v<T, double> ? 0x1p-53
                                     : 0x1p-24;
}

/// Selects the target whose vector code runs from now on; 0 selects the best one for this machine.
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

/// A fixture whose TEST_Ps run once for each such instruction set. ET_ON_EACH_TARGET declares one.
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

/// Runs an operation with unlimited scratch memory.
template <class Operation>
void run(const Operation& operation) {
  HeapScratch scratch;
  ASSERT_TRUE(operation.run(scratch));
}

/// Expects that run() returns false when the scratch memory is limited to 0 or to 256 bytes.
template <class Operation>
void expect_refusal(const Operation& operation) {
  for (const size_t bytes : {size_t{0}, size_t{256}}) {
    HeapScratch scratch(bytes);
    EXPECT_FALSE(operation.run(scratch));
  }
}

}  // namespace executorch::cpu
