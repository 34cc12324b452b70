#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/example_program.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/kernel/boxing.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

// save_ptd is marked as experimental by a deprecation warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension {
namespace {

using aten::Scalar;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::KernelRuntimeContext;
using testing::ExampleProgram;
using Floats = std::vector<float>;

std::atomic<size_t> n_adds{0};

Tensor& add_out(KernelRuntimeContext&, const Tensor& a, const Tensor& b, const Scalar& alpha,
                Tensor& out) {
  ++n_adds;
  for (ssize_t i = 0; i < out.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] =
        a.const_data_ptr<float>()[i] +
        static_cast<float>(alpha.to<int64_t>()) * b.const_data_ptr<float>()[i];
  }
  return out;
}

EXECUTORCH_LIBRARY(module_test, "add.out", add_out);

Floats values(const EValue& value) {
  const Tensor tensor = value.toTensor();
  return {tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel()};
}

const Floats kX{1, 2, 3, 4};
const Floats kY{10, 20, 30, 40};

TensorPtr x() {
  return make_tensor_ptr({2, 2}, kX);
}
TensorPtr y() {
  return make_tensor_ptr({2, 2}, kY);
}

class ModuleTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    runtime::runtime_init();
    std::ofstream(path(), std::ios::binary) << bytes();
    const auto w = make_tensor_ptr({2, 2}, {100.0f, 200.0f, 300.0f, 400.0f});
    ASSERT_EQ(flat_tensor::save_ptd(data_path(), {{"w", *w}}, 64), Error::Ok);
  }

  static void TearDownTestSuite() {
    std::remove(path().c_str());
    std::remove(data_path().c_str());
  }

  static const std::string& bytes() {
    static const std::string program = ExampleProgram::bytes("module_test::add");
    return program;
  }
  static std::string path() { return ::testing::TempDir() + "module_test.pte"; }
  static std::string data_path() { return ::testing::TempDir() + "module_test.ptd"; }

  static std::unique_ptr<runtime::DataLoader> loader() {
    return std::make_unique<BufferDataLoader>(bytes().data(), bytes().size());
  }
};

TEST_F(ModuleTest, ConstructionDoesNoIo) {
  Module module("/no/such/file.pte");
  EXPECT_FALSE(module.is_loaded());
  EXPECT_EQ(module.load(), Error::AccessFailed);
  EXPECT_EQ(module.forward().error(), Error::AccessFailed);
}

TEST_F(ModuleTest, RunsInEveryLoadMode) {
  using Mode = Module::LoadMode;
  for (const auto mode :
       {Mode::File, Mode::Mmap, Mode::MmapUseMlockIgnoreErrors, Mode::MmapUseMadvise}) {
    Module module(path(), mode);
    const auto result = module.forward({x(), y()});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->size(), 1u);
    EXPECT_EQ(values(result->at(0)), (Floats{11, 22, 33, 44}));
  }
}

TEST_F(ModuleTest, OldConstructorsAndMovesWork) {
  Module mapped(path(), Module::MlockConfig::NoMlock, nullptr);
  EXPECT_EQ(mapped.load(), Error::Ok);
  Module from_loader(loader(), std::make_unique<MallocMemoryAllocator>(),
                     std::unique_ptr<runtime::EventTracer>());
  ASSERT_TRUE(from_loader.forward({x(), y()}).ok());
  Module moved(std::move(from_loader));
  EXPECT_EQ(values(moved.forward({y(), y()})->at(0)), (Floats{20, 40, 60, 80}));
}

