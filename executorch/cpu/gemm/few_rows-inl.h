/// Products of few rows of A. They read B once, where it lies, without packing it.
// clang-format off
#if defined(EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#undef EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#else
#define EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/float_kernels.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/prefetch.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kMostLanes>;
using V = hn::Vec<Floats>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
constexpr bool kManyRegisters = ET_VECTOR_REGISTERS == 32;

// Columns of B per step, and how far ahead of its use memory is asked for: farther, and a hardware
// prefetcher that follows the reads has been there first.
constexpr int64_t kDots = 4;
constexpr int64_t kDotsAheadBytes = 2048;
// Vectors of a column of B in one iteration of the unrolled loop.
constexpr int kDotPiece = 12;

// The most rows of A whose dot products with kDots columns are computed at once.
constexpr int kDotRows = kManyRegisters ? 6 : 4;

// What a call of Dots() prefetches for later calls: in columns [begin, end) of its kDots columns,
// the element `ahead` elements behind the one that it reads.
struct DotsAhead {
  int64_t ahead;
  int begin, end;
};

// Adds to acc the products of n_vectors vectors of each row of A, from element p on, with those of
// columns [r_begin, r_end) of B.
template <int n_vectors, int kHeight, class T>
HWY_INLINE void AddDots(const float* HWY_RESTRICT const (&a)[kHeight],
                        const T* HWY_RESTRICT const (&b)[kDots], int r_begin, int r_end, int64_t p,
                        V (&acc)[kHeight][kDots]) {
  const Floats d;
#pragma GCC unroll 4
  for (int r = r_begin; r < r_end; ++r) {
    for (int v = 0; v < n_vectors; ++v) {
      const int64_t at = p + v * kLanes;
      const V y = LoadFloats(d, b[r] + at);
#pragma GCC unroll 6
      for (int i = 0; i < kHeight; ++i) {
        acc[i][r] = hn::MulAdd(hn::LoadU(d, a[i] + at), y, acc[i][r]);
      }
    }
  }
}

