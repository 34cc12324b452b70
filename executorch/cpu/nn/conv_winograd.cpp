#include <executorch/cpu/nn/conv_winograd.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/conv_winograd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace winograd {

using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
constexpr int64_t kTaps = 9;
constexpr int64_t kAhead = 4;  // steps between a read and the fetch of what it needs from memory

// [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1] times three numbers.
HWY_INLINE void TransformTaps(V a, V b, V c, V (&to)[4]) {
  const V half = hn::Set(Floats(), 0.5f);
  const V ends = hn::Mul(half, hn::Add(a, c));
  to[0] = a;
  to[1] = hn::MulAdd(half, b, ends);
  to[2] = hn::NegMulAdd(half, b, ends);
  to[3] = c;
}

// taps[tap * kLanes + i]
HWY_INLINE void TransformWeights(const float* taps, float* u, int64_t u_point, size_t n) {
  const Floats d;
  V rows[3][4];
  for (int y = 0; y < 3; ++y) {
    const float* at = taps + y * 3 * kLanes;
    TransformTaps(hn::Load(d, at), hn::Load(d, at + kLanes), hn::Load(d, at + 2 * kLanes), rows[y]);
  }
#pragma GCC unroll 4
  for (int x = 0; x < 4; ++x) {
    V column[4];
    TransformTaps(rows[0][x], rows[1][x], rows[2][x], column);
#pragma GCC unroll 4
    for (int y = 0; y < 4; ++y) {
      float* to = u + (y * 4 + x) * u_point;
      if (n == static_cast<size_t>(kLanes)) {
        hn::StoreU(column[y], d, to);
      } else {
        StoreFloatsN(column[y], d, to, n);
      }
    }
  }
}

// taps[tap * kLanes + i] of one vector of input channels.
HWY_INLINE void LoadTaps(const WinogradWeights& w, const float* from, float* taps) {
  const Floats d;
  constexpr auto kStep = static_cast<int64_t>(kTransposedColumns<Floats>);
  if (w.in == 1) {
    for (int64_t t = 0; t < kTaps; ++t)
      hn::Store(hn::LoadU(d, from + t * w.tap), d, taps + t * kLanes);
    return;
  }
  for (int64_t t = 0; t < kTaps; ++t) __builtin_prefetch(from + (kAhead * kTaps + t) * kLanes);
  for (int64_t t = 0; t < kTaps; t += kStep) {  // the last ones once more, not what lies behind
    const int64_t tap = std::min(t, kTaps - kStep);
    TransposeColumns(d, from + tap, kTaps, taps + tap * kLanes, kLanes);
  }
}

void Weights(const WinogradWeights& w, int64_t n_out, int64_t n_in, float* u, int64_t u_point) {
  HWY_ALIGN float taps[kTaps * kLanes] = {};
  for (int64_t o = 0; o < n_out; ++o) {
    const float* const from = w.data + o * w.out;
    int64_t i = 0;
    for (; i + kLanes <= n_in; i += kLanes) {
      LoadTaps(w, from + i * w.in, taps);
      TransformWeights(taps, u + o * n_in + i, u_point, static_cast<size_t>(kLanes));
    }
    if (i == n_in) continue;
    for (int64_t l = 0; l < n_in - i; ++l) {
      for (int64_t t = 0; t < kTaps; ++t) taps[t * kLanes + l] = from[(i + l) * w.in + t * w.tap];
    }
    TransformWeights(taps, u + o * n_in + i, u_point, static_cast<size_t>(n_in - i));
  }
}

// [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1] times four numbers.
HWY_INLINE void TransformPixels(V a, V b, V c, V e, V (&to)[4]) {
  to[0] = hn::Sub(a, c);
  to[1] = hn::Add(b, c);
  to[2] = hn::Sub(c, b);
  to[3] = hn::Sub(b, e);
}

HWY_INLINE void TransformTile(const float* at, const WinogradImage& image, float* v,
                              int64_t v_point) {
  const Floats d;
  V columns[4][4];  // [column][row]
#pragma GCC unroll 4
  for (int x = 0; x < 4; ++x) {
    const float* from = at + x / 2 + (x % 2 != 0 ? image.odd : 0);
    if (x < 2) {
      for (int64_t y = 0; y < 4; ++y) __builtin_prefetch(from + y * image.row + 2 * image.channel);
    }
    TransformPixels(hn::LoadU(d, from), hn::LoadU(d, from + image.row),
                    hn::LoadU(d, from + 2 * image.row), hn::LoadU(d, from + 3 * image.row),
                    columns[x]);
  }
#pragma GCC unroll 4
  for (int y = 0; y < 4; ++y) {
    V row[4];
    TransformPixels(columns[0][y], columns[1][y], columns[2][y], columns[3][y], row);
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) hn::StoreU(row[x], d, v + (y * 4 + x) * v_point);
  }
}

