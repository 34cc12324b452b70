/// Sums, means and variances of long runs, as states of reduce.h. Runs are summed in several lanes
/// of C, which vectorises; the sums of runs are added in double, so that the error does not grow
/// with the length.
#pragma once

#include <executorch/kernels/portable/internal/arithmetic.h>

namespace torch::executor::native::internal {

constexpr int64_t kLanes = 16;

/// Sum of f(x[i]) for i in [0, n), with n at most some thousand.
template <class C, class F>
C sum_run(const C* x, int64_t n, const F& f) {
  C lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = wrapping_add(lanes[j], f(x[i + j]));
  }
  for (int64_t j = 0; i < n; ++i, ++j) lanes[j] = wrapping_add(lanes[j], f(x[i]));
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lanes[j] = wrapping_add(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

template <class C>
struct Sum {
  std::conditional_t<kIsInt<C>, int64_t, double> value = 0;
  void fold(const C* x, int64_t n, int64_t) {
    value = wrapping_add(value, static_cast<decltype(value)>(sum_run(x, n, [](C v) { return v; })));
  }
};

/// Mean and sum of squared deviations from it; runs are merged by the parallel form of Welford's
/// update.
template <class C>
struct Moments {
  int64_t n = 0;
  double mean = 0;
  double squares = 0;

  void fold(const C* x, int64_t count, int64_t) {
    const C run_mean = sum_run(x, count, [](C v) { return v; }) / static_cast<C>(count);
    // Deviations from a rounded mean; the second sum takes back what the rounding added.
    const double bias = sum_run(x, count, [run_mean](C v) { return v - run_mean; });
    const double about =
        sum_run(x, count, [run_mean](C v) { return (v - run_mean) * (v - run_mean); });
    merge(count, run_mean + bias / static_cast<double>(count),
          about - bias * bias / static_cast<double>(count));
  }

  void merge(int64_t count, double other_mean, double other_squares) {
    const double total = static_cast<double>(n + count);
    const double delta = other_mean - mean;
    mean += delta * static_cast<double>(count) / total;
    squares +=
        other_squares + delta * delta * static_cast<double>(n) * static_cast<double>(count) / total;
    n += count;
  }
};

}  // namespace torch::executor::native::internal
