/// What tests of kernels have in common.
#pragma once

#include <executorch/kernels/portable/functions.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

namespace torch::executor::native {

using executorch::aten::TensorShapeDynamism;
using executorch::runtime::Error;
using executorch::runtime::internal::PlatformMemoryAllocator;
using executorch::runtime::testing::TensorFactory;

/// Limits of time are multiples of this: sanitizers and other programs make calls slower. A mistake
/// would make them last for minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlowdown = 20;
#else
constexpr double kSlowdown = 2;
#endif

/// A context, and makers of tensors.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }
  /// The last call refused its arguments; the context is as new.
  void expect_failure(const char* what = "") {
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument) << what;
    ctx = KernelRuntimeContext();
  }

  KernelRuntimeContext ctx;
  TensorFactory<ScalarType::Bool> bools;
  TensorFactory<ScalarType::Byte> bytes;
  TensorFactory<ScalarType::Char> chars;
  TensorFactory<ScalarType::Int> ints;
  TensorFactory<ScalarType::Long> longs;
  TensorFactory<ScalarType::Half> halves;
  TensorFactory<ScalarType::Float> floats;
  TensorFactory<ScalarType::Double> doubles;
};

}  // namespace torch::executor::native
