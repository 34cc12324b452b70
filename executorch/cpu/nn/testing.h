/// What the tests of kernels over arrays share.
#pragma once

#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace executorch::cpu {

inline std::vector<float> normal_floats(size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(n);
  for (float& x : result) x = normal(random);
  return result;
}

/// Runs the kernel again on several numbers of threads and expects the bits that `y` holds.
template <class T, class Run>
void expect_same_on_any_threads(std::vector<T>& y, const Run& run) {
  const std::vector<T> first = y;
  for (size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    std::fill(y.begin(), y.end(), T());
    run();
    ASSERT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(T)), 0)
        << threads << " threads";
  }
}

}  // namespace executorch::cpu
