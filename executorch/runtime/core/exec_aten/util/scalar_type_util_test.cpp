#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <gtest/gtest.h>

#include <string>

namespace executorch::runtime {
namespace {

using aten::ScalarType;

TEST(ScalarTypes, SizesAreThoseOfTheCppTypes) {
#define CHECK_SIZE(ctype, name)                            \
  EXPECT_EQ(elementSize(ScalarType::name), sizeof(ctype)); \
  EXPECT_STREQ(toString(ScalarType::name), #name);
  ET_FORALL_SCALAR_TYPES(CHECK_SIZE)
#undef CHECK_SIZE
}

TEST(ScalarTypes, ListsTakeFurtherTypes) {
  std::string names;
#define APPEND(ctype, name) \
  names += (sizeof(ctype) == elementSize(ScalarType::name)) ? #name " " : "?";
#define APPEND_WITH(suffix, ctype, name) APPEND(ctype, name) names += suffix;
  ET_FORALL_FLOAT_TYPES_AND2(Half, Bool, APPEND)
  EXPECT_EQ(names, "Float Double Half Bool ");
  names.clear();
  ET_FORALL_REAL_TYPES_AND3(Half, Bool, BFloat16, APPEND)
  EXPECT_EQ(names, "Byte Char Short Int Long Float Double Half Bool BFloat16 ");
  names.clear();
  ET_FORALL_REAL_TYPES_AND_WITH(Bool, "; ", APPEND_WITH)
  EXPECT_EQ(names, "Byte ; Char ; Short ; Int ; Long ; Float ; Double ; Bool ; ");
#undef APPEND_WITH
#undef APPEND
}

TEST(ScalarTypes, UnknownNumbersAreInvalid) {
  EXPECT_FALSE(isValid(ScalarType::Undefined));
  EXPECT_FALSE(isValid(static_cast<ScalarType>(-1)));
  EXPECT_FALSE(isValid(static_cast<ScalarType>(100)));
  EXPECT_STREQ(toString(static_cast<ScalarType>(100)), "UNKNOWN_SCALAR");
}

// Rows and columns: u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16, as torch.promote_types
// answers; numbers are those of the enumerators.
constexpr int kTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15};
constexpr int kPromoted[13][13] = {
    {0, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 15},
    {2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 15},
    {2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 15},
    {3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 3, 15},
    {4, 4, 4, 4, 4, 5, 6, 7, 8, 9, 10, 4, 15},
    {5, 5, 5, 5, 5, 5, 6, 7, 8, 9, 10, 5, 6},
    {6, 6, 6, 6, 6, 6, 6, 7, 9, 9, 10, 6, 6},
    {7, 7, 7, 7, 7, 7, 7, 7, 10, 10, 10, 7, 7},
    {8, 8, 8, 8, 8, 8, 9, 10, 8, 9, 10, 8, 9},
    {9, 9, 9, 9, 9, 9, 9, 10, 9, 9, 10, 9, 9},
    {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15},
    {15, 15, 15, 15, 15, 6, 6, 7, 9, 9, 10, 15, 15},
};

TEST(PromoteTypes, MatchesPyTorch) {
  for (int i = 0; i < 13; ++i) {
    for (int j = 0; j < 13; ++j) {
      EXPECT_EQ(static_cast<int>(promoteTypes(static_cast<ScalarType>(kTypes[i]),
                                              static_cast<ScalarType>(kTypes[j]))),
                kPromoted[i][j])
          << kTypes[i] << " " << kTypes[j];
    }
  }
}

TEST(PromoteTypes, RefusesWhatPyTorchRefuses) {
  EXPECT_EQ(promoteTypes(ScalarType::QInt8, ScalarType::Float), ScalarType::Undefined);
  EXPECT_EQ(promoteTypes(ScalarType::UInt16, ScalarType::Int), ScalarType::Undefined);
  EXPECT_EQ(promoteTypes(ScalarType::UInt16, ScalarType::Half), ScalarType::Half);
  EXPECT_EQ(promoteTypes(ScalarType::Float8_e5m2, ScalarType::Half), ScalarType::Undefined);
}

TEST(PromoteTypes, HalfMayBecomeFloat) {
  EXPECT_EQ(promoteTypes(ScalarType::Half, ScalarType::Int, true), ScalarType::Float);
  EXPECT_EQ(promoteTypes(ScalarType::Double, ScalarType::Int, true), ScalarType::Double);
}

TEST(CanCast, NeverLosesAKind) {
  EXPECT_TRUE(canCast(ScalarType::Long, ScalarType::Byte));
  EXPECT_TRUE(canCast(ScalarType::Bool, ScalarType::Float));
  EXPECT_FALSE(canCast(ScalarType::Float, ScalarType::Long));
  EXPECT_FALSE(canCast(ScalarType::ComplexFloat, ScalarType::Float));
  EXPECT_FALSE(canCast(ScalarType::Int, ScalarType::Bool));
}

TEST(Convert, NegativeNumberWrapsInUnsignedTypes) {
  EXPECT_EQ((convert<uint8_t, float>(-1.0f)), 255);
  EXPECT_EQ((convert<int32_t, double>(-2.9)), -2);
}

struct Context {
  Error error = Error::Ok;
  void fail(Error e) { error = e; }
};

TEST(Switch, CallsTheLambdaWithTheType) {
  Context ctx;
  size_t bytes = 0;
  const auto measure = [&](ScalarType type) {
    bytes = 0;
    ET_SWITCH_REALHBBF16_TYPES(type, ctx, "test.out", CTYPE, [&]() { bytes = sizeof(CTYPE); });
    return bytes;
  };
  EXPECT_EQ(measure(ScalarType::Double), 8u);
  EXPECT_EQ(measure(ScalarType::Bool), 1u);
  EXPECT_EQ(measure(ScalarType::BFloat16), 2u);
  EXPECT_EQ(ctx.error, Error::Ok);
}

TEST(Switch, TypeOutsideTheSetFailsTheContext) {
  Context ctx;
  bool called = false;
  ET_SWITCH_INT_TYPES(ScalarType::Float, ctx, "test.out", CTYPE,
                      [&]() { called = sizeof(CTYPE) > 0; });
  EXPECT_FALSE(called);
  EXPECT_EQ(ctx.error, Error::InvalidArgument);
}

TEST(Switch, AdditionalTypesJoinTheSet) {
  Context ctx;
  int calls = 0;
  ET_SWITCH_FLOAT_TYPES_AND2(Half, Bool, ScalarType::Half, ctx, "test.out", CTYPE,
                             [&]() { calls += sizeof(CTYPE); });
  ET_SWITCH_THREE_TYPES(Byte, Int, QInt8, ScalarType::QInt8, ctx, "test.out", CTYPE,
                        [&]() { calls += sizeof(CTYPE); });
  ET_SWITCH_ALL_TYPES(ScalarType::ComplexDouble, ctx, "test.out", CTYPE,
                      [&]() { calls += sizeof(CTYPE); });
  EXPECT_EQ(calls, 2 + 1 + 16);
}

}  // namespace
}  // namespace executorch::runtime
