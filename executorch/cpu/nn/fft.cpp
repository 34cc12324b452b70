#include <executorch/cpu/nn/fft.h>

#include <executorch/cpu/nn/fft_plan.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/fft.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/fft-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>

#ifndef ET_CPU_NN_FFT_ONCE  // once, not per target
#define ET_CPU_NN_FFT_ONCE
namespace executorch::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // numbers that repay waking a thread

/// How elements of a line lie in memory, in parts: element i's real part at i * step, its imaginary
/// part at i * step + part, or nowhere (it is 0, or dropped) if `part` is 0.
struct Line {
  int64_t step, part;
  bool is_dense() const { return step == (part == 0 ? 1 : 2) && part <= 1; }
};

/// The lines of a Fft, some of which are transformed side by side.
class Lines {
 public:
  explicit Lines(const Fft& a) : a_(a) {
    for (int d = 0; d < a.n_dims; ++d) count *= a.dims[d].size;
  }
  int64_t count = 1;

  /// The offsets of line `at`.
  void offsets(int64_t at, int64_t& from, int64_t& to) const {
    from = to = 0;
    for (int d = a_.n_dims - 1; d >= 0; --d) {
      const int64_t i = at % a_.dims[d].size;
      at /= a_.dims[d].size;
      from += i * a_.dims[d].from;
      to += i * a_.dims[d].to;
    }
  }

 private:
  const Fft& a_;
};

/// What is the same for all lines: x and y in memory, and the n numbers that are transformed.
template <class T>
struct FftPlan {
  Line from, to;
  int64_t read, n, room;  // elements of a line that are read, transformed, and in a block
  bool is_half;           // pairs of reals are transformed as complex numbers
  Roots<T> roots;         // of a.n
  Chirp<T> chirp;

  explicit FftPlan(const Fft& a) : n(a.n) {
    using Kind = Fft::Kind;
    is_half = a.kind != Kind::ComplexToComplex && a.n % 2 == 0;
    if (is_half) n = a.n / 2;
    const auto complex = [](int64_t step) { return Line{2 * step, 1}; };
    const auto real = [&](int64_t step) { return is_half ? Line{2 * step, step} : Line{step, 0}; };
    from = a.kind == Kind::RealToComplex ? real(a.from_step) : complex(a.from_step);
    to = a.kind == Kind::ComplexToReal ? real(a.to_step) : complex(a.to_step);
    read = a.kind == Kind::ComplexToReal ? a.n / 2 + 1 : n;
    room = std::max({n, read, a.kind == Kind::RealToComplex ? std::max(a.kept, a.n / 2 + 1) : 0});
  }
  bool has_chirp() const { return chirp.m > 0; }

  /// False if memory is refused.
  bool prepare(const Fft& a, Scratch& scratch) {
    if (largest_prime_factor(n) > kLargestFactor && !chirp.prepare(n, a.forward, scratch)) {
      return false;
    }
    T* const table = scratch.array<T>(Size(a.n) * 2);
    if (table == nullptr) return false;
    fill_roots(a.n, table);
    roots = {table, a.n, 1};
    return true;
  }
};

/// Where the elements of some lines begin in memory, in parts.
struct Begins {
  const int64_t* at;
  int64_t count;  // of lines
  /// The distance of neighbours, if all are as far apart; otherwise 0.
  int64_t distance() const {
    for (int64_t i = 2; i < count; ++i) {
      if (at[i] - at[i - 1] != at[1] - at[0]) return 0;
    }
    return count > 1 ? at[1] - at[0] : 0;
  }
};

}  // namespace
}  // namespace executorch::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

template <class T>
using OneLine = hn::CappedTag<T, 1>;

// Rows that lie a power of two apart would evict each other from the cache before their lines are
// used up: pieces of no more than kTransposedColumns are read or written one after the other.
template <class D>
constexpr int64_t kPiece = 4 * kLinesOf<D>;

