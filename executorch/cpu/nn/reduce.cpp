#include <executorch/cpu/nn/reduce.h>

#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/reduce.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/nn/vectors-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

constexpr int64_t kRun = 2048;      // elements whose sum is kept in float
constexpr int64_t kColumnRun = 64;  // rows of columns whose sums are kept in float
constexpr int64_t kShort = 64;      // elements of rows of which some are reduced together
constexpr int64_t kWide = 1024;     // columns of one task
constexpr int64_t kPart = 65536;    // elements of one task where there are few outputs
constexpr int64_t kMaxParts = 32;

/// x[0..n) in the first lanes.
template <class T>
HWY_INLINE V LoadUpTo(const T* x, int64_t n) {
  const Floats d;
  return n < kLanes ? LoadFloatsN(d, x, static_cast<size_t>(n)) : LoadFloats(d, x);
}

/// `extreme`, or NaN if a lane of v is.
HWY_INLINE float OrNaN(V v, float extreme) {
  const Floats d;
  return hn::AllFalse(d, hn::IsNaN(v)) ? extreme : std::numeric_limits<float>::quiet_NaN();
}

/// The operations on vectors, and on doubles, in which the results of runs are merged.
struct SumOp {
  static constexpr bool kHasIndex = false;
  static constexpr float kStart = 0;
  static V Fold(V a, V b) { return hn::Add(a, b); }
  static float Lanes(V v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }
  static double Merge(double a, double b) { return a + b; }
};
struct ProductOp {
  static constexpr bool kHasIndex = false;
  static constexpr float kStart = 1;
  static V Fold(V a, V b) { return hn::Mul(a, b); }
  static double Lanes(V v) {
    const Floats d;
    HWY_ALIGN float lanes[static_cast<size_t>(kLanes)];
    hn::Store(v, d, lanes);
    double product = 1;
    for (const float lane : lanes) product *= static_cast<double>(lane);
    return product;
  }
  static double Merge(double a, double b) { return a * b; }
};
struct MaxOp {
  static constexpr bool kHasIndex = true;
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  static V Fold(V a, V b) {  // NaN if either is
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Lt(b, a), a, b));
  }
  static hn::Mask<Floats> Beats(V a, V b) { return hn::Lt(b, a); }
  static float Lanes(V v) { return OrNaN(v, hn::GetLane(hn::MaxOfLanes(Floats(), v))); }
  static double Merge(double a, double b) { return a > b || std::isnan(a) ? a : b; }
};
struct MinOp {
  static constexpr bool kHasIndex = true;
  static constexpr float kStart = std::numeric_limits<float>::infinity();
  static V Fold(V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Lt(a, b), a, b));
  }
  static hn::Mask<Floats> Beats(V a, V b) { return hn::Lt(a, b); }
  static float Lanes(V v) { return OrNaN(v, hn::GetLane(hn::MinOfLanes(Floats(), v))); }
  static double Merge(double a, double b) { return a < b || std::isnan(a) ? a : b; }
};

template <class Op, class T>
double Row(const T* HWY_RESTRICT x, int64_t n) {
  const Floats d;
  double total = static_cast<double>(Op::kStart);
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t m = std::min(kRun, n - begin);
    const V start = hn::Set(d, Op::kStart);
    V acc[4] = {start, start, start, start};
    int64_t i = 0;
    for (; i + 4 * kLanes <= m; i += 4 * kLanes) {
      for (int64_t k = 0; k < 4; ++k) {
        acc[k] = Op::Fold(acc[k], LoadFloats(d, x + begin + i + k * kLanes));
      }
    }
    for (; i + kLanes <= m; i += kLanes) acc[0] = Op::Fold(acc[0], LoadFloats(d, x + begin + i));
    if (i < m) {
      const size_t rest = static_cast<size_t>(m - i);
      const V v = LoadFloatsN(d, x + begin + i, rest);
      acc[1] = Op::Fold(acc[1], hn::IfThenElse(hn::FirstN(d, rest), v, start));
    }
    total =
        Op::Merge(total, Op::Lanes(Op::Fold(Op::Fold(acc[0], acc[1]), Op::Fold(acc[2], acc[3]))));
  }
  return total;
}

