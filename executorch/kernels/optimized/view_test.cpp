#include <executorch/kernels/optimized/view.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace executorch::optimized {
namespace {

using Sizes = std::vector<int64_t>;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kTiny = std::numeric_limits<int64_t>::min();

/// What a view must be: the sizes, and every element's place in row-major order.
struct Plain {
  Sizes sizes;
  std::vector<int64_t> at;

  explicit Plain(Sizes s) : sizes(std::move(s)), at(static_cast<size_t>(numel(sizes))) {
    std::iota(at.begin(), at.end(), 0);
  }
  static int64_t numel(const Sizes& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  /// A new array whose element `index` is this one's element `source(index)`.
  template <class F>
  void gather(const Sizes& to, F&& source) {
    Plain out(to);
    for (size_t e = 0; e < out.at.size(); ++e) {
      const Sizes from = source(indices(to, static_cast<int64_t>(e)));
      int64_t flat = 0;
      for (size_t d = 0; d < sizes.size(); ++d) flat = flat * sizes[d] + from[d];
      out.at[e] = at[static_cast<size_t>(flat)];
    }
    *this = out;
  }
  static Sizes indices(const Sizes& sizes, int64_t flat) {
    Sizes index(sizes.size());
    for (size_t d = sizes.size(); d-- > 0; flat /= sizes[d]) index[d] = flat % sizes[d];
    return index;
  }
};

/// The elements that a view names, in row-major order.
std::vector<int64_t> places(const View& view) {
  Sizes sizes;
  for (int d = 0; d < view.ndim(); ++d) sizes.push_back(view.size(d));
  std::vector<int64_t> result(static_cast<size_t>(Plain::numel(sizes)));
  for (size_t e = 0; e < result.size(); ++e) {
    const Sizes index = Plain::indices(sizes, static_cast<int64_t>(e));
    int64_t at = view.offset();
    for (int d = 0; d < view.ndim(); ++d) {
      int64_t rest = index[static_cast<size_t>(d)];
      for (int i = view.n_factors(d); i-- > 0; rest /= view.factor(d, i).size) {
        at += rest % view.factor(d, i).size * view.factor(d, i).stride;
      }
    }
    result[e] = at;
  }
  return result;
}

void expect_equal(const View& view, const Plain& plain) {
  ASSERT_TRUE(view.valid());
  ASSERT_EQ(view.ndim(), static_cast<int>(plain.sizes.size()));
  for (int d = 0; d < view.ndim(); ++d) {
    ASSERT_EQ(view.size(d), plain.sizes[static_cast<size_t>(d)]) << "dim " << d;
  }
  EXPECT_EQ(places(view), plain.at);
}

View contiguous(const Sizes& sizes) {
  return View(sizes.data(), static_cast<int>(sizes.size()));
}
bool reshape(View& view, const Sizes& sizes) {
  return view.reshape(sizes.data(), static_cast<int>(sizes.size()));
}
bool expand(View& view, const Sizes& sizes) {
  return view.expand(sizes.data(), static_cast<int>(sizes.size()));
}

/// A chain of random steps, applied to a view and to the plain array beside it.
class RandomChain {
 public:
  explicit RandomChain(std::mt19937& random) : random_(random) {
    Sizes sizes(static_cast<size_t>(1 + below(4)));
    for (int64_t& size : sizes) size = 1 + below(4);
    view_ = contiguous(sizes);
    plain_ = Plain(sizes);
  }

  /// Takes a step, unless it does not apply, and compares. Counts in `reshaped`.
  void step(size_t& reshaped) {
    const size_t n = plain_.sizes.size();
    const int64_t dim = n == 0 ? 0 : below(n);
    const int64_t kind = below(6);
    if (kind == 1) {
      unsqueeze(dim);
    } else if (kind == 4) {
      expand_ones();
    } else if (kind == 5) {
      reshaped += join_and_split() ? 1 : 0;
    } else if (n > 0) {
      kind == 0 ? transpose(dim) : kind == 2 ? squeeze(dim) : slice(dim);
    }
    expect_equal(view_, plain_);
  }

 private:
  int64_t below(size_t n) { return static_cast<int64_t>(random_() % n); }
  int64_t& size(int64_t dim) { return plain_.sizes[static_cast<size_t>(dim)]; }

