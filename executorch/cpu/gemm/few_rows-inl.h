/// Products of few rows of A, which read B once, where it lies.
// clang-format off
#if defined(EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#undef EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#else
#define EXECUTORCH_CPU_GEMM_FEW_ROWS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/storage-inl.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kMostLanes>;
using V = hn::Vec<Floats>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
constexpr bool kManyRegisters = ET_VECTOR_REGISTERS == 32;

// Columns of B per step, and how far ahead of its use memory is asked for: farther, and a hardware
// prefetcher that follows the reads has been there first.
constexpr int64_t kDots = 4;
constexpr int64_t kDotsAheadBytes = 4096;
// Vectors of a column in one turn of an unrolled loop.
constexpr int kDotPiece = 12;

// Stores the sum of a vector's blocks of four lanes.
template <class D>
HWY_INLINE void AddBlocks(D d, hn::Vec<D> x, float* sums) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(x, d, sums);
  } else {
    const hn::Half<D> dh;
    AddBlocks(dh, hn::Add(hn::LowerHalf(dh, x), hn::UpperHalf(dh, x)), sums);
  }
}

// The sums of the lanes of four vectors.
HWY_INLINE void SumLanes(const V (&x)[kDots], float* sums) {
  const Floats d;
  const hn::RepartitionToWide<Floats> dw;
  const V x01 = hn::Add(hn::InterleaveLower(d, x[0], x[1]), hn::InterleaveUpper(d, x[0], x[1]));
  const V x23 = hn::Add(hn::InterleaveLower(d, x[2], x[3]), hn::InterleaveUpper(d, x[2], x[3]));
  const auto w01 = hn::BitCast(dw, x01), w23 = hn::BitCast(dw, x23);
  const V sum = hn::Add(hn::BitCast(d, hn::InterleaveLower(dw, w01, w23)),
                        hn::BitCast(d, hn::InterleaveUpper(dw, w01, w23)));
  AddBlocks(d, sum, sums);
}

// Adds the products of n_vectors vectors from p on with columns [r_begin, r_end).
template <int n_vectors, int kHeight, class T>
HWY_INLINE void AddDots(const float* HWY_RESTRICT const (&a)[kHeight],
                        const T* HWY_RESTRICT const (&b)[kDots], int r_begin, int r_end, int64_t p,
                        int64_t ahead, V (&acc)[kHeight][kDots]) {
  const Floats d;
#pragma GCC unroll 4
  for (int r = r_begin; r < r_end; ++r) {
    for (int v = 0; v < n_vectors; ++v) {
      const int64_t at = p + v * kLanes;
      __builtin_prefetch(b[r] + at + ahead, 0, 2);
      const V y = LoadFloats(d, b[r] + at);
#pragma GCC unroll 4
      for (int i = 0; i < kHeight; ++i) {
        acc[i][r] = hn::MulAdd(hn::LoadU(d, a[i] + at), y, acc[i][r]);
      }
    }
  }
}

// sums[i, r] = a row i . column r of B, for kHeight rows and kDots columns; rows and columns beyond
// the last repeat it.
template <int kHeight, class T>
HWY_INLINE void Dots(const float* HWY_RESTRICT const (&a)[kHeight], int64_t k,
                     const T* HWY_RESTRICT const (&b)[kDots], int64_t ahead,
                     float (&sums)[kHeight][kDots]) {
  const Floats d;
  V acc[kHeight][kDots];
#pragma GCC unroll 4
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) acc[i][r] = hn::Zero(d);
  }
  int64_t p = 0;
  if constexpr (kHeight == 1) {
    // Memory delivers most where addresses follow one another. More rows of A read each column so
    // often that multiply-adds count.
    constexpr int64_t kPiece = kDotPiece * kLanes;
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) {
      for (p = 0; p + kPiece <= k; p += kPiece) AddDots<kDotPiece>(a, b, r, r + 1, p, ahead, acc);
      for (; p + kLanes <= k; p += kLanes) AddDots<1>(a, b, r, r + 1, p, ahead, acc);
    }
  } else {
    for (; p + kLanes <= k; p += kLanes) AddDots<1>(a, b, 0, kDots, p, ahead, acc);
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
#pragma GCC unroll 4
  for (int i = 0; i < kHeight; ++i) SumLanes(acc[i], sums[i]);
}