void Tiles(const WinogradImage& image, int64_t n_in, int64_t i0, int64_t i_end, int64_t t0,
           int64_t n, int64_t n_tail, float* v, int64_t v_point, int64_t ld, float* tail) {
  const int64_t end = t0 + n + n_tail;
  for (int64_t i = i0; i < i_end; ++i) {
    float* const to = v + i * ld;
    // In ascending order, because a vector may write beyond its row of tiles, and the next one
    // overwrites that.
    for (int64_t t = t0; t < end;) {
      const int64_t ty = t / image.tiles_across, tx = t % image.tiles_across;
      const int64_t row_end = std::min(end, t + image.tiles_across - tx);
      const float* at = image.data + i * image.channel + 2 * ty * image.row + tx;
      for (; t < row_end; t += kLanes, at += kLanes) {
        TransformTile(at, image, to + (t - t0), v_point);
      }
      t = row_end;
    }
    for (int64_t d = 0; d < n_tail; ++d) {
      for (int64_t e = 0; e < kWinogradPoints; ++e) {
        tail[(d * kWinogradPoints + e) * n_in + i] = to[e * v_point + n + d];
      }
    }
  }
}

// [1 1 1 0; 0 1 -1 -1] times four numbers.
HWY_INLINE void TransformSums(V a, V b, V c, V e, V& low, V& high) {
  low = hn::Add(hn::Add(a, b), c);
  high = hn::Sub(hn::Sub(b, c), e);
}

HWY_NOINLINE V ApplyAny(const Activation& act, V x) {
  return Apply(Floats(), act, x);
}

// Applies the epilogue to a vector of results and stores the first n at element `at`.
HWY_INLINE void Finish(const WinogradResult& to, V x, V bias, int64_t at, size_t n) {
  const Floats d;
  x = hn::Add(x, bias);
  const V r = to.residual != nullptr ? LoadFloatsN(d, to.residual + at, n) : hn::Zero(d);
  if (to.act_last) x = hn::Add(x, r);
  if (to.act.kind == Activation::Kind::Clamp) {
    x = Clamp(d, x, to.act.low, to.act.high);
  } else if (to.act.kind != Activation::Kind::None) {
    x = ApplyAny(to.act, x);
  }
  if (!to.act_last) x = hn::Add(x, r);
  StoreFloatsN(x, d, to.out + at, n);
}

// Stores tiles [tx, tx + kLanes) of row ty, as far as they exist.
HWY_INLINE void StoreTiles(const WinogradResult& to, int64_t channel, V bias, int64_t ty,
                           int64_t tx, int64_t n_tiles, const float* m, int64_t m_point) {
  const Floats d;
  V rows[2][4];
#pragma GCC unroll 4
  for (int x = 0; x < 4; ++x) {
    const float* at = m + x * m_point;
    TransformSums(hn::LoadU(d, at), hn::LoadU(d, at + 4 * m_point), hn::LoadU(d, at + 8 * m_point),
                  hn::LoadU(d, at + 12 * m_point), rows[0][x], rows[1][x]);
  }
  const int64_t n = std::min(2 * std::min(n_tiles, kLanes), to.width - 2 * tx);
  HWY_ALIGN float pixels[2 * kLanes];
  for (int y = 0; y < 2 && 2 * ty + y < to.height; ++y) {
    V even, odd;
    TransformSums(rows[y][0], rows[y][1], rows[y][2], rows[y][3], even, odd);
    hn::StoreInterleaved2(even, odd, d, pixels);
    const int64_t at = channel * to.channel + (2 * ty + y) * to.width + 2 * tx;
    for (int64_t j = 0; j < n; j += kLanes) {
      Finish(to, hn::Load(d, pixels + j), bias, at + j,
             static_cast<size_t>(std::min(kLanes, n - j)));
    }
  }
}

void Results(const WinogradResult& to, int64_t tiles_across, int64_t o0, int64_t n_out, int64_t t0,
             int64_t n, const float* m, int64_t m_point, int64_t ld) {
  for (int64_t o = 0; o < n_out; ++o, m += ld) {
    const V bias = hn::Set(Floats(), to.bias == nullptr ? 0.0f : to.bias[o0 + o]);
    for (int64_t t = t0; t < t0 + n;) {
      const int64_t ty = t / tiles_across, tx = t % tiles_across;
      const int64_t row_end = std::min(t0 + n, t + tiles_across - tx);
      for (int64_t u = t; u < row_end; u += kLanes) {
        StoreTiles(to, o0 + o, bias, ty, tx + u - t, row_end - u, m + (u - t0), m_point);
      }
      t = row_end;
    }
  }
}

}  // namespace winograd

const WinogradKernels& WinogradTable() {
  static constexpr WinogradKernels kTable = {winograd::Weights, winograd::Tiles, winograd::Results};
  return kTable;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(WinogradTable);

const WinogradKernels& winograd_kernels() {
  return HWY_DYNAMIC_DISPATCH(WinogradTable)();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