/// dst[i * dst_step + l] = src[l * src_step + i] for i < n and l < lines <= kLinesOf<D>, and 0 for
/// the other l.
template <class D, class T>
void RowsToColumns(D d, const T* src, int64_t src_step, int64_t lines, int64_t n, T* dst,
                   int64_t dst_step) {
  constexpr int64_t kLines = kLinesOf<D>;
  constexpr int64_t kColumns = static_cast<int64_t>(kTransposedColumns<D>);
  const int64_t whole = n / kLines * kLines;
  for (int64_t c = 0; c < whole; c += kPiece<D>) {
    for (int64_t l = 0; l < kLines; l += kColumns) {
      for (int64_t i = c; i < std::min(c + kPiece<D>, whole); i += kLines) {
        hn::Vec<D> v[kColumns];
        for (int64_t k = 0; k < kColumns; ++k) {
          v[k] = l + k < lines ? hn::LoadU(d, src + (l + k) * src_step + i) : hn::Zero(d);
        }
        TransposeBlocks(d, v);
        for (int64_t k = 0; k < kColumns; ++k) {
          StoreBlocks(d, v[k], dst + (i + k) * dst_step + l, kColumns * dst_step);
        }
      }
    }
  }
  for (int64_t i = whole; i < n; ++i) {
    for (int64_t l = 0; l < kLines; ++l) {
      dst[i * dst_step + l] = l < lines ? src[l * src_step + i] : T(0);
    }
  }
}
/// The reverse: dst[l * dst_step + i] = src[i * src_step + l] for i < n and l < lines.
template <class D, class T>
void ColumnsToRows(D d, const T* src, int64_t src_step, int64_t lines, int64_t n, T* dst,
                   int64_t dst_step) {
  constexpr int64_t kLines = kLinesOf<D>;
  constexpr int64_t kColumns = static_cast<int64_t>(kTransposedColumns<D>);
  const int64_t whole = n / kLines * kLines, whole_lines = lines / kColumns * kColumns;
  for (int64_t c = 0; c < whole; c += kPiece<D>) {
    for (int64_t l = 0; l < whole_lines; l += kColumns) {
      for (int64_t i = c; i < std::min(c + kPiece<D>, whole); i += kLines) {
        TransposeColumns(d, src + i * src_step + l, src_step, dst + l * dst_step + i, dst_step);
      }
    }
  }
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = l < whole_lines ? whole : 0; i < n; ++i) {
      dst[l * dst_step + i] = src[i * src_step + l];
    }
  }
}

/// Loads n elements of up to kLinesOf<D> lines into a block.
template <class D, class T>
void LoadBlock(D d, const T* x, Begins lines, Line line, int64_t n, T* block) {
  constexpr int64_t kLines = kLinesOf<D>, kStep = kElement<D>;
  const int64_t apart = lines.distance();
  const T* const first = x + lines.at[0];
  if (line.is_dense() && apart != 0) {
    if (line.part != 0) return RowsToColumns(d, first, apart, lines.count, 2 * n, block, kLines);
    for (int64_t i = 0; i < n; ++i) hn::StoreU(hn::Zero(d), d, block + i * kStep + kLines);
    return RowsToColumns(d, first, apart, lines.count, n, block, kStep);
  }
  if (kLines == 1 && line.is_dense() && line.part != 0) {
    memcpy(block, first, static_cast<size_t>(2 * n) * sizeof(T));
    return;
  }
  if (lines.count < kLines || line.part == 0) std::fill_n(block, n * kStep, T(0));
  if (apart == 2 && line.part == 1) {
    HWY_ALIGN T pairs[kStep] = {};
    const auto bytes = static_cast<size_t>(2 * lines.count) * sizeof(T);
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = first + i * line.step;
      hn::Vec<D> re, im;
      if (lines.count < kLines) memcpy(pairs, from, bytes);
      hn::LoadInterleaved2(d, lines.count < kLines ? pairs : from, re, im);
      hn::StoreU(re, d, block + i * kStep);
      hn::StoreU(im, d, block + i * kStep + kLines);
    }
    return;
  }
  for (int64_t l = 0; l < lines.count; ++l) {
    const T* const from = x + lines.at[l];
    for (int64_t i = 0; i < n; ++i) block[i * kStep + l] = from[i * line.step];
    if (line.part == 0) continue;
    const T* const parts = from + line.part;
    for (int64_t i = 0; i < n; ++i) block[i * kStep + kLines + l] = parts[i * line.step];
  }
}

