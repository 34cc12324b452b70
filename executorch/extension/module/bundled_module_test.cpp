#include <executorch/devtools/bundled_program/bundled_program_generated.h>
#include <executorch/extension/module/bundled_module.h>
#include <executorch/extension/module/example_program.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace executorch::extension {
namespace {

namespace fb = bundled_program_flatbuffer;
using runtime::Error;

/// The example program's forward on ones, with `expected` in every element.
std::string bundle(float expected) {
  flatbuffers::FlatBufferBuilder builder;
  const auto tensor = [&](float number) {
    const std::vector<float> data(4, number);
    const auto sizes = builder.CreateVector(std::vector<int32_t>{2, 2});
    const auto bytes = builder.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), 16);
    const auto dim_order = builder.CreateVector(std::vector<uint8_t>{0, 1});
    return fb::CreateValue(
        builder, fb::ValueUnion::Tensor,
        fb::CreateTensor(builder, executorch_flatbuffer::ScalarType::FLOAT, sizes, bytes, dim_order)
            .Union());
  };
  const auto inputs =
      builder.CreateVector(std::vector<flatbuffers::Offset<fb::Value>>{tensor(1), tensor(1)});
  const auto outputs =
      builder.CreateVector(std::vector<flatbuffers::Offset<fb::Value>>{tensor(expected)});
  const auto cases =
      builder.CreateVector(std::vector<flatbuffers::Offset<fb::BundledMethodTestCase>>{
          fb::CreateBundledMethodTestCase(builder, inputs, outputs)});
  const auto name = builder.CreateString("forward");
  const auto suites =
      builder.CreateVector(std::vector<flatbuffers::Offset<fb::BundledMethodTestSuite>>{
          fb::CreateBundledMethodTestSuite(builder, name, cases)});
  const std::string program = testing::ExampleProgram::bytes();
  builder.ForceVectorAlignment(program.size(), 1, 32);
  const auto content =
      builder.CreateVector(reinterpret_cast<const uint8_t*>(program.data()), program.size());
  builder.Finish(fb::CreateBundledProgram(builder, 2, suites, content), "BP08");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

class BundledModuleTest : public ::testing::Test {
 protected:
  static runtime::Result<std::unique_ptr<BundledModule>> load(const std::string& bytes) {
    const std::string path = ::testing::TempDir() + "bundled_module_test.bpte";
    std::ofstream(path, std::ios::binary) << bytes;
    auto module = BundledModule::from_file(path);
    std::remove(path.c_str());
    return module;
  }
};

TEST_F(BundledModuleTest, RunsATestCaseAndVerifiesIt) {
  auto module = load(bundle(2));
  ASSERT_TRUE(module.ok());
  const auto outputs = (*module)->execute("forward", 0);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(outputs->at(0).toTensor().const_data_ptr<float>()[3], 2);
  EXPECT_EQ((*module)->verify_method_outputs("forward", 0), Error::Ok);
  EXPECT_EQ((*module)->execute("forward", 1).error(), Error::InvalidArgument);
}

TEST_F(BundledModuleTest, SharesItsProgramWithModulesThatOutliveIt) {
  auto module = load(bundle(2));
  ASSERT_TRUE(module.ok());
  ASSERT_EQ((*module)->load(), Error::Ok);
  Module other((*module)->program());
  module->reset();
  EXPECT_EQ(other.load_method("forward"), Error::Ok);
  EXPECT_TRUE(other.method_meta("forward").ok());
}

TEST_F(BundledModuleTest, SaysWhereOutputsDiffer) {
  auto module = load(bundle(2.5));
  ASSERT_TRUE(module.ok());
  ASSERT_TRUE((*module)->execute("forward", 0).ok());
  EXPECT_EQ((*module)->verify_method_outputs("forward", 0), Error::NotFound);
  EXPECT_EQ((*module)->verify_method_outputs("forward", 0, 0, 0.5), Error::Ok);
}

TEST_F(BundledModuleTest, OtherFilesAreErrors) {
  EXPECT_EQ(BundledModule::from_file("/no/such.bpte").error(), Error::AccessFailed);
  EXPECT_EQ(load(testing::ExampleProgram::bytes()).error(), Error::NotSupported);
  EXPECT_EQ(load("").error(), Error::NotSupported);
  const std::string whole = bundle(2);
  EXPECT_EQ(load(whole.substr(0, 40)).error(), Error::InvalidArgument);
  BundledModule none(nullptr);
  EXPECT_EQ(none.load(), Error::InvalidArgument);
  EXPECT_EQ(none.verify_method_outputs("forward", 0), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::extension
