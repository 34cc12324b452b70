#include <executorch/cpu/nn/conv_chain.h>
#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <vector>

// Chains against their steps, one after the other. Operands are small multiples of 1/8 and what
// lies between is at most 6, so that every sum is exact in float, in any order.
namespace executorch::cpu {
namespace {

std::vector<float> eighths(int64_t n, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) {
    seed = seed * 1664525 + 1013904223;
    v = static_cast<float>(static_cast<int>(seed >> 24) % 5 - 2) / 8;
  }
  return x;
}

struct Layer {
  int64_t out, groups, kernel, stride, dilation = 1;
};

struct Problem {
  ConvChain chain;
  std::vector<std::vector<float>> images, weights, biases;
  std::vector<float> residual;

  Problem(int64_t batch, int64_t channels, int64_t height, int64_t width,
          const std::vector<Layer>& layers) {
    images.push_back(eighths(batch * channels * height * width, 1));
    for (const Layer& l : layers) {
      Conv<float>& c = chain.steps[chain.n++];
      c.batch = batch, c.groups = l.groups;
      c.group_in = channels / l.groups, c.group_out = l.out / l.groups;
      for (ConvAxis* a : {&c.axis[1], &c.axis[2]}) {
        a->in = a == &c.axis[1] ? height : width;
        a->kernel = l.kernel, a->stride = l.stride, a->dilation = l.dilation;
        a->padding = l.dilation * (l.kernel / 2);
        a->out = (a->in + 2 * a->padding - l.dilation * (l.kernel - 1) - 1) / l.stride + 1;
      }
      c.axis[2].in_stride = c.axis[2].out_stride = c.axis[2].weight_stride = 1;
      c.axis[1].in_stride = width, c.axis[1].out_stride = c.axis[2].out;
      c.axis[1].weight_stride = l.kernel;
      c.in_channel = height * width, c.in_batch = channels * height * width;
      height = c.axis[1].out, width = c.axis[2].out, channels = l.out;
      c.out_channel = height * width, c.out_batch = channels * height * width;
      c.weight_in = c.taps(), c.weight_out = c.group_in * c.taps();
      c.weight_group = c.group_out * c.weight_out;
      weights.push_back(eighths(l.groups * c.weight_group, 2 + static_cast<uint32_t>(chain.n)));
      biases.push_back(eighths(l.out, 7));
      images.emplace_back(static_cast<size_t>(batch * c.out_batch));
      c.act = {Activation::Kind::Clamp, 0, 6};
    }
    for (int i = 0; i < chain.n; ++i) {
      Conv<float>& c = chain.steps[i];
      const auto at = static_cast<size_t>(i);
      c.weight = weights[at].data(), c.bias = biases[at].data();
      c.input = images[at].data(), c.out = images[at + 1].data();
    }
    Conv<float>& last = chain.steps[chain.n - 1];
    residual = eighths(batch * last.out_batch, 9);
    last.residual = residual.data();
    last.act = {};
  }

  std::vector<float> one_after_the_other() {
    HeapScratch scratch;
    for (int i = 0; i < chain.n; ++i) EXPECT_TRUE(chain.steps[i].run(scratch));
    return std::exchange(images.back(), std::vector<float>(images.back().size()));
  }
};

const std::vector<Layer> kWidenAndNarrow = {{96, 1, 1, 1}, {96, 96, 3, 1}, {8, 1, 1, 1}};

void check(Problem problem) {
  const std::vector<float> expected = problem.one_after_the_other();
  for (const size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    Conv<float>& last = problem.chain.steps[problem.chain.n - 1];
    problem.images.back().assign(expected.size(), -1);
    last.out = problem.images.back().data();
    HeapScratch scratch;
    ASSERT_TRUE(problem.chain.run(scratch));
    ASSERT_EQ(problem.images.back(), expected) << threads << " threads";
  }
}

ET_ON_EACH_TARGET(ConvChain_);

TEST_P(ConvChain_, ComputesWhatItsStepsDo) {
  check({1, 8, 57, 56, kWidenAndNarrow});
  check({2, 4, 112, 60, {{40, 1, 1, 1}, {40, 40, 3, 2}, {12, 1, 1, 1}}});
  check({1, 32, 70, 70, {{32, 32, 3, 1}, {16, 1, 1, 1}}});
  check({1, 3, 101, 90, {{32, 1, 3, 2}, {32, 32, 5, 2}, {16, 1, 1, 1}}});
  check({1, 6, 64, 64, {{24, 1, 1, 1}, {24, 24, 3, 1, 3}, {6, 1, 1, 1}}});
}

TEST_P(ConvChain_, ComputesPlanesOfFewRows) {
  check({1, 4, 1, 40, kWidenAndNarrow});
  check({1, 4, 5, 9, kWidenAndNarrow});
}

TEST_P(ConvChain_, PaysWhereWhatLiesBetweenIsLarge) {
  EXPECT_TRUE(Problem(1, 8, 56, 56, kWidenAndNarrow).chain.pays());
  EXPECT_FALSE(Problem(1, 8, 14, 14, kWidenAndNarrow).chain.pays());
}

TEST(ConvChain, SaysThatMemoryWasRefused) {
  for (const size_t threads : {1, 3}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    Problem problem(1, 8, 57, 56, kWidenAndNarrow);
    const std::vector<float> expected = problem.one_after_the_other();
    problem.chain.steps[problem.chain.n - 1].out = problem.images.back().data();
    bool refused = false, done = false;
    for (size_t limit = 0; !done; limit = limit * 5 / 4 + 64) {
      HeapScratch scratch(limit);
      done = problem.chain.run(scratch);
      refused |= !done;
      ASSERT_LT(limit, size_t{1} << 26);
    }
    EXPECT_TRUE(refused);
    EXPECT_EQ(problem.images.back(), expected);
  }
}

// Bands of one row each; dilations and paddings without proportion.
TEST(ConvChain, TakesAnyHeightPaddingAndDilation) {
  Problem tall(1, 4, 1 << 20, 1, {{4, 1, 1, 1}, {4, 1, 1, 1}});
  for (int64_t height : {int64_t{1} << 28, (int64_t{1} << 31) - 1}) {
    for (int i = 0; i < 2; ++i)
      tall.chain.steps[i].axis[1].in = tall.chain.steps[i].axis[1].out = height;
    EXPECT_FALSE(tall.chain.pays());
  }
  check({1, 4, 5, 9, {{24, 1, 1, 1}, {24, 24, 3, 1, 1 << 24}, {6, 1, 1, 1}}});
  check({1, 4, 5, 9, {{24, 1, 3, 1, 1 << 30}, {24, 24, 3, 2}, {6, 1, 3, 1, 1 << 15}}});
}

}  // namespace
}  // namespace executorch::cpu