// sums[i, r] = dot product of row i of A with column r of B, for kHeight rows and kDots columns.
// The caller repeats the last row or column where there are fewer.
template <int kHeight, class T>
HWY_INLINE void Dots(const float* HWY_RESTRICT const (&a)[kHeight], int64_t k,
                     const T* HWY_RESTRICT const (&b)[kDots], const DotsAhead& next,
                     float (&sums)[kHeight][kDots]) {
  const Floats d;
  V acc[kHeight][kDots];
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) acc[i][r] = hn::Zero(d);
  }
  int64_t p = 0;
  if constexpr (kHeight == 1) {
    // With one row of A, memory bandwidth is the bottleneck, and it is highest when addresses are
    // read in order: so each column is read to its end. With more rows of A multiply-adds are the
    // bottleneck.
    constexpr int64_t kPiece = kDotPiece * kLanes;
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) {
      for (p = 0; p + kPiece <= k; p += kPiece) {
        for (int v = 0; v < kDotPiece; ++v) {
          __builtin_prefetch(b[r] + p + v * kLanes + next.ahead, 0, 2);
        }
        AddDots<kDotPiece>(a, b, r, r + 1, p, acc);
      }
      for (; p + kLanes <= k; p += kLanes) {
        __builtin_prefetch(b[r] + p + next.ahead, 0, 2);
        AddDots<1>(a, b, r, r + 1, p, acc);
      }
    }
  } else {
    for (; p + kLanes <= k; p += kLanes) {
      for (int r = next.begin; r < next.end; ++r) __builtin_prefetch(b[r] + p + next.ahead, 0, 2);
      AddDots<1>(a, b, 0, kDots, p, acc);
    }
  }
  if (p < k) {
    const auto rest = static_cast<size_t>(k - p);
    for (int r = 0; r < kDots; ++r) {
      const V y = LoadFloatsN(d, b[r] + p, rest);
      for (int i = 0; i < kHeight; ++i) {
        acc[i][r] = hn::MulAdd(LoadFloatsN(d, a[i] + p, rest), y, acc[i][r]);
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i) {
    hn::StoreU(SumsOfLanes(d, acc[i]), hn::CappedTag<float, 4>(), sums[i]);
  }
}

template <int kHeight, class T>
HWY_INLINE void DotsOf(const FewRows<T>& f, int64_t i0, int64_t j0, const DotsAhead& next) {
  const float* a[kHeight];
  for (int i = 0; i < kHeight; ++i) a[i] = f.a + std::min(i0 + i, f.m - 1) * f.lda;
  const T* b[kDots];
  for (int r = 0; r < kDots; ++r) b[r] = f.b + std::min(j0 + r, f.n - 1) * f.ldb;
  float sums[kHeight][kDots];
  Dots<kHeight>(a, f.k, b, next, sums);
  for (int i = 0; i < kHeight && i0 + i < f.m; ++i) {
    for (int r = 0; r < kDots && j0 + r < f.n; ++r)
      f.sums[(i0 + i) * f.ld_sums + j0 + r] = sums[i][r];
  }
}

template <class T>
void FewRowsDot(const FewRows<T>& f) {
  // If A has more than kDotRows rows, the same kDots columns are read in several passes. Each pass
  // prefetches its share of the next kDots columns.
  constexpr int64_t kAhead = kDotsAheadBytes / static_cast<int64_t>(sizeof(T));
  const auto pass_rows = [](int64_t left) {  // two passes of 4 are faster than 6 and 2
    return left == 7 || left == 8 ? 4 : std::min<int64_t>(left, kDotRows);
  };
  int64_t n_passes = 0;
  for (int64_t i = 0; i < f.m; i += pass_rows(f.m - i)) ++n_passes;
  DotsAhead next = {};
  if (!f.is_cached) next.ahead = prefetch_distance(kAhead, f.m > 1 ? kDots : 1, f.k, f.ldb);
  for (int64_t j = 0; j < f.n; j += kDots) {
    for (int64_t i = 0, pass = 0, rows; i < f.m; i += rows, ++pass) {
      rows = pass_rows(f.m - i);
      if (!f.is_cached) {
        next.begin = static_cast<int>(pass * kDots / n_passes);
        next.end = static_cast<int>((pass + 1) * kDots / n_passes);
      }
      if (rows == 1) DotsOf<1>(f, i, j, next);
      if (rows == 2) DotsOf<2>(f, i, j, next);
      if (rows == 3 || rows == 4) DotsOf<4>(f, i, j, next);
      if (rows > 4) DotsOf<kDotRows>(f, i, j, next);
    }
  }
}

// The least number of bytes between the place of a row of B that is read and the one that is
// prefetched.
constexpr int64_t kRowAheadBytes = 1024;

// sums[i, j] += sum_p a[i, p] * b[p, j] for kHeight rows of A from row i0 on, all columns, and rows
// [p, p + kRows) of B. If p = 0 the sums begin with zero. The kRows elements of each row of A stay
// in registers. The rows of B are read side by side. In each, the element `ahead` elements behind
// the one that is read is prefetched. Later rows of A find the same rows of B in a cache and do not
// prefetch them.
template <int kHeight, int kRows, class T>
void AddRowsOfB(const FewRows<T>& f, int64_t i0, int64_t p, int64_t ahead) {
  constexpr int kVectors = std::max(1, (kManyRegisters ? 8 : 4) / std::max(kHeight, 2));
  constexpr int kSize = static_cast<int>(sizeof(T));
  // Elements between prefetches: those of a cache line, or all that a step reads of a row.
  constexpr int kFetched = std::min(static_cast<int>(kLine) / kSize, kVectors * kLanes);
  const Floats d;
  const T* const b = f.b + p * f.ldb;
  float* const sums = f.sums + i0 * f.ld_sums;
  V x[kHeight][kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) x[i][r] = hn::Set(d, f.a[(i0 + i) * f.lda + p + r]);
  }
  const auto add = [&](int64_t j, auto width) HWY_ATTR {
    constexpr int kWidth = decltype(width)::value;
    V acc[kHeight][kWidth];
#pragma GCC unroll 8
    for (int at = 0; at < kHeight * kWidth; ++at) {
      const int i = at / kWidth, v = at % kWidth;
      acc[i][v] = p == 0 ? hn::Zero(d) : hn::LoadU(d, sums + i * f.ld_sums + j + v * kLanes);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const T* const row = b + r * f.ldb + j;
      for (int at = 0; i0 == 0 && at < kWidth * kLanes; at += kFetched) {
        __builtin_prefetch(row + at + ahead, 0, 2);
      }
#pragma GCC unroll 4
      for (int v = 0; v < kWidth; ++v) {
        const V y = LoadFloats(d, row + v * kLanes);
#pragma GCC unroll 4
        for (int i = 0; i < kHeight; ++i) acc[i][v] = hn::MulAdd(x[i][r], y, acc[i][v]);
      }
    }
#pragma GCC unroll 8
    for (int at = 0; at < kHeight * kWidth; ++at) {
      const int i = at / kWidth, v = at % kWidth;
      hn::StoreU(acc[i][v], d, sums + i * f.ld_sums + j + v * kLanes);
    }
  };
  int64_t j = 0;
  for (; j + kVectors * kLanes <= f.n; j += kVectors * kLanes) {
    add(j, std::integral_constant<int, kVectors>());
  }
  for (; j + kLanes <= f.n; j += kLanes) add(j, std::integral_constant<int, 1>());
  if (j == f.n) return;
  const auto rest = static_cast<size_t>(f.n - j);
  for (int i = 0; i < kHeight; ++i) {
    V acc = p == 0 ? hn::Zero(d) : LoadFloatsN(d, sums + i * f.ld_sums + j, rest);
    for (int r = 0; r < kRows; ++r) {
      acc = hn::MulAdd(x[i][r], LoadFloatsN(d, b + r * f.ldb + j, rest), acc);
    }
    StoreFloatsN(acc, d, sums + i * f.ld_sums + j, rest);
  }
}