/// Stores n elements of a block's lines.
template <class D, class T>
void StoreBlock(D d, const T* block, T* y, Begins lines, Line line, int64_t n) {
  constexpr int64_t kLines = kLinesOf<D>, kStep = kElement<D>;
  const int64_t apart = lines.distance();
  T* const first = y + lines.at[0];
  if (line.is_dense() && apart != 0) {
    if (line.part != 0) return ColumnsToRows(d, block, kLines, lines.count, 2 * n, first, apart);
    return ColumnsToRows(d, block, kStep, lines.count, n, first, apart);
  }
  if (kLines == 1 && line.is_dense() && line.part != 0) {
    memcpy(first, block, static_cast<size_t>(2 * n) * sizeof(T));
    return;
  }
  if (apart == 2 && line.part == 1) {
    HWY_ALIGN T pairs[kStep];
    const auto bytes = static_cast<size_t>(2 * lines.count) * sizeof(T);
    for (int64_t i = 0; i < n; ++i) {
      T* const to = first + i * line.step;
      hn::StoreInterleaved2(hn::LoadU(d, block + i * kStep),
                            hn::LoadU(d, block + i * kStep + kLines), d,
                            lines.count < kLines ? pairs : to);
      if (lines.count < kLines) memcpy(to, pairs, bytes);
    }
    return;
  }
  for (int64_t l = 0; l < lines.count; ++l) {
    T* const to = y + lines.at[l];
    for (int64_t i = 0; i < n; ++i) to[i * line.step] = block[i * kStep + l];
    if (line.part == 0) continue;
    T* const parts = to + line.part;
    for (int64_t i = 0; i < n; ++i) parts[i * line.step] = block[i * kStep + kLines + l];
  }
}

/// What comes before the transform of a block, and what comes after it.
template <class D, class T>
void BeginBlock(D d, const Fft& a, const FftPlan<T>& plan, T* block) {
  if (a.kind != Fft::Kind::ComplexToReal) return;
  if (plan.is_half) return JoinHalves(d, plan.roots, static_cast<T>(a.scale), block);
  std::fill_n(block + kLinesOf<D>, kLinesOf<D>, T(0));
  Mirror(d, a.n, a.n / 2 + 1, a.n, block);
}
template <class D, class T>
void EndBlock(D d, const Fft& a, const FftPlan<T>& plan, T* block) {
  if (a.kind == Fft::Kind::RealToComplex && plan.is_half) {
    SplitHalves(d, plan.roots, static_cast<T>(a.scale), block);
    Mirror(d, a.n, a.n / 2 + 1, a.kept, block);
  } else if (!plan.is_half && a.scale != 1) {
    const T scale = static_cast<T>(a.scale);
    for (int64_t i = 0; i < plan.n * kElement<D>; ++i) block[i] *= scale;
  }
}
/// The elements that are stored of a line.
template <class T>
int64_t Stored(const Fft& a, const FftPlan<T>& plan) {
  return a.kind == Fft::Kind::ComplexToReal ? plan.n : a.kept;
}

/// Lines [begin, end), as many as a vector has lanes at a time. `block` has room for two blocks.
template <class T>
void RunSideBySide(const Fft& a, const FftPlan<T>& plan, int64_t begin, int64_t end, T* block) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLines = kLinesOf<hn::ScalableTag<T>>;
  T* const other = block + plan.room * 2 * kLines;
  const int64_t from_parts = a.kind == Fft::Kind::RealToComplex ? 1 : 2;
  const int64_t to_parts = a.kind == Fft::Kind::ComplexToReal ? 1 : 2;
  const Lines lines(a);
  int64_t from[kLines] = {}, to[kLines] = {};
  for (int64_t at = begin; at < end; at += kLines) {
    const int64_t count = std::min(kLines, end - at);
    for (int64_t l = 0; l < count; ++l) {
      lines.offsets(at + l, from[l], to[l]);
      from[l] *= from_parts;
      to[l] *= to_parts;
    }
    LoadBlock(d, static_cast<const T*>(a.from), {from, count}, plan.from, plan.read, block);
    BeginBlock(d, a, plan, block);
    T* const result = TransformBlock(d, a.forward, plan.roots.of(plan.n), block, other);
    EndBlock(d, a, plan, result);
    StoreBlock(d, result, static_cast<T*>(a.to), {to, count}, plan.to, Stored(a, plan));
  }
}