TEST_F(ModuleTest, TakesEveryFormOfInputs) {
  Module module(loader());
  const auto a = x();
  const auto b = y();
  const std::vector<EValue> both{*a, *b};
  EXPECT_TRUE(module.forward(both).ok());
  EXPECT_TRUE(module.forward({x(), y()}).ok());
  EXPECT_TRUE(module.execute("twice", x()).ok());
  EXPECT_TRUE(module.execute("twice", {x()}).ok());
  EXPECT_TRUE(module.execute("twice", *x()).ok());
  EXPECT_EQ(module.execute("scaled", {x(), 3}).error(), Error::InvalidState);
  EXPECT_EQ(values(module.get("twice", x()).get()), (Floats{2, 4, 6, 8}));
  EXPECT_TRUE(module.forward({x()}).ok());
  EXPECT_TRUE(module.forward().ok());
}

TEST_F(ModuleTest, KnowsItsMethods) {
  Module module(path());
  EXPECT_EQ(module.num_methods().get(), 6u);
  EXPECT_EQ(module.method_names()->count("weighted"), 1u);
  EXPECT_EQ(module.method_meta("forward")->num_inputs(), 2u);
  EXPECT_FALSE(module.is_method_loaded("twice"));
  EXPECT_EQ(module.load_method("twice"), Error::Ok);
  EXPECT_EQ(module.load_method("twice"), Error::Ok);
  EXPECT_TRUE(module.is_method_loaded("twice"));
  EXPECT_TRUE(module.unload_method("twice"));
  EXPECT_FALSE(module.unload_method("twice"));
  EXPECT_EQ(module.load_forward(), Error::Ok);
  EXPECT_TRUE(module.unload_forward());
}

TEST_F(ModuleTest, UnknownMethodsAreInvalidArguments) {
  Module module(loader());
  EXPECT_EQ(module.load_method("backward"), Error::InvalidArgument);
  EXPECT_EQ(module.execute("backward").error(), Error::InvalidArgument);
  EXPECT_EQ(module.method_meta("backward").error(), Error::InvalidArgument);
}

TEST_F(ModuleTest, WrongInputsAreInvalidArguments) {
  Module module(loader());
  EXPECT_EQ(module.forward({x(), y(), x()}).error(), Error::InvalidArgument);
  EXPECT_EQ(module.forward({x(), 1.0}).error(), Error::InvalidArgument);
  EXPECT_EQ(module.forward(make_tensor_ptr({1, 2, 3, 4})).error(), Error::InvalidArgument);
  EXPECT_EQ(Module(loader()).forward({x()}).error(), Error::InvalidArgument);
  const EValue undefined{aten::Tensor(nullptr)};
  EXPECT_EQ(module.forward({undefined, y()}).error(), Error::InvalidArgument);
  EXPECT_EQ(module.set_output(undefined), Error::InvalidArgument);
}

