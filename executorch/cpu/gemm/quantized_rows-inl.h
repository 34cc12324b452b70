/// Dot products of a row of floats with rows of 8-bit weights, which are dequantized in registers,
/// and dequantization of rows to memory.
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
namespace executorch::cpu::gemm::HWY_NAMESPACE {

using QuantizedBytes = hn::Rebind<int8_t, Floats>;
using QuantizedInts = hn::Rebind<int32_t, Floats>;

// How far ahead of their use, in bytes, weights are prefetched.
constexpr int64_t kQuantizedAhead = 8192;

HWY_INLINE V LoadQuantized(const int8_t* HWY_RESTRICT p) {
  const auto bytes = hn::LoadU(QuantizedBytes(), p);
  return hn::ConvertTo(Floats(), hn::PromoteTo(QuantizedInts(), bytes));
}
HWY_INLINE V LoadQuantizedN(const int8_t* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN int8_t lanes[kLanes] = {};
  memcpy(lanes, p, std::min(n, sizeof(lanes)));
  return LoadQuantized(lanes);
}

HWY_INLINE V ScaleOf(const QuantizedRows& w, int64_t group) {
  return hn::Set(Floats(), w.scales == nullptr ? 1.0f : w.scales[group]);
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
  const int64_t first = p0 / w.group, first_end = (first + 1) * w.group - p0;
  for (int64_t j = 0; j < nj; ++j, to += ld) {
    const int8_t* const from = w.data + j * w.ld + p0;
    int64_t at = j * w.groups + first;
    for (int64_t p = 0, end = first_end; p < np; end += w.group, ++at) {
      const int64_t stop = std::min(np, end);
      const V scale = ScaleOf(w, at);
      const ZeroPoint<HasZero> zero(w, at);
      for (; p + kLanes <= stop; p += kLanes) {
        hn::StoreU(hn::Mul(zero.From(LoadQuantized(from + p)), scale), d, to + p);
      }
      if (p == stop) continue;
      const auto rest = static_cast<size_t>(stop - p);
      const V x = LoadQuantizedN(from + p, rest);
      StoreFloatsN(hn::Mul(zero.From(x), scale), d, to + p, rest);
      p = stop;
    }
  }
}

void Dequantize(const QuantizedRows& w, int64_t nj, int64_t p0, int64_t np, float* to, int64_t ld) {
  WithZeroPoints(w,
                 [&](auto has_zero) HWY_ATTR { DequantizeRows(has_zero, w, nj, p0, np, to, ld); });
}

// The dot product, in a vector's lanes, of a row of A and one of the weights over the group of
// elements that begins at p, without the scale. The group has kVectors vectors, or any number of
// elements if that is 0. The element `ahead` elements behind the one that is read is prefetched.
template <int kVectors, class HasZero>
HWY_INLINE V GroupDot(const float* HWY_RESTRICT a, const int8_t* HWY_RESTRICT b, int64_t p,
                      int64_t group, int64_t ahead, const ZeroPoint<HasZero>& zero) {
  const Floats d;
  const auto add = [&](int64_t at, V sum) HWY_ATTR {
    return hn::MulAdd(hn::LoadU(d, a + at), zero.From(LoadQuantized(b + at)), sum);
  };
  __builtin_prefetch(b + p + ahead, 0, 2);
  V sum = hn::Zero(d);
  if constexpr (kVectors > 0) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum = add(p + v * kLanes, sum);
    return sum;
  }
  const int64_t end = p + group;
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
  for (; p + kLanes <= end; p += kLanes) sum = add(p, sum);
  if (p < end) {
    const auto rest = static_cast<size_t>(end - p);
    // Lanes behind the end hold minus the zero point in y, and zero in x.
    const V x = LoadFloatsN(d, a + p, rest), y = zero.From(LoadQuantizedN(b + p, rest));
    sum = hn::MulAdd(x, y, sum);
  }
  return sum;
}

// Memory bandwidth is the bottleneck, so each row is read to its end.
template <int kVectors, class HasZero>
void RowDots(const QuantizedRow& f) {
  const Floats d;
  const QuantizedRows& w = f.weights;
  const int64_t ahead = prefetch_distance(kQuantizedAhead, 1, f.k, w.ld);
  for (int64_t j0 = 0; j0 < f.n; j0 += kDots) {
    V sums[kDots];
#pragma GCC unroll 4
    for (int r = 0; r < kDots; ++r) {
      const int64_t j = std::min(j0 + r, f.n - 1), first = j * w.groups;
      const int8_t* const b = w.data + j * w.ld;
      V even = hn::Zero(d), odd = hn::Zero(d);
      const auto add = [&](int64_t g, V& sum) HWY_ATTR {
        const ZeroPoint<HasZero> zero(w, first + g);
        const V part = GroupDot<kVectors>(f.a, b, g * w.group, w.group, ahead, zero);
        sum = hn::MulAdd(part, ScaleOf(w, first + g), sum);
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
    for (int r = 0; r < kDots && j0 + r < f.n; ++r) f.sums[j0 + r] = found[r];
  }
}

void QuantizedRowDots(const QuantizedRow& f) {
  WithZeroPoints(f.weights, [&](auto has_zero) HWY_ATTR {
    using HasZero = decltype(has_zero);
    // Groups of 32 elements, in most instruction sets.
    if (f.weights.group == 2 * kLanes) return RowDots<2, HasZero>(f);
    if (f.weights.group == 4 * kLanes) return RowDots<4, HasZero>(f);
    RowDots<0, HasZero>(f);
  });
}

}  // namespace executorch::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