/// Reduces kLanes short rows at a time, which are transposed: row r's elements are in lane r.
/// Returns how many of the `count` rows, which begin `outer` elements apart, it has reduced.
template <class Op>
int64_t ShortRows(const float* HWY_RESTRICT x, int64_t outer, int64_t n, int64_t count,
                  double* HWY_RESTRICT result) {
  const Floats d;
  constexpr int64_t kColumns = static_cast<int64_t>(kTransposedColumns<Floats>);
  HWY_ALIGN float lanes[static_cast<size_t>(kLanes)];
  int64_t row = 0;
  for (; row + kLanes <= count; row += kLanes) {
    const float* const from = x + row * outer;
    V acc = hn::Set(d, Op::kStart);
    int64_t c = 0;
    for (; kColumns > 1 && c + kColumns <= n; c += kColumns) {
      V v[kColumns];
      for (int64_t k = 0; k < kColumns; ++k) {
        v[k] = LoadBlocks(d, from + k * outer + c, kColumns * outer);
      }
      TransposeBlocks(d, v);
      for (int64_t k = 0; k < kColumns; ++k) acc = Op::Fold(acc, v[k]);
    }
    for (; c < n; ++c) {
      for (int64_t r = 0; r < kLanes; ++r) lanes[r] = from[r * outer + c];
      acc = Op::Fold(acc, hn::Load(d, lanes));
    }
    hn::Store(acc, d, lanes);
    for (int64_t r = 0; r < kLanes; ++r) result[row + r] = static_cast<double>(lanes[r]);
  }
  return row;
}

/// Reduces `width` <= kWide neighbouring columns over n <= kColumnRun rows.
template <class Op, class T>
void ColumnRun(const T* HWY_RESTRICT x, int64_t step, int64_t n, int64_t width,
               float* HWY_RESTRICT acc) {
  const Floats d;
  std::fill_n(acc, width, Op::kStart);
  for (int64_t i = 0; i < n;) {
    const T* row = x + i * step;
    const bool four = i + 4 <= n;
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      const T* at = row + c;
      V v = LoadFloats(d, at);
      if (four) {
        v = Op::Fold(Op::Fold(v, LoadFloats(d, at + step)),
                     Op::Fold(LoadFloats(d, at + 2 * step), LoadFloats(d, at + 3 * step)));
      }
      hn::StoreU(Op::Fold(hn::LoadU(d, acc + c), v), d, acc + c);
    }
    if (c < width) {
      const size_t rest = static_cast<size_t>(width - c);
      for (int64_t k = 0; k < (four ? 4 : 1); ++k) {
        const V v = LoadFloatsN(d, row + k * step + c, rest);
        StoreFloatsN(Op::Fold(LoadFloatsN(d, acc + c, rest), v), d, acc + c, rest);
      }
    }
    i += four ? 4 : 1;
  }
}

/// The same over any number of rows.
template <class Op, class T>
void Columns(const T* HWY_RESTRICT x, int64_t step, int64_t n, int64_t width,
             double* HWY_RESTRICT result) {
  HWY_ALIGN float acc[kWide];
  std::fill_n(result, width, static_cast<double>(Op::kStart));
  for (int64_t begin = 0; begin < n; begin += kColumnRun) {
    ColumnRun<Op>(x + begin * step, step, std::min(kColumnRun, n - begin), width, acc);
    for (int64_t c = 0; c < width; ++c) result[c] = Op::Merge(result[c], acc[c]);
  }
}

/// Stores n results of one run each; y may be null. A quotient in float is that in double, rounded.
template <class T>
void StoreRun(const float* HWY_RESTRICT acc, int64_t n, double divisor, T* HWY_RESTRICT y) {
  const Floats d;
  const V divide = hn::Set(d, static_cast<float>(divisor));
  for (int64_t c = 0; y != nullptr && c < n; c += kLanes) {
    const size_t m = static_cast<size_t>(std::min(kLanes, n - c));
    StoreFloatsN(hn::Div(LoadFloatsN(d, acc + c, m), divide), d, y + c, m);
  }
}

