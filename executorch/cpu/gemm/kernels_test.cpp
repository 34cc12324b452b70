#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/kernels_testing.h>
#include <gtest/gtest.h>

namespace executorch::cpu::gemm {
namespace {

class Table : public OnEachSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Table, testing::Range(0, count_sets()));

template <class Types>
void expect_tiles(const Microkernels<Types>& row) {
  ASSERT_TRUE(row.rows >= 1 && row.rows <= kMostRows) << row.rows;
  ASSERT_GE(row.columns, 1);
  ASSERT_GE(row.width_step, 1);
  EXPECT_EQ(row.columns % row.width_step, 0);
  EXPECT_LE(row.columns, Types::kWidths * row.width_step);
  for (int width = 0; width < Types::kWidths; ++width) {
    for (int height = 1; height <= kMostRows; ++height) {
      const bool has_one = height <= row.rows && (width + 1) * row.width_step <= row.columns;
      EXPECT_EQ(row.tile[width][height] != nullptr, has_one) << width << ' ' << height;
    }
  }
}

template <class Types>
void expect_functions(const Microkernels<Types>& row) {
  EXPECT_NE(row.pack_columns, nullptr);
  EXPECT_NE(row.few_rows_dot, nullptr);
  EXPECT_NE(row.finish, nullptr);
}

TEST_P(Table, HasTilesOfEveryHeightForEachOperandOfGemm){
#define ET_ROW(T, name)     \
  {                         \
    SCOPED_TRACE(#name);    \
    expect_tiles(row<T>()); \
  }
    ET_OPERANDS(ET_ROW)
#undef ET_ROW
}

TEST_P(Table, HasEveryFunctionForFloats) {
#define ET_ROW(T, name)                           \
  {                                               \
    SCOPED_TRACE(#name);                          \
    expect_functions(row<T>());                   \
    EXPECT_NE(row<T>().pack_rows, nullptr);       \
    EXPECT_NE(row<T>().few_rows_axpy, nullptr);   \
    EXPECT_NE(row<T>().operand.convert, nullptr); \
  }
  ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW
  EXPECT_NE(kernels().add_slices, nullptr);
}

TEST_P(Table, HasEveryFunctionForIntegerWeights) {
  const int8::Kernels& integers = int8::kernels();
  for (const int8::Row& row : integers.rows) {
    expect_tiles(row);
    expect_functions(row);
    EXPECT_NE(row.operand.prepare, nullptr);
    EXPECT_LE(row.columns, int8::kMostColumns);
    // Products finish panels of any form in the same way, and images have bytes only.
    EXPECT_EQ(row.columns, integers.rows[int8::kBytes].columns);
  }
  for (int height = 1; height <= integers.rows[int8::kBytes].rows; ++height) {
    EXPECT_NE(integers.byte_tile[height], nullptr) << height;
  }
  EXPECT_NE(integers.pack_scales, nullptr);
  EXPECT_NE(integers.finish_bytes, nullptr);
  EXPECT_NE(integers.interleave, nullptr);
  EXPECT_NE(integers.depthwise, nullptr);
}

}  // namespace
}  // namespace executorch::cpu::gemm
