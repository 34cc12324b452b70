#include <executorch/cpu/gemm/row_pointers.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/conv_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/gemm/lanes-inl.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace planes {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
constexpr int kVectors = 3;

// The rows of a tile. 32 registers hold 8 x 3 vectors of sums, 16 registers 4 x 3, beside three
// vectors of B and one of A.
constexpr int kRows = ET_VECTOR_REGISTERS == 32 ? 8 : 4;
// The steps of the unrolled loop. With more, GCC keeps some sums on the stack.
constexpr int kSteps = ET_MULTIPLIES_BY_LANE ? 4 : 2;
constexpr int kWeightsOfLine = static_cast<int>(kLine / sizeof(float));

/// Finishes a tile whose epilogue is more than bounds: a residual or other activations. The sums
/// are at sums[i * kVectors * kLanes + j]; n columns of them are stored at column j0.
HWY_NOINLINE void FinishTile(const PlaneProduct& p, const float* sums, int64_t i0, int64_t height,
                             int64_t j0, int64_t n) {
  const Floats d;
  for (int64_t i = 0; i < height; ++i, sums += kVectors * kLanes) {
    for (int64_t j = 0; j < n; j += kLanes) {
      const auto rest = static_cast<size_t>(std::min(kLanes, n - j));
      const int64_t at = (i0 + i) * p.ld_out + j0 + j;
      V x = hn::Load(d, sums + j);
      const V r = p.residual != nullptr ? LoadFloatsN(d, p.residual + at, rest) : hn::Zero(d);
      if (p.act_last) x = hn::Add(x, r);
      x = Apply(d, p.act, x);
      if (!p.act_last) x = hn::Add(x, r);
      StoreFloatsN(x, d, p.out + at, rest);
    }
  }
}

HWY_INLINE bool IsBounded(const PlaneProduct& p) {
  return p.residual == nullptr &&
         (p.act.kind == Activation::Kind::None || p.act.kind == Activation::Kind::Clamp);
}

/// sums += the next n columns of a times the next n rows of b.
template <int n, bool kOffsets, int kHeight, int kWide>
HWY_INLINE void MultiplyAdd(gemm::RowPointers<float, kHeight>& a, const float* HWY_RESTRICT& b,
                            int64_t ldb, const int64_t*& offsets, V (&sums)[kHeight][kWide]) {
#if ET_MULTIPLIES_BY_LANE
  if constexpr (n == 4) {
    const auto row = [&](int q) { return kOffsets ? b + offsets[q] : b + q * ldb; };
    gemm::HWY_NAMESPACE::MultiplyAddFour(a, row, sums);
    if (kOffsets) offsets += 4;
    if (!kOffsets) b += 4 * ldb;
    return;
  }
#endif
  const Floats d;
  a.Hide();
#pragma GCC unroll 2
  for (int q = 0; q < n; ++q) {
    const float* row = b;
    if (kOffsets) {
      row += *offsets++;
    } else {
      b += ldb;
    }
    V x[kWide];
#pragma GCC unroll 3
    for (int v = 0; v < kWide; ++v) x[v] = hn::LoadU(d, row + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) {
      const V w = hn::Set(d, a[i][q]);
#pragma GCC unroll 3
      for (int v = 0; v < kWide; ++v) sums[i][v] = hn::MulAdd(w, x[v], sums[i][v]);
      Use(w);
    }
#pragma GCC unroll 3
    for (int v = 0; v < kWide; ++v) Use(x[v]);
  }
  a.Advance(n);
}

template <int kHeight, int kWide, bool kOffsets>
HWY_INLINE void Tile(const PlaneProduct& p, int64_t i0) {
  const Floats d;
  const int64_t k = p.k, lda = p.lda, ldb = p.ldb;
  const auto rest = static_cast<size_t>(p.n - (kWide - 1) * kLanes);
  V sums[kHeight][kWide];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
    if (p.partial == nullptr) {
      const V bias = hn::Set(d, p.bias == nullptr ? 0.0f : p.bias[i0 + i]);
#pragma GCC unroll 3
      for (int v = 0; v < kWide; ++v) sums[i][v] = bias;
    } else {
      const float* from = p.partial + (i0 + i) * p.ld_partial;
#pragma GCC unroll 3
      for (int v = 0; v < kWide; ++v) sums[i][v] = hn::LoadU(d, from + v * kLanes);
    }
  }
  gemm::RowPointers<float, kHeight> a(p.a + i0 * lda, lda);
  const float* HWY_RESTRICT b = p.b;
  const int64_t* offsets = p.offsets;
  // Prefetch the weights of the next rows. They come from memory, and rows are too short for the
  // hardware's prefetcher.
  const float* next = p.a + (i0 + kHeight) * lda;
  int64_t n = k / kSteps;
  for (; n > 0; --n) {
    constexpr int kWeights = kHeight * kSteps;
#pragma GCC unroll 2
    for (int i = 0; i < kWeights; i += kWeightsOfLine) __builtin_prefetch(next + i);
    next += kWeights;
    MultiplyAdd<kSteps, kOffsets>(a, b, ldb, offsets, sums);
  }
  for (n = k % kSteps; n > 0; --n) MultiplyAdd<1, kOffsets>(a, b, ldb, offsets, sums);
  if (IsBounded(p)) {
    const bool bounds = p.act.kind == Activation::Kind::Clamp;
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) {
      float* const to = p.out + (i0 + i) * p.ld_out;
#pragma GCC unroll 3
      for (int v = 0; v < kWide; ++v) {
        V x = sums[i][v];
        if (bounds) x = Clamp(d, x, p.act.low, p.act.high);
        if (v + 1 < kWide || rest == static_cast<size_t>(kLanes)) {
          hn::StoreU(x, d, to + v * kLanes);
        } else {
          StoreFloatsN(x, d, to + v * kLanes, rest);
        }
      }
    }
    return;
  }
  HWY_ALIGN float lanes[kHeight * kVectors * kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < kWide; ++v) hn::Store(sums[i][v], d, lanes + (i * kVectors + v) * kLanes);
  }
  FinishTile(p, lanes, i0, kHeight, 0, p.n);
}

