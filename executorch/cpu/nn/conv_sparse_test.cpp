#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/cpu/nn/conv_testing.h>
#include <executorch/cpu/testing.h>

#include <utility>

// Convolutions of small operands, whatever is asked of them: any stride, padding, dilation and
// extent that a file can say.
namespace executorch::cpu {
namespace {

using namespace conv_testing;

// Memory in proportion to small operands, with what is little anyhow.
constexpr size_t kScratch = 48 << 20;

// What operators let through.
bool is_moderate(const ConvAxis& a) {
  return a.stride >= 1 && a.stride <= kTwo31 && a.dilation >= 1 && a.dilation <= kTwo31 &&
         a.padding >= -kTwo31 && a.padding <= kTwo31;
}

template <class T>
void check(const Case& z) {
  Problem<T> problem(z);
  HeapScratch scratch(kScratch);
  if (problem.c.run(scratch)) return problem.compare();
  EXPECT_FALSE(std::all_of(z.axis, z.axis + 3, is_moderate));
}

// All pairs of extremes of two of an axis' numbers.
template <class T>
void check_pairs(Case z, int64_t ConvAxis::*first, int64_t ConvAxis::*second) {
  for (const int64_t a : kExtremes) {
    for (const int64_t b : kExtremes) {
      z.axis[2].*first = a;
      z.axis[2].*second = b;
      SCOPED_TRACE(testing::Message() << "stride " << z.axis[2].stride << " padding "
                                      << z.axis[2].padding << " dilation " << z.axis[2].dilation);
      check<T>(z);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

template <class T>
void check_pairs(Case z) {
  const UsePool alone(nullptr);
  for (const bool transposed : {false, true}) {
    for (const Layout layout : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      for (const auto& [in, out] : {std::pair{0, 2}, {1, 1}, {1, 4}, {5, 1}, {5, 4}}) {
        for (const int64_t kernel : {1, 3}) {
          z.transposed = transposed;
          z.in = z.out = layout;
          z.axis[1] = axis(3, 2, 1, 1), z.axis[1].out = transposed ? 2 : 4;
          z.axis[2] = axis(in, kernel), z.axis[2].out = out;
          z.given_out = true;
          check_pairs<T>(z, &ConvAxis::stride, &ConvAxis::padding);
          check_pairs<T>(z, &ConvAxis::stride, &ConvAxis::dilation);
          check_pairs<T>(z, &ConvAxis::padding, &ConvAxis::dilation);
        }
      }
    }
  }
}

template <class T>
class SparseConv : public testing::Test {};
using Types = testing::Types<float, F16, int32_t>;
TYPED_TEST_SUITE(SparseConv, Types);

TYPED_TEST(SparseConv, TakesAnyStridePaddingAndDilation) {
  check_pairs<TypeParam>({.group_in = 2, .group_out = 4});
}
TYPED_TEST(SparseConv, TakesAnyStridePaddingAndDilationOfOneChannelPerGroup) {
  check_pairs<TypeParam>({.groups = 3, .group_in = 1, .group_out = 1});
}

TYPED_TEST(SparseConv, SumsNothingWithoutChannelsOrPixels) {
  const UsePool alone(nullptr);
  for (const int64_t kernel : kExtremes) {
    if (kernel < 0) continue;
    for (const bool transposed : {false, true}) {
      Case z = {.group_in = 0, .axis = {axis(1, 1), axis(4, 1), axis(4, kernel)}};
      z.transposed = transposed;
      z.given_out = true;
      z.axis[0].out = 1, z.axis[1].out = z.axis[2].out = 3;
      Problem<TypeParam> problem(z);
      HeapScratch scratch(kScratch);
      const bool done = problem.c.run(scratch);
      EXPECT_TRUE(done || kernel > kTwo31);
      for (int64_t i = 0; done && i < problem.c.out_batch; ++i) {
        ASSERT_EQ(value(problem.out[static_cast<size_t>(i)]),
                  value(problem.bias[static_cast<size_t>(i / 9)]));
      }
    }
  }
  for (const int64_t width : {0, 1}) {  // of a network whose last dim is dynamic
    check<TypeParam>({.batch = 2, .axis = {axis(1, 1), axis(3, 3, 1, 1), axis(width, 3, 1, 2)}});
    check<TypeParam>({.groups = 4,
                      .group_in = 1,
                      .group_out = 1,
                      .axis = {axis(1, 1), axis(3, 3, 1, 1), axis(width, 3, 1, 2)}});
  }
}

TEST(SparseConv_, WritesNothingIntoAnEmptyResult) {
  for (int64_t Conv<float>::*size :
       {&Conv<float>::batch, &Conv<float>::groups, &Conv<float>::group_out}) {
    Conv<float> c;
    for (ConvAxis& a : c.axis) a = {.in = kTwo31, .kernel = kTwo31, .out = kTwo31};
    c.*size = 0;
    HeapScratch scratch(0);
    EXPECT_TRUE(c.run(scratch));
    c.*size = -1;
    EXPECT_FALSE(c.run(scratch));
  }
  Conv<float> c;
  c.axis[1].out = 0;
  HeapScratch scratch(0);
  EXPECT_TRUE(c.run(scratch));
  c.axis[1].out = -1;
  EXPECT_FALSE(c.run(scratch));
}

// input [1, 1, 2, 2], stride 2^31 - 1: the four pixels of the result lie four thousand million
// apart.
TEST(SparseConv_, SpreadsFewPixelsFarApart) {
  for (const int64_t stride : {int64_t{65535}, kTwo31 - 1}) {
    const ConvAxis a = axis(2, 1, stride, stride / 2);
    check<float>({.group_in = 1, .group_out = 1, .axis = {axis(1, 1), a, a}, .transposed = true});
    check<F16>({.group_in = 1, .group_out = 1, .axis = {axis(1, 1), a, a}, .transposed = true});
  }
}

// Each of many small images would be copied with a padding that is little beside what fits memory.
TEST(SparseConv_, CountsThePaddingOfAllImages) {
  ConvAxis axes[2];
  axes[0].in = axes[1].in = axes[0].out = axes[1].out = 2;
  axes[0].kernel = 3;
  axes[0].stride = axes[0].dilation = 15858;
  axes[0].padding = 39646;
  axes[1].kernel = axes[1].stride = 2;
  axes[1].padding = 8;
  EXPECT_FALSE(is_sparse({axes, 2, true, 1, 1, 1, 1}));
  EXPECT_TRUE(is_sparse({axes, 2, true, 24186, 1, 1, 1}));
  EXPECT_TRUE(is_sparse({axes, 2, true, 1, 24186, 1, 1}));
  axes[0].stride = axes[0].dilation = 2;
  EXPECT_FALSE(is_sparse({axes, 2, true, 24186, 1, 1, 1}));
}

TEST(SparseConv_, CountsTheLinesThatOutputsFarFromTheImageRead) {
  ConvAxis axes[2];
  axes[0].kernel = 4, axes[0].in = 2, axes[0].stride = 2, axes[0].padding = 5468;
  axes[1].kernel = 3, axes[1].in = 2, axes[1].stride = 2, axes[1].padding = 65535;
  axes[1].dilation = 65535, axes[1].out = 3;
  axes[0].out = 10;
  EXPECT_FALSE(is_sparse({axes, 2, true, 1, 1, 1, 1}));
  axes[0].out = 43690;
  EXPECT_TRUE(is_sparse({axes, 2, true, 1, 1, 3, 1}));
}

TEST(SparseConv_, LeavesOutTapsThatMeetNothing) {
  for (const int64_t dilation : {int64_t{1} << 24, kTwo31 - 1}) {
    for (const Case& channels : {Case{.group_in = 3, .group_out = 8},
                                 {.group_in = 16, .group_out = 16},
                                 {.groups = 6, .group_in = 1, .group_out = 1}}) {
      Case z = channels;
      z.axis[1] = axis(6, 3, 1, dilation, dilation);
      z.axis[2] = axis(20, 3, 1, dilation, dilation);
      check<float>(z);
      check<BF16>(z);
    }
  }
}

// Every output meets the one pixel with another tap: a million products, though a million taps
// times a million outputs.
TEST(SparseConv_, VisitsOnlyWhatIsThere) {
  constexpr int64_t kTaps = 1 << 20;
  for (const bool transposed : {false, true}) {
    for (const int64_t groups : {1, 2}) {
      Case z = {.batch = 3, .groups = groups, .group_in = 1, .group_out = 1};
      z.axis[2] = axis(1, kTaps, 1, transposed ? 0 : kTaps - 1);
      z.transposed = transposed;
      Problem<float> problem(z);
      const Conv<float>& c = problem.c;
      ASSERT_EQ(c.pixels(), kTaps);
      HeapScratch scratch;
      ASSERT_TRUE(c.run(scratch));
      for (int64_t i = 0; i < c.batch * groups * kTaps; ++i) {
        const int64_t g = i / kTaps % groups, o = i % kTaps, k = transposed ? o : kTaps - 1 - o;
        ASSERT_EQ(c.out[i], problem.bias[static_cast<size_t>(g)] +
                                c.input[i / kTaps] * c.weight[g * kTaps + k]);
      }
    }
  }
}

// A stride as large as the kernel: each output has one term, of a tap of its own.
TEST(SparseConv_, ComputesAMillionOutputsOfOneTap) {
  Case z = {.group_in = 1, .group_out = 1, .transposed = true, .bias = false};
  z.axis[1] = z.axis[2] = axis(1, 1000, 1000);
  Problem<float> problem(z);
  HeapScratch scratch;
  ASSERT_TRUE(problem.c.run(scratch));
  for (size_t i = 0; i < problem.out.size(); ++i) {
    ASSERT_EQ(problem.out[i], problem.input[0] * problem.weight[i]);
  }
}

TEST(SparseConv_, GivesTheSameBitsOnAnyNumberOfThreads) {
  Case z = {.batch = 2, .groups = 2, .group_in = 3, .group_out = 4};
  z.axis[1] = axis(3, 3, 1, 1 << 14, 1 << 14), z.axis[2] = axis(7, 3, 2, 2000, 1000);
  z.residual = true;
  z.act = relu();
  Problem<float> problem(z);
  std::vector<float> first;
  for (const size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    HeapScratch scratch;
    ASSERT_TRUE(problem.c.run(scratch));
    if (first.empty()) problem.compare(), first = problem.out;
    EXPECT_EQ(first, problem.out) << threads << " threads";
  }
}

// One of each algorithm.
const Case kAlgorithms[] = {
    {.group_in = 33, .group_out = 20, .axis = {axis(1, 1), axis(7, 1), axis(9, 1)}},
    {.group_in = 16, .group_out = 20, .axis = {axis(1, 1), axis(28, 3, 1, 1), axis(28, 3, 1, 1)}},
    {.group_out = 19, .axis = {axis(1, 1), axis(19, 7, 2, 3), axis(126, 5, 2, 3)}},
    {.group_in = 1700, .group_out = 13, .axis = {axis(1, 1), axis(7, 1), axis(7, 1)}},
    {.group_in = 40, .group_out = 13, .axis = {axis(1, 1), axis(13, 3, 2, 1), axis(13, 3, 2, 1)}},
    {.groups = 5,
     .group_in = 1,
     .group_out = 1,
     .axis = {axis(1, 1), axis(12, 9, 1, 4), axis(12, 9, 2, 4)}},
    {.groups = 40,
     .group_in = 1,
     .group_out = 1,
     .axis = {axis(1, 1), axis(9, 3, 1, 1), axis(9, 3, 1, 1)},
     .in = Layout::ChannelsLast,
     .out = Layout::ChannelsLast},
    {.axis = {axis(1, 1), axis(9, 3, 1, 1), axis(9, 3, 1, 1)},
     .in = Layout::ChannelsLast,
     .out = Layout::ChannelsLast},
    {.axis = {axis(1, 1), axis(5, 4, 2, 1), axis(6, 4, 2, 1)}, .transposed = true},
    {.axis = {axis(1, 1), axis(5, 3, 4, 1), axis(6, 3, 4, 1)}, .transposed = true},
    {.batch = 40, .groups = 2, .axis = {axis(1, 1), axis(5, 3), axis(6, 3)}},
    {.axis = {axis(3, 2, 1, 1), axis(4, 3, 2, 1), axis(5, 3)}},
    {.axis = {axis(1, 1), axis(3, 3, 1, 1), axis(20, 3, 1, 1 << 20, 1 << 20)}},
};

template <class T>
void check_refusals() {
  for (const Case& z : kAlgorithms) {
    for (const size_t threads : {1, 3}) {
      ThreadPool pool(threads);
      const UsePool use(&pool);
      bool refused = false, done = false;
      for (size_t limit = 0; !done; limit = limit * 5 / 4 + 64) {
        Problem<T> problem(z);
        HeapScratch scratch(limit);
        done = problem.c.run(scratch);
        if (done) problem.compare();
        refused |= !done;
        ASSERT_LT(limit, size_t{1} << 24);
      }
      EXPECT_TRUE(refused);
    }
  }
}

TEST(Conv, SaysThatMemoryWasRefused) {
  check_refusals<float>();
  check_refusals<BF16>();
}

}  // namespace
}  // namespace executorch::cpu
