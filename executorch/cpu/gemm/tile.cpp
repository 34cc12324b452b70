#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/row_pointers.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/gemm/lanes-inl.h>
#include <executorch/cpu/nn/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using executorch::cpu::HWY_NAMESPACE::Clamp;
using executorch::cpu::HWY_NAMESPACE::Use;

constexpr int kRows = ET_TILE_ROWS, kMostVectors = ET_TILE_VECTORS;
static_assert(kMostVectors <= kMostPanelVectors);

template <class Acc>
using Tag = hn::CappedTag<Acc, kMostLanes>;

template <class Acc, int kHeight, int kVectors>
struct Sums {
  hn::Vec<Tag<Acc>> lanes[kHeight][kVectors];
};

template <class V>
HWY_INLINE void AddProduct(V x, V y, V& sum) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    sum = hn::MulAdd(x, y, sum);
  } else {
    sum = hn::Add(sum, hn::Mul(x, y));
  }
}

// sums += the next n columns of A times n rows of B. The rows of a packed panel are a constant
// distance apart (Stride), which leaves more registers for the rows of A.
template <int n, class Acc, int kHeight, int kVectors, class Stride>
HWY_INLINE void MultiplyAdd(RowPointers<Acc, kHeight>& a, const Acc* HWY_RESTRICT& b, Stride ldb,
                            Sums<Acc, kHeight, kVectors>& sums) {
#if ET_MULTIPLIES_BY_LANE
  if constexpr (n == 4 && std::is_same_v<Acc, float>) {
    MultiplyAddFour(
        a, [&](int p) { return b + p * ldb; }, sums.lanes);
    b += 4 * ldb;
    return;
  }
#endif
  const Tag<Acc> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
  a.Hide();
#pragma GCC unroll 4
  for (int p = 0; p < n; ++p, b += ldb) {
    hn::Vec<Tag<Acc>> y[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) y[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kHeight; ++i) {
      const auto x = hn::Set(d, a[i][p]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) AddProduct(x, y[v], sums.lanes[i][v]);
      Use(x);
    }
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) Use(y[v]);
  }
  a.Advance(n);
}

// Sets each sum to f(sum, i, v).
template <class F, class Acc, int kHeight, int kVectors>
HWY_INLINE void ForAll(Sums<Acc, kHeight, kVectors>& sums, const F& f) {
#pragma GCC unroll 12
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums.lanes[i][v] = f(sums.lanes[i][v], i, v);
  }
}

// Adds partial sums, bias and residual, applies the bounds, and stores the results.
template <class Acc, int kHeight, int kVectors>
HWY_INLINE void Store(const Tile<Acc>& t, Sums<Acc, kHeight, kVectors>& sums) {
  const Tag<Acc> d;
  using Vec = hn::Vec<Tag<Acc>>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
  const auto add = [&](const Acc* from, int64_t ld) HWY_ATTR {
    ForAll(sums, [&](Vec x, int i, int v)
                     HWY_ATTR { return hn::Add(x, hn::LoadU(d, from + i * ld + v * kLanes)); });
  };
  if (t.partial != nullptr) add(t.partial, t.ld_partial);
  if constexpr (std::is_same_v<Acc, float>) {
    if (t.bias != nullptr) add(t.bias, 0);
    if (t.residual != nullptr) add(t.residual, t.ld_residual);
    if (t.bounded) {
      ForAll(sums, [&](Vec x, int, int) HWY_ATTR { return Clamp(d, x, t.low, t.high); });
    }
  }
  Acc* const to = t.to;
  const int64_t ld = t.ld_to;
  ForAll(sums, [&](Vec x, int i, int v) HWY_ATTR {
    hn::StoreU(x, d, to + i * ld + v * kLanes);
    return x;
  });
}

template <class Acc>
HWY_INLINE void CopyRow(Ahead<Acc>& ahead) {
  const Tag<Acc> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const Acc* from = ahead.from;
  Acc* to = ahead.to;
  for (int64_t i = 0; i < ahead.pieces; ++i, from += kMostVectors * kLanes, to += ahead.step) {
#pragma GCC unroll 3
    for (int v = 0; v < kMostVectors; ++v) {
      hn::StoreU(hn::LoadU(d, from + v * kLanes), d, to + v * kLanes);
    }
  }
  ahead.from += ahead.ld;
  ahead.to += kMostVectors * kLanes;
  --ahead.rows_to_copy;
}

// Prefetches the cache lines that are due after `steps` more steps. For each row that is prefetched
// it also copies a row to the panels.
template <class Acc>
HWY_INLINE void Advance(Ahead<Acc>& ahead, int64_t steps) {
  RowPrefetch& fetch = ahead.fetch;
  fetch.due += fetch.rate * steps;
  int64_t n = fetch.due / RowPrefetch::kOneLine;
  fetch.due %= RowPrefetch::kOneLine;
  while (n > 0) {
    const int64_t now = std::min(n, fetch.lines - fetch.line);
    const char* const from = fetch.from + fetch.line * kLine;
    for (int64_t i = 0; i < now && fetch.rows > 0; ++i) __builtin_prefetch(from + i * kLine, 0, 2);
    n -= now;
    if ((fetch.line += now) < fetch.lines) return;
    fetch.line = 0;
    fetch.from += fetch.stride;
    if (fetch.rows > 0) --fetch.rows;
    const int64_t waiting = fetch.rows > 0 ? fetch.rows + Ahead<Acc>::kRowsBehind : 0;
    if (ahead.rows_to_copy > waiting) CopyRow(ahead);
  }
}