  void transpose(int64_t dim) {
    const size_t n = plain_.sizes.size(), d = static_cast<size_t>(dim);
    const int64_t other = below(n);
    Sizes to = plain_.sizes;
    std::swap(to[d], to[static_cast<size_t>(other)]);
    ASSERT_TRUE(view_.transpose(dim, other - static_cast<int64_t>(n)));
    plain_.gather(to, [&](Sizes i) {
      std::swap(i[d], i[static_cast<size_t>(other)]);
      return i;
    });
  }

  void unsqueeze(int64_t dim) {
    if (plain_.sizes.size() >= View::kMaxDims) return;
    ASSERT_TRUE(view_.unsqueeze(dim));
    plain_.sizes.insert(plain_.sizes.begin() + dim, 1);
  }

  void squeeze(int64_t dim) {
    ASSERT_TRUE(view_.squeeze(dim));
    if (size(dim) == 1) plain_.sizes.erase(plain_.sizes.begin() + dim);
  }

  void slice(int64_t dim) {
    const int64_t extent = size(dim), start = below(static_cast<size_t>(extent)),
                  end = start + 1 + below(static_cast<size_t>(extent - start)), by = 1 + below(3),
                  count = (end - start + by - 1) / by;
    int64_t stride = 0;
    if (count != extent && !view_.stride(static_cast<int>(dim), stride)) {
      View copy = view_;
      EXPECT_FALSE(copy.slice(dim, start, end, by));
      return;
    }
    ASSERT_TRUE(view_.slice(dim, start - extent, end, by));
    Sizes to = plain_.sizes;
    to[static_cast<size_t>(dim)] = count;
    plain_.gather(to, [&](Sizes i) {
      i[static_cast<size_t>(dim)] = start + i[static_cast<size_t>(dim)] * by;
      return i;
    });
  }

  void expand_ones() {
    Sizes to = plain_.sizes;
    for (int64_t& size : to) size = size == 1 ? 1 + below(3) : size;
    if (Plain::numel(to) > 4000) return;
    ASSERT_TRUE(expand(view_, to));
    const Sizes from = plain_.sizes;
    plain_.gather(to, [&](Sizes i) {
      for (size_t k = 0; k < i.size(); ++k) i[k] = from[k] == 1 ? 0 : i[k];
      return i;
    });
  }

  /// Returns false if that takes a copy of the elements.
  bool join_and_split() {
    const int64_t numel = Plain::numel(plain_.sizes), inner = 1 + below(6);
    View copy = view_;
    if (numel % inner != 0 || !reshape(copy, {-1, inner})) return false;
    view_ = copy;
    plain_.sizes = {numel / inner, inner};
    return true;
  }

