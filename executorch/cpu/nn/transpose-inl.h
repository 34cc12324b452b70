/// Transposition in registers of elements of 1, 2, 4 or 8 bytes, and sums of lanes by
/// transposition.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_TRANSPOSE_INL_H_
#undef EXECUTORCH_CPU_NN_TRANSPOSE_INL_H_
#else
#define EXECUTORCH_CPU_NN_TRANSPOSE_INL_H_
#endif
// clang-format on

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of columns that TransposeColumns() transposes: those in 16 bytes.
template <class D>
constexpr size_t kTransposedColumns = hn::MaxLanes(D()) < 16 / sizeof(hn::TFromD<D>)
                                          ? 1
                                          : 16 / sizeof(hn::TFromD<D>);

/// Loads 16 bytes from each of p, p + step, p + 2 step ...
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const T* p, ptrdiff_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> dh;
    const ptrdiff_t half = static_cast<ptrdiff_t>(hn::MaxLanes(dh) * sizeof(T) / 16) * step;
    return hn::Combine(d, LoadBlocks(dh, p + half, step), LoadBlocks(dh, p, step));
  }
}

/// Stores 16 bytes of v to each of p, p + step, p + 2 step ...
template <class D, class T>
HWY_INLINE void StoreBlocks(D d, hn::Vec<D> v, T* p, ptrdiff_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> dh;
    const ptrdiff_t half = static_cast<ptrdiff_t>(hn::MaxLanes(dh) * sizeof(T) / 16) * step;
    StoreBlocks(dh, hn::LowerHalf(dh, v), p, step);
    StoreBlocks(dh, hn::UpperHalf(dh, v), p + half, step);
  }
}

/// Transposes within 16-byte blocks: in each block, exchanges element c of v[r] and element r of
/// v[c], by log2(kTransposedColumns) perfect shuffles.
template <class D, size_t kColumns>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D> (&v)[kColumns]) {
  // Not every target interleaves vectors of one lane.
  if constexpr (kColumns > 1) {
    constexpr size_t kHalf = kColumns / 2;
    hn::Vec<D> w[kColumns];
    for (size_t round = 1; round < kColumns; round *= 2) {
      for (size_t k = 0; k < kHalf; ++k) {
        w[2 * k] = hn::InterleaveLower(d, v[k], v[k + kHalf]);
        w[2 * k + 1] = hn::InterleaveUpper(d, v[k], v[k + kHalf]);
      }
      for (size_t k = 0; k < kColumns; ++k) v[k] = w[k];
    }
  }
}

/// The sum of the 16-byte blocks of a vector.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<hn::TFromD<D>, 4>> SumOfBlocks(D, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

/// The four sums of lanes of four vectors of 32-bit elements.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<hn::TFromD<D>, 4>> SumsOfLanes(D d, const hn::Vec<D> (&v)[4]) {
  static_assert(sizeof(hn::TFromD<D>) == 4);
  const hn::Repartition<uint64_t, D> dw;
  const hn::Vec<D> x01 =
      hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const hn::Vec<D> x23 =
      hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto w01 = hn::BitCast(dw, x01), w23 = hn::BitCast(dw, x23);
  return SumOfBlocks(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(dw, w01, w23)),
                                hn::BitCast(d, hn::InterleaveUpper(dw, w01, w23))));
}

/// dst[c * dst_stride + r] = src[r * src_stride + c] for r < Lanes(d) and c < kTransposedColumns.
/// Strides are in elements. No alignment is needed, unless kPast: stores then go past the caches,
/// and dst and its rows must be aligned to vectors.
template <bool kPast = false, class D, class T = hn::TFromD<D>>
HWY_INLINE void TransposeColumns(D d, const T* HWY_RESTRICT src, ptrdiff_t src_stride,
                                 T* HWY_RESTRICT dst, ptrdiff_t dst_stride) {
  constexpr size_t kColumns = kTransposedColumns<D>;
  if constexpr (kColumns == 1) {
    for (size_t r = 0; r < hn::Lanes(d); ++r) dst[r] = src[static_cast<ptrdiff_t>(r) * src_stride];
  } else {
    // v[k] holds rows k, kColumns + k, 2 kColumns + k ...
    hn::Vec<D> v[kColumns];
    for (size_t k = 0; k < kColumns; ++k) {
      v[k] = LoadBlocks(d, src + static_cast<ptrdiff_t>(k) * src_stride,
                        static_cast<ptrdiff_t>(kColumns) * src_stride);
    }
    TransposeBlocks(d, v);
    for (size_t k = 0; k < kColumns; ++k) {
      T* const to = dst + static_cast<ptrdiff_t>(k) * dst_stride;
      kPast ? hn::Stream(v[k], d, to) : hn::StoreU(v[k], d, to);
    }
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