/// Multiplies element k of line b + l by exp(-+ 2 pi sqrt(-1) k (b + l) / n).
template <class D, class T>
void TwiddleBlock(D d, bool forward, Roots<T> roots, int64_t b, int64_t lines, int64_t n,
                  T* block) {
  const int64_t re = forward ? 0 : kLinesOf<D>, im = kLinesOf<D> - re;
  const Pass<D> at{block, block, re, im, 1, 1, roots};
  HWY_ALIGN T w[kElement<D>] = {};
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t l = 0; l < lines; ++l) {
      const T* const root = roots.at(k * (b + l));
      w[l] = root[0];
      w[kLinesOf<D> + l] = root[1];
    }
    at.store(Times(at.load(k), {hn::Load(d, w), hn::Load(d, w + kLinesOf<D>)}), k);
  }
}

/// The columns of a matrix x of complex numbers, whose transforms go to y, where columns and rows
/// lie y_column and y_row parts apart. `twiddled`: column b's number k is multiplied by
/// exp(-+ 2 pi sqrt(-1) k b / n).
template <class T>
struct Columns {
  int64_t rows, columns;
  const T* x;
  T* y;
  int64_t y_column, y_row;
  bool twiddled;
};
template <class T>
bool RunColumns(const Columns<T>& a, bool forward, Roots<T> roots, Scratch& scratch) {
  const hn::ScalableTag<T> d;
  using D = hn::ScalableTag<T>;
  constexpr int64_t kLines = kLinesOf<D>;
  const Scratch::Frame frame(scratch);
  ThreadScratch<T> blocks(scratch, Size(a.rows) * (2 * kElement<D>));
  if (!blocks) return false;
  const int64_t n = (a.columns + kLines - 1) / kLines;
  const int64_t grain = std::max<int64_t>(1, kGrain / (a.rows * kLines));
  blocks.parallel_for(n, grain, [&](int64_t begin, int64_t end, T* block) HWY_ATTR {
    for (int64_t b = begin * kLines; b < std::min(end * kLines, a.columns); b += kLines) {
      const int64_t count = std::min(kLines, a.columns - b);
      int64_t from[kLines] = {}, to[kLines] = {};
      for (int64_t l = 0; l < count; ++l) {
        from[l] = 2 * (b + l);
        to[l] = a.y_column * (b + l);
      }
      LoadBlock(d, a.x, {from, count}, {2 * a.columns, 1}, a.rows, block);
      T* const result =
          TransformBlock(d, forward, roots.of(a.rows), block, block + a.rows * kElement<D>);
      if (a.twiddled) TwiddleBlock(d, forward, roots, b, count, a.rows, result);
      StoreBlock(d, result, a.y, {to, count}, {a.y_row, 1}, a.rows);
    }
  });
  return true;
}

/// Transforms the roots.n numbers of a line in place. As a matrix of r rows and c columns, element
/// i2 c + i1 of the line becomes k2 + r k1: the columns are transformed from i2 to k2 and
/// multiplied by exp(-+ 2 pi sqrt(-1) i1 k2 / n), and the rows of the result from i1 to k1.
/// `between` has room for a line.
template <class T>
bool RunCut(bool forward, Roots<T> roots, T* line, T* between, Scratch& scratch) {
  const int64_t columns = Cut(roots.n, kLinesOf<hn::ScalableTag<T>>).columns;
  const int64_t rows = roots.n / columns;
  if (columns == 1) {
    const Scratch::Frame frame(scratch);
    const T* const result = TransformBlock(OneLine<T>(), forward, roots, line, between);
    if (result != line) memcpy(line, result, static_cast<size_t>(2 * roots.n) * sizeof(T));
    return true;
  }
  return RunColumns<T>({rows, columns, line, between, 2 * rows, 2, true}, forward, roots,
                       scratch) &&
         RunColumns<T>({columns, rows, between, line, 2, 2 * rows, false}, forward, roots, scratch);
}

