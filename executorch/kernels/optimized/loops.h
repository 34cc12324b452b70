/// Walks dimensions of several views together, as nested loops.
#pragma once

#include <executorch/kernels/optimized/view.h>

namespace executorch::optimized {

/// Nested loops, innermost first. In each loop every view has a stride of its own. Two neighbouring
/// loops are merged if every view can walk both by a single stride.
template <int kViews>
struct Loops {
  static constexpr int kMost = 6;
  struct Loop {
    int64_t size = 1;
    int64_t stride[kViews] = {};
  };
  int n = 0;
  Loop loops[kMost];

  /// Adds dimension `dim` around the present loops. A view whose size is 1 there has stride 0.
  /// Returns false if the views' sizes do not match, or if there would be more than kMost loops.
  bool add(const View (&views)[kViews], int dim) {
    int at[kViews];
    View::Factor rest[kViews];
    for (int w = 0; w < kViews; ++w) {
      at[w] = views[w].n_factors(dim);
      rest[w] = {1, 0};
    }
    for (;;) {
      int64_t size = 0;
      for (int w = 0; w < kViews; ++w) {
        while (rest[w].size == 1 && at[w] > 0) rest[w] = views[w].factor(dim, --at[w]);
        if (rest[w].size > 1 && (size == 0 || rest[w].size < size)) size = rest[w].size;
      }
      if (size == 0) return true;
      Loop loop;
      loop.size = size;
      for (int w = 0; w < kViews; ++w) {
        if (rest[w].size % size != 0 && views[w].size(dim) != 1) return false;
        if (views[w].size(dim) == 1) continue;
        loop.stride[w] = rest[w].stride;
        rest[w] = {rest[w].size / size, rest[w].stride * size};
      }
      if (!push(loop)) return false;
    }
  }

  /// Sets at[w] to the offset in elements of view w at iteration `row` of the loops from `first`
  /// on.
  void locate(int64_t row, int first, int64_t (&at)[kViews]) const {
    for (int w = 0; w < kViews; ++w) at[w] = 0;
    for (int i = first; i < n; ++i) {
      for (int w = 0; w < kViews; ++w) at[w] += row % loops[i].size * loops[i].stride[w];
      row /= loops[i].size;
    }
  }

  static bool continues(const Loop& inner, const Loop& outer, int view) {
    return outer.stride[view] == inner.size * inner.stride[view];
  }

 private:
  bool push(const Loop& loop) {
    bool merges = n > 0;
    for (int w = 0; merges && w < kViews; ++w) merges = continues(loops[n - 1], loop, w);
    if (merges) {
      loops[n - 1].size *= loop.size;
      return true;
    }
    if (n == kMost) return false;
    loops[n++] = loop;
    return true;
  }
};

}  // namespace executorch::optimized