/// The extremes of `width` <= kWide neighbouring columns over n >= 1 rows, and their rows.
template <class Op, class T>
void ColumnExtremes(const T* HWY_RESTRICT x, int64_t step, int64_t n, int64_t width,
                    float* HWY_RESTRICT best, int32_t* HWY_RESTRICT rows) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  for (int64_t i = 0; i < n; ++i) {
    const T* const row = x + i * step;
    for (int64_t c = 0; c < width; c += kLanes) {
      const V v = LoadUpTo(row + c, width - c);
      const V old = i == 0 ? v : hn::Load(d, best + c);
      const auto is_better = hn::Or(Op::Beats(v, old), hn::AndNot(hn::IsNaN(old), hn::IsNaN(v)));
      const auto at = i == 0 ? hn::Zero(di) : hn::Load(di, rows + c);
      hn::Store(hn::IfThenElse(is_better, v, old), d, best + c);
      const auto now = hn::Set(di, static_cast<int32_t>(i));
      hn::Store(hn::IfThenElse(hn::RebindMask(di, is_better), now, at), di, rows + c);
    }
  }
}

template <class T>
void Store(const double* result, int64_t n, double divisor, T* y) {
  const Floats d;
  for (int64_t i = 0; i < n; i += kLanes) {
    HWY_ALIGN float lanes[static_cast<size_t>(kLanes)] = {};
    const int64_t m = std::min(kLanes, n - i);
    for (int64_t k = 0; k < m; ++k) lanes[k] = static_cast<float>(result[i + k] / divisor);
    StoreFloatsN(hn::LoadU(d, lanes), d, y + i, static_cast<size_t>(m));
  }
}

/// The outputs [first, first + count) over rows [begin, end), count <= kWide, within one `outer`
/// unless inner is 1.
template <class Op, class T>
void Block(const Reduce& a, int64_t first, int64_t count, int64_t begin, int64_t end,
           double* result) {
  const T* x = static_cast<const T*>(a.x) + begin * a.x_step;
  if (a.inner == 1) {
    int64_t o = 0;
    if constexpr (std::is_same_v<T, float>) {
      if (end - begin <= kShort) {
        o = ShortRows<Op>(x + first * a.x_outer, a.x_outer, end - begin, count, result);
      }
    }
    for (; o < count; ++o) result[o] = Row<Op>(x + (first + o) * a.x_outer, end - begin);
  } else {
    Columns<Op>(x + first / a.inner * a.x_outer + first % a.inner, a.x_step, end - begin, count,
                result);
  }
}

/// Columns of one run, and extremes of columns with their rows: results are stored as they are.
template <class Op, class T>
void ColumnBlock(const Reduce& a, int64_t first, int64_t count) {
  const T* const x = static_cast<const T*>(a.x) + first / a.inner * a.x_outer + first % a.inner;
  T* const y = a.y == nullptr ? nullptr : static_cast<T*>(a.y) + first;
  HWY_ALIGN float acc[kWide];
  if constexpr (Op::kHasIndex) {
    if (a.indices != nullptr) {
      HWY_ALIGN int32_t rows[kWide];
      ColumnExtremes<Op>(x, a.x_step, a.n, count, acc, rows);
      std::copy_n(rows, count, a.indices + first);
      return StoreRun(acc, count, 1, y);
    }
  }
  ColumnRun<Op>(x, a.x_step, a.n, count, acc);
  StoreRun(acc, count, a.divisor, y);
}

