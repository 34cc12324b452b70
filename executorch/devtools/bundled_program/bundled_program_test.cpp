#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/devtools/bundled_program/bundled_program_generated.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace executorch::bundled_program {
namespace {

namespace fb = bundled_program_flatbuffer;
using executorch_flatbuffer::ScalarType;
using flatbuffers::Offset;
using runtime::Error;
using runtime::testing::LoadedMethod;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

/// forward(x: float[3], k: int = 2) -> x
std::vector<uint8_t> program_bytes() {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  runtime::testing::TensorSpec x;
  x.sizes = {3};
  x.memory_id = 1;
  plan.arenas = {0, 64};
  plan.inputs = {plan.tensor(x), plan.integer(2)};
  plan.outputs = {plan.inputs[0]};
  return builder.build();
}

/// Writes bundles whose parts are wrong in one way.
class BundleBuilder {
 public:
  ScalarType type = ScalarType::FLOAT;
  std::vector<int32_t> sizes = {3};
  std::vector<uint8_t> dim_order = {0};
  std::vector<float> input = {1, 2, 3};
  std::vector<float> expected = {1, 2, 3};
  int64_t number = 2;
  const char* method = "forward";
  bool has_value = true;
  bool has_program = true;

  /// Two test cases; the second expects nothing.
  std::vector<uint8_t> build() {
    const auto inputs = builder_.CreateVector(std::vector<Offset<fb::Value>>{
        value(tensor(type, sizes, dim_order, input)),
        has_value ? fb::CreateValue(builder_, fb::ValueUnion::Int,
                                    fb::CreateInt(builder_, number).Union())
                  : fb::CreateValue(builder_)});
    const auto outputs = builder_.CreateVector(std::vector<Offset<fb::Value>>{
        value(tensor(ScalarType::FLOAT, {static_cast<int32_t>(expected.size())}, {0}, expected))});
    const auto cases = builder_.CreateVector(std::vector<Offset<fb::BundledMethodTestCase>>{
        fb::CreateBundledMethodTestCase(builder_, inputs, outputs),
        fb::CreateBundledMethodTestCase(builder_, inputs)});
    const auto name = builder_.CreateString(method);
    const auto suites = builder_.CreateVector(std::vector<Offset<fb::BundledMethodTestSuite>>{
        fb::CreateBundledMethodTestSuite(builder_, name, cases)});
    const std::vector<uint8_t> program = program_bytes();
    builder_.ForceVectorAlignment(program.size(), 1, 32);
    const auto content = has_program ? builder_.CreateVector(program) : 0;
    builder_.Finish(fb::CreateBundledProgram(builder_, 2, suites, content), "BP08");
    return {builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()};
  }

 private:
  Offset<fb::Tensor> tensor(ScalarType t, const std::vector<int32_t>& s,
                            const std::vector<uint8_t>& order, const std::vector<float>& data) {
    const auto size_table = builder_.CreateVector(s);
    const auto bytes =
        builder_.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), 4 * data.size());
    const auto order_table = builder_.CreateVector(order);
    return fb::CreateTensor(builder_, t, size_table, bytes, order_table);
  }
  Offset<fb::Value> value(Offset<fb::Tensor> t) {
    return fb::CreateValue(builder_, fb::ValueUnion::Tensor, t.Union());
  }
  flatbuffers::FlatBufferBuilder builder_;
};

Error extract(std::vector<uint8_t>& file, std::vector<uint8_t>* program = nullptr) {
  const void* data = nullptr;
  size_t size = 0;
  const Error error = get_program_data(file.data(), file.size(), &data, &size);
  if (error == Error::Ok && program != nullptr) {
    program->assign(static_cast<const uint8_t*>(data), static_cast<const uint8_t*>(data) + size);
  }
  return error;
}

class BundledProgramTest : public ::testing::Test {
 protected:
  explicit BundledProgramTest() : loaded_(program_bytes()) { EXPECT_EQ(loaded_.error, Error::Ok); }
  Error load(std::vector<uint8_t> file, size_t index = 0) {
    file_ = std::move(file);
    EXPECT_EQ(extract(file_), Error::Ok);
    return load_bundled_input(*loaded_.method, file_.data(), index);
  }
  Error verify(double rtol = 1e-5, double atol = 1e-8, size_t index = 0) {
    return verify_method_outputs(*loaded_.method, file_.data(), index, rtol, atol);
  }
  LoadedMethod loaded_;
  std::vector<uint8_t> file_;
};

