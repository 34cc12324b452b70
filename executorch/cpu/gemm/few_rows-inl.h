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
constexpr int64_t kDotsAheadBytes = 2048;
// Vectors of a column of B in one iteration of the unrolled loop.
constexpr int kDotPiece = 12;

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
#pragma GCC unroll 4
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
#pragma GCC unroll 4
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
      for (int r = next.begin; r < next.end; ++r) {
        __builtin_prefetch(b[r] + p + next.ahead, 0, 2);
      }
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
#pragma GCC unroll 4
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
void FewDots(const FewRows<T>& f) {
  // If A has more than kPassRows rows, the same kDots columns are read in several passes. Each pass
  // prefetches its share of the next kDots columns.
  constexpr int kPassRows = 4;
  constexpr int64_t kAhead = kDotsAheadBytes / static_cast<int64_t>(sizeof(T));
  const int64_t n_passes = ceil_div(f.m, kPassRows);
  DotsAhead next = {};
  next.ahead = prefetch_distance(kAhead, f.m > 1 ? kDots : 1, f.k, f.ldb);
  for (int64_t j = 0; j < f.n; j += kDots) {
    for (int64_t pass = 0; pass < n_passes; ++pass) {
      const int64_t i = pass * kPassRows, height = f.m - i;
      next.begin = static_cast<int>(pass * kDots / n_passes);
      next.end = static_cast<int>((pass + 1) * kDots / n_passes);
      if (height > 2) DotsOf<4>(f, i, j, next);
      if (height == 2) DotsOf<2>(f, i, j, next);
      if (height == 1) DotsOf<1>(f, i, j, next);
    }
  }
}

// Prefetches the cache lines of rows of B, one row after the other, because memory bandwidth is
// highest when addresses are read in order.
template <class T>
class RowLines {
 public:
  RowLines(const FewRows<T>& f, int64_t p, int64_t n_rows)
      : row_(f.b + p * f.ldb), ldb_(f.ldb), n_(f.n), left_(std::max<int64_t>(n_rows, 0)) {
    if (ldb_ == n_ && left_ > 0) {  // rows without gaps are prefetched as a single row
      n_ *= left_;
      left_ = 1;
    }
    Begin();
  }

  template <int kLines>
  HWY_INLINE void Fetch() {
    if (left_ == 0) return;
#pragma GCC unroll 16
    for (int i = 0; i < kLines; ++i) {
      __builtin_prefetch(reinterpret_cast<const char*>(at_ + i * kLine), 0, 2);
    }
    if ((at_ += kLines * kLine) < end_) return;
    row_ += ldb_;
    --left_;
    Begin();
  }

 private:
  HWY_INLINE void Begin() {
    at_ = reinterpret_cast<uintptr_t>(row_) / kLine * kLine;
    end_ = reinterpret_cast<uintptr_t>(row_) + static_cast<uintptr_t>(n_) * sizeof(T);
  }

  const T* row_;
  const int64_t ldb_;
  int64_t n_, left_;
  uintptr_t at_, end_;
};

// sums[i, j] += sum_p a[i, p] * b[p, j] for kHeight rows of A, kVectors vectors of columns from j
// on, and rows [p0, p_end) of B. Where A has fewer rows, the last one is repeated. If p0 = 0 the
// sums begin with zero.
template <int kHeight, int kVectors, class T>
HWY_INLINE void AddRowsOfB(const FewRows<T>& f, int64_t p0, int64_t p_end, int64_t j,
                           RowLines<T>& next) {
  constexpr auto kBytes = static_cast<int64_t>(kVectors * kLanes * sizeof(T));
  constexpr int kLines = std::max<int>(static_cast<int>(kBytes / kLine), 1);
  const Floats d;
  const float* a[kHeight];
  float* sums[kHeight];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
    const int64_t row = std::min<int64_t>(i, f.m - 1);
    a[i] = f.a + row * f.lda;
    sums[i] = f.sums + row * f.ld_sums + j;
  }
  V acc[kHeight][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      acc[i][v] = p0 == 0 ? hn::Zero(d) : hn::LoadU(d, sums[i] + v * kLanes);
    }
  }
  const T* b = f.b + p0 * f.ldb + j;
  for (int64_t p = p0; p < p_end; ++p, b += f.ldb) {
    next.template Fetch<kLines>();
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
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) hn::StoreU(acc[i][v], d, sums[i] + v * kLanes);
  }
}

// The same for the last n columns, fewer than a vector has.
template <class T>
void AddTailOfB(const FewRows<T>& f, int64_t p0, int64_t p_end, int64_t j, size_t n) {
  const Floats d;
  for (int64_t i = 0; i < f.m; ++i) {
    float* const sums = f.sums + i * f.ld_sums + j;
    V acc = p0 == 0 ? hn::Zero(d) : LoadFloatsN(d, sums, n);
    for (int64_t p = p0; p < p_end; ++p) {
      acc = hn::MulAdd(hn::Set(d, f.a[i * f.lda + p]), LoadFloatsN(d, f.b + p * f.ldb + j, n), acc);
    }
    StoreFloatsN(acc, d, sums, n);
  }
}

