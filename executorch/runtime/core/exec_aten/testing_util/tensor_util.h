/// Comparing tensors in tests: predicates, and googletest assertions made of them.
#pragma once

#include <optional>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace executorch::runtime {
namespace testing {
namespace internal {

/// For types that are compared within a tolerance when none is given: relative and absolute.
constexpr double kDefaultRtol = 1e-5;
constexpr double kDefaultAtol = 1e-8;
/// For Half, BFloat16 by their precision.
constexpr double kDefaultHalfAtol = 1e-3;
constexpr double kDefaultBFloat16Atol = 1e-2;

}  // namespace internal

/// Same dtype, sizes and, element by element, |a - b| <= atol + rtol * |b|; NaN equals NaN, and
/// infinities equal themselves. Only floating point types have a tolerance. With `opt_atol` absent
/// it is chosen by the dtype.
bool tensors_are_close(const aten::Tensor& a, const aten::Tensor& b,
                       double rtol = internal::kDefaultRtol,
                       std::optional<double> opt_atol = std::nullopt);

/// The same without regard to sizes: only the element counts must be equal.
bool tensor_data_is_close(const aten::Tensor& a, const aten::Tensor& b,
                          double rtol = internal::kDefaultRtol,
                          std::optional<double> opt_atol = std::nullopt);

/// As many tensors in both lists, each close to its counterpart.
bool tensor_lists_are_close(const aten::Tensor* tensors_a, size_t num_tensors_a,
                            const aten::Tensor* tensors_b, size_t num_tensors_b,
                            double rtol = internal::kDefaultRtol,
                            std::optional<double> opt_atol = std::nullopt);

MATCHER_P(IsCloseTo, other, "") {
  return tensors_are_close(arg, other);
}
MATCHER_P3(IsCloseTo, other, rtol, atol, "") {
  return tensors_are_close(arg, other, rtol, atol);
}
MATCHER_P(IsEqualTo, other, "") {
  return tensors_are_close(arg, other, /*rtol=*/0, /*opt_atol=*/0);
}
MATCHER_P(IsDataCloseTo, other, "") {
  return tensor_data_is_close(arg, other);
}
MATCHER_P3(IsDataCloseTo, other, rtol, atol, "") {
  return tensor_data_is_close(arg, other, rtol, atol);
}
MATCHER_P(IsDataEqualTo, other, "") {
  return tensor_data_is_close(arg, other, /*rtol=*/0, /*opt_atol=*/0);
}
/// For lists: anything with data() and size().
MATCHER_P(IsListCloseTo, other, "") {
  return tensor_lists_are_close(arg.data(), arg.size(), other.data(), other.size());
}
MATCHER_P3(IsListCloseTo, other, rtol, atol, "") {
  return tensor_lists_are_close(arg.data(), arg.size(), other.data(), other.size(), rtol, atol);
}
MATCHER_P(IsListEqualTo, other, "") {
  return tensor_lists_are_close(arg.data(), arg.size(), other.data(), other.size(), /*rtol=*/0,
                                /*opt_atol=*/0);
}

}  // namespace testing

namespace etensor {

/// Exactly the same elements, dtype and sizes.
bool operator==(const Tensor& a, const Tensor& b);
/// "ETensor(sizes={1, 2}, dtype=Byte, data={7, 65})", with at most 100 elements.
std::ostream& operator<<(std::ostream& os, const Tensor& t);
/// The name; "Unknown(127)" for a number that is no type.
std::ostream& operator<<(std::ostream& os, ScalarType type);

}  // namespace etensor
}  // namespace executorch::runtime

namespace torch::executor::testing {
using ::executorch::runtime::testing::IsCloseTo;
using ::executorch::runtime::testing::IsDataCloseTo;
using ::executorch::runtime::testing::IsDataEqualTo;
using ::executorch::runtime::testing::IsEqualTo;
using ::executorch::runtime::testing::IsListCloseTo;
using ::executorch::runtime::testing::IsListEqualTo;
using ::executorch::runtime::testing::tensor_data_is_close;
using ::executorch::runtime::testing::tensor_lists_are_close;
using ::executorch::runtime::testing::tensors_are_close;
}  // namespace torch::executor::testing

#define ET_TESTING_MATCH(check, t, matcher) \
  check##_THAT((t), ::executorch::runtime::testing::matcher)
#define ET_TESTING_NO_MATCH(check, t, matcher) \
  check##_THAT((t), ::testing::Not(::executorch::runtime::testing::matcher))

