// Products of a few rows of A for instruction sets that multiply a vector by one lane of another
// (ARM). There, one load brings four columns of a row of A. Other sets load each column by an
// instruction of its own that broadcasts it to all lanes. Include this file once for each target,
// after hwy/highway.h; it has no include guard.

#undef ET_MULTIPLIES_BY_LANE
#define ET_MULTIPLIES_BY_LANE (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)

#if ET_MULTIPLIES_BY_LANE
HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm::HWY_NAMESPACE {

/// sums += columns kFirst and kFirst + 1 of the next four columns of A times rows `first` and
/// `second` of B. More than two rows of B at once would leave too few registers for the sums.
template <int kFirst, class V, int kHeight, int kVectors>
HWY_INLINE void MultiplyAddTwo(RowPointers<float, kHeight>& a, const float* HWY_RESTRICT first,
                               const float* HWY_RESTRICT second, V (&sums)[kHeight][kVectors]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::DFromV<V> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::DFromV<V>()));
  a.Hide();
  V y[2][kVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kVectors; ++v) {
    y[0][v] = hn::LoadU(d, first + v * kLanes);
    y[1][v] = hn::LoadU(d, second + v * kLanes);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kHeight; ++i) {
    const V x = hn::LoadU(d, a[i]);
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = hn::MulAdd(hn::Broadcast<kFirst>(x), y[0][v], sums[i][v]);
      sums[i][v] = hn::MulAdd(hn::Broadcast<kFirst + 1>(x), y[1][v], sums[i][v]);
    }
    // Without this barrier the compiler would load all rows ahead and spill sums.
    asm volatile("" : : : "memory");
  }
}

/// sums += the next four columns of A times row(0) to row(3) of B. Afterwards `a` points behind
/// these columns.
template <class V, int kHeight, int kVectors, class Row>
HWY_INLINE void MultiplyAddFour(RowPointers<float, kHeight>& a, const Row& row,
                                V (&sums)[kHeight][kVectors]) {
  MultiplyAddTwo<0>(a, row(0), row(1), sums);
  MultiplyAddTwo<2>(a, row(2), row(3), sums);
  a.Advance(4);
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
