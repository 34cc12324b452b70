// What modules of several threads share: the platform layer, which the first of them starts,
// programs, the table of kernels, the pool of threads. ThreadSanitizer is to find nothing.
#include <executorch/extension/module/example_program.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace executorch::extension {
namespace {

using runtime::Error;
using testing::ExampleProgram;
using Floats = std::vector<float>;

constexpr int kRuns = 30;

/// Whether `method` of the module multiplies ones by `factor`.
bool runs(Module& module, const std::string& method, size_t n_inputs, float factor) {
  const auto x = make_tensor_ptr({2, 2}, Floats{1, 2, 3, 4});
  const auto found = module.execute(method, std::vector<runtime::EValue>(n_inputs, *x));
  if (!found.ok()) return false;
  const float* const values = found->at(0).toTensor().const_data_ptr<float>();
  for (int i = 0; i < 4; ++i) {
    if (values[i] != factor * static_cast<float>(i + 1)) return false;
  }
  return true;
}

bool runs_often(Module& module, const std::string& method, size_t n_inputs) {
  for (int i = 0; i < kRuns; ++i) {
    if (!runs(module, method, n_inputs, 2)) return false;
  }
  return true;
}

/// Runs all at once; whether each was true.
bool all_in_threads(const std::vector<std::function<bool()>>& tasks) {
  std::atomic<size_t> n_true{0};
  std::vector<std::thread> threads;
  for (const auto& task : tasks) {
    threads.emplace_back([&] { n_true += task() ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  return n_true == tasks.size();
}

class ModuleThreads : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* name : {"a", "b"}) {
      std::ofstream(path(name), std::ios::binary) << ExampleProgram::bytes();
    }
  }
  static void TearDownTestSuite() {
    for (const char* name : {"a", "b"}) std::remove(path(name).c_str());
  }
  static std::string path(const std::string& name) {
    return ::testing::TempDir() + "module_threads_test_" + name + ".pte";
  }
};

TEST_F(ModuleThreads, RunTwoPrograms) {
  std::vector<std::function<bool()>> tasks;
  for (const char* name : {"a", "b"}) {
    tasks.emplace_back([name] {
      Module module(path(name), Module::LoadMode::Mmap);
      return runs_often(module, "forward", 2);
    });
  }
  EXPECT_TRUE(all_in_threads(tasks));
}

TEST_F(ModuleThreads, RunMethodsOfOneProgram) {
  Module owner(path("a"));
  ASSERT_EQ(owner.load(), Error::Ok);
  std::vector<std::function<bool()>> tasks;
  for (const char* method : {"forward", "twice", "forward"}) {
    tasks.emplace_back([&owner, method] {
      Module module(owner.program());
      return runs_often(module, method, method[0] == 'f' ? 2 : 1);
    });
  }
  EXPECT_TRUE(all_in_threads(tasks));
}

TEST_F(ModuleThreads, LoadWhileOthersRun) {
  Module owner(path("a"), Module::LoadMode::Mmap);
  ASSERT_EQ(owner.load_method("forward"), Error::Ok);
  const auto load_often = [](const std::function<std::unique_ptr<Module>()>& make) {
    for (int i = 0; i < kRuns; ++i) {
      const auto module = make();
      if (!runs(*module, "twice", 1, 2)) return false;
    }
    return true;
  };
  EXPECT_TRUE(all_in_threads({
      [&] { return runs_often(owner, "forward", 2); },
      [&] { return load_often([&] { return std::make_unique<Module>(owner.program()); }); },
      [&] { return load_often([] { return std::make_unique<Module>(path("a")); }); },
      [&] { return load_often([] { return std::make_unique<Module>(path("b")); }); },
  }));
}

}  // namespace
}  // namespace executorch::extension