template <int kHeight, class T>
HWY_INLINE void DotsOf(const FewRows<T>& f, int64_t i0, int64_t j0, int64_t ahead) {
  const float* a[kHeight];
  for (int i = 0; i < kHeight; ++i) a[i] = f.a + std::min(i0 + i, f.m - 1) * f.lda;
  const T* b[kDots];
  for (int r = 0; r < kDots; ++r) b[r] = f.b + std::min(j0 + r, f.n - 1) * f.ldb;
  float sums[kHeight][kDots];
  Dots<kHeight>(a, f.k, b, ahead, sums);
  for (int i = 0; i < kHeight && i0 + i < f.m; ++i) {
    for (int r = 0; r < kDots && j0 + r < f.n; ++r)
      f.sums[(i0 + i) * f.ld_sums + j0 + r] = sums[i][r];
  }
}

template <class T>
void FewDots(const FewRows<T>& f) {
  // Where columns do not follow one another: the same place of a later one.
  const int64_t group = f.ldb == f.k ? 1 : std::max<int64_t>(f.m == 1 ? f.ldb : kDots * f.ldb, 1);
  const int64_t ahead =
      (kDotsAheadBytes / static_cast<int64_t>(sizeof(T)) + group - 1) / group * group;
  for (int64_t j = 0; j < f.n; j += kDots) {
    for (int64_t i = 0; i < f.m; i += 4) {
      const int64_t height = f.m - i;
      if (height > 2) DotsOf<4>(f, i, j, ahead);
      if (height == 2) DotsOf<2>(f, i, j, ahead);
      if (height == 1) DotsOf<1>(f, i, j, ahead);
    }
  }
}

// Rows of B between the one in use and the one asked for.
constexpr int64_t kRowsAhead = 16;

// sums[i, j] = sum_p a[i, p] * b[p, j] for kHeight rows and kVectors vectors of columns.
template <int kHeight, int kVectors, class T>
HWY_INLINE void ScaledRows(const FewRows<T>& f, int64_t j) {
  const Floats d;
  const float* a[kHeight];
  for (int i = 0; i < kHeight; ++i) a[i] = f.a + std::min<int64_t>(i, f.m - 1) * f.lda;
  V acc[kHeight][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(d);
  }
  const T* b = f.b + j;
  const int64_t turn = std::max<int64_t>(f.k - kRowsAhead, 0);
  const T* ahead = b + std::min(kRowsAhead, f.k) * f.ldb;
  for (int64_t p = 0; p < f.k; ++p, b += f.ldb, ahead += f.ldb) {
    if (p == turn) ahead = f.b + j + kVectors * kLanes;  // the next columns
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(ahead + v * kLanes, 0, 2);
    V x[kHeight];
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) x[i] = hn::Set(d, a[i][p]);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      const V y = LoadFloats(d, b + v * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kHeight; ++i) acc[i][v] = hn::MulAdd(x[i], y, acc[i][v]);
    }
  }
  for (int64_t i = 0; i < std::min<int64_t>(kHeight, f.m); ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(acc[i][v], d, f.sums + i * f.ld_sums + j + v * kLanes);
    }
  }
}

// The last n < a vector's columns.
template <class T>
HWY_INLINE void ScaledTail(const FewRows<T>& f, int64_t j, size_t n) {
  const Floats d;
  for (int64_t i = 0; i < f.m; ++i) {
    V acc = hn::Zero(d);
    for (int64_t p = 0; p < f.k; ++p) {
      acc = hn::MulAdd(hn::Set(d, f.a[i * f.lda + p]), LoadFloatsN(d, f.b + p * f.ldb + j, n), acc);
    }
    StoreFloatsN(acc, d, f.sums + i * f.ld_sums + j, n);
  }
}

template <int kHeight, int kVectors, class T>
HWY_INLINE void ScaledRowsOf(const FewRows<T>& f) {
  int64_t j = 0;
  for (; j + kVectors * kLanes <= f.n; j += kVectors * kLanes) ScaledRows<kHeight, kVectors>(f, j);
  for (; j + kLanes <= f.n; j += kLanes) ScaledRows<kHeight, 1>(f, j);
  if (j < f.n) ScaledTail(f, j, static_cast<size_t>(f.n - j));
}

