/// Copies between the elements of one tensor at places that a table names and elements of another
/// that are equally far apart: advanced indexing.
#pragma once

#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/loop.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace torch::executor::native::internal {

/// Places of n elements, for operands 0 and 1 of a loop over what is copied at each of them.
struct Places {
  static constexpr int64_t kMost = 1024;
  int64_t n = 0;
  int64_t at[kMost];  // offsets in operand 0
  int64_t begin = 0;  // the first offset in operand 1
  int64_t step = 0;   // from one to the next

  /// Whether the loop, rather than the places, is walked innermost: one of its dims is closer
  /// together in operand 1.
  bool are_outside(const Loop& loop) const {
    constexpr int64_t kFew = 16;
    int64_t closest = std::abs(loop.inner_stride(1));
    for (int d = 0; d < loop.ndim; ++d) closest = std::min(closest, std::abs(loop.strides[1][d]));
    const int64_t own = std::abs(step);
    return loop.ndim > 0 &&
           (n < kFew || closest < own || (closest == own && loop.inner_stride(0) == 1));
  }

  /// Sets lengths[r] to those of the runs of neighbours in operand 0; returns their number.
  int64_t runs(int32_t* lengths) const {
    int64_t r = 0;
    lengths[0] = 1;
    for (int64_t i = 1; i < n; ++i) {
      if (at[i] == at[i - 1] + 1) {
        ++lengths[r];
      } else {
        lengths[++r] = 1;
      }
    }
    return r + 1;
  }
};

constexpr int64_t kPlacedGrain = 16384;  // elements

/// to = from, or to += from
template <bool kAdd, class T>
void put_element(T& to, T from) {
  if constexpr (!kAdd) {
    to = from;
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    to = BoolByte(to || from);
  } else if constexpr (std::is_integral_v<T>) {
    to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(from));
  } else {
    to = static_cast<T>(to + from);
  }
}

/// Puts all elements of a loop, where its operands `to` and `from` are.
template <bool kAdd, class T>
void put_loop(const Loop& loop, T* dst, int to, const T* src, int from) {
  const int64_t to_step = loop.inner_stride(to), from_step = loop.inner_stride(from);
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    T* d = dst + offsets[to];
    const T* s = src + offsets[from];
    if (!kAdd && to_step == 1 && from_step == 1) {
      std::copy_n(s, n, d);
    } else {
      for (int64_t i = 0; i < n; ++i) put_element<kAdd>(d[i * to_step], s[i * from_step]);
    }
  });
}

/// Calls line(offset of operand 0, of operand 1) for all elements of the loop, on several threads.
template <class F>
void for_each_line(const Loop& loop, const Places& places, const F& line) {
  executorch::cpu::parallel_for(loop.numel, std::max<int64_t>(kPlacedGrain / places.n, 1),
                                [&](int64_t i, int64_t end) {
                                  for (; i < end; ++i)
                                    line(loop.offset(0, i), places.begin + loop.offset(1, i));
                                });
}

/// Copies what operand 0 has at the places to operand 1, `to`.
template <class T>
void take_places(const Loop& loop, const Places& places, const T* from, T* to) {
  if (places.are_outside(loop)) {
    const int64_t grain = std::max<int64_t>(kPlacedGrain / loop.numel, 1);
    executorch::cpu::parallel_for(places.n, grain, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        put_loop<false>(loop, to + places.begin + i * places.step, 1, from + places.at[i], 0);
      }
    });
    return;
  }
  constexpr int64_t kShort = 8;
  int32_t lengths[Places::kMost];
  const int64_t n_runs = places.step == 1 ? places.runs(lengths) : places.n;
  for_each_line(loop, places, [&](int64_t source, int64_t target) {
    const T* const s = from + source;
    T* const d = to + target;
    if (n_runs * kShort > places.n) {
      for (int64_t i = 0; i < places.n; ++i) d[i * places.step] = s[places.at[i]];
      return;
    }
    for (int64_t r = 0, i = 0; r < n_runs; i += lengths[r++]) {
      const T* const run = s + places.at[i];
      if (lengths[r] < kShort) {
        for (int32_t j = 0; j < lengths[r]; ++j) d[i + j] = run[j];
      } else {
        std::copy_n(run, lengths[r], d + i);
      }
    }
  });
}

/// Puts operand 1, `from`, to the places of operand 0, in their order.
template <bool kAdd, class T>
void put_places(const Loop& loop, const Places& places, const T* from, T* to) {
  if (places.are_outside(loop)) {
    for (int64_t i = 0; i < places.n; ++i) {
      put_loop<kAdd>(loop, to + places.at[i], 0, from + places.begin + i * places.step, 1);
    }
    return;
  }
  for_each_line(loop, places, [&](int64_t target, int64_t source) {
    for (int64_t i = 0; i < places.n; ++i) {
      put_element<kAdd>(to[target + places.at[i]], from[source + i * places.step]);
    }
  });
}

}  // namespace torch::executor::native::internal
