// The second source of this test includes every public header as C++17; this one uses them the way
// programs do that open both namespaces.
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/kernel/kernel_includes.h>

// Before anything else is included: what kernels and programs get with these two headers.
namespace {
[[maybe_unused]] int use_what_comes_along() {
  namespace runtime = executorch::runtime;
  EXECUTORCH_SCOPE_PROF("scope");
  int numbers[] = {1, 3, 2};
  for (const auto i : c10::irange(3)) numbers[i] += 1;
  assert(numbers[0] > 0);
  runtime::internal::event_tracer_track_allocation(nullptr, 0, 0);
  return *std::max_element(std::begin(numbers), std::end(numbers)) +
         static_cast<int>(runtime::elementSize(executorch::aten::ScalarType::Float));
}
}  // namespace

#include <gtest/gtest.h>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/version.h>
#include <executorch/runtime/kernel/kernel_includes.h>
#include <torch/headeronly/util/Half.h>
#include <torch/headeronly/util/floating_point_utils.h>

using namespace std;
using namespace torch::executor;

namespace {

static_assert(__cplusplus < 202002L, "this test is about C++17");

optional<int> absent() {
  return nullopt;
}

Tensor& scale_out(const Tensor& in, optional<Tensor>, Tensor& out) {
  out.mutable_data_ptr<float>()[0] = 2 * in.const_data_ptr<float>()[0];
  return out;
}
EXECUTORCH_LIBRARY(headers_test, "scale.out", scale_out);
EXECUTORCH_LIBRARY(headers_test, "scale.alias_out", scale_out);

TEST(Headers, BothNamespacesMayBeOpen) {
  string_view text = "x";
  EXPECT_EQ(text.size(), 1u);
  EXPECT_FALSE(absent().has_value());
}

TEST(Headers, SeveralOperatorsOfOneNamespaceRegisterInOneFile) {
  EXPECT_TRUE(hasOpsFn("headers_test::scale.out"));
  EXPECT_TRUE(hasOpsFn("headers_test::scale.alias_out"));
}

static_assert(ET_VERSION_CODE == 0x10501);
#if ET_VERSION_CODE < ET_VERSION_CHECK(1, 5, 1) || ET_VERSION_CODE >= ET_VERSION_CHECK(1, 5, 2)
#error "version.h"
#endif

TEST(Headers, TypesHaveTheNamesOfNewerTorch) {
  EXPECT_EQ(static_cast<float>(torch::headeronly::Half(1.5f)), 1.5f);
  EXPECT_EQ(torch::headeronly::detail::fp32_to_bits(1.0f), 0x3f800000u);
}

TEST(Headers, VersionTextIsMadeOfItsNumbers) {
  EXPECT_EQ(string(ET_VERSION), to_string(ET_VERSION_MAJOR) + "." + to_string(ET_VERSION_MINOR) +
                                    "." + to_string(ET_VERSION_PATCH));
}

}  // namespace
