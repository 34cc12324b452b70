/// Shared by both algorithms of attention: conversion of rows to floats, and masks.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_ROWS_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_ROWS_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_ROWS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/attention.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
/// The keys of a block: its probabilities for 64 queries take half of an L1 cache.
constexpr int64_t kKeys = 96;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;

constexpr int64_t RoundUp(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// dst[0..n) = src[0..n) as float.
template <class T>
HWY_INLINE void CopyRow(const T* HWY_RESTRICT src, int64_t n, float* HWY_RESTRICT dst) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(LoadFloats(d, src + i), d, dst + i);
  const size_t rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, src + i, rest), d, dst + i, rest);
}

template <class T>
HWY_INLINE void StoreRow(const float* HWY_RESTRICT src, int64_t n, T* HWY_RESTRICT dst) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreFloats(hn::LoadU(d, src + i), d, dst + i);
  const size_t rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, src + i, rest), d, dst + i, rest);
}

/// Which keys of a block the mask lets some queries see: all, none, or some, with numbers to add.
enum class Seen : uint8_t { All, None, Some };

/// Reads a block of the mask as numbers to add to scores; row i is written to dst + i * kKeys.
class MaskBlock {
 public:
  MaskBlock(const Attention& a, int64_t b, int64_t h) : a_(a) {
    offset_ = b * a.mask_batch_stride + h * a.mask_head_stride;
  }

  /// Reads `rows` x `n` elements from (row, key) on. If all rows of the mask are the same, reads
  /// one.
  Seen read(int64_t row, int64_t rows, int64_t key, int64_t n, float* HWY_RESTRICT dst) {
    if (a_.mask_kind == Attention::Mask::None) return Seen::All;
    one_row = a_.mask_row_stride == 0;
    bool all = true, none = true;
    for (int64_t i = 0; i < (one_row ? 1 : rows); ++i) {
      const int64_t at = offset_ + (row + i) * a_.mask_row_stride + key * a_.mask_col_stride;
      float* to = dst + i * kKeys;
      switch (a_.mask_kind) {
        case Attention::Mask::F32:
          Row(static_cast<const float*>(a_.mask) + at, n, to, all, none);
          break;
        case Attention::Mask::F16:
          Row(static_cast<const F16*>(a_.mask) + at, n, to, all, none);
          break;
        case Attention::Mask::BF16:
          Row(static_cast<const BF16*>(a_.mask) + at, n, to, all, none);
          break;
        default:
          BoolRow(static_cast<const uint8_t*>(a_.mask) + at, n, to, all, none);
      }
    }
    return all ? Seen::All : none ? Seen::None : Seen::Some;
  }

  bool one_row = false;

 private:
  template <class T>
  void Row(const T* HWY_RESTRICT src, int64_t n, float* HWY_RESTRICT dst, bool& all, bool& none) {
    const Floats d;
    T strided[kKeys];
    if (a_.mask_col_stride != 1) {
      for (int64_t j = 0; j < n; ++j) strided[j] = src[j * a_.mask_col_stride];
      src = strided;
    }
    const auto zero = hn::Zero(d), lowest = hn::Set(d, -kInfinity);
    const auto log2e = hn::Set(d, kLog2E), finite = hn::Set(d, -std::numeric_limits<float>::max());
    for (int64_t j = 0; j < n; j += kLanes) {
      const size_t m = static_cast<size_t>(std::min(kLanes, n - j));
      const auto v =
          m == static_cast<size_t>(kLanes) ? LoadFloats(d, src + j) : LoadFloatsN(d, src + j, m);
      const auto here = hn::FirstN(d, m);
      const auto hidden = hn::Eq(v, lowest);
      all = all && hn::AllFalse(d, hn::AndNot(hn::Eq(v, zero), here));  // NaN is not 0
      none = none && hn::AllFalse(d, hn::AndNot(hidden, here));
      // The lowest finite number hides a key as well. But a row in which all keys have it still has
      // finite scores, so the numbers stay finite after scaling.
      const auto scaled = KeepNaN(v, hn::Max(hn::Mul(v, log2e), finite));
      hn::StoreU(hn::IfThenElse(hidden, lowest, scaled), d, dst + j);
    }
  }

  void BoolRow(const uint8_t* src, int64_t n, float* HWY_RESTRICT dst, bool& all, bool& none) {
    for (int64_t j = 0; j < n; ++j) {
      const bool visible = src[j * a_.mask_col_stride] != 0;
      all = all && visible;
      none = none && !visible;
      dst[j] = visible ? 0.0f : -kInfinity;
    }
  }

  const Attention& a_;
  int64_t offset_;
};

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
