#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <limits>

#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace executorch::extension {
namespace {

using runtime::EValue;

std::string text(const EValue& value, long edge_items = 0) {
  std::ostringstream os;
  os << evalue_edge_items(edge_items) << value;
  return os.str();
}

std::string text(const TensorPtr& tensor, long edge_items = 0) {
  return text(EValue(*tensor), edge_items);
}

std::vector<float> count_to(size_t n) {
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return numbers;
}

TEST(PrintEValue, PrintsPrimitives) {
  EXPECT_EQ(text(EValue()), "None");
  EXPECT_EQ(text(EValue(true)), "True");
  EXPECT_EQ(text(EValue(false)), "False");
  EXPECT_EQ(text(EValue(int64_t(-7))), "-7");
  EXPECT_EQ(text(EValue(2.0)), "2.");
  EXPECT_EQ(text(EValue(0.5)), "0.5");
  EXPECT_EQ(text(EValue(std::numeric_limits<double>::infinity())), "inf");
}

TEST(PrintEValue, QuotesStrings) {
  const std::string s = "say \"hi\"";
  runtime::ArrayRef<char> chars(s.data(), s.size());
  EXPECT_EQ(text(EValue(&chars)), "\"say \\\"hi\\\"\"");
}

TEST(PrintEValue, PrintsLists) {
  const double doubles[2] = {1.0, 2.5};
  runtime::ArrayRef<double> list(doubles);
  EXPECT_EQ(text(EValue(&list)), "(len=2)[1., 2.5]");
  const bool bools[8] = {true, true, true, false, false, false, true, false};
  runtime::ArrayRef<bool> long_list(bools);
  EXPECT_EQ(text(EValue(&long_list)), "(len=8)[True, True, True, ..., False, True, False]");
  EXPECT_EQ(text(EValue(&long_list), 4),
            "(len=8)[True, True, True, False, False, False, True, False]");
}

TEST(PrintEValue, PrintsSmallTensorsOnOneLine) {
  EXPECT_EQ(text(make_tensor_ptr({2, 2}, {1.0f, 2.0f, 3.5f, 4.0f})),
            "tensor(sizes=[2, 2], [1., 2., 3.5, 4.])");
  EXPECT_EQ(text(make_tensor_ptr({1, 2, 3})), "tensor(sizes=[3], [1, 2, 3])");
  EXPECT_EQ(text(make_tensor_ptr(std::vector<int8_t>{65, -1})), "tensor(sizes=[2], [65, -1])");
  EXPECT_EQ(text(make_tensor_ptr(true)), "tensor(sizes=[], [True])");
  EXPECT_EQ(text(ones({1}, aten::ScalarType::Half)), "tensor(sizes=[1], [1.])");
  EXPECT_EQ(text(empty({0})), "tensor(sizes=[0], [])");
  EXPECT_EQ(text(make_tensor_ptr({2}, nullptr)), "tensor(sizes=[2], <no data>)");
}

TEST(PrintEValue, ElidesTheMiddleAndWrapsLongLines) {
  EXPECT_EQ(text(make_tensor_ptr({9}, count_to(9))),
            "tensor(sizes=[9], [0., 1., 2., ..., 6., 7., 8.])");
  EXPECT_EQ(text(make_tensor_ptr({12}, count_to(12)), 6),
            "tensor(sizes=[12], [\n  0., 1., 2., 3., 4., 5., 6., 7., 8., 9., \n  10., 11., \n])");
  EXPECT_EQ(text(make_tensor_ptr({100}, count_to(100)), 6),
            "tensor(sizes=[100], [\n  0., 1., 2., 3., 4., 5., \n  ...,\n"
            "  94., 95., 96., 97., 98., 99., \n])");
  EXPECT_EQ(text(make_tensor_ptr({30}, count_to(30)), 11),
            "tensor(sizes=[30], [\n  0., 1., 2., 3., 4., 5., 6., 7., 8., 9., \n  10., \n  ...,\n"
            "  19., \n  20., 21., 22., 23., 24., 25., 26., 27., 28., 29., \n])");
}

TEST(PrintEValue, PrintsElementsInTheOrderOfTheirIndices) {
  const auto column_major = make_tensor_ptr({2, 2}, {1, 3, 2, 4}, {1, 0});
  EXPECT_EQ(text(column_major), "tensor(sizes=[2, 2], [1, 2, 3, 4])");
}

TEST(PrintEValue, PrintsTensorsMadeWithoutDimOrderOrStrides) {
  aten::SizesType sizes[2] = {2, 2};
  aten::DimOrderType by_column[2] = {1, 0}, twice[2] = {1, 1};
  float data[4] = {1, 2, 3, 4};
  const auto printed = [&](aten::DimOrderType* dim_order) {
    aten::TensorImpl impl(aten::ScalarType::Float, 2, sizes, data, dim_order);
    return text(EValue(aten::Tensor(&impl)));
  };
  EXPECT_EQ(printed(nullptr), "tensor(sizes=[2, 2], [1., 2., 3., 4.])");
  EXPECT_EQ(printed(by_column), "tensor(sizes=[2, 2], [1., 3., 2., 4.])");
  EXPECT_EQ(printed(twice), "tensor(sizes=[2, 2], <no strides>)");
  EXPECT_EQ(text(EValue(aten::Tensor(nullptr))), "tensor(<undefined>)");
}

TEST(PrintEValue, PrintsTensorLists) {
  const auto tensor = make_tensor_ptr({1});
  EValue value(*tensor);
  EValue none;
  EValue* values[2] = {&value, &none};
  aten::Tensor tensors[1] = {*tensor};
  runtime::BoxedEvalueList<aten::Tensor> list(values, tensors, 1);
  EXPECT_EQ(text(EValue(&list)), "(len=1)[tensor(sizes=[1], [1])]");
  std::optional<aten::Tensor> optionals[2];
  EValue* with_null[2] = {&value, nullptr};
  runtime::BoxedEvalueList<std::optional<aten::Tensor>> optional_list(with_null, optionals, 2);
  EXPECT_EQ(text(EValue(&optional_list)),
            "(len=2)[\n  [0]: tensor(sizes=[1], [1]),\n  [1]: None,\n]");
}

TEST(PrintEValue, TakesBytesOfTypeBoolAsTheyCome) {
  uint8_t bytes[4] = {0, 1, 2, 255};
  EXPECT_EQ(text(make_tensor_ptr({4}, bytes, aten::ScalarType::Bool)),
            "tensor(sizes=[4], [False, True, True, True])");
  aten::ArrayRef<bool> list(reinterpret_cast<bool*>(bytes), 4);
  EXPECT_EQ(text(EValue(&list)), "(len=4)[False, True, True, True]");
}

TEST(PrintEValue, PrintsEveryRankAndWhatIsNoNumber) {
  const std::vector<aten::SizesType> sizes(16, 1);
  EXPECT_EQ(
      text(make_tensor_ptr(sizes, std::vector<float>{std::numeric_limits<float>::quiet_NaN()})),
      "tensor(sizes=[\n  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, \n  1, 1, 1, 1, 1, 1, \n], [nan])");
  EXPECT_EQ(text(make_tensor_ptr(std::vector<float>{std::numeric_limits<float>::infinity()})),
            "tensor(sizes=[1], [inf])");
  EXPECT_EQ(text(make_tensor_ptr({2, 0, 3}, std::vector<float>())), "tensor(sizes=[2, 0, 3], [])");
}

TEST(PrintEValue, SaysWhichListsAreNotComplete) {
  EValue number(int64_t{1});
  EValue* values[2] = {&number, nullptr};
  int64_t numbers[2];
  runtime::BoxedEvalueList<int64_t> list(values, numbers, 2);
  EXPECT_EQ(text(EValue(&list)), "<list with a missing element>");
}

TEST(PrintEValue, LeavesOutTheMiddleOfLongListsOfTensors) {
  const auto tensor = make_tensor_ptr({1});
  EValue value(*tensor);
  std::vector<EValue*> values(100000, &value);
  std::vector<aten::Tensor> tensors(values.size(), *tensor);
  runtime::BoxedEvalueList<aten::Tensor> list(values.data(), tensors.data(),
                                              static_cast<int>(values.size()));
  const std::string printed = text(EValue(&list), 1);
  EXPECT_EQ(printed,
            "(len=100000)[\n  [0]: tensor(sizes=[1], [1]),\n  ...,\n"
            "  [99999]: tensor(sizes=[1], [1]),\n]");
}

}  // namespace
}  // namespace executorch::extension
