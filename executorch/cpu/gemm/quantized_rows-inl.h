/// Products of few rows of floats by rows of 8-bit weights, which are read once, where they lie,
/// and dequantized in registers.
// clang-format off
#if defined(EXECUTORCH_CPU_GEMM_QUANTIZED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // per target
#ifdef EXECUTORCH_CPU_GEMM_QUANTIZED_ROWS_INL_H_
#undef EXECUTORCH_CPU_GEMM_QUANTIZED_ROWS_INL_H_
#else
#define EXECUTORCH_CPU_GEMM_QUANTIZED_ROWS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/gemm/few_rows-inl.h>
#include <executorch/cpu/gemm/quantized_kernels.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::gemm {
namespace HWY_NAMESPACE {

using QuantizedBytes = hn::Rebind<int8_t, Floats>;
using QuantizedInts = hn::Rebind<int32_t, Floats>;

HWY_INLINE V LoadQuantized(const int8_t* HWY_RESTRICT p) {
  const auto bytes = hn::LoadU(QuantizedBytes(), p);
  return hn::ConvertTo(Floats(), hn::PromoteTo(QuantizedInts(), bytes));
}
HWY_INLINE V LoadQuantizedN(const int8_t* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN int8_t lanes[kLanes] = {};
  memcpy(lanes, p, std::min(n, sizeof(lanes)));
  return LoadQuantized(lanes);
}

// Whether weights have zero points, as a type.
template <class F>
HWY_INLINE void WithZeroPoints(const QuantizedRows& w, const F& f) {
  w.zero_points == nullptr ? f(std::false_type()) : f(std::true_type());
}

// The zero point of group `at`, which is subtracted from integers if there are any.
template <class HasZero>
struct ZeroPoint {
  V zero;

