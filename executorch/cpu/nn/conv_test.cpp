#include <executorch/cpu/nn/conv_testing.h>
#include <executorch/cpu/testing.h>

#include <string>
#include <utility>

namespace executorch::cpu {
namespace {

using namespace conv_testing;

template <class T>
void check(Case z) {
  for (const Layout in : {Layout::ChannelsFirst, Layout::ChannelsLast, Layout::WidthOutermost}) {
    for (const Layout weight : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      for (const Layout out : {in, Layout::ChannelsFirst}) {
        z.in = in, z.weight = weight, z.out = out;
        SCOPED_TRACE("layouts " + std::to_string(static_cast<int>(in)) +
                     std::to_string(static_cast<int>(weight)) +
                     std::to_string(static_cast<int>(out)));
        Problem<T>(z).check();
      }
    }
  }
}

template <class T>
class ConvOf : public testing::Test {};
using Types = TypesOf<void ET_OPERANDS(ET_TYPE)>;
TYPED_TEST_SUITE(ConvOf, Types);

TYPED_TEST(ConvOf, AgreesInOneTwoAndThreeDimensions) {
  for_each_target([] {
    check<TypeParam>({.axis = {axis(1, 1), axis(1, 1), axis(40, 3, 1, 1)}});
    check<TypeParam>({.axis = {axis(1, 1), axis(9, 3, 1, 1), axis(11, 3, 1, 1)}});
    check<TypeParam>({.batch = 2, .axis = {axis(4, 2), axis(5, 3, 1, 1), axis(6, 2)}});
  });
}

TYPED_TEST(ConvOf, AgreesForStridesPaddingAndDilation) {
  for_each_target([] {
    for (const int64_t stride : {1, 2, 3}) {
      check<TypeParam>({.axis = {axis(1, 1), axis(17, 3, stride, 1), axis(45, 5, stride, 3)}});
      check<TypeParam>({.axis = {axis(1, 1), axis(17, 3, 2, 2, 2), axis(19, 3, stride, 0, 3)}});
      check<TypeParam>({.axis = {axis(1, 1), axis(7, 1, stride), axis(37, 1, stride)}});
    }
  });
}

TYPED_TEST(ConvOf, AgreesForPointwiseAndGroups) {
  check<TypeParam>(
      {.batch = 2, .group_in = 33, .group_out = 20, .axis = {axis(1, 1), axis(7, 1), axis(9, 1)}});
  check<TypeParam>({.groups = 3,
                    .group_in = 4,
                    .group_out = 6,
                    .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(9, 3)}});
  check<TypeParam>({.groups = 12,
                    .group_in = 1,
                    .group_out = 2,
                    .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(9, 3)}});
}

TYPED_TEST(ConvOf, AgreesForOneChannelPerGroup) {
  for_each_target([] {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        check<TypeParam>({.batch = 2,
                          .groups = 21,
                          .group_in = 1,
                          .group_out = 1,
                          .axis = {axis(1, 1), axis(9, 3, stride, 1, dilation),
                                   axis(40, 3, stride, 2, dilation)}});
      }
    }
    check<TypeParam>({.groups = 5,
                      .group_in = 1,
                      .group_out = 1,
                      .axis = {axis(3, 2, 1, 1), axis(12, 9, 1, 4), axis(12, 9, 2, 4)}});
  });
}

TEST(Conv, AgreesWhereTilesAreTransformed) {
  for_each_target([] {
    for (const auto& [in, out] : {std::pair{16, 20}, {33, 40}}) {
      for (const auto& [height, width] : {std::pair{14, 14}, {9, 31}, {28, 27}}) {
        for (const int64_t padding : {0, 1, 2}) {
          for (const Layout weight : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
            Case z = {.group_in = in,
                      .group_out = out,
                      .axis = {axis(1, 1), axis(height, 3, 1, padding), axis(width, 3, 1, padding)},
                      .weight = weight};
            Problem<float>(z).check();
            z.residual = true;
            z.act = relu();
            Problem<float>(z).check();
          }
        }
      }
    }
  });
}

TEST(Conv, AgreesForDeepSums) {
  for_each_target([] {
    for (const bool residual : {false, true}) {
      Case z = {.group_in = 1700, .group_out = 13, .axis = {axis(1, 1), axis(7, 1), axis(7, 1)}};
      z.residual = residual;
      Problem<float>(z).check();
      z.group_in = 190;
      z.axis[1] = z.axis[2] = axis(13, 3, 2, 1);
      Problem<float>(z).check();
    }
  });
}

TEST(Conv, AgreesForRowsThatFillVectors) {
  for_each_target([] {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t padding : {0, 2, 3}) {
        Problem<float>({.group_in = 3,
                        .group_out = 19,
                        .axis = {axis(1, 1), axis(19, 7, stride, padding),
                                 axis(62 * stride + 2, 5, stride, padding)},
                        .act = relu()})
            .check();
      }
    }
  });
}

TYPED_TEST(ConvOf, AgreesTransposed) {
  for (const int64_t stride : {1, 2}) {
    check<TypeParam>({.groups = 2,
                      .axis = {axis(1, 1), axis(6, 3, stride, 1), axis(7, 2, stride)},
                      .transposed = true});
  }
}