TEST_F(ModuleTest, RunsStepByStep) {
  Module module(loader());
  EXPECT_EQ(module.set_input(x(), 0), Error::Ok);
  EXPECT_EQ(module.set_input(y(), 1), Error::Ok);
  EXPECT_TRUE(module.forward().ok());
  EXPECT_EQ(values(module.get_output().get()), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(module.set_inputs({y(), y()}), Error::Ok);
  EXPECT_TRUE(module.forward().ok());
  EXPECT_EQ(values(module.get_outputs()->at(0)), (Floats{20, 40, 60, 80}));
  EXPECT_EQ(module.get_output(1).error(), Error::InvalidArgument);
  EXPECT_EQ(module.set_input(x(), 2), Error::InvalidArgument);
  EXPECT_EQ(module.set_inputs({x()}), Error::InvalidArgument);
}

TEST_F(ModuleTest, OutputsGoToMemoryOfTheCallerWhereTheyAreNotPlanned) {
  Module module(loader());
  const auto out = zeros({2, 2});
  EXPECT_EQ(module.set_output("scaled", EValue(1.0)), Error::InvalidArgument);
  EXPECT_EQ(module.set_outputs("scaled", {}), Error::InvalidArgument);
  EXPECT_EQ(module.set_output("scaled", zeros({2, 2}, executorch::aten::ScalarType::Double)),
            Error::InvalidArgument);
  EXPECT_EQ(module.set_output("scaled", out, 1), Error::InvalidArgument);
  EXPECT_EQ(module.set_output("scaled", out), Error::Ok);
  ASSERT_TRUE(module.execute("scaled", {x(), 3}).ok());
  EXPECT_EQ(values(EValue(*out)), (Floats{4, 8, 12, 16}));
  EXPECT_EQ(module.set_output(out), Error::InvalidState);
}

TEST_F(ModuleTest, AMethodWithoutOutputsHasNoFirstOutput) {
  Module module(loader());
  EXPECT_TRUE(module.execute("nothing")->empty());
  EXPECT_EQ(module.get("nothing").error(), Error::InvalidArgument);
}

TEST_F(ModuleTest, ReadsExternalData) {
  Module with_path(path(), data_path());
  EXPECT_EQ(values(with_path.get("weighted", x()).get()), (Floats{101, 202, 303, 404}));
  Module with_list(path(), std::vector<std::string>{data_path()}, Module::LoadMode::Mmap);
  EXPECT_EQ(values(with_list.get("weighted", x()).get()), (Floats{101, 202, 303, 404}));
}

TEST_F(ModuleTest, ReportsMissingOrRepeatedExternalData) {
  EXPECT_EQ(Module(path(), "/no/such/file.ptd").load(), Error::AccessFailed);
  EXPECT_EQ(Module(path(), path()).load(), Error::InvalidExternalData);
  EXPECT_EQ(Module(path(), std::vector<std::string>{data_path(), data_path()}).load(),
            Error::InvalidArgument);
  EXPECT_NE(Module(path()).load_method("weighted"), Error::Ok);
}

TEST_F(ModuleTest, MethodsHaveMemoryOfTheirOwnUnlessTheyShareIt) {
  for (const bool share : {false, true}) {
    Module module(path(), Module::LoadMode::File, nullptr, nullptr, nullptr, share);
    const auto sum = module.forward({x(), y()});
    ASSERT_TRUE(sum.ok());
    ASSERT_TRUE(module.execute("twice", y()).ok());
    EXPECT_EQ(values(sum->at(0)) == (Floats{11, 22, 33, 44}), true) << share;
    const void* const first = module.get_output("forward")->toTensor().const_data_ptr();
    const void* const second = module.get_output("twice")->toTensor().const_data_ptr();
    const auto distance = static_cast<const char*>(first) - static_cast<const char*>(second);
    EXPECT_EQ(distance == 16, share);
  }
}

TEST_F(ModuleTest, ProgramsCanBeShared) {
  std::shared_ptr<Program> program;
  {
    Module module(path());
    ASSERT_EQ(module.load(), Error::Ok);
    program = module.program();
  }
  Module first(program);
  Module second(program);
  EXPECT_TRUE(first.is_loaded());
  EXPECT_EQ(values(first.forward({x(), y()})->at(0)), values(second.forward({x(), y()})->at(0)));
}

TEST_F(ModuleTest, RejectsBrokenPrograms) {
  for (const size_t size : {size_t(0), size_t(7), bytes().size() / 2, bytes().size() - 1}) {
    Module module(std::make_unique<BufferDataLoader>(bytes().data(), size));
    EXPECT_NE(module.load(), Error::Ok) << size;
  }
  EXPECT_EQ(Module(std::unique_ptr<runtime::DataLoader>()).load(), Error::InvalidArgument);
}

TEST_F(ModuleTest, ReportsMissingOperators) {
  const std::string program = ExampleProgram::bytes("module_test::missing");
  Module module(std::make_unique<BufferDataLoader>(program.data(), program.size()));
  EXPECT_EQ(module.load_method("forward"), Error::OperatorMissing);
  std::vector<Kernel> kernels{
      make_boxed_kernel("module_test::missing.out", EXECUTORCH_FN(add_out))};
  EXPECT_EQ(module.load_forward(nullptr, nullptr, nullptr, kernels), Error::Ok);
  EXPECT_EQ(values(module.forward({x(), y()})->at(0)), (Floats{11, 22, 33, 44}));
}

TEST_F(ModuleTest, PlannedMemoryCanComeFromTheCaller) {
  Module module(path());
  alignas(16) uint8_t memory[48];
  runtime::Span<uint8_t> spans[1] = {{memory, sizeof(memory)}};
  runtime::HierarchicalAllocator planned({spans, 1});
  ASSERT_EQ(module.load_forward(&planned), Error::Ok);
  EXPECT_EQ(module.forward({x(), y()})->at(0).toTensor().const_data_ptr(), memory + 32);
}

class PrepareInputsTest : public ModuleTest {
 protected:
  void SetUp() override { ASSERT_EQ(module_.load_forward(), Error::Ok); }

  Method& method() { return **module_.method("forward"); }
#pragma GCC diagnostic pop

  Module module_{path()};
};

TEST_F(PrepareInputsTest, FillsWithOnes) {
  const auto cleanup = prepare_input_tensors(method());
  ASSERT_TRUE(cleanup.ok());
  EXPECT_EQ(values(module_.get("forward").get()), Floats(4, 2.0f));
}

TEST_F(PrepareInputsTest, TakesRawBuffers) {
  Floats a = kX;
  Floats b = kY;
  auto* const a_bytes = reinterpret_cast<char*>(a.data());
  auto* const b_bytes = reinterpret_cast<char*>(b.data());
  ASSERT_TRUE(prepare_input_tensors(method(), {}, {{a_bytes, 16}, {b_bytes, 16}}).ok());
  EXPECT_EQ(values(module_.get("forward").get()), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(prepare_input_tensors(method(), {}, {{a_bytes, 16}}).error(), Error::InvalidArgument);
  EXPECT_EQ(prepare_input_tensors(method(), {}, {{a_bytes, 16}, {b_bytes, 15}}).error(),
            Error::InvalidArgument);
  EXPECT_EQ(prepare_input_tensors(method(), {}, {{a_bytes, 16}, {nullptr, 16}}).error(),
            Error::InvalidArgument);
}

// The buffers of the inputs before the one that does not fit are freed.
TEST_F(PrepareInputsTest, SetsAllInputsOrNone) {
  Floats a = kX, b = kY;
  auto* const a_bytes = reinterpret_cast<char*>(a.data());
  auto* const b_bytes = reinterpret_cast<char*>(b.data());
  EXPECT_EQ(prepare_input_tensors(method(), {}, {{a_bytes, 16}, {b_bytes, 15}}).error(),
            Error::InvalidArgument);
  EXPECT_EQ(method().set_input(*y(), 1), Error::Ok);
  EXPECT_EQ(method().execute(), Error::InvalidArgument);  // input 0 was never set
}

TEST_F(PrepareInputsTest, KeepsToItsLimits) {
  PrepareInputTensorsOptions options;
  options.max_inputs = 1;
  EXPECT_EQ(prepare_input_tensors(method(), options).error(), Error::InvalidProgram);
  options = {};
  options.max_total_allocation_size = 31;
  EXPECT_EQ(prepare_input_tensors(method(), options).error(), Error::InvalidProgram);
}

TEST_F(ModuleTest, WorkOfLoopsIsBounded) {
  Module module(path());
  const auto adds = [&](uint64_t units) {
    module.set_max_work(units);
    n_adds = 0;
    EXPECT_EQ(module.execute("endless", *x()).error(), Error::InvalidProgram);
    return n_adds.load();
  };
  const size_t before = adds(1000);  // before the method is loaded
  EXPECT_GT(before, 10u);
  const size_t behind = adds(10000);
  EXPECT_GT(behind, 9 * before);
  EXPECT_LT(behind, 11 * before);
}

}  // namespace
}  // namespace executorch::extension
