#include <executorch/cpu/gemm/kernels.h>

#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 vector registers hold 12 x 2 sums, 16 hold 6 x 2, beside two vectors of B and one of A.
#if HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif

template <class Acc>
using Tag = hn::CappedTag<Acc, kMostLanes>;

template <class Acc, int kHeight, int kVectors>
struct Sums {
  hn::Vec<Tag<Acc>> of[kHeight][kVectors];
};

template <class V>
HWY_INLINE void AddProduct(V x, V y, V& sum) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    sum = hn::MulAdd(x, y, sum);
  } else {
    sum = hn::Add(sum, hn::Mul(x, y));
  }
}

// Sums += columns [p, p + n) of A times as many rows of B.
template <int n, class Acc, int kHeight, int kVectors>
HWY_INLINE void MultiplyAdd(const Acc* HWY_RESTRICT a, int64_t lda, const Acc* HWY_RESTRICT rows,
                            int64_t ldb, Sums<Acc, kHeight, kVectors>& sums) {
  const Tag<Acc> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
#pragma GCC unroll 4
  for (int p = 0; p < n; ++p, rows += ldb) {
    hn::Vec<Tag<Acc>> b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, rows + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kHeight; ++i) {
      const auto x = hn::Set(d, a[i * lda + p]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) AddProduct(x, b[v], sums.of[i][v]);
    }
  }
}

template <class Acc, int kHeight, int kVectors>
void RunTile(const Tile<Acc>& t) {
  const Tag<Acc> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
  Sums<Acc, kHeight, kVectors> sums;
#pragma GCC unroll 12
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums.of[i][v] = hn::Zero(d);
  }
  const Acc* a = t.a;
  const Acc* b = t.b;
  Prefetch prefetch = *t.prefetch;
  int64_t p = t.k;
  for (; p >= kPrefetchSteps; p -= kPrefetchSteps) {
    prefetch.advance();
    MultiplyAdd<kPrefetchSteps>(a, t.lda, b, t.ldb, sums);
    a += kPrefetchSteps;
    b += kPrefetchSteps * t.ldb;
  }
  for (; p > 0; --p, ++a, b += t.ldb) MultiplyAdd<1>(a, t.lda, b, t.ldb, sums);
  *t.prefetch = prefetch;
#pragma GCC unroll 12
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Acc* to = t.sums + i * t.ld_sums + v * kLanes;
      if (t.accumulate) sums.of[i][v] = hn::Add(sums.of[i][v], hn::LoadU(d, to));
      hn::StoreU(sums.of[i][v], d, to);
    }
  }
}

template <class Acc, int... kHeightLess1>
constexpr TileKernels<Acc> MakeTable(std::integer_sequence<int, kHeightLess1...>) {
  return {kRows,
          static_cast<int>(hn::MaxLanes(Tag<Acc>())),
          {{nullptr, RunTile<Acc, kHeightLess1 + 1, 1>...},
           {nullptr, RunTile<Acc, kHeightLess1 + 1, 2>...}}};
}

template <class Acc>
const TileKernels<Acc>& TilesOf() {
  static constexpr auto kTable = MakeTable<Acc>(std::make_integer_sequence<int, kRows>());
  return kTable;
}

const TileKernels<float>& FloatTiles() {
  return TilesOf<float>();
}
const TileKernels<double>& DoubleTiles() {
  return TilesOf<double>();
}
const TileKernels<uint32_t>& WordTiles() {
  return TilesOf<uint32_t>();
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu::gemm {

HWY_EXPORT(FloatTiles);
HWY_EXPORT(DoubleTiles);
HWY_EXPORT(WordTiles);

template <>
const TileKernels<float>& tile_kernels() {
  return HWY_DYNAMIC_DISPATCH(FloatTiles)();
}
template <>
const TileKernels<double>& tile_kernels() {
  return HWY_DYNAMIC_DISPATCH(DoubleTiles)();
}
template <>
const TileKernels<uint32_t>& tile_kernels() {
  return HWY_DYNAMIC_DISPATCH(WordTiles)();
}

namespace {

// 64-bit products are beyond most vector units: plain loops, which the compiler may vectorise.
template <int kHeight, int kVectors>
void run_scalar_tile(const Tile<uint64_t>& t) {
  constexpr int kWidth = kVectors * 4;
  uint64_t sums[kHeight][kWidth] = {};
  for (int64_t p = 0; p < t.k; ++p) {
    for (int i = 0; i < kHeight; ++i) {
      for (int j = 0; j < kWidth; ++j) sums[i][j] += t.a[i * t.lda + p] * t.b[p * t.ldb + j];
    }
  }
  for (int i = 0; i < kHeight; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      uint64_t& to = t.sums[i * t.ld_sums + j];
      to = sums[i][j] + (t.accumulate ? to : 0);
    }
  }
}

}  // namespace

template <>
const TileKernels<uint64_t>& tile_kernels() {
  static constexpr TileKernels<uint64_t> kTable = {
      2,
      4,
      {{nullptr, run_scalar_tile<1, 1>, run_scalar_tile<2, 1>},
       {nullptr, run_scalar_tile<1, 2>, run_scalar_tile<2, 2>}}};
  return kTable;
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
