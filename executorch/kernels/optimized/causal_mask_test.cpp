#include <executorch/kernels/optimized/causal_mask.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <cmath>
#include <limits>

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using runtime::testing::LoadedMethod;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

constexpr float kInf = std::numeric_limits<float>::infinity();

/// What is looked for in a method while it is loaded.
struct Search {
  int value;
  bool added;
  bool visible;
  std::optional<int64_t> offset;
  bool fits;
};
Search* search = nullptr;

void look(const runtime::MethodDraft& draft) {
  Graph graph(draft);
  ASSERT_TRUE(graph.ok());
  Arena arena(draft.allocator);
  CausalMasks causal_masks(graph);
  const auto found = search->added ? causal_masks.added(search->value, 0, arena)
                                   : causal_masks.of(search->value, search->visible, 0, arena);
  search->offset.reset();
  if (found.has_value()) {
    search->offset = found->offset(3, 4);
    search->fits = found->offset(3, 4).has_value() && !found->offset(4, 4).has_value() &&
                   !found->offset(3, 3).has_value();
  }
}

/// A method with one value that is looked at; its reader is an operator that is not pure.
class CausalMaskTest : public ::testing::Test {
 protected:
  CausalMaskTest() : plan_(builder_.method()), former_(runtime::set_method_rewriter(look)) {}
  ~CausalMaskTest() override { runtime::set_method_rewriter(former_); }

  int32_t constant(std::vector<float> items, std::vector<int32_t> sizes = {3, 4}) {
    builder_.constants.push_back(ProgramBuilder::bytes(items));
    const auto data = static_cast<uint32_t>(builder_.constants.size() - 1);
    return plan_.tensor({.sizes = std::move(sizes), .data = data});
  }
  int32_t planned(std::vector<int32_t> sizes, ScalarType dtype) {
    used_ += 64;
    return plan_.tensor(
        {.sizes = std::move(sizes), .memory_id = 1, .offset = used_ - 64, .dtype = dtype});
  }
  std::optional<int64_t> added(int32_t value) { return find({value, true, true, {}, false}); }
  std::optional<int64_t> visible(int32_t value) { return find({value, false, true, {}, false}); }
  std::optional<int64_t> hidden(int32_t value) { return find({value, false, false, {}, false}); }

  ProgramBuilder builder_;
  PlanBuilder& plan_;
  const runtime::MethodRewriter former_;

 private:
  // Only once, since it loads the program.
  std::optional<int64_t> find(Search wanted) {
    const int32_t result = planned({3, 4}, ScalarType::Float);
    plan_.kernel("aten::neg.out", {wanted.value, result, result});
    plan_.outputs = {result};
    plan_.arenas = {0, static_cast<int64_t>(used_)};
    search = &wanted;
    const LoadedMethod loaded(builder_.build());
    EXPECT_EQ(loaded.error, runtime::Error::Ok);
    EXPECT_TRUE(!wanted.offset.has_value() || wanted.fits);
    return wanted.offset;
  }

  uint64_t used_ = 0;
};

std::vector<float> mask(int offset, float below, float above) {
  std::vector<float> items;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) items.push_back(j - i <= offset ? below : above);
  }
  return items;
}

TEST_F(CausalMaskTest, ReadsAConstantMask) {
  EXPECT_EQ(added(constant(mask(0, 0, -kInf))), 0);
}

TEST_F(CausalMaskTest, ReadsTheDiagonalOfAConstantMask) {
  EXPECT_EQ(added(constant(mask(1, 0, -1e9f))), 1);
}

TEST_F(CausalMaskTest, ReadsWhatACopyOfItAddsDimensionsTo) {
  const int32_t source = constant(mask(0, 0, -kInf));
  const int32_t unsqueezed = planned({1, 3, 4}, ScalarType::Float);
  plan_.kernel("aten::unsqueeze_copy.out", {source, plan_.integer(0), unsqueezed, unsqueezed});
  EXPECT_EQ(added(unsqueezed), 0);
}

TEST_F(CausalMaskTest, AMaskThatOnlyLowersScoresIsNone) {
  EXPECT_EQ(added(constant(mask(0, 0, -100))), std::nullopt);
}

TEST_F(CausalMaskTest, AMaskWithOneOtherElementIsNone) {
  auto items = mask(0, 0, -kInf);
  items[9] = -kInf;
  EXPECT_EQ(added(constant(items)), std::nullopt);
}

TEST_F(CausalMaskTest, AMaskWithNoNumberIsNone) {
  EXPECT_EQ(added(constant(mask(0, 0, std::nanf("")))), std::nullopt);
}

TEST_F(CausalMaskTest, ARowThatSeesNothingIsNone) {
  EXPECT_EQ(added(constant(mask(-1, 0, -kInf))), std::nullopt);
}

TEST_F(CausalMaskTest, ConditionsAreToldFromTheirOpposites) {
  EXPECT_EQ(visible(constant(mask(0, 1, 0))), 0);
}

TEST_F(CausalMaskTest, OppositesAreToldFromConditions) {
  EXPECT_EQ(hidden(constant(mask(0, 0, 1))), 0);
}

TEST_F(CausalMaskTest, AConditionIsNoOpposite) {
  EXPECT_EQ(hidden(constant(mask(0, 1, 0))), std::nullopt);
}

TEST_F(CausalMaskTest, ComparisonsOfPositionsAreConditions) {
  const int32_t zero = plan_.integer(0), one = plan_.integer(1), rows = plan_.integer(3),
                cols = plan_.integer(4), last = plan_.integer(-1);
  const int32_t i = planned({3}, ScalarType::Long), j = planned({4}, ScalarType::Long),
                column = planned({3, 1}, ScalarType::Long),
                seen = planned({3, 4}, ScalarType::Bool);
  plan_.kernel("aten::arange.start_out", {zero, rows, one, i, i});
  plan_.kernel("aten::arange.start_out", {zero, cols, one, j, j});
  plan_.kernel("aten::unsqueeze_copy.out", {i, last, column, column});
  plan_.kernel("aten::le.Tensor_out", {j, column, seen, seen});
  EXPECT_EQ(visible(seen), 0);
}

TEST_F(CausalMaskTest, TheUpperTriangleOfInfinityIsAMask) {
  const int32_t sizes = plan_.integers({plan_.integer(3), plan_.integer(4)}),
                one = plan_.integer(1);
  const int32_t full = planned({3, 4}, ScalarType::Float),
                upper = planned({3, 4}, ScalarType::Float);
  plan_.kernel("aten::full.out", {sizes, plan_.number(-1.0 / 0.0), full, full});
  plan_.kernel("aten::triu.out", {full, one, upper, upper});
  EXPECT_EQ(added(upper), 0);
}

TEST_F(CausalMaskTest, ADiagonalBeyondAllNumbersIsNone) {
  const int32_t sizes = plan_.integers({plan_.integer(3), plan_.integer(4)}),
                far = plan_.integer(std::numeric_limits<int64_t>::min());
  const int32_t full = planned({3, 4}, ScalarType::Float),
                upper = planned({3, 4}, ScalarType::Float);
  plan_.kernel("aten::full.out", {sizes, plan_.number(-1.0 / 0.0), full, full});
  plan_.kernel("aten::triu.out", {full, far, upper, upper});
  EXPECT_EQ(added(upper), std::nullopt);
}

}  // namespace
}  // namespace executorch::optimized
