#include <executorch/cpu/nn/expression.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/expression.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/expression_chain-inl.h>
#include <executorch/cpu/nn/functions-inl.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/storage-inl.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using Op = Expression::Op;

/// The elements of a tile. The registers of a usual expression then fit an L1 cache.
constexpr int64_t kTile = 512;
/// The elements that are worth another thread.
constexpr int64_t kShare = 16384;

/// y[i] = f(a[i], b[i])
template <class F>
HWY_INLINE void Zip(const float* a, const float* b, float* y, int64_t count, const F& f) {
  const Floats d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  if (i < n) {
    const auto x = LoadFloatsN(d, a + i, n - i), z = LoadFloatsN(d, b + i, n - i);
    StoreFloatsN(f(d, x, z), d, y + i, n - i);
  }
}

template <class F>
HWY_INLINE void Each(const float* a, float* y, int64_t n, const F& f) {
  Zip(a, a, y, n, [&](auto d, auto v, auto) HWY_ATTR { return f(d, v); });
}

void ApplyAct(const Activation& act, const float* a, float* y, int64_t n) {
  with_kind(act.kind, [&](auto kind) HWY_ATTR {
    const Activation fixed = {decltype(kind)::value, act.low, act.high};
    Each(a, y, n, [&](auto d, auto v) HWY_ATTR { return Apply(d, fixed, v); });
  });
}

/// Runs a step that is no link of a chain.
void RunStep(const Expression::Step& s, const Registers& registers, float* y, int64_t n) {
  const float* const a = registers.data[s.a];
  if (s.op == Op::Apply) return apply(s.function, Type::F32, a, y, n);
  if (s.op == Op::Act) return ApplyAct(s.act, a, y, n);
  Zip(a, registers.data[s.b], y, n, [&](auto, auto v, auto w) HWY_ATTR { return Atan2(v, w); });
}

template <class T>
void CopyDense(const T* from, int64_t n, float* to) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadFloats(d, from + i), d, to + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, from + i, rest), d, to + i, rest);
}

void Fill(float value, int64_t n, float* to) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, value);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(v, d, to + i);
  if (i < n) StoreFloatsN(v, d, to + i, static_cast<size_t>(n - i));
}

/// Copies n elements, `stride` apart, to contiguous floats.
template <class T>
void CopyRow(const T* from, int64_t stride, int64_t n, float* to) {
  if (stride == 0) {
    if constexpr (std::is_arithmetic_v<T>) {
      to[0] = static_cast<float>(*from);
    } else {
      CopyDense(from, 1, to);
    }
    return Fill(to[0], n, to);
  }
  T dense[kTile];
  if (stride != 1) {
    for (int64_t i = 0; i < n; ++i) dense[i] = from[i * stride];
    from = dense;
  }
  CopyDense(from, n, to);
}

/// A tile: `rows` rows of n elements along the first two loops.
struct Tile {
  int64_t n, rows;
  int64_t size() const { return n * rows; }
};

/// Rows of fewer elements are copied by CopyShortRows().
constexpr int64_t kShortRow = 8;

/// Copies a tile of short rows: a loop of few steps for each row would cost more than the copy.
template <class T>
void CopyShortRows(const T* from, int64_t stride, int64_t row_stride, Tile tile, float* to) {
  const int64_t n = tile.n;
  if (row_stride == 0) {  // one row, repeated
    CopyRow(from, stride, n, to);
    for (int64_t done = n; done < tile.size(); done *= 2) {
      std::copy_n(to, std::min(done, tile.size() - done), to + done);
    }
    return;
  }
  T dense[kTile];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < tile.rows; ++r) dense[r * n + i] = from[r * row_stride + i * stride];
  }
  CopyDense(dense, tile.size(), to);
}

/// Copies the elements of a tile to contiguous floats.
template <class T>
void LoadTile(const T* from, int64_t stride, int64_t row_stride, Tile tile, float* to) {
  if (tile.rows > 1 && tile.n < kShortRow) return CopyShortRows(from, stride, row_stride, tile, to);
  for (int64_t r = 0; r < tile.rows; ++r) {
    CopyRow(from + r * row_stride, stride, tile.n, to + r * tile.n);
  }
}

template <class T>
void StoreRow(const float* from, T* to, int64_t stride, bool past, int64_t n) {
  const Floats d;
  alignas(kLine) T dense[kTile];
  T* const target = stride == 1 && !past ? to : dense;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFloats(hn::LoadU(d, from + i), d, target + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, from + i, rest), d, target + i, rest);
  if (past) return stream(dense, to, static_cast<size_t>(n) * sizeof(T));
  for (int64_t j = 0; stride != 1 && j < n; ++j) to[j * stride] = dense[j];
}