#define EXPECT_TENSOR_EQ(t1, t2) ET_TESTING_MATCH(EXPECT, t1, IsEqualTo(t2))
#define ASSERT_TENSOR_EQ(t1, t2) ET_TESTING_MATCH(ASSERT, t1, IsEqualTo(t2))
#define EXPECT_TENSOR_NE(t1, t2) ET_TESTING_NO_MATCH(EXPECT, t1, IsEqualTo(t2))
#define ASSERT_TENSOR_NE(t1, t2) ET_TESTING_NO_MATCH(ASSERT, t1, IsEqualTo(t2))
#define EXPECT_TENSOR_CLOSE(t1, t2) ET_TESTING_MATCH(EXPECT, t1, IsCloseTo(t2))
#define ASSERT_TENSOR_CLOSE(t1, t2) ET_TESTING_MATCH(ASSERT, t1, IsCloseTo(t2))
#define EXPECT_TENSOR_NOT_CLOSE(t1, t2) ET_TESTING_NO_MATCH(EXPECT, t1, IsCloseTo(t2))
#define ASSERT_TENSOR_NOT_CLOSE(t1, t2) ET_TESTING_NO_MATCH(ASSERT, t1, IsCloseTo(t2))
#define EXPECT_TENSOR_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_MATCH(EXPECT, t1, IsCloseTo(t2, rtol, atol))
#define ASSERT_TENSOR_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_MATCH(ASSERT, t1, IsCloseTo(t2, rtol, atol))
#define EXPECT_TENSOR_NOT_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_NO_MATCH(EXPECT, t1, IsCloseTo(t2, rtol, atol))
#define ASSERT_TENSOR_NOT_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_NO_MATCH(ASSERT, t1, IsCloseTo(t2, rtol, atol))
#define EXPECT_TENSOR_DATA_EQ(t1, t2) ET_TESTING_MATCH(EXPECT, t1, IsDataEqualTo(t2))
#define ASSERT_TENSOR_DATA_EQ(t1, t2) ET_TESTING_MATCH(ASSERT, t1, IsDataEqualTo(t2))
#define EXPECT_TENSOR_DATA_NE(t1, t2) ET_TESTING_NO_MATCH(EXPECT, t1, IsDataEqualTo(t2))
#define ASSERT_TENSOR_DATA_NE(t1, t2) ET_TESTING_NO_MATCH(ASSERT, t1, IsDataEqualTo(t2))
#define EXPECT_TENSOR_DATA_CLOSE(t1, t2) ET_TESTING_MATCH(EXPECT, t1, IsDataCloseTo(t2))
#define ASSERT_TENSOR_DATA_CLOSE(t1, t2) ET_TESTING_MATCH(ASSERT, t1, IsDataCloseTo(t2))
#define EXPECT_TENSOR_DATA_NOT_CLOSE(t1, t2) ET_TESTING_NO_MATCH(EXPECT, t1, IsDataCloseTo(t2))
#define ASSERT_TENSOR_DATA_NOT_CLOSE(t1, t2) ET_TESTING_NO_MATCH(ASSERT, t1, IsDataCloseTo(t2))
#define EXPECT_TENSOR_DATA_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_MATCH(EXPECT, t1, IsDataCloseTo(t2, rtol, atol))
#define ASSERT_TENSOR_DATA_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_MATCH(ASSERT, t1, IsDataCloseTo(t2, rtol, atol))
#define EXPECT_TENSOR_DATA_NOT_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_NO_MATCH(EXPECT, t1, IsDataCloseTo(t2, rtol, atol))
#define ASSERT_TENSOR_DATA_NOT_CLOSE_WITH_TOL(t1, t2, rtol, atol) \
  ET_TESTING_NO_MATCH(ASSERT, t1, IsDataCloseTo(t2, rtol, atol))
#define EXPECT_TENSOR_LISTS_EQ(l1, l2) ET_TESTING_MATCH(EXPECT, l1, IsListEqualTo(l2))
#define ASSERT_TENSOR_LISTS_EQ(l1, l2) ET_TESTING_MATCH(ASSERT, l1, IsListEqualTo(l2))
#define EXPECT_TENSOR_LISTS_NE(l1, l2) ET_TESTING_NO_MATCH(EXPECT, l1, IsListEqualTo(l2))
#define ASSERT_TENSOR_LISTS_NE(l1, l2) ET_TESTING_NO_MATCH(ASSERT, l1, IsListEqualTo(l2))
#define EXPECT_TENSOR_LISTS_CLOSE(l1, l2) ET_TESTING_MATCH(EXPECT, l1, IsListCloseTo(l2))
#define ASSERT_TENSOR_LISTS_CLOSE(l1, l2) ET_TESTING_MATCH(ASSERT, l1, IsListCloseTo(l2))
#define EXPECT_TENSOR_LISTS_NOT_CLOSE(l1, l2) ET_TESTING_NO_MATCH(EXPECT, l1, IsListCloseTo(l2))
#define ASSERT_TENSOR_LISTS_NOT_CLOSE(l1, l2) ET_TESTING_NO_MATCH(ASSERT, l1, IsListCloseTo(l2))
#define EXPECT_TENSOR_LISTS_CLOSE_WITH_TOL(l1, l2, rtol, atol) \
  ET_TESTING_MATCH(EXPECT, l1, IsListCloseTo(l2, rtol, atol))
#define ASSERT_TENSOR_LISTS_CLOSE_WITH_TOL(l1, l2, rtol, atol) \
  ET_TESTING_MATCH(ASSERT, l1, IsListCloseTo(l2, rtol, atol))
#define EXPECT_TENSOR_LISTS_NOT_CLOSE_WITH_TOL(l1, l2, rtol, atol) \
  ET_TESTING_NO_MATCH(EXPECT, l1, IsListCloseTo(l2, rtol, atol))
#define ASSERT_TENSOR_LISTS_NOT_CLOSE_WITH_TOL(l1, l2, rtol, atol) \
  ET_TESTING_NO_MATCH(ASSERT, l1, IsListCloseTo(l2, rtol, atol))
