#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/machine.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/storage.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kMostLanes>;
using V = hn::Vec<Floats>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
constexpr bool kManyRegisters = ET_VECTOR_REGISTERS == 32;

template <class T>
void Convert(const T* from, int64_t n, float* to) {
  const Floats d;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) hn::StoreU(LoadFloats(d, from + j), d, to + j);
  if (j < n) {
    const auto rest = static_cast<size_t>(n - j);
    StoreFloatsN(LoadFloatsN(d, from + j, rest), d, to + j, rest);
  }
}

template <class T>
void PackRows(const T* b, int64_t ldb, int64_t k, int64_t n, float* panels, int64_t p0,
              int64_t depth) {
  const Floats d;
  constexpr int64_t kWidth = 2 * kLanes;
  const int64_t n_whole = n / kWidth * kWidth;
  const int64_t rest = n - n_whole, tail_width = rest > kLanes ? kWidth : kLanes;
  for (int64_t p = p0; p < p0 + k; ++p, b += ldb) {
    float* to = panels + p * kWidth;
    for (int64_t j = 0; j < n_whole; j += kWidth, to += depth * kWidth) {
      const V x = LoadFloats(d, b + j), y = LoadFloats(d, b + j + kLanes);
      hn::StoreU(x, d, to);
      hn::StoreU(y, d, to + kLanes);
    }
    if (rest == 0) continue;
    to = panels + depth * n_whole + p * tail_width;
    for (int64_t j = 0; j < tail_width; j += kLanes) {
      const auto m = static_cast<size_t>(std::clamp<int64_t>(rest - j, 0, kLanes));
      hn::StoreU(m == kLanes ? LoadFloats(d, b + n_whole + j) : LoadFloatsN(d, b + n_whole + j, m),
                 d, to + j);
    }
  }
}

// Rows of a square to be transposed, as floats: where they lie, or converted.
template <class T>
HWY_INLINE const float* FloatRows(const T* from, int64_t ld, int64_t n_rows, int64_t n, float* to,
                                  int64_t* ld_to) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (n_rows == kLanes) {
      *ld_to = ld;
      return from;
    }
  }
  *ld_to = kLanes;
  for (int64_t i = 0; i < kLanes; ++i) {
    if (i < n_rows) {
      Convert(from + i * ld, n, to + i * kLanes);
    } else {
      hn::StoreU(hn::Zero(Floats()), Floats(), to + i * kLanes);
    }
  }
  return to;
}

template <class T>
void PackColumns(const T* b, int64_t ldb, int64_t k, int64_t n, float* panel, int64_t width) {
  const Floats d;
  constexpr int64_t kStep = kTransposedColumns<Floats>;
  HWY_ALIGN float square[kLanes * kLanes];
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t columns = std::clamp<int64_t>(n - j, 0, kLanes);
    for (int64_t p = 0; p < k; p += kLanes) {
      const int64_t np = std::min<int64_t>(kLanes, k - p);
      int64_t ld;
      const float* rows = FloatRows(b + j * ldb + p, ldb, columns, np, square, &ld);
      float* to = panel + p * width + j;
      int64_t q = 0;
      for (; q + kStep <= np; q += kStep) {
        TransposeColumns(d, rows + q, ld, to + q * width, width);
      }
      for (; q < np; ++q) {
        for (int64_t i = 0; i < kLanes; ++i) to[q * width + i] = rows[i * ld + q];
      }
    }
  }
}

// Columns of B per step, and how far ahead of its use memory is asked for.
constexpr int64_t kDots = 4;
constexpr int64_t kDotsAheadBytes = 8192;
// Vectors of a column that are read before the next column's: memory delivers 8 % more than when
// all columns take turns (measured). More rows of A read each so often that multiply-adds count.
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