// For three to eight rows of A: the sums of a few columns stay in registers while a chunk of rows
// of B is multiplied. A chunk has so many rows that loading and storing sums is rare, and so few
// that it fits L2. Meanwhile the next chunk is prefetched.
constexpr int64_t kLeastChunkRows = 8, kMostChunkRows = 32, kChunkBytes = 16 * 1024;

template <int kHeight, int kVectors, class T>
void AddChunks(const FewRows<T>& f) {
  const int64_t row_bytes = std::max<int64_t>(f.n * static_cast<int64_t>(sizeof(T)), 1);
  const int64_t depth = std::clamp(kChunkBytes / row_bytes, kLeastChunkRows, kMostChunkRows);
  int64_t p = 0;
  do {  // runs once for k = 0 too, to set the sums to zero
    const int64_t p_end = std::min(p + depth, f.k);
    RowLines<T> next(f, p_end, std::min(depth, f.k + f.rows_behind - p_end));
    int64_t j = 0;
    for (; j + kVectors * kLanes <= f.n; j += kVectors * kLanes) {
      AddRowsOfB<kHeight, kVectors>(f, p, p_end, j, next);
    }
    for (; j + kLanes <= f.n; j += kLanes) AddRowsOfB<kHeight, 1>(f, p, p_end, j, next);
    if (j < f.n) AddTailOfB(f, p, p_end, j, static_cast<size_t>(f.n - j));
    p = p_end;
  } while (p < f.k);
}

// Bytes between the place of a row of B that is read and the one that is prefetched.
constexpr int64_t kRowAheadBytes = 512;

// For one or two rows of A: adds the products with rows [p, p + kRows) of B to the sums. The kRows
// elements of each row of A stay in registers. The rows of B are read side by side, so few of them
// that the hardware prefetches each; the sums lie in L1.
template <int kHeight, int kRows, class T>
void AddWideRows(const FewRows<T>& f, int64_t p) {
  constexpr int kVectors = kManyRegisters ? 4 : 2;
  constexpr int kSize = static_cast<int>(sizeof(T));
  // Elements between prefetches: those of a cache line, or all that a step reads of a row.
  constexpr int kFetched = std::min(static_cast<int>(kLine) / kSize, kVectors * kLanes);
  const Floats d;
  const T* const b = f.b + p * f.ldb;
  float* sums[kHeight];
  V x[kHeight][kRows];
#pragma GCC unroll 2
  for (int i = 0; i < kHeight; ++i) {
    sums[i] = f.sums + i * f.ld_sums;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) x[i][r] = hn::Set(d, f.a[i * f.lda + p + r]);
  }
  const auto add = [&](int64_t j, auto width) HWY_ATTR {
    constexpr int kWidth = decltype(width)::value;
    V acc[kHeight][kWidth];
#pragma GCC unroll 8
    for (int at = 0; at < kHeight * kWidth; ++at) {
      const int i = at / kWidth, v = at % kWidth;
      acc[i][v] = p == 0 ? hn::Zero(d) : hn::LoadU(d, sums[i] + j + v * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T* const row = b + r * f.ldb + j;
      for (int at = 0; at < kWidth * kLanes; at += kFetched) {
        __builtin_prefetch(row + at + kRowAheadBytes / kSize, 0, 2);
      }
#pragma GCC unroll 4
      for (int v = 0; v < kWidth; ++v) {
        const V y = LoadFloats(d, row + v * kLanes);
#pragma GCC unroll 2
        for (int i = 0; i < kHeight; ++i) acc[i][v] = hn::MulAdd(x[i][r], y, acc[i][v]);
      }
    }
#pragma GCC unroll 8
    for (int at = 0; at < kHeight * kWidth; ++at) {
      const int i = at / kWidth, v = at % kWidth;
      hn::StoreU(acc[i][v], d, sums[i] + j + v * kLanes);
    }
  };
  int64_t j = 0;
  for (; j + kVectors * kLanes <= f.n; j += kVectors * kLanes) {
    add(j, std::integral_constant<int, kVectors>());
  }
  for (; j + kLanes <= f.n; j += kLanes) add(j, std::integral_constant<int, 1>());
  if (j < f.n) AddTailOfB(f, p, p + kRows, j, static_cast<size_t>(f.n - j));
}

template <int kHeight, class T>
void AddWide(const FewRows<T>& f) {
  constexpr int kRows = 4;
  int64_t p = 0;
  for (; p + kRows <= f.k; p += kRows) AddWideRows<kHeight, kRows>(f, p);
  for (; p < f.k; ++p) AddWideRows<kHeight, 1>(f, p);
}

template <class T>
void FewRowsOfB(const FewRows<T>& f) {
  if (f.m == 1) return AddWide<1>(f);
  if (f.m == 2) return AddWide<2>(f);
  if (f.m <= 4) return AddChunks < 4, kManyRegisters ? 6 : 3 > (f);
  AddChunks<8, kManyRegisters ? 3 : 1>(f);
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
