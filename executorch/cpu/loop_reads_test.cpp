#include <executorch/cpu/loop_reads.h>
#include <gtest/gtest.h>

#include <vector>

namespace executorch::cpu {
namespace {

LoopReads reads(uintptr_t address) {
  LoopReads loop;
  loop.reads.data = reinterpret_cast<const void*>(address);
  loop.ranges = 2;
  return loop;
}

/// Addresses of the matrices of a model of `layers` equal layers, which begin at `base`.
std::vector<uintptr_t> model(uintptr_t base, int layers, const std::vector<uintptr_t>& sizes) {
  std::vector<uintptr_t> matrices;
  for (int layer = 0; layer < layers; ++layer) {
    for (const uintptr_t size : sizes) {
      matrices.push_back(base);
      base += size;
    }
  }
  return matrices;
}

TEST(ReadHistory, TellsEachMatrixOfALayeredModelAfterTheFirstCall) {
  const std::vector<uintptr_t> gpt2 = {0x1B4800, 0x91800, 0x246000, 0x241800};
  const std::vector<uintptr_t> llama = {4096 * 4096,  4096 * 1024,  4096 * 1024, 4096 * 4096,
                                        4096 * 14336, 4096 * 14336, 4096 * 14336};
  for (const auto& matrices : {model(0x7f3cc2c72e80, 12, gpt2), model(0x7f0000200000, 24, llama),
                               model(0x7f0000200000, 80, llama), model(64, 49, {64})}) {
    ReadHistory history;
    for (const uintptr_t m : matrices) history.record_and_predict(reads(m));
    for (int call = 0; call < 2; ++call) {
      for (size_t i = 0; i < matrices.size(); ++i) {
        const uintptr_t next = matrices[(i + 1) % matrices.size()];
        const LoopReads& told = history.record_and_predict(reads(matrices[i]));
        // The first call did not see what follows the last matrix.
        if (call > 0 || i + 1 < matrices.size()) {
          EXPECT_EQ(told.reads.data, reads(next).reads.data) << call << " " << i;
          EXPECT_EQ(told.ranges, 2);
        }
      }
    }
  }
}

TEST(ReadHistory, TellsTheNextMatrixShortlyBeforeItIsRead) {
  ReadHistory history;
  EXPECT_EQ(history.record_and_predict({}).reads.data, nullptr);
  const auto call = [&](int between) {
    std::vector<const void*> told = {history.record_and_predict(reads(4096)).reads.data};
    for (int i = 0; i < between; ++i) told.push_back(history.record_and_predict({}).reads.data);
    history.record_and_predict(reads(8192));
    return told;
  };
  const void *const none = nullptr, *const next = reads(8192).reads.data;
  call(3);
  EXPECT_EQ(call(3), (std::vector<const void*>{none, none, next, next}));
  EXPECT_EQ(call(6), (std::vector<const void*>{none, none, next, next, none, none, none}));
  EXPECT_EQ(call(1), (std::vector<const void*>{none, none}));  // six lay between before
  EXPECT_EQ(call(1), (std::vector<const void*>{next, next}));
}

TEST(ReadHistory, ForgetsWhatIsTooMuchAndGoesOn) {
  ReadHistory history;
  for (uintptr_t m = 1; m < 100000; ++m) history.record_and_predict(reads(m * 64));
  for (const uintptr_t m : {64, 128}) history.record_and_predict(reads(m));
  EXPECT_EQ(history.record_and_predict(reads(64)).reads.data, reads(128).reads.data);
}

}  // namespace
}  // namespace executorch::cpu