template <class T>
void FewRowsOfB(const FewRows<T>& f) {
  if (f.m == 1) return ScaledRowsOf < 1, kManyRegisters ? 12 : 8 > (f);
  if (f.m == 2) return ScaledRowsOf < 2, kManyRegisters ? 12 : 6 > (f);
  if (f.m <= 4) return ScaledRowsOf < 4, kManyRegisters ? 6 : 3 > (f);
  ScaledRowsOf<8, kManyRegisters ? 3 : 1>(f);
}

// sums[i, j] += a[i, p] * b[p, j] for kHeight rows of A, kDepth rows of B and kVectors vectors of
// columns.
template <int kHeight, int kDepth, int kVectors, class T>
HWY_INLINE void AddRowsOfB(const FewRows<T>& f, const V (&x)[kDepth][kHeight], const T* b,
                           int64_t j) {
  // Bytes of a row of B; memory delivers most where several rows are asked for this little ahead.
  constexpr int64_t kAhead = 2048 / static_cast<int64_t>(sizeof(T));
  const Floats d;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = j + v * kLanes;
    V sum[kHeight];
#pragma GCC unroll 4
    for (int i = 0; i < kHeight; ++i) sum[i] = hn::LoadU(d, f.sums + i * f.ld_sums + at);
#pragma GCC unroll 4
    for (int p = 0; p < kDepth; ++p) {
      const T* const row = b + p * f.ldb + at;
      __builtin_prefetch(row + kAhead, 0, 2);
      const V y = LoadFloats(d, row);
#pragma GCC unroll 4
      for (int i = 0; i < kHeight; ++i) sum[i] = hn::MulAdd(x[p][i], y, sum[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kHeight; ++i) hn::StoreU(sum[i], d, f.sums + i * f.ld_sums + at);
  }
}

// The same for all columns and the kDepth rows of B from row p0 on.
template <int kHeight, int kDepth, class T>
HWY_INLINE void AddWholeRowsOfB(const FewRows<T>& f, int64_t p0) {
  constexpr int kVectors = kDepth == 1 ? 8 : 4;
  const Floats d;
  const T* const b = f.b + p0 * f.ldb;
  V x[kDepth][kHeight];
  for (int p = 0; p < kDepth; ++p) {
    for (int i = 0; i < kHeight; ++i) x[p][i] = hn::Set(d, f.a[i * f.lda + p0 + p]);
  }
  int64_t j = 0;
  for (; j + kVectors * kLanes <= f.n; j += kVectors * kLanes) {
    AddRowsOfB<kHeight, kDepth, kVectors>(f, x, b, j);
  }
  for (; j + kLanes <= f.n; j += kLanes) AddRowsOfB<kHeight, kDepth, 1>(f, x, b, j);
  if (j == f.n) return;
  const auto rest = static_cast<size_t>(f.n - j);
  for (int p = 0; p < kDepth; ++p) {
    const V y = LoadFloatsN(d, b + p * f.ldb + j, rest);
    for (int i = 0; i < kHeight; ++i) {
      float* const sum = f.sums + i * f.ld_sums + j;
      StoreFloatsN(hn::MulAdd(x[p][i], y, LoadFloatsN(d, sum, rest)), d, sum, rest);
    }
  }
}

template <int kHeight, class T>
void StreamRowsOf(const FewRows<T>& f) {
  // Long rows are read several at a time: each is a stream of its own to the hardware's
  // prefetchers, and the sums are loaded and stored less often. Short ones follow one another.
  constexpr int kDepth = kHeight <= 2 || kManyRegisters ? 4 : 1;
  constexpr int64_t kLongRow = 8192 / static_cast<int64_t>(sizeof(T));
  for (int i = 0; i < kHeight; ++i) std::fill_n(f.sums + i * f.ld_sums, f.n, 0.0f);
  int64_t p = 0;
  for (; f.n >= kLongRow && p + kDepth <= f.k; p += kDepth) AddWholeRowsOfB<kHeight, kDepth>(f, p);
  for (; p < f.k; ++p) AddWholeRowsOfB<kHeight, 1>(f, p);
}

template <class T>
void StreamRows(const FewRows<T>& f) {
  if (f.m == 1) return StreamRowsOf<1>(f);
  if (f.m == 2) return StreamRowsOf<2>(f);
  if (f.m == 3) return StreamRowsOf<3>(f);
  StreamRowsOf<4>(f);
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

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#endif  // once per target