void RunTile(const Expression& e, const Plan& plan, const int64_t* in, int64_t out, Tile tile,
             bool past, float (*buffer)[kTile]) {
  Registers registers;
  for (int w = 0; w < e.n_inputs; ++w) {
    const int64_t stride = e.dims[0].in[w], row_stride = e.dims[1].in[w];
    const bool is_row = tile.rows == 1 || row_stride == stride * tile.n;
    if (plan.is_float[w] && stride == 1 && is_row) {
      registers.data[w] = static_cast<const float*>(e.inputs[w]) + in[w];
      continue;
    }
    registers.is_single[w] = stride == 0 && is_row && !plan.as_array[w];
    const Tile loaded = registers.is_single[w] ? Tile{1, 1} : is_row ? Tile{tile.size(), 1} : tile;
    const auto load = [&](auto t) {
      const auto* const from = static_cast<const decltype(t)*>(e.inputs[w]) + in[w];
      LoadTile(from, stride, row_stride, loaded, buffer[w]);
    };
    if (e.is_bool[w]) {
      load(uint8_t{});
    } else {
      with_type(e.type_of(w), load);
    }
    registers.data[w] = buffer[w];
  }
  const bool is_dense = e.dims[0].out == 1 && (tile.rows == 1 || e.dims[1].out == tile.n);
  const bool direct = e.type == Type::F32 && is_dense && !past;
  for (int s = 0; s < e.n_steps;) {
    const Link* const chain = plan.links + s;
    const int end = s + std::max<int>(chain->length, 1);
    const auto to = e.steps[end - 1].to;
    float* const y = end == e.n_steps && direct ? static_cast<float*>(e.out) + out : buffer[to];
    if (chain->length > 0) {
      RunChain(chain, e.steps[s].a, registers, y, tile.size());
    } else {
      RunStep(e.steps[s], registers, y, tile.size());
    }
    registers.data[to] = y;
    registers.is_single[to] = false;
    s = end;
  }
  if (direct) return;
  if (is_dense) tile = {tile.size(), 1};
  const float* const result = registers.data[e.steps[e.n_steps - 1].to];
  with_type(e.type, [&](auto t) {
    auto* const to = static_cast<decltype(t)*>(e.out) + out;
    for (int64_t r = 0; r < tile.rows; ++r) {
      StoreRow(result + r * tile.n, to + r * e.dims[1].out, e.dims[0].out, past, tile.n);
    }
  });
}

/// The rows of a tile: several where the innermost loop is short.
int64_t RowsOfTile(const Expression& e) {
  const int64_t most = std::max<int64_t>(kTile / e.dims[0].size, 1);
  return e.n_dims > 1 ? std::min(most, e.dims[1].size) : 1;
}

/// Computes tiles [begin, end), which are numbered along the innermost loop first.
void RunTiles(const Expression& e, const Plan& plan, bool past, int64_t begin, int64_t end) {
  HWY_ALIGN float buffer[Expression::kMaxRegisters][kTile];
  const auto &inner = e.dims[0], &outer = e.dims[1];
  const int64_t rows = RowsOfTile(e);
  const int64_t per_row = (inner.size + kTile - 1) / kTile;
  const int64_t per_plane = e.n_dims > 1 ? (outer.size + rows - 1) / rows : 1;
  for (int64_t t = begin; t < end; ++t) {
    const int64_t first = t % per_row * kTile, first_row = t / per_row % per_plane * rows;
    int64_t plane = t / per_row / per_plane;
    int64_t in[Expression::kMaxInputs];
    for (int w = 0; w < e.n_inputs; ++w) in[w] = first * inner.in[w] + first_row * outer.in[w];
    int64_t out = first * inner.out + first_row * outer.out;
    for (int d = 2; d < e.n_dims; ++d) {
      const int64_t at = plane % e.dims[d].size;
      plane /= e.dims[d].size;
      for (int w = 0; w < e.n_inputs; ++w) in[w] += at * e.dims[d].in[w];
      out += at * e.dims[d].out;
    }
    const Tile tile = {std::min(kTile, inner.size - first),
                       std::min(rows, std::max<int64_t>(outer.size, 1) - first_row)};
    RunTile(e, plan, in, out, tile, past, buffer);
  }
  if (past) end_stream();
}

void RunExpression(const Expression& e) {
  const int64_t rows = RowsOfTile(e), per_row = (e.dims[0].size + kTile - 1) / kTile;
  int64_t tiles = per_row;
  if (e.n_dims > 1) tiles *= (e.dims[1].size + rows - 1) / rows;
  for (int d = 2; d < e.n_dims; ++d) tiles *= e.dims[d].size;
  const int64_t grain = std::max<int64_t>(1, kShare / (std::min(kTile, e.dims[0].size) * rows));
  int64_t elements = 1, moved = size_of(e.type);  // bytes an element
  for (int d = 0; d < e.n_dims; ++d) elements *= e.dims[d].size;
  for (int w = 0; w < e.n_inputs; ++w) {
    const int64_t size = e.is_bool[w] ? 1 : size_of(e.type_of(w));
    if (e.dims[0].in[w] != 0) moved += size;
  }
  const bool past = e.dims[0].out == 1 && e.dims[0].size * size_of(e.type) >= 8 * kLine &&
                    overflows_caches(elements * moved);
  Plan plan;
  make_plan(e, plan);
  parallel_for(tiles, grain,
               [&](int64_t begin, int64_t end) { RunTiles(e, plan, past, begin, end); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunExpression);

void Expression::run() const {
  for (int d = 0; d < n_dims; ++d) {
    if (dims[d].size <= 0) return;
  }
  HWY_DYNAMIC_DISPATCH(RunExpression)(*this);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
