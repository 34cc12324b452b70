// Programs and methods that work at the same time: for ThreadSanitizer, ./dev tsan.
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

namespace executorch::runtime {
namespace {

using testing::BytesLoader;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

constexpr int kThreads = 4;
constexpr int kRounds = 50;

// (a, b, out): out = a + b, by way of temporary memory.
void add(KernelRuntimeContext& context, Span<EValue*> args) {
  const aten::Tensor& a = args[0]->toTensor();
  const aten::Tensor& b = args[1]->toTensor();
  auto sums = context.allocate_temp(a.nbytes());
  if (!sums.ok()) return context.fail(sums.error());
  auto* const sum = static_cast<float*>(*sums);
  for (ssize_t i = 0; i < a.numel(); ++i) {
    sum[i] = a.const_data_ptr<float>()[i] + b.const_data_ptr<float>()[i];
  }
  std::memcpy(args[2]->toTensor().mutable_data_ptr(), sum, a.nbytes());
}

const std::vector<Kernel> kKernels = {Kernel("test::add", add)};

// Methods "0", "1" ...: method m adds the constant m + 1.
std::vector<uint8_t> program(int n_methods) {
  ProgramBuilder builder;
  for (int m = 0; m < n_methods; ++m) {
    builder.constants.push_back(
        ProgramBuilder::bytes<float>(Floats(64, static_cast<float>(m + 1))));
    PlanBuilder& plan = builder.method(std::to_string(m));
    const int32_t x = plan.tensor({.sizes = {64}, .memory_id = 1});
    const int32_t c = plan.tensor({.sizes = {64}, .data = static_cast<uint32_t>(m + 1)});
    const int32_t out = plan.tensor({.sizes = {64}, .memory_id = 1, .offset = 256});
    plan.kernel("test::add", {x, c, out});
    plan.inputs = {x};
    plan.outputs = {out};
    plan.arenas = {0, 512};
  }
  return builder.build();
}

// The memory of one method, and the method.
struct Runner {
  std::vector<uint8_t> arena = std::vector<uint8_t>(512);
  std::vector<uint8_t> pool = std::vector<uint8_t>(1 << 14);
  Span<uint8_t> span{arena.data(), arena.size()};
  HierarchicalAllocator planned{{&span, 1}};
  MemoryAllocator allocator{1 << 14, pool.data()};
  MemoryManager memory{&allocator, &planned};

  bool run(const Program& from, int m) {
    auto method = from.load_method(std::to_string(m).c_str(), &memory, nullptr, nullptr, nullptr,
                                   {kKernels.data(), kKernels.size()});
    bool right = method.ok();
    for (int round = 0; right && round < 4; ++round) {
      OwnedTensor<float> x({64}, Floats(64, static_cast<float>(round)));
      right = method->set_input(x.value(), 0) == Error::Ok && method->execute() == Error::Ok &&
              method->get_output(0).toTensor().const_data_ptr<float>()[63] ==
                  static_cast<float>(round + m + 1);
    }
    return right;
  }
};

// Runs `work(thread)` in all threads at once; how often it returned false.
int failures(const std::function<bool(int)>& work) {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) failed += work(t) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed;
}

TEST(Threads, EachLoadsAndRunsAProgramOfItsOwn) {
  runtime_init();
  const auto bytes = program(1);
  EXPECT_EQ(failures([&](int) {
              BytesLoader loader(bytes);
              auto loaded = Program::load(&loader);
              return loaded.ok() && Runner().run(*loaded, 0);
            }),
            0);
}

TEST(Threads, OneProgramServesSeveralMethods) {
  runtime_init();
  BytesLoader loader(program(kThreads));
  auto loaded = Program::load(&loader);
  ASSERT_TRUE(loaded.ok());
  ASSERT_TRUE(loaded->get_constant_buffer_data(1, 4).ok());  // BytesLoader counts what it loads
  EXPECT_EQ(failures([&](int t) { return Runner().run(*loaded, t); }), 0);
  EXPECT_EQ(failures([&](int) { return Runner().run(*loaded, 0); }), 0);
}

TEST(Threads, OthersLoadWhileSomeRun) {
  runtime_init();
  const auto bytes = program(2);
  BytesLoader loader(bytes);
  auto shared = Program::load(&loader);
  ASSERT_TRUE(shared.ok());
  ASSERT_TRUE(shared->get_constant_buffer_data(1, 4).ok());
  EXPECT_EQ(failures([&](int t) {
              if (t % 2 == 0) {
                return Runner().run(*shared, t / 2);
              }
              BytesLoader own(bytes);
              auto loaded = Program::load(&own);
              return loaded.ok() && Runner().run(*loaded, 1);
            }),
            0);
}

}  // namespace
}  // namespace executorch::runtime
