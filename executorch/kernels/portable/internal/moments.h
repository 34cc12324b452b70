/// Sums, means and variances of long runs, as states of reduce.h. Runs are summed in several lanes
/// of C, which vectorizes; the sums of runs are added in double, so that the error does not grow
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

constexpr int64_t kMostColumns = 256;

/// sums[w] = sum over rows of f(x[w], w), width <= kMostColumns.
template <class C, class F>
void sum_columns(const C* x, int64_t pitch, int64_t rows, int64_t width, C* sums, const F& f) {
  for (int64_t w = 0; w < width; ++w) sums[w] = f(x[w], w);
  for (int64_t i = 1; i < rows; ++i) {
    const C* row = x + i * pitch;
#pragma GCC ivdep
    for (int64_t w = 0; w < width; ++w) sums[w] = wrapping_add(sums[w], f(row[w], w));
  }
}

template <class C>
struct Sum {
  std::conditional_t<kIsInt<C>, int64_t, double> value = 0;
  void fold(const C* x, int64_t n, int64_t) {
    value = wrapping_add(value, static_cast<decltype(value)>(sum_run(x, n, [](C v) { return v; })));
  }
  static void fold_columns(Sum* states, const C* x, int64_t pitch, int64_t rows, int64_t width,
                           int64_t) {
    C sums[kMostColumns];
    sum_columns(x, pitch, rows, width, sums, [](C v, int64_t) { return v; });
    for (int64_t w = 0; w < width; ++w) {
      states[w].value = wrapping_add(states[w].value, static_cast<decltype(Sum::value)>(sums[w]));
    }
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
    // The mean is rounded. The sum of deviations from it, `bias`, corrects the sum of squares.
    const double bias = sum_run(x, count, [run_mean](C v) { return v - run_mean; });
    const double about =
        sum_run(x, count, [run_mean](C v) { return (v - run_mean) * (v - run_mean); });
    merge(count, run_mean + bias / static_cast<double>(count),
          about - bias * bias / static_cast<double>(count));
  }

  static void fold_columns(Moments* states, const C* x, int64_t pitch, int64_t rows, int64_t width,
                           int64_t) {
    C mean[kMostColumns], bias[kMostColumns], about[kMostColumns];
    sum_columns(x, pitch, rows, width, mean, [](C v, int64_t) { return v; });
    for (int64_t w = 0; w < width; ++w) mean[w] /= static_cast<C>(rows);
    sum_columns(x, pitch, rows, width, bias, [&](C v, int64_t w) { return v - mean[w]; });
    sum_columns(x, pitch, rows, width, about,
                [&](C v, int64_t w) { return (v - mean[w]) * (v - mean[w]); });
    const double n = static_cast<double>(rows);
    for (int64_t w = 0; w < width; ++w) {
      const double lost = static_cast<double>(bias[w]);
      states[w].merge(rows, static_cast<double>(mean[w]) + lost / n,
                      static_cast<double>(about[w]) - lost * lost / n);
    }
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
