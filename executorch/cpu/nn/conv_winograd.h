/// The transforms of Winograd's convolution F(2x2, 3x3): four outputs of a plane from 16 products
/// instead of 36 (Lavin and Gray, 2015). There are 16 matrix products, one for each point e of a
/// tile of 4 x 4 pixels:
///   m[e][o][t] = sum_i u[e][o][i] * v[e][i][t]
/// u are the transformed weights of output channel o and input channel i, v the transformed tiles
/// t. An infinite input makes all outputs of its tile infinite or NaN.
#pragma once

#include <executorch/cpu/activation.h>

#include <cstdint>

namespace executorch::cpu {

constexpr int64_t kWinogradPoints = 16;

/// The padded image, with even and odd columns apart: column 2x of row y of channel i lies at
/// data + i * channel + y * row + x, and column 2x + 1 `odd` elements behind it. A vector of
/// elements beyond the last tile must be readable.
struct WinogradImage {
  const float* data;
  int64_t channel, row, odd;
  int64_t tiles_across;
};

/// The destination: out[o][y][x] = act(m + bias[o]) + residual, or act(m + bias[o] + residual) if
/// `act_last`.
struct WinogradResult {
  float* out;  // channel 0
  int64_t channel, height, width;
  const float* bias;
  const float* residual;
  Activation act;
  bool act_last;
};

/// Tap t of input channel i of output channel o lies at data + o * out + i * in + t * tap; `in` is
/// 1 or `tap` is.
struct WinogradWeights {
  const float* data;
  int64_t out, in, tap;
};

struct WinogradKernels {
  /// Transforms weights to u[e * u_point + o * n_in + i], o < n_out, i < n_in.
  void (*weights)(const WinogradWeights& weights, int64_t n_out, int64_t n_in, float* u,
                  int64_t u_point);
  /// Transforms channels [i0, i_end) of tiles [t0, t0 + n), which are numbered in row-major order,
  /// to v[e * v_point + i * ld + t - t0]. Up to n_tail elements and a vector behind each row i are
  /// overwritten. The next n_tail tiles, d = 0 ..., go to tail[(d * 16 + e) * n_in + i].
  void (*tiles)(const WinogradImage& image, int64_t n_in, int64_t i0, int64_t i_end, int64_t t0,
                int64_t n, int64_t n_tail, float* v, int64_t v_point, int64_t ld, float* tail);
  /// Transforms and stores channels [o0, o0 + n_out) of tiles [t0, t0 + n), from
  /// m[e * m_point + (o - o0) * ld + t - t0]. A vector of elements beyond the last must be
  /// readable.
  void (*results)(const WinogradResult& to, int64_t tiles_across, int64_t o0, int64_t n_out,
                  int64_t t0, int64_t n, const float* m, int64_t m_point, int64_t ld);
};
const WinogradKernels& winograd_kernels();

}  // namespace executorch::cpu
