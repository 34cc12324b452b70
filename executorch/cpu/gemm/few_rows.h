/// What products of few rows of A share. They read B once, where it lies.
#pragma once

#include <executorch/cpu/gemm/operands.h>

#include <type_traits>

namespace executorch::cpu::gemm {

/// The most and the least columns of a task of a product of few rows. The sums of a task lie on the
/// stack.
constexpr int64_t kTaskColumns = 192, kLeastTaskColumns = 32;

/// The rows of A as floats: where they lie, or converted in scratch memory.
template <class T>
class FloatRows {
 public:
  explicit FloatRows(const Gemm<T>& g)
      : g_(g),
        in_place_(std::is_same_v<T, float> && g.a.col_stride == 1),
        ld_(in_place_ ? g.a.row_stride : round_up(g.k, kMostLanes)) {}

  /// To be called before of(). Returns false if memory is refused.
  [[nodiscard]] bool convert(Scratch& scratch) {
    if (in_place_) return true;
    rows_ = scratch.array<float>(Size(g_.batch) * g_.m * ld_);
    for (int64_t s = 0; s < g_.batch && rows_ != nullptr; ++s) {
      Matrix<const T> a = g_.a;
      a.data += s * g_.a_batch;
      convert_rows(a, g_.m, g_.k, rows_ + s * g_.m * ld_, ld_);
    }
    return rows_ != nullptr;
  }

  /// The rows of batch entry s, which are ld() elements apart.
  const float* of(int64_t s) const {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place_) return g_.a.data + s * g_.a_batch;
    }
    return rows_ + s * g_.m * ld_;
  }
  int64_t ld() const { return ld_; }

 private:
  const Gemm<T>& g_;
  const bool in_place_;
  const int64_t ld_;
  float* rows_ = nullptr;
};

}  // namespace executorch::cpu::gemm
