/// What tests of kernels have in common.
#pragma once

#include <executorch/kernels/portable/functions.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <ctime>

namespace torch::executor::native {

using executorch::aten::TensorShapeDynamism;
using executorch::runtime::Error;
using executorch::runtime::internal::PlatformMemoryAllocator;
using executorch::runtime::testing::TensorFactory;

/// Expects that f() takes at most `seconds` of this thread's CPU time, which other processes do not
/// lengthen; ten times as much under sanitizers. A mistake would make it last for minutes.
template <class F>
void expect_within(double seconds, const F& f, const char* what = "") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  seconds *= 10;
#endif
  const auto now = [] {
    std::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const double begin = now();
  f();
  EXPECT_LT(now() - begin, seconds) << what;
}

/// A context, and makers of tensors.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }
  /// Expects that the last call refused its arguments, and resets the context.
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