  std::mt19937& random_;
  View view_ = contiguous({1});
  Plain plain_{{1}};
};

TEST(View, RandomChainsNameTheElementsThatTheOperatorsWouldCopy) {
  std::mt19937 random(1);
  size_t reshaped = 0;
  for (int round = 0; round < 3000; ++round) {
    RandomChain chain(random);
    for (int step = 0; step < 6; ++step) {
      chain.step(reshaped);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(reshaped, 500u);
}

TEST(View, ReshapesWithOneInferredSize) {
  View view = contiguous({2, 3, 4});
  ASSERT_TRUE(reshape(view, {6, -1}));
  EXPECT_EQ(view.size(1), 4);
  EXPECT_FALSE(reshape(view, {-1, -1}));
  EXPECT_FALSE(reshape(view, {5, -1}));
  EXPECT_FALSE(reshape(view, {24, 0}));
  EXPECT_FALSE(reshape(view, {25}));
}

TEST(View, MergesDimensionsThatDoNotLieInOrder) {
  View view = contiguous({4, 5});
  ASSERT_TRUE(view.transpose(0, 1));
  ASSERT_TRUE(reshape(view, {20}));
  ASSERT_EQ(view.n_factors(0), 2);
  ASSERT_TRUE(reshape(view, {5, 4}));
  int64_t stride = 0;
  ASSERT_TRUE(view.stride(0, stride));
  EXPECT_EQ(stride, 1);
  EXPECT_FALSE(reshape(view, {4, 5}));
}

TEST(View, AZeroSizedTensorHasNone) {
  runtime::testing::TensorFactory<aten::ScalarType::Float> floats;
  EXPECT_FALSE(View(floats.zeros({2, 0})).valid());
  EXPECT_TRUE(View(floats.zeros({2, 1})).valid());
  EXPECT_TRUE(View(floats.zeros({})).valid());
  EXPECT_FALSE(View(floats.zeros({1, 1, 1, 1, 1, 1, 1, 1, 1})).valid());
}

// The numbers are those of a program, which may be anything.
TEST(View, NumbersThatOverflowAreRefused) {
  const int64_t half = int64_t{1} << 32;
  for (const int64_t huge : {half, kHuge, int64_t{1} << 62}) {
    View view = contiguous({2, 3});
    EXPECT_FALSE(reshape(view, {huge, huge}));
    EXPECT_FALSE(reshape(view, {huge, huge, -1}));
    EXPECT_FALSE(expand(view, {huge, huge, 2, 3}));
    EXPECT_FALSE(contiguous({huge, huge}).valid());
  }
  EXPECT_FALSE(contiguous({-2, -3}).valid());
  for (const int64_t far : {kHuge, kTiny, int64_t{7}, int64_t{-7}}) {
    View view = contiguous({2, 3});
    EXPECT_FALSE(view.transpose(0, far));
    EXPECT_FALSE(view.unsqueeze(far));
    EXPECT_FALSE(view.squeeze(far));
    EXPECT_FALSE(view.select(0, far));
    EXPECT_FALSE(view.select(far, 0));
    const int64_t dims[] = {0, far};
    EXPECT_FALSE(view.permute(dims, 2));
  }
  View view = contiguous({2, 3});
  EXPECT_FALSE(view.slice(1, 0, 3, 0));
  EXPECT_FALSE(view.slice(1, 0, 3, kTiny));
  EXPECT_FALSE(view.slice(1, 3, 3, 1));
  ASSERT_TRUE(view.slice(1, kTiny, kHuge, kHuge));
  EXPECT_EQ(view.size(1), 1);
}

/// A step over arguments that live beside it.
struct Call {
  Call(Step::Kind kind, std::vector<EValue> values, uint32_t part = 0)
      : values_(std::move(values)) {
    for (EValue& value : values_) pointers_.push_back(&value);
    step = {kind, part, {pointers_.data(), pointers_.size()}};
  }
  Step step;

 private:
  std::vector<EValue> values_;
  std::vector<EValue*> pointers_;
};

TEST(View, PartsOfASplitFollowOneAnother) {
  for (uint32_t part = 0; part < 3; ++part) {
    View view = contiguous({7, 2});
    const Call split(Step::Kind::Split, {EValue(), EValue(int64_t{3}), EValue(int64_t{0})}, part);
    ASSERT_TRUE(split.step.apply(view));
    EXPECT_EQ(view.size(0), part == 2 ? 1 : 3);
    EXPECT_EQ(view.offset(), 6 * part);
  }
  for (const int64_t length : {int64_t{0}, int64_t{-1}, kTiny}) {
    View view = contiguous({7, 2});
    const Call split(Step::Kind::Split, {EValue(), EValue(length), EValue(int64_t{0})});
    EXPECT_FALSE(split.step.apply(view));
  }
  for (const int64_t length : {int64_t{3}, kHuge}) {
    View view = contiguous({7, 2});
    const Call split(Step::Kind::Split, {EValue(), EValue(length), EValue(int64_t{0})}, 3);
    EXPECT_FALSE(split.step.apply(view));
  }
}

TEST(View, StepsThatMoveAllElementsCanBeUndone) {
  View before = contiguous({2, 3, 4}), after = before;
  const Call transpose(Step::Kind::Transpose, {EValue(), EValue(int64_t{0}), EValue(int64_t{-1})});
  ASSERT_TRUE(transpose.step.moves_all());
  ASSERT_TRUE(transpose.step.apply(after));
  View target = contiguous({4, 3, 2});
  ASSERT_TRUE(after.same_sizes(target));
  ASSERT_TRUE(transpose.step.undo(target, before));
  EXPECT_TRUE(target.same_sizes(before));
  int64_t stride = 0;
  ASSERT_TRUE(target.stride(0, stride));
  EXPECT_EQ(stride, 1);
}

}  // namespace
}  // namespace executorch::optimized