template <int kRows, class T>
void AddRowsOfB(const FewRows<T>& f, int64_t p, int64_t ahead) {
  int64_t i = 0;
  for (; i + 4 <= f.m; i += 4) AddRowsOfB<4, kRows>(f, i, p, ahead);
  if (f.m - i == 3) return AddRowsOfB<3, kRows>(f, i, p, ahead);
  if (f.m - i == 2) return AddRowsOfB<2, kRows>(f, i, p, ahead);
  if (f.m - i == 1) return AddRowsOfB<1, kRows>(f, i, p, ahead);
}

template <class T>
void FewRowsAxpy(const FewRows<T>& f) {
  // With one row of A, memory bandwidth is the bottleneck, and it is highest when addresses are read
  // in order: so rows of B are read one after the other. With more rows of A, loading and storing
  // their sums for each row of B would be the bottleneck.
  constexpr int kRows = 4;
  constexpr int64_t kAhead = kRowAheadBytes / static_cast<int64_t>(sizeof(T));
  const int64_t ahead = prefetch_distance(kAhead, f.m > 1 ? kRows : 1, f.n, f.ldb);
  int64_t p = 0;
  for (; f.m > 1 && p + kRows <= f.k; p += kRows) AddRowsOfB<kRows>(f, p, ahead);
  for (; p < f.k; ++p) AddRowsOfB<1>(f, p, ahead);
}

inline void AddSlices(float* sums, int64_t slices, int64_t stride, int64_t n) {
  const Floats d;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    V sum = hn::LoadU(d, sums + j);
    for (int64_t i = 1; i < slices; ++i) sum = hn::Add(sum, hn::LoadU(d, sums + i * stride + j));
    hn::StoreU(sum, d, sums + j);
  }
  for (; j < n; ++j) {
    for (int64_t i = 1; i < slices; ++i) sums[j] += sums[i * stride + j];
  }
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
