#pragma once

#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/testing.h>
#include <gtest/gtest.h>

namespace executorch::cpu {

/// A fixture whose tests run with the microkernels of each instruction set that this machine has.
class OnEachSet : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { gemm::use_set(GetParam()); }
  void TearDown() override { gemm::use_set(0); }
};

}  // namespace executorch::cpu