/// Computes the sums of rows i0 + i, i < kHeight, and of further columns [column, column +
/// kColumns), and stores them at to[i * kVectors * kLanes + j].
template <int kHeight, int kColumns>
HWY_INLINE void Dots(const PlaneProduct& p, int64_t i0, int64_t column, float* to) {
  const Floats d;
  const float* a = p.a + i0 * p.lda;
  const float* b = p.tail + column * p.ld_tail;
  V sums[kColumns][kHeight];
#pragma GCC unroll 2
  for (int j = 0; j < kColumns; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) sums[j][i] = hn::Zero(d);
  }
  const auto add = [&](const auto& load) HWY_ATTR {
    V x[kColumns];
#pragma GCC unroll 2
    for (int j = 0; j < kColumns; ++j) x[j] = load(b + j * p.ld_tail);
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) {
      const V w = load(a + i * p.lda);
#pragma GCC unroll 2
      for (int j = 0; j < kColumns; ++j) sums[j][i] = hn::MulAdd(w, x[j], sums[j][i]);
    }
  };
  int64_t q = 0;
  for (; q + kLanes <= p.k; q += kLanes) {
    add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from + q); });
  }
  if (q < p.k) {
    const auto n = static_cast<size_t>(p.k - q);
    add([&](const float* from) HWY_ATTR { return LoadFloatsN(d, from + q, n); });
  }
#pragma GCC unroll 2
  for (int j = 0; j < kColumns; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i) {
      const float before = p.partial != nullptr
                               ? p.partial[(i0 + i) * p.ld_partial + p.n + column + j]
                           : p.bias != nullptr ? p.bias[i0 + i]
                                               : 0.0f;
      to[i * kVectors * kLanes + column + j] = before + hn::GetLane(hn::SumOfLanes(d, sums[j][i]));
    }
  }
}

/// Computes rows [i0, i0 + kHeight) of the further columns.
template <int kHeight>
HWY_NOINLINE void TailColumns(const PlaneProduct& p, int64_t i0) {
  HWY_ALIGN float sums[kHeight * kVectors * kLanes];
  int64_t column = 0;
  for (; column + 2 <= p.n_tail; column += 2) Dots<kHeight, 2>(p, i0, column, sums);
  if (column < p.n_tail) Dots<kHeight, 1>(p, i0, column, sums);
  FinishTile(p, sums, i0, kHeight, p.n, p.n_tail);
}

template <int kHeight, int kWide, bool kOffsets>
HWY_NOINLINE void Rows(const PlaneProduct& p, int64_t i0) {
  Tile<kHeight, kWide, kOffsets>(p, i0);
  if (p.n_tail > 0) TailColumns<kHeight>(p, i0);
}

template <int kWide, bool kOffsets>
void Block(const PlaneProduct& p) {
  int64_t i = 0;
  for (; i + kRows <= p.m; i += kRows) Rows<kRows, kWide, kOffsets>(p, i);
  if constexpr (kRows > 4) {
    if (i + 4 <= p.m) {
      Rows<4, kWide, kOffsets>(p, i);
      i += 4;
    }
  }
  if (i + 2 <= p.m) {
    Rows<2, kWide, kOffsets>(p, i);
    i += 2;
  }
  if (i < p.m) Rows<1, kWide, kOffsets>(p, i);
}

void Product(const PlaneProduct& p) {
  const int64_t wide = (p.n + kLanes - 1) / kLanes;
  if (p.offsets == nullptr) {
    if (wide == 3) return Block<3, false>(p);
    if (wide == 2) return Block<2, false>(p);
    return Block<1, false>(p);
  }
  if (wide == 3) return Block<3, true>(p);
  if (wide == 2) return Block<2, true>(p);
  return Block<1, true>(p);
}