  HWY_INLINE ZeroPoint(const QuantizedRows& w, int64_t at) {
    if constexpr (HasZero()) zero = hn::Set(Floats(), w.zero_points[at]);
  }
  HWY_INLINE V From(V x) const {
    if constexpr (HasZero()) return hn::Sub(x, zero);
    return x;
  }
};

template <class HasZero>
void DequantizeRows(HasZero, const QuantizedRows& w, int64_t nj, int64_t p0, int64_t np, float* to,
                    int64_t ld) {
  const Floats d;
  for (int64_t j = 0; j < nj; ++j, to += ld) {
    const int8_t* const from = w.data + j * w.ld + p0;
    for (int64_t p = 0, end; p < np; p = end) {
      const int64_t group = (p0 + p) / w.group, at = j * w.groups + group;
      end = std::min(np, (group + 1) * w.group - p0);
      const V scale = hn::Set(d, w.scales[at]);
      const ZeroPoint<HasZero> zero(w, at);
      for (; p + kLanes <= end; p += kLanes) {
        hn::StoreU(hn::Mul(zero.From(LoadQuantized(from + p)), scale), d, to + p);
      }
      if (p == end) continue;
      const auto rest = static_cast<size_t>(end - p);
      const V x = LoadQuantizedN(from + p, rest);
      StoreFloatsN(hn::Mul(zero.From(x), scale), d, to + p, rest);
    }
  }
}

void Dequantize(const QuantizedRows& w, int64_t nj, int64_t p0, int64_t np, float* to, int64_t ld) {
  WithZeroPoints(w,
                 [&](auto has_zero) HWY_ATTR { DequantizeRows(has_zero, w, nj, p0, np, to, ld); });
}

// The most rows of A whose dot products with kDots rows of the weights are computed at once.
constexpr int kQuantizedDotRows = kManyRegisters ? 4 : 2;

// The lanes' sums of products of elements [p, end), of one group, of a row of A and one of the
// weights, without the scale. The element `ahead` elements behind the one that is read is
// prefetched.
template <class HasZero>
HWY_INLINE V GroupDot(const float* HWY_RESTRICT a, const int8_t* HWY_RESTRICT b, int64_t p,
                      int64_t end, int64_t ahead, const ZeroPoint<HasZero>& zero) {
  const Floats d;
  const auto add = [&](int64_t at, V sum) HWY_ATTR {
    return hn::MulAdd(hn::LoadU(d, a + at), zero.From(LoadQuantized(b + at)), sum);
  };
  V sum = hn::Zero(d);
  constexpr int kSums = 4;  // one sum would wait for itself
  if (p + kSums * kLanes <= end) {
    V sums[kSums] = {sum, sum, sum, sum};
    for (; p + kSums * kLanes <= end; p += kSums * kLanes) {
      __builtin_prefetch(b + p + ahead, 0, 2);
#pragma GCC unroll 4
      for (int v = 0; v < kSums; ++v) sums[v] = add(p + v * kLanes, sums[v]);
    }
    sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  }
  if (p < end) __builtin_prefetch(b + p + ahead, 0, 2);
  for (; p + kLanes <= end; p += kLanes) sum = add(p, sum);
  if (p < end) {
    const auto rest = static_cast<size_t>(end - p);
    // Lanes behind the end hold minus the zero point in y, and zero in x.
    const V x = LoadFloatsN(d, a + p, rest), y = zero.From(LoadQuantizedN(b + p, rest));
    sum = hn::MulAdd(x, y, sum);
  }
  return sum;
}

// The dot products of one row of A with kDots rows of the weights, from row j0 on. Memory bandwidth
// is the bottleneck, so each row is read to its end.
template <class HasZero>
HWY_INLINE void RowDots(const FewQuantizedRows& f, int64_t i, int64_t j0, int64_t ahead) {
  const Floats d;
  const QuantizedRows& w = f.weights;
  const float* const a = f.a + i * f.lda;
  V sums[kDots];
#pragma GCC unroll 4
  for (int r = 0; r < kDots; ++r) {
    const int64_t j = std::min(j0 + r, f.n - 1), first = j * w.groups;
    const int8_t* const b = w.data + j * w.ld;
    V even = hn::Zero(d), odd = hn::Zero(d);
    const auto add = [&](int64_t g, V& sum) HWY_ATTR {
      const ZeroPoint<HasZero> zero(w, first + g);
      const V part = GroupDot(a, b, g * w.group, (g + 1) * w.group, ahead, zero);
      sum = hn::MulAdd(part, hn::Set(d, w.scales[first + g]), sum);
    };
    int64_t g = 0;
    for (; g + 2 <= w.groups; g += 2) {
      add(g, even);
      add(g + 1, odd);
    }
    if (g < w.groups) add(g, even);
    sums[r] = hn::Add(even, odd);
  }
  HWY_ALIGN float found[kDots];
  hn::StoreU(SumsOfLanes(d, sums), hn::CappedTag<float, 4>(), found);
  for (int r = 0; r < kDots && j0 + r < f.n; ++r) f.sums[i * f.ld_sums + j0 + r] = found[r];
}

// The same for several rows of A, from row i0 on. Multiply-adds are the bottleneck. The last row
// stands for those that do not exist.
template <class HasZero>
HWY_INLINE void RowsDots(const FewQuantizedRows& f, int64_t i0, int64_t j0, int64_t ahead) {
  const Floats d;
  constexpr int kHeight = kQuantizedDotRows;
  const QuantizedRows& w = f.weights;
  const float* a[kHeight];
  for (int i = 0; i < kHeight; ++i) a[i] = f.a + std::min(i0 + i, f.m - 1) * f.lda;
  const int8_t* b[kDots];
  int64_t first[kDots];
  for (int r = 0; r < kDots; ++r) {
    const int64_t j = std::min(j0 + r, f.n - 1);
    b[r] = w.data + j * w.ld;
    first[r] = j * w.groups;
  }
  V acc[kHeight][kDots];
#pragma GCC unroll 4
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) acc[i][r] = hn::Zero(d);
  }
  for (int64_t g = 0; g < w.groups; ++g) {
    const int64_t begin = g * w.group, end = begin + w.group;
    const int64_t whole = begin + w.group / kLanes * kLanes;
    const auto rest = static_cast<size_t>(end - whole);
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) {
      const V scale = hn::Set(d, w.scales[first[r] + g]);
      const ZeroPoint<HasZero> zero(w, first[r] + g);
      for (int64_t p = begin; p < whole; p += kLanes) {
        if (ahead > 0) __builtin_prefetch(b[r] + p + ahead, 0, 2);
        const V y = hn::Mul(zero.From(LoadQuantized(b[r] + p)), scale);
#pragma GCC unroll 4
        for (int i = 0; i < kHeight; ++i) {
          acc[i][r] = hn::MulAdd(hn::LoadU(d, a[i] + p), y, acc[i][r]);
        }
      }
      if (rest == 0) continue;
      const V y = hn::Mul(zero.From(LoadQuantizedN(b[r] + whole, rest)), scale);
      for (int i = 0; i < kHeight; ++i) {
        acc[i][r] = hn::MulAdd(LoadFloatsN(d, a[i] + whole, rest), y, acc[i][r]);
      }
    }
  }
  HWY_ALIGN float found[kDots];
  for (int i = 0; i < kHeight && i0 + i < f.m; ++i) {
    hn::StoreU(SumsOfLanes(d, acc[i]), hn::CappedTag<float, 4>(), found);
    for (int r = 0; r < kDots && j0 + r < f.n; ++r) {
      f.sums[(i0 + i) * f.ld_sums + j0 + r] = found[r];
    }
  }
}

void QuantizedRowsDot(const FewQuantizedRows& f) {
  const int64_t together = f.m > 1 ? kDots : 1;
  const int64_t ahead = prefetch_distance(kDotsAheadBytes, together, f.k, f.weights.ld);
  WithZeroPoints(f.weights, [&](auto has_zero) HWY_ATTR {
    using HasZero = decltype(has_zero);
    for (int64_t j = 0; j < f.n; j += kDots) {
      int64_t i = 0;
      for (; i + 1 < f.m; i += kQuantizedDotRows) RowsDots<HasZero>(f, i, j, i == 0 ? ahead : 0);
      if (i < f.m) RowDots<HasZero>(f, i, j, i == 0 ? ahead : 0);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu::gemm
HWY_AFTER_NAMESPACE();

#endif  // once per target
