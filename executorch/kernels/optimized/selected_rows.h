/// The rows of a product for which a factor is not zero.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/optimized/view.h>

#include <type_traits>

namespace executorch::optimized {

template <class T>
bool is_zero(T x) {
  if constexpr (std::is_class_v<T>) {
    return (x.bits & 0x7FFF) == 0;  // all but the sign
  } else {
    return x == 0;
  }
}

class SelectedRows {
 public:
  explicit SelectedRows(cpu::Scratch& scratch) : scratch_(scratch) {}

  /// Looks at the factors, one for each of m rows. Returns false if all rows are to be computed:
  /// if no factor is zero, there are not m of them, or there is no memory.
  bool choose(const Operand& factor, int64_t m) {
    View view = factor.view();
    int64_t step;
    if (!view.valid() || !view.reshape(&m, 1) || !view.stride(0, step)) return false;
    rows_ = scratch_.array<int64_t>(m);
    if (rows_ == nullptr) return false;
    cpu::with_type(engine_type(factor.tensor()), [&](auto t) {
      const auto* const data = static_cast<const decltype(t)*>(factor.data(view));
      for (int64_t i = 0; i < m; ++i) {
        if (!is_zero(data[i * step])) rows_[count_++] = i;
      }
    });
    return count_ < m;
  }

  /// Computes the chosen rows of `all`, a single product, by multiply(), which computes a product
  /// and returns false if it had no memory; the other rows of the result become zero.
  template <class T, class F>
  [[nodiscard]] bool run(const cpu::Gemm<T>& all, const F& multiply) const {
    const cpu::Scratch::Frame frame(scratch_);
    T* const a = scratch_.array<T>(cpu::Size(count_) * all.k);
    T* const c = scratch_.array<T>(cpu::Size(count_) * all.n);
    if (a == nullptr || c == nullptr) return false;
    for (int64_t r = 0; r < count_; ++r) {
      const T* const from = all.a.data + rows_[r] * all.a.row_stride;
      for (int64_t p = 0; p < all.k; ++p) a[r * all.k + p] = from[p * all.a.col_stride];
    }
    cpu::Gemm<T> some = all;
    some.m = count_;
    some.a = {a, all.k, 1};
    some.c = {c, all.n, 1};
    if (count_ > 0 && !multiply(some)) return false;
    for (int64_t i = 0, r = 0; i < all.m; ++i) {
      T* const to = all.c.data + i * all.c.row_stride;
      const bool is_chosen = r < count_ && rows_[r] == i;
      for (int64_t j = 0; j < all.n; ++j) {
        to[j * all.c.col_stride] = is_chosen ? c[r * all.n + j] : T{};
      }
      r += is_chosen ? 1 : 0;
    }
    return true;
  }

 private:
  cpu::Scratch& scratch_;
  int64_t* rows_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace executorch::optimized
