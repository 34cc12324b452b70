#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/npy.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <fstream>

namespace executorch::extension::command {
namespace {

using aten::ScalarType;
using runtime::testing::LoadedMethod;
using runtime::testing::OwnedTensor;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

TEST(Suggest, NamesWhatIsCloseOrEverything) {
  EXPECT_EQ(edit_distance("profile", "porfile"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(suggestion("profle", {"run", "profile"}), "; did you mean 'profile'?");
  EXPECT_EQ(suggestion("xyz", {"run", "profile"}), "; there are: run, profile");
}

template <typename F>
std::string cause_of(const F& f) {
  try {
    f();
  } catch (const Failure& failure) {
    return failure.cause;
  }
  return "no failure";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Npy, ReadsWhatItWrites) {
  OwnedTensor<float> x({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::string file = write_npy(x.value().toTensor());
  EXPECT_EQ((file.size() - 24) % 64, 0u);
  const NpyArray array = read_npy(file, "x.npy");
  EXPECT_EQ(array.dtype, ScalarType::Float);
  EXPECT_EQ(array.sizes, (std::vector<aten::SizesType>{2, 3}));
  EXPECT_EQ(array.data, std::string_view(file).substr(file.size() - 24));
}

TEST(Npy, HaveAsManyDimsAsTensors) {
  for (const size_t rank : {size_t{16}, size_t{17}, size_t{30000}}) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (size_t d = 0; d < rank; ++d) header += "1,";
    header += "), }";
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    file += header + std::string(4, '\0');
    const std::string cause = cause_of([&] { read_npy(file, "x.npy"); });
    EXPECT_EQ(contains(cause, "more than 16 dims"), rank > 16) << cause;
  }
}

TEST(Npy, DamagedFilesAreFailuresThatNameTheFile) {
  OwnedTensor<float> x({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::string file = write_npy(x.value().toTensor());
  for (size_t n = 6; n < file.size(); ++n) {
    EXPECT_TRUE(contains(cause_of([&] { read_npy(file.substr(0, n), "x.npy"); }), "x.npy")) << n;
  }
  std::string other = file;
  other.replace(other.find("<f4"), 3, ">f4");
  EXPECT_TRUE(contains(cause_of([&] { read_npy(other, "x.npy"); }), ">f4"));
  other = file;
  other.replace(other.find("(2,3,)"), 6, "(2,9,)");
  EXPECT_TRUE(contains(cause_of([&] { read_npy(other, "x.npy"); }), "needs 72 bytes, it has 24"));
}

TEST(Npy, ReorderLeadsToADimOrderAndBack) {
  const std::string bytes = "abcdef";  // [2,3]
  const aten::DimOrderType order[] = {1, 0};
  const std::string transposed = reorder(bytes, {2, 3}, {order, 2}, 1, true);
  EXPECT_EQ(transposed, "adbecf");
  EXPECT_EQ(reorder(transposed, {2, 3}, {order, 2}, 1, false), bytes);
}

class InputsTest : public ::testing::Test {
 protected:
  static std::vector<uint8_t> program() {
    ProgramBuilder builder;
    PlanBuilder& plan = builder.method();
    const auto x = plan.tensor({.sizes = {2, 4}, .memory_id = 1, .dynamism = 1});
    const auto n =
        plan.tensor({.sizes = {3}, .memory_id = 1, .offset = 32, .dtype = ScalarType::Long});
    plan.inputs = {x, n};
    plan.outputs = {x, n};
    plan.arenas = {0, 64};
    return builder.build();
  }

  std::string cause(const InputOptions& options) {
    return cause_of([&] { Inputs(*loaded_.method, options); });
  }

  LoadedMethod loaded_ = LoadedMethod(program());
};

TEST_F(InputsTest, AreOnesOfTheLargestSizeUnlessToldOtherwise) {
  const auto held = Inputs(*loaded_.method, {}).set(*loaded_.method);
  EXPECT_EQ(loaded_.output(0), std::vector<float>(8, 1.0f));
  EXPECT_EQ(loaded_.method->get_output(1).toTensor().const_data_ptr<int64_t>()[2], 1);
}

TEST_F(InputsTest, RandomValuesFollowTheSeed) {
  const auto draw = [&](uint64_t seed) {
    const auto held = Inputs(*loaded_.method, {{}, {"1x3"}, "random", seed}).set(*loaded_.method);
    return loaded_.output(0);
  };
  const auto first = draw(1);
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(draw(1), first);
  EXPECT_NE(draw(2), first);
}

TEST_F(InputsTest, WrongShapesAndFilesNameTheInput) {
  EXPECT_TRUE(contains(cause({{}, {"3x4"}}), "input 0 (Float 2x4 at most) cannot be 3x4"));
  EXPECT_TRUE(contains(cause({{}, {"-", "2"}}), "input 1 (Long 3) cannot be 2"));
  EXPECT_TRUE(contains(cause({{}, {"2,4"}}), "is no shape"));
  EXPECT_TRUE(contains(cause({{}, {"-", "-", "-"}}), "3 shapes for 2 tensor inputs"));
  EXPECT_TRUE(contains(cause({{"/no/such.npy", "b"}}), "/no/such.npy"));
  const std::string path = ::testing::TempDir() + "inputs_test.bin";
  std::ofstream(path) << "12345";
  EXPECT_TRUE(contains(cause({{path, path}}), "has 5 bytes, input 0"));
}

}  // namespace
}  // namespace executorch::extension::command