template <class Op, class T>
bool RunAs(const Reduce& a, Scratch& scratch) {
  T* y = static_cast<T*>(a.y);
  const int64_t n = std::max<int64_t>(a.n, 1);
  // Threads compute blocks of outputs: some rows, or a piece of a row of columns.
  const int64_t rows_per_block = std::clamp<int64_t>(16384 / n, 1, kWide);
  const int64_t wide = a.inner == 1 ? rows_per_block : std::min(a.inner, kWide);
  const int64_t per_outer = a.inner == 1 ? 1 : (a.inner + wide - 1) / wide;
  const int64_t blocks = a.inner == 1 ? (a.outer + wide - 1) / wide : a.outer * per_outer;
  const auto extent = [&](int64_t block, int64_t& first) {
    first = a.inner == 1 ? block * wide : block / per_outer * a.inner + block % per_outer * wide;
    return a.inner == 1 ? std::min(wide, a.outer - first)
                        : std::min(wide, a.inner - block % per_outer * wide);
  };
  const int64_t grain = std::max<int64_t>(16384 / (n * wide), 1);
  const bool is_run = a.n <= kColumnRun && static_cast<float>(a.divisor) == a.divisor;
  if (a.inner > 1 && (is_run || a.indices != nullptr)) {
    parallel_for(blocks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t b = begin; b < end; ++b) {
        int64_t first;
        const int64_t count = extent(b, first);
        ColumnBlock<Op, T>(a, first, count);
      }
    });
    return true;
  }
  const int64_t parts =
      blocks >= 8 ? 1 : std::clamp<int64_t>(n * wide / kPart, 1, std::min(kMaxParts, n));
  if (parts == 1) {
    parallel_for(blocks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      double result[kWide];
      for (int64_t b = begin; b < end; ++b) {
        int64_t first;
        const int64_t count = extent(b, first);
        Block<Op, T>(a, first, count, 0, a.n, result);
        Store(result, count, a.divisor, y + first);
      }
    });
    return true;
  }
  // If there are few outputs of many elements, parts of the sums are computed and merged in order.
  const Scratch::Frame frame(scratch);
  const int64_t outputs = a.outer * a.inner;
  double* const partial = scratch.array<double>(Size(parts) * outputs);
  if (partial == nullptr) return false;
  parallel_for(blocks * parts, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / blocks;
      int64_t first;
      const int64_t count = extent(i % blocks, first);
      Block<Op, T>(a, first, count, a.n * part / parts, a.n * (part + 1) / parts,
                   partial + part * outputs + first);
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < outputs; ++i) {
      partial[i] = Op::Merge(partial[i], partial[part * outputs + i]);
    }
  }
  Store(partial, outputs, a.divisor, y);
  return true;
}

template <class Op>
bool WithType(const Reduce& a, Scratch& scratch) {
  return with_type(a.type, [&](auto t) { return RunAs<Op, decltype(t)>(a, scratch); });
}

/// The index of the first of n elements that equals `value`, or that is NaN if `value` is NaN.
template <class T>
int64_t IndexOf(const T* HWY_RESTRICT x, int64_t n, float value) {
  const Floats d;
  const V wanted = hn::Set(d, value);
  const bool nan = value != value;
  for (int64_t i = 0; i < n; i += kLanes) {
    const V v = LoadUpTo(x + i, n - i);
    const intptr_t at = hn::FindFirstTrue(d, nan ? hn::IsNaN(v) : hn::Eq(v, wanted));
    if (at >= 0) return i + at;
  }
  return 0;
}

void RunExtreme(Type type, bool largest, const void* data, int64_t n, Extreme* result) {
  with_type(type, [&](auto t) {
    const auto* x = static_cast<const decltype(t)*>(data);
    // Blocks stay in the L1 cache. The last block that improves the result holds its first
    // occurrence.
    float best = largest ? MaxOp::kStart : MinOp::kStart;
    int64_t begin = 0;
    for (int64_t i = 0; i < n && best == best; i += kRun) {
      const int64_t m = std::min(kRun, n - i);
      const auto value = static_cast<float>(largest ? Row<MaxOp>(x + i, m) : Row<MinOp>(x + i, m));
      if (value == value && !(largest ? value > best : value < best)) continue;
      best = value;
      begin = i;
    }
    *result = {best, begin + IndexOf(x + begin, std::min(kRun, n - begin), best)};
  });
}

bool RunReduce(const Reduce& a, Scratch& scratch) {
  switch (a.op) {
    case Reduce::Op::Product:
      return WithType<ProductOp>(a, scratch);
    case Reduce::Op::Max:
      return WithType<MaxOp>(a, scratch);
    case Reduce::Op::Min:
      return WithType<MinOp>(a, scratch);
    default:
      return WithType<SumOp>(a, scratch);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunReduce);
HWY_EXPORT(RunExtreme);

bool Reduce::run(Scratch& scratch) const {
  if (outer <= 0 || inner <= 0) return true;
  if (!is_countable(outer, n, inner)) return false;
  if (indices != nullptr && n > std::numeric_limits<int32_t>::max()) return false;
  return HWY_DYNAMIC_DISPATCH(RunReduce)(*this, scratch);
}

Extreme extreme(Type type, Reduce::Op max_or_min, const void* x, int64_t n) {
  Extreme result;
  HWY_DYNAMIC_DISPATCH(RunExtreme)(type, max_or_min == Reduce::Op::Max, x, n, &result);
  return result;
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
