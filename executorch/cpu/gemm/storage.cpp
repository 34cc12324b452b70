#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/operands.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/storage.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/gemm/few_rows-inl.h>
#include <executorch/cpu/gemm/quantized_rows-inl.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;

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

// The distance in rows from the row that is packed to the row that is prefetched.
constexpr int64_t kPackAhead = 16;

template <class T>
void PackRows(const T* b, int64_t ldb, int64_t k, int64_t n, float* panels, int64_t p0,
              int64_t depth) {
  const Floats d;
  constexpr int64_t kWidth = ET_TILE_VECTORS * kLanes;
  const int64_t n_whole = n / kWidth * kWidth;
  const int64_t rest = n - n_whole, tail_width = (rest + kLanes - 1) / kLanes * kLanes;
  for (int64_t p = p0; p < p0 + k; ++p, b += ldb) {
    float* to = panels + p * kWidth;
    const int64_t ahead = std::min(kPackAhead, p0 + k - 1 - p) * ldb;
    for (int64_t j = 0; j < n_whole; j += kWidth, to += depth * kWidth) {
#pragma GCC unroll 3
      for (int64_t v = 0; v < kWidth; v += kLanes) __builtin_prefetch(b + ahead + j + v, 0, 2);
#pragma GCC unroll 3
      for (int64_t v = 0; v < kWidth; v += kLanes) hn::StoreU(LoadFloats(d, b + j + v), d, to + v);
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

// Returns the rows of a square that is to be transposed, as floats: where they lie, or converted.
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
      for (; q + kStep <= np; q += kStep) TransposeColumns(d, rows + q, ld, to + q * width, width);
      for (; q < np; ++q) {
        for (int64_t i = 0; i < kLanes; ++i) to[q * width + i] = rows[i * ld + q];
      }
    }
  }
}

// A block of C, its sums, and the operands of its epilogue. An absent operand has no data.
template <class T>
struct Block {
  const float* sums;
  int64_t ld;
  Matrix<T> c;
  Matrix<const T> addend, residual;
  int64_t m, n;
};

// Finishes a block where the rows of all operands are contiguous.
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

// Finishes a block with any strides, by copying pieces of rows to contiguous buffers.
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
void Finish(const Results<T>& e) {
  const Gemm<T>& g = *e.gemm;
  const auto part = [&](auto x, int64_t batch_stride) {
    if (x.data != nullptr) x.data += e.s * batch_stride + e.i0 * x.row_stride + e.j0 * x.col_stride;
    return x;
  };
  Block<T> b = {e.sums,
                e.ld,
                part(g.c, g.c_batch),
                part(g.addend, g.addend_batch),
                part(g.residual, g.residual_batch),
                e.ni,
                e.nj};
  if (g.beta == 0) b.addend.data = nullptr;
  const auto by_rows = [](const auto& x) { return x.data == nullptr || x.col_stride == 1; };
  const bool contiguous = by_rows(b.c) && by_rows(b.addend) && by_rows(b.residual);
  with_kind(g.act.kind, [&](auto kind) {
    constexpr Activation::Kind kKind = decltype(kind)::value;
    contiguous ? FinishRows<kKind>(g, b) : FinishStrided<kKind>(g, b);
  });
}

template <class T>
void FillRow(Microkernels<Types<T>>& row) {
  row.operand = {Convert<T>};
  row.pack_columns = PackColumns<T>;
  row.pack_rows = PackRows<T>;
  row.few_rows_dot = FewRowsDot<T>;
  row.most_dot_rows = 5 * kDotRows;
  static_assert(5 * kDotRows <= kMostDotRows);
  row.few_rows_axpy = FewRowsAxpy<T>;
  row.finish = Finish<T>;
}

}  // namespace HWY_NAMESPACE

template <>
bool fill<Source::Storage, HWY_TARGET>(Kernels& kernels) {
#define ET_ROW(T, name) HWY_NAMESPACE::FillRow(kernels.row<T>());
  ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW
  kernels.quantized = {HWY_NAMESPACE::QuantizedRowDots, HWY_NAMESPACE::Dequantize};
  kernels.add_slices = HWY_NAMESPACE::AddSlices;
  return true;
}

}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu::gemm {

bool fill_storage(int64_t target, Kernels& kernels) {
  return fill_for<Source::Storage>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