void Split(const float* from, int64_t n, float* even, float* odd) {
  const Floats d;
  int64_t x = 0;
  for (; 2 * (x + kLanes) <= n; x += kLanes) {
    const V low = hn::LoadU(d, from + 2 * x), high = hn::LoadU(d, from + 2 * x + kLanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, even + x);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, odd + x);
  }
  for (; 2 * x < n; ++x) {
    even[x] = from[2 * x];
    if (2 * x + 1 < n) odd[x] = from[2 * x + 1];
  }
}

void AddOne(const PlaneTerm& t, int64_t begin, int64_t end, float* to) {
  for (int64_t i = begin; i < end; ++i) to[i] += t.scale * t.from[i - t.begin];
}

// Elements [i, i + kLanes) of the sum of terms that all have these elements.
template <class Load>
HWY_INLINE V SumOfTerms(const PlaneTerm* terms, int64_t n_terms, int64_t i, V sum,
                        const Load& load) {
  for (int64_t t = 0; t < n_terms; ++t) {
    const V x = load(terms[t].from + (i - terms[t].begin));
    sum = hn::MulAdd(hn::Set(Floats(), terms[t].scale), x, sum);
  }
  return sum;
}

void Add(const PlaneTerm* terms, int64_t n_terms, const float* first, int64_t n, float* to) {
  const Floats d;
  // All terms have elements [begin, end).
  int64_t begin = 0, end = n;
  for (int64_t t = 0; t < n_terms; ++t) {
    begin = std::max(begin, terms[t].begin);
    end = std::min(end, terms[t].end);
  }
  end = std::max(begin, end);
  if (first != nullptr) {
    std::fill(to, to + begin, *first);
    std::fill(to + end, to + n, *first);
  }
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    const V sum = first != nullptr ? hn::Set(d, *first) : hn::LoadU(d, to + i);
    const auto load = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
    hn::StoreU(SumOfTerms(terms, n_terms, i, sum, load), d, to + i);
  }
  if (i < end) {
    const auto rest = static_cast<size_t>(end - i);
    const V sum = first != nullptr ? hn::Set(d, *first) : LoadFloatsN(d, to + i, rest);
    const auto load = [&](const float* from) HWY_ATTR { return LoadFloatsN(d, from, rest); };
    StoreFloatsN(SumOfTerms(terms, n_terms, i, sum, load), d, to + i, rest);
  }
  for (int64_t t = 0; t < n_terms; ++t) {
    AddOne(terms[t], terms[t].begin, std::min(begin, terms[t].end), to);
    AddOne(terms[t], std::max(end, terms[t].begin), terms[t].end, to);
  }
}

// Stores whole vectors of the joined rows [r, r + 4) of a multiple of four rows; returns the number
// of elements of each that were stored.
HWY_INLINE int64_t JoinFours(const float* from, int64_t ld, int64_t parts, int64_t columns,
                             float* to) {
  using Four = hn::FixedTag<float, 4>;
  const int64_t whole = columns / 4 * 4;
  for (int64_t x = 0; x < whole; x += 4) {
    for (int64_t r = 0; r < parts; r += 4) {
      TransposeColumns(Four(), from + r * ld + x, ld, to + x * parts + r, parts);
    }
  }
  return whole;
}

void Join(const float* from, int64_t ld, int64_t parts, int64_t n, float* to) {
  const Floats d;
  const int64_t columns = n / parts;
  int64_t x = 0;
  if (parts == 1) {
    std::copy_n(from, n, to);
    return;
  }
  if (parts == 2) {
    for (; x + kLanes <= columns; x += kLanes) {
      hn::StoreInterleaved2(hn::LoadU(d, from + x), hn::LoadU(d, from + ld + x), d, to + 2 * x);
    }
  } else if (parts == 3) {
    for (; x + kLanes <= columns; x += kLanes) {
      hn::StoreInterleaved3(hn::LoadU(d, from + x), hn::LoadU(d, from + ld + x),
                            hn::LoadU(d, from + 2 * ld + x), d, to + 3 * x);
    }
  } else if (parts % 4 == 0) {
    x = JoinFours(from, ld, parts, columns, to);
  }
  for (int64_t i = x * parts; i < n; ++i) to[i] = from[i % parts * ld + i / parts];
}

}  // namespace planes

const PlaneKernels& PlaneTable() {
  static constexpr PlaneKernels kTable = {planes::kLanes, planes::kVectors * planes::kLanes,
                                          planes::kRows,  planes::Product,
                                          planes::Split,  planes::Add,
                                          planes::Join};
  return kTable;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(PlaneTable);

const PlaneKernels& plane_kernels() {
  return HWY_DYNAMIC_DISPATCH(PlaneTable)();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