/// Line `at`, by itself.
template <class T>
bool RunLine(const Fft& a, const FftPlan<T>& plan, int64_t at, Scratch& scratch) {
  const OneLine<T> d;
  const Scratch::Frame frame(scratch);
  const int64_t longest = std::max(plan.n, plan.chirp.m);
  T* const line = scratch.array<T>(Size(plan.room) * 2);
  T* const between = scratch.array<T>(Size(longest) * 2);
  T* const spread = plan.has_chirp() ? scratch.array<T>(Size(longest) * 2) : line;
  if (line == nullptr || between == nullptr || spread == nullptr) return false;
  int64_t from, to;
  Lines(a).offsets(at, from, to);
  if (a.kind != Fft::Kind::RealToComplex) from *= 2;
  if (a.kind != Fft::Kind::ComplexToReal) to *= 2;
  LoadBlock(d, static_cast<const T*>(a.from), {&from, 1}, plan.from, plan.read, line);
  BeginBlock(d, a, plan, line);
  if (plan.has_chirp()) {
    plan.chirp.spread(line, spread);
    if (!RunCut(true, plan.chirp.roots, spread, between, scratch)) return false;
    plan.chirp.filter(spread);
    if (!RunCut(false, plan.chirp.roots, spread, between, scratch)) return false;
    plan.chirp.gather(spread, line);
  } else if (!RunCut(a.forward, plan.roots.of(plan.n), line, between, scratch)) {
    return false;
  }
  EndBlock(d, a, plan, line);
  StoreBlock(d, line, static_cast<T*>(a.to), {&to, 1}, plan.to, Stored(a, plan));
  return true;
}

template <class T>
bool RunFft(const Fft& a, Scratch& scratch) {
  constexpr int64_t kLines = kLinesOf<hn::ScalableTag<T>>;
  const Scratch::Frame frame(scratch);
  FftPlan<T> plan(a);
  if (!plan.prepare(a, scratch)) return false;
  const int64_t lines = Lines(a).count;
  if (plan.has_chirp()) {
    const Scratch::Frame inner(scratch);
    T* const between = scratch.array<T>(Size(plan.chirp.m) * 2);
    if (between == nullptr ||
        !RunCut(true, plan.chirp.roots, plan.chirp.kernel, between, scratch)) {
      return false;
    }
  }
  const int64_t groups = (lines + kLines - 1) / kLines;
  const Cut cut(plan.n, kLines);
  const bool is_cut = cut.columns > 1 && (plan.n > kLongLine || lines * cut.cost < groups * plan.n);
  if (plan.has_chirp() || is_cut) {
    LoopScratch threads(scratch);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max(plan.n, plan.chirp.m));
    return threads.parallel_for(lines, grain,
                                [&](int64_t begin, int64_t end, Scratch& own) HWY_ATTR {
                                  bool done = true;
                                  for (int64_t i = begin; done && i < end; ++i) {
                                    done = RunLine(a, plan, i, own);
                                  }
                                  return done;
                                });
  }
  ThreadScratch<T> blocks(scratch, Size(plan.room) * (4 * kLines));
  if (!blocks) return false;
  const int64_t grain = std::max<int64_t>(1, kGrain / (plan.n * kLines)) * kLines;
  blocks.parallel_for(lines, grain, [&](int64_t begin, int64_t end, T* block) HWY_ATTR {
    RunSideBySide(a, plan, begin, end, block);
  });
  return true;
}

bool RunFloats(const Fft& a, Scratch& scratch) {
  return RunFft<float>(a, scratch);
}
bool RunDoubles(const Fft& a, Scratch& scratch) {
  return RunFft<double>(a, scratch);
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunFloats);
HWY_EXPORT(RunDoubles);

bool Fft::run(Scratch& scratch) const {
  Size lines = 1;
  for (int d = 0; d < n_dims; ++d) lines *= dims[d].size;
  if (n < 1 || kept < 1 || kept > n || !lines.ok() || !is_countable(lines.value(), n)) return false;
  return wide ? HWY_DYNAMIC_DISPATCH(RunDoubles)(*this, scratch)
              : HWY_DYNAMIC_DISPATCH(RunFloats)(*this, scratch);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