// Strides against kernels, paddings and dilations; outputs that meet no tap or no input.
TEST(Conv, AgreesTransposedWithStrides) {
  for (const int64_t stride : {2, 3}) {
    for (const int64_t kernel : {1, 2, 3, 7}) {
      for (const int64_t padding : {0, 1, 3}) {
        for (const int64_t dilation : {1, 2}) {
          if ((kernel - 1) * dilation < padding) continue;
          check<float>({.batch = 2,
                        .groups = 2,
                        .axis = {axis(1, 1), axis(4, 3, stride, 1),
                                 axis(9, kernel, stride, padding, dilation)},
                        .transposed = true,
                        .act = relu()});
        }
      }
    }
  }
  check<float>({.axis = {axis(3, 3, 2, 1), axis(4, 2, 2), axis(5, 3, 3)}, .transposed = true});
  check<float>({.groups = 6,
                .group_in = 1,
                .group_out = 1,
                .axis = {axis(1, 1), axis(5, 4, 2, 1), axis(21, 4, 2, 1)},
                .transposed = true});
  check<float>({.group_in = 16,
                .group_out = 33,
                .axis = {axis(1, 1), axis(2, 4, 4, 3), axis(6, 9, 2, 8)},
                .transposed = true});
  check<float>({.axis = {axis(1, 1), axis(5, 4, 2, 1), axis(6, 4, 2, 1)},
                .transposed = true,
                .in = Layout::ChannelsLast,
                .out = Layout::ChannelsLast});
}

// In three dims: rows of pixels that fill vectors, panels of patches, and taps of one pixel.
TEST(Conv, AgreesOnPlanesInThreeDimensions) {
  for_each_target([] {
    for (const Layout weight : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      for (const int64_t stride : {1, 2}) {
        Problem<float>({.batch = 2,
                        .groups = 2,
                        .group_in = 5,
                        .group_out = 9,
                        .axis = {axis(7, 3, stride, 2, 2), axis(6, 2, stride, 1, 3),
                                 axis(48 * stride, 3, stride, 1)},
                        .weight = weight,
                        .act = relu()})
            .check();
        Problem<float>(
            {.group_in = 30,
             .group_out = 9,
             .axis = {axis(5, 3, stride, 1), axis(7, 3, stride, 1), axis(11, 3, stride, 1)},
             .weight = weight,
             .residual = true})
            .check();
      }
      Problem<float>({.group_in = 5,
                      .group_out = 9,
                      .axis = {axis(3, 1), axis(4, 1), axis(21, 1)},
                      .weight = weight})
          .check();
    }
  });
}

// Images that are divided into blocks of rows, of pixels and of channels, and one channel per group.
TEST(Conv, AgreesTransposedInBlocks) {
  for_each_target([] {
    for (const Case& z : {Case{.group_in = 2,
                         .group_out = 3,
                         .axis = {axis(1, 1), axis(1, 1), axis(23000, 16, 2, 4)}},
                          Case{.group_in = 2,
                          .group_out = 5,
                          .axis = {axis(1, 1), axis(110, 5, 2, 2), axis(60, 7, 1, 1)},
                          .act = relu()},
                          Case{.group_in = 2,
                          .group_out = 9,
                          .axis = {axis(1, 1), axis(22, 32, 1, 22), axis(22, 32, 2, 30)}}}) {
      Case transposed = z;
      transposed.transposed = true;
      Problem<float>(transposed).check();
    }
    for (const int64_t group_in : {1, 12}) {
      for (const int64_t stride : {2, 3, 4, 5}) {
        Problem<float>({.batch = 2,
                        .groups = 3,
                        .group_in = group_in,
                        .group_out = 2,
                        .axis = {axis(2, 2), axis(3, 4, 2, 1), axis(21, 6, stride, 1)},
                        .transposed = true})
            .check();
      }
    }
  });
}

template <class T>
class ActivatedConv : public testing::Test {};
using FloatingTypes = TypesOf<void ET_STORED_FLOATS(ET_TYPE)>;
TYPED_TEST_SUITE(ActivatedConv, FloatingTypes);

TYPED_TEST(ActivatedConv, AppliesTheFunctionBeforeTheResidual) {
  for (const bool residual : {false, true}) {
    check<TypeParam>({.axis = {axis(1, 1), axis(9, 3, 1, 1), axis(20, 3, 1, 1)},
                      .residual = residual,
                      .act = relu()});
    check<TypeParam>({.groups = 7,
                      .group_in = 1,
                      .group_out = 1,
                      .axis = {axis(1, 1), axis(9, 3, 1, 1), axis(20, 3, 1, 1)},
                      .bias = false,
                      .residual = residual,
                      .act = {Activation::Kind::Clamp, 0, 6}});
  }
}

TEST(Conv, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Case& z :
       {Case{.group_in = 20, .group_out = 70, .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}},
        Case{.groups = 30,
        .group_in = 1,
        .group_out = 1,
        .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}},
        Case{.group_in = 300, .group_out = 70, .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(7, 3)}},
        Case{.group_in = 90, .group_out = 170, .axis = {axis(1, 1), axis(14, 1), axis(14, 1)}},
        Case{.group_in = 40,
        .group_out = 70,
        .axis = {axis(1, 1), axis(14, 3, 1, 1), axis(14, 3, 1, 1)}},
        Case{.group_in = 20,
        .group_out = 50,
        .axis = {axis(1, 1), axis(30, 3, 1, 1), axis(33, 3, 1, 1)}},
        Case{.group_in = 20,
        .group_out = 50,
        .axis = {axis(1, 1), axis(90, 4, 2, 1), axis(33, 4, 2, 1)},
        .transposed = true},
        Case{.groups = 9,
        .group_in = 8,
        .group_out = 8,
        .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}}}) {
    for (const Layout layout : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      Case laid_out = z;
      laid_out.in = laid_out.out = layout;
      Problem<float> problem(laid_out);
      std::vector<float> first;
      for (const size_t threads : {1, 2, 3, 17}) {
        ThreadPool pool(threads);
        const UsePool use(&pool);
        HeapScratch scratch;
        ASSERT_TRUE(problem.c.run(scratch));
        if (first.empty()) first = problem.out;
        EXPECT_EQ(first, problem.out) << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