// Adds the products of n_vectors vectors from p on.
template <int n_vectors, int kHeight, class T>
HWY_INLINE void AddDots(const float* HWY_RESTRICT const (&a)[kHeight],
                        const T* HWY_RESTRICT const (&b)[kDots], int64_t p, int64_t ahead,
                        V (&acc)[kHeight][kDots]) {
  const Floats d;
#pragma GCC unroll 4
  for (int r = 0; r < kDots; ++r) {
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
    constexpr int64_t kPiece = kDotPiece * kLanes;
    for (; p + kPiece <= k; p += kPiece) AddDots<kDotPiece>(a, b, p, ahead, acc);
  }
  for (; p + kLanes <= k; p += kLanes) AddDots<1>(a, b, p, ahead, acc);
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
  const int64_t group = std::max<int64_t>(kDots * f.ldb, 1);
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

// sums[i, j] += a[i, p] * b[p, j] for kHeight rows and kVectors vectors of columns.
template <int kHeight, int kVectors>
struct SumsInMemory {
  template <class T>
  static HWY_INLINE void Add(const FewRows<T>& f, const V (&x)[kHeight], const T* b, int64_t j) {
    const Floats d;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = j + v * kLanes;
      __builtin_prefetch(b + at + kStreamAhead, 0, 2);
      const V y = LoadFloats(d, b + at);
#pragma GCC unroll 4
      for (int i = 0; i < kHeight; ++i) {
        float* const sum = f.sums + i * f.ld_sums + at;
        hn::StoreU(hn::MulAdd(x[i], y, hn::LoadU(d, sum)), d, sum);
      }
    }
  }
  static constexpr int64_t kStreamAhead = 1024;  // elements
};

template <int kHeight, class T>
void StreamRowsOf(const FewRows<T>& f) {
  const Floats d;
  for (int i = 0; i < kHeight; ++i) std::fill_n(f.sums + i * f.ld_sums, f.n, 0.0f);
  const T* b = f.b;
  for (int64_t p = 0; p < f.k; ++p, b += f.ldb) {
    V x[kHeight];
    for (int i = 0; i < kHeight; ++i) x[i] = hn::Set(d, f.a[i * f.lda + p]);
    int64_t j = 0;
    for (; j + 4 * kLanes <= f.n; j += 4 * kLanes) SumsInMemory<kHeight, 4>::Add(f, x, b, j);
    for (; j + kLanes <= f.n; j += kLanes) SumsInMemory<kHeight, 1>::Add(f, x, b, j);
    if (j == f.n) continue;
    const auto rest = static_cast<size_t>(f.n - j);
    const V y = LoadFloatsN(d, b + j, rest);
    for (int i = 0; i < kHeight; ++i) {
      float* const sum = f.sums + i * f.ld_sums + j;
      StoreFloatsN(hn::MulAdd(x[i], y, LoadFloatsN(d, sum, rest)), d, sum, rest);
    }
  }
}

template <class T>
void StreamRows(const FewRows<T>& f) {
  if (f.m == 1) return StreamRowsOf<1>(f);
  if (f.m == 2) return StreamRowsOf<2>(f);
  if (f.m == 3) return StreamRowsOf<3>(f);
  StreamRowsOf<4>(f);
}

// A block of C and what makes it of its sums. Operands that are absent have no data.
template <class T>
struct Block {
  const float* sums;
  int64_t ld;
  Matrix<T> c;
  Matrix<const T> addend, residual;
  int64_t m, n;
};

// Rows of all operands are contiguous.
template <Activation::Kind kKind, class T>
void FinishRows(const Gemm<T>& g, const Block<T>& b) {
  const Floats d;
  const bool adds = b.addend.data != nullptr;
  const bool before = b.residual.data != nullptr && g.act_last;
  const bool after = b.residual.data != nullptr && !g.act_last;
  const V alpha = hn::Set(d, g.alpha), beta = hn::Set(d, g.beta);
  Activation act = g.act;
  act.kind = kKind;
  for (int64_t i = 0; i < b.m; ++i) {
    const float* const sums = b.sums + i * b.ld;
    const T* const addend = b.addend.data + i * b.addend.row_stride;
    const T* const residual = b.residual.data + i * b.residual.row_stride;
    T* const c = b.c.data + i * b.c.row_stride;
    const auto finish = [&](int64_t j, const auto& load, const auto& store) HWY_ATTR {
      V x = hn::Mul(load(sums + j), alpha);
      if (adds) x = hn::MulAdd(beta, load(addend + j), x);
      if (before) x = hn::Add(x, load(residual + j));
      x = Apply(d, act, x);
      if (after) x = hn::Add(x, load(residual + j));
      store(x, c + j);
    };
    int64_t j = 0;
    for (; j + kLanes <= b.n; j += kLanes) {
      finish(
          j, [d](const auto* p) HWY_ATTR { return LoadFloats(d, p); },
          [d](V x, T* p) HWY_ATTR { StoreFloats(x, d, p); });
    }
    if (j == b.n) continue;
    const auto rest = static_cast<size_t>(b.n - j);
    finish(
        j, [d, rest](const auto* p) HWY_ATTR { return LoadFloatsN(d, p, rest); },
        [d, rest](V x, T* p) HWY_ATTR { StoreFloatsN(x, d, p, rest); });
  }
}

