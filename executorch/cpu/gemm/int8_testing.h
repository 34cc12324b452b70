#pragma once

#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/testing.h>
#include <gtest/gtest.h>

namespace executorch::cpu {

/// Every test runs with the kernels of each instruction set that this machine has.
class OnEachInt8Set : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { int8::use_kernels(*int8::all_kernels()[GetParam()]); }
  void TearDown() override { int8::use_kernels(*int8::all_kernels()[0]); }
};

inline int count_int8_sets() {
  int n = 0;
  while (int8::all_kernels()[n] != nullptr) ++n;
  return n;
}

}  // namespace executorch::cpu