template <class Acc, int kHeight, int kVectors, class Stride>
HWY_INLINE void AddPanel(const Tile<Acc>& t, Stride ldb, Sums<Acc, kHeight, kVectors>& sums) {
  RowPointers<Acc, kHeight> a(t.a, t.lda);
  const Acc* HWY_RESTRICT b = t.b;
  Ahead<Acc>& ahead = *t.ahead;
  constexpr int64_t kSteps = Ahead<Acc>::kSteps;
  const int64_t steps_at_once = ahead.steps_at_once();
  int64_t p = t.k;
  while (p >= kSteps) {
    int64_t n = std::min(p / kSteps, steps_at_once);
    p -= n * kSteps;
    Advance(ahead, n);
    do {
      MultiplyAdd<kSteps>(a, b, ldb, sums);
    } while (--n > 0);
  }
  for (; p > 0; --p) MultiplyAdd<1>(a, b, ldb, sums);
}

template <class Acc, int kHeight, int kVectors>
void RunTile(const Tile<Acc>& t) {
  const Tag<Acc> d;
  constexpr int64_t kWidth = kVectors * static_cast<int64_t>(hn::MaxLanes(d));
  Sums<Acc, kHeight, kVectors> sums;
#pragma GCC unroll 12
  for (int i = 0; i < kHeight; ++i) {
    Acc* const to = t.to + i * t.ld_to;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sums.lanes[i][v] = hn::Zero(d);
      __builtin_prefetch(to + v * hn::MaxLanes(d), 1, 3);
    }
  }
  if (t.ldb == kWidth) {
    AddPanel(t, std::integral_constant<int64_t, kWidth>(), sums);
  } else {
    AddPanel(t, t.ldb, sums);
  }
  Store(t, sums);
}

template <class Acc, int kVectors, class Row, int... kHeightLess1>
void FillWidth(Row& row, std::integer_sequence<int, kHeightLess1...>) {
  ((row.tile[kVectors - 1][kHeightLess1 + 1] = RunTile<Acc, kHeightLess1 + 1, kVectors>), ...);
}

template <class T, int... kVectorsLess1>
void FillRow(Microkernels<Types<T>>& row, std::integer_sequence<int, kVectorsLess1...>) {
  using Acc = Accumulator<T>;
  row.rows = kRows;
  row.width_step = static_cast<int>(hn::MaxLanes(Tag<Acc>()));
  row.columns = kMostVectors * row.width_step;
  (FillWidth<Acc, kVectorsLess1 + 1>(row, std::make_integer_sequence<int, kRows>()), ...);
}

template <class T>
void FillRow(Kernels& kernels) {
  FillRow<T>(kernels.row<T>(), std::make_integer_sequence<int, kMostVectors>());
}

}  // namespace HWY_NAMESPACE

template <>
bool fill<Source::Tiles, HWY_TARGET>(Kernels& kernels) {
#define ET_ROW(T, name) HWY_NAMESPACE::FillRow<T>(kernels);
  ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW
#if HWY_HAVE_FLOAT64
  HWY_NAMESPACE::FillRow<double>(kernels);
#endif
  HWY_NAMESPACE::FillRow<uint32_t>(kernels);
  return true;
}

}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu::gemm {
namespace {

// Scalar loops, which the compiler may vectorise, for types that Highway cannot multiply as
// vectors.
template <class Acc, int kHeight, int kVectors>
void run_scalar_tile(const Tile<Acc>& t) {
  constexpr int kWidth = kVectors * 4;
  Acc sums[kHeight][kWidth] = {};
  for (int64_t p = 0; p < t.k; ++p) {
    for (int i = 0; i < kHeight; ++i) {
      for (int j = 0; j < kWidth; ++j) sums[i][j] += t.a[i * t.lda + p] * t.b[p * t.ldb + j];
    }
  }
  for (int i = 0; i < kHeight; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      t.to[i * t.ld_to + j] =
          sums[i][j] + (t.partial != nullptr ? t.partial[i * t.ld_partial + j] : Acc(0));
    }
  }
}

template <class Acc>
void fill_scalar(Microkernels<Types<Acc>>& row) {
  row.rows = 2;
  row.columns = 8;
  row.width_step = 4;
  row.tile[0][1] = run_scalar_tile<Acc, 1, 1>;
  row.tile[0][2] = run_scalar_tile<Acc, 2, 1>;
  row.tile[1][1] = run_scalar_tile<Acc, 1, 2>;
  row.tile[1][2] = run_scalar_tile<Acc, 2, 2>;
}

}  // namespace

bool fill_tiles(int64_t target, Kernels& kernels) {
  fill_scalar(kernels.row<double>());  // for targets without vectors of them
  fill_scalar(kernels.row<uint64_t>());
  return fill_for<Source::Tiles>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