TEST_F(BundledProgramTest, InputsAreSetAndOutputsVerified) {
  ASSERT_EQ(load(BundleBuilder().build()), Error::Ok);
  ASSERT_EQ(loaded_.method->execute(), Error::Ok);
  EXPECT_EQ(loaded_.output(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(verify(), Error::Ok);
  const ErrorStats stats = compute_method_output_error_stats(*loaded_.method, file_.data(), 0);
  EXPECT_EQ(stats.status, Error::Ok);
  EXPECT_EQ(stats.max_abs_error, 0);
}

// The file may be mapped for reading only, or be shared by those who run it.
TEST_F(BundledProgramTest, InputsThatAreNotCopiedMayOnlyBeRead) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  runtime::testing::TensorSpec x;
  x.sizes = {3};
  plan.inputs = {plan.tensor(x), plan.integer(2)};
  plan.outputs = {plan.inputs[0]};
  LoadedMethod unplanned(builder.build());
  ASSERT_EQ(unplanned.error, Error::Ok);
  file_ = BundleBuilder().build();
  ASSERT_EQ(load_bundled_input(*unplanned.method, file_.data(), 0), Error::Ok);
  EXPECT_TRUE(unplanned.method->get_output(0).toTensor().unsafeGetTensorImpl()->is_read_only());
  ASSERT_EQ(load(BundleBuilder().build()), Error::Ok);
  EXPECT_FALSE(loaded_.method->get_output(0).toTensor().unsafeGetTensorImpl()->is_read_only());
}

TEST_F(BundledProgramTest, TheProgramIsTheOneThatWasBundledAlignedInTheFile) {
  file_ = BundleBuilder().build();
  const void* data = nullptr;
  size_t size = 0;
  ASSERT_EQ(get_program_data(file_.data(), file_.size(), &data, &size), Error::Ok);
  EXPECT_EQ((static_cast<const uint8_t*>(data) - file_.data()) % 32, 0);
  EXPECT_EQ(std::memcmp(data, program_bytes().data(), size), 0);
}

TEST_F(BundledProgramTest, AnOutputThatDiffersIsFound) {
  BundleBuilder bundle;
  bundle.expected = {1, 2.002f, 3};
  ASSERT_EQ(load(bundle.build()), Error::Ok);
  EXPECT_EQ(verify(), Error::NotFound);
  EXPECT_EQ(verify(1e-2, 0), Error::Ok);
  EXPECT_EQ(verify(0, 1e-2), Error::Ok);
  const ErrorStats stats = compute_method_output_error_stats(*loaded_.method, file_.data(), 0);
  EXPECT_EQ(stats.status, Error::Ok);
  const double error = static_cast<double>(2.002f) - 2;
  EXPECT_DOUBLE_EQ(stats.max_abs_error, error);
  EXPECT_DOUBLE_EQ(stats.mean_abs_error, error / 3);
  EXPECT_DOUBLE_EQ(stats.max_relative_error, error / static_cast<double>(2.002f));
}

TEST_F(BundledProgramTest, SpecialNumbersEqualThemselvesOnly) {
  const float inf = std::numeric_limits<float>::infinity();
  BundleBuilder bundle;
  bundle.input = {NAN, inf, -inf};
  bundle.expected = {NAN, inf, -inf};
  ASSERT_EQ(load(bundle.build()), Error::Ok);
  EXPECT_EQ(verify(), Error::Ok);
  BundleBuilder swapped;
  swapped.input = {NAN, inf, -inf};
  swapped.expected = {NAN, -inf, -inf};
  ASSERT_EQ(load(swapped.build()), Error::Ok);
  EXPECT_EQ(verify(1, 1), Error::NotFound);
}

TEST_F(BundledProgramTest, AnotherShapeOrNoExpectationIsNoMatch) {
  BundleBuilder bundle;
  bundle.expected = {1, 2};
  ASSERT_EQ(load(bundle.build()), Error::Ok);
  EXPECT_EQ(verify(), Error::NotFound);
  BundleBuilder two_cases;
  ASSERT_EQ(load(two_cases.build(), 1), Error::Ok);
  EXPECT_EQ(verify(1e-5, 1e-8, 1), Error::NotSupported);
}

TEST_F(BundledProgramTest, UnknownMethodsAndTestCasesAreErrors) {
  EXPECT_EQ(load(BundleBuilder().build(), 2), Error::InvalidArgument);
  EXPECT_EQ(verify(1, 1, 2), Error::InvalidArgument);
  BundleBuilder other;
  other.method = "backward";
  EXPECT_EQ(load(other.build()), Error::InvalidArgument);
}

TEST_F(BundledProgramTest, InputsThatDoNotFitTheMethodAreNotSupported) {
  BundleBuilder wrong_number;
  wrong_number.number = 3;
  EXPECT_EQ(load(wrong_number.build()), Error::NotSupported);
  BundleBuilder wrong_type;
  wrong_type.type = ScalarType::INT;
  EXPECT_EQ(load(wrong_type.build()), Error::NotSupported);
}

TEST_F(BundledProgramTest, DamagedBundlesAreRefused) {
  const auto refused = [](BundleBuilder& bundle) {
    std::vector<uint8_t> file = bundle.build();
    return extract(file);
  };
  BundleBuilder few_bytes, order, negative, type, empty, no_program;
  few_bytes.sizes = {4};
  EXPECT_EQ(refused(few_bytes), Error::InvalidArgument);
  order.dim_order = {1};
  EXPECT_EQ(refused(order), Error::InvalidArgument);
  negative.sizes = {-3};
  EXPECT_EQ(refused(negative), Error::InvalidArgument);
  type.type = static_cast<ScalarType>(99);
  EXPECT_EQ(refused(type), Error::InvalidArgument);
  empty.has_value = false;
  EXPECT_EQ(refused(empty), Error::InvalidArgument);
  no_program.has_program = false;
  EXPECT_EQ(refused(no_program), Error::InvalidArgument);
}

TEST_F(BundledProgramTest, OtherFilesAreNotBundles) {
  std::vector<uint8_t> file = program_bytes();
  EXPECT_FALSE(is_bundled_program(file.data(), file.size()));
  EXPECT_FALSE(is_bundled_program(file.data(), 0));
  EXPECT_EQ(extract(file), Error::NotSupported);
  EXPECT_EQ(load_bundled_input(*loaded_.method, file.data(), 0), Error::NotSupported);
  EXPECT_EQ(verify_method_outputs(*loaded_.method, file.data(), 0), Error::NotSupported);
  EXPECT_EQ(compute_method_output_error_stats(*loaded_.method, file.data(), 0).status,
            Error::InvalidArgument);
}

TEST_F(BundledProgramTest, EveryFlippedBitIsRefusedOrHarmless) {
  const std::vector<uint8_t> whole = BundleBuilder().build();
  for (size_t i = 0; i < whole.size() - program_bytes().size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> file = whole;
      file[i] = static_cast<uint8_t>(file[i] ^ (1 << bit));
      if (extract(file) == Error::Ok &&
          load_bundled_input(*loaded_.method, file.data(), 0) == Error::Ok) {
        (void)verify_method_outputs(*loaded_.method, file.data(), 0);
      }
    }
  }
  std::vector<uint8_t> cut(whole.begin(), whole.end() - 1);
  (void)extract(cut);
  cut.resize(12);
  EXPECT_EQ(extract(cut), Error::InvalidArgument);
}

TEST_F(BundledProgramTest, OldNamesMeanTheSame) {
  namespace old = torch::executor::bundled_program;
  file_ = BundleBuilder().build();
  const void* data = nullptr;
  size_t size = 0;
  EXPECT_TRUE(old::IsBundledProgram(file_.data()));
  EXPECT_EQ(old::GetProgramData(file_.data(), file_.size(), &data, &size), Error::Ok);
  EXPECT_EQ(old::LoadBundledInput(*loaded_.method, file_.data(), 0), Error::Ok);
  EXPECT_EQ(old::VerifyResultWithBundledExpectedOutput(*loaded_.method, file_.data(), 0),
            Error::Ok);
}

}  // namespace
}  // namespace executorch::bundled_program