// Any strides: by way of contiguous pieces of rows.
template <Activation::Kind kKind, class T>
void FinishStrided(const Gemm<T>& g, const Block<T>& b) {
  constexpr int64_t kPiece = 64;
  T c[kPiece], addend[kPiece], residual[kPiece];
  for (int64_t i = 0; i < b.m; ++i) {
    for (int64_t j = 0; j < b.n; j += kPiece) {
      const int64_t n = std::min(kPiece, b.n - j);
      const auto contiguous = [&](const Matrix<const T>& x, T* to) -> Matrix<const T> {
        if (x.data == nullptr) return {};
        for (int64_t l = 0; l < n; ++l) to[l] = *element(x, i, j + l);
        return {to, 0, 1};
      };
      FinishRows<kKind, T>(g, {b.sums + i * b.ld + j,
                               0,
                               {c, 0, 1},
                               contiguous(b.addend, addend),
                               contiguous(b.residual, residual),
                               1,
                               n});
      for (int64_t l = 0; l < n; ++l) {
        b.c.data[i * b.c.row_stride + (j + l) * b.c.col_stride] = c[l];
      }
    }
  }
}

template <class T>
void Finish(const Gemm<T>& g, int64_t s, const float* sums, int64_t ld, int64_t i0, int64_t ni,
            int64_t j0, int64_t nj) {
  const auto part = [&](auto x, int64_t batch_stride) {
    if (x.data != nullptr) x.data += s * batch_stride + i0 * x.row_stride + j0 * x.col_stride;
    return x;
  };
  Block<T> b = {sums,
                ld,
                part(g.c, g.c_batch),
                part(g.addend, g.addend_batch),
                part(g.residual, g.residual_batch),
                ni,
                nj};
  if (g.beta == 0) b.addend.data = nullptr;
  const auto by_rows = [](const auto& x) { return x.data == nullptr || x.col_stride == 1; };
  const bool contiguous = by_rows(b.c) && by_rows(b.addend) && by_rows(b.residual);
  with_kind(g.act.kind, [&](auto kind) {
    constexpr Activation::Kind kKind = decltype(kind)::value;
    contiguous ? FinishRows<kKind>(g, b) : FinishStrided<kKind>(g, b);
  });
}

template <class T>
const StorageKernels<T>& Table() {
  static constexpr StorageKernels<T> kTable = {
      Convert<T>, PackRows<T>, PackColumns<T>, FewDots<T>, FewRowsOfB<T>, StreamRows<T>, Finish<T>};
  return kTable;
}

const StorageKernels<float>& FloatTable() {
  return Table<float>();
}
const StorageKernels<F16>& F16Table() {
  return Table<F16>();
}
const StorageKernels<BF16>& BF16Table() {
  return Table<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu::gemm {

HWY_EXPORT(FloatTable);
HWY_EXPORT(F16Table);
HWY_EXPORT(BF16Table);

template <>
const StorageKernels<float>& storage_kernels() {
  return HWY_DYNAMIC_DISPATCH(FloatTable)();
}
template <>
const StorageKernels<F16>& storage_kernels() {
  return HWY_DYNAMIC_DISPATCH(F16Table)();
}
template <>
const StorageKernels<BF16>& storage_kernels() {
  return HWY_DYNAMIC_DISPATCH(BF16Table)();
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
