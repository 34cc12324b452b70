/// The transforms of Winograd's convolution F(2x2, 3x3): four outputs of a plane from 16 products
/// instead of 36 (Lavin and Gray, 2015). In 16 products, one for each point e of a tile of 4 x 4,
///   m[e][o][t] = sum_i u[e][o][i] * v[e][i][t]
/// with u[e] the weights of output channel o and input channel i transformed, v[e] the tiles.
/// An infinite input spreads to the outputs of its tile.
#pragma once

#include <executorch/cpu/activation.h>

#include <cstdint>

namespace executorch::cpu {

constexpr int64_t kWinogradPoints = 16;

/// Rows of the padded image: column 2x of row y of channel i lies at data + i * channel + y * row +
/// x, column 2x + 1 `odd` elements behind. Readable for a vector beyond the last tile.
struct WinogradImage {
  const float* data;
  int64_t channel, row, odd;
  int64_t tiles_across;
};

/// Where results go: out[o][y][x] = act(m + bias[o]) + residual, or the residual inside act.
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
  /// u[e * u_point + o * n_in + i], o < n_out, i < n_in.
  void (*weights)(const WinogradWeights& weights, int64_t n_out, int64_t n_in, float* u,
                  int64_t u_point);
  /// v[e * v_point + i * ld + t - t0] for channels [i0, i_end) and tiles [t0, t0 + n), in row-major
  /// order; up to n_dots and a vector behind row i is overwritten. Tiles from t0 + n on, n_dots of
  /// them, go to dots[(d * 16 + e) * n_in + i].
  void (*tiles)(const WinogradImage& image, int64_t n_in, int64_t i0, int64_t i_end, int64_t t0,
                int64_t n, int64_t n_dots, float* v, int64_t v_point, int64_t ld, float* dots);
  /// Stores channels [o0, o0 + n_out) of tiles [t0, t0 + n) of m[e * m_point + (o - o0) * ld + t -
  /// t0], readable for a vector beyond the last.
  void (*results)(const WinogradResult& to, int64_t tiles_across, int64_t o0, int64_t n_out,
                  int64_t t0, int64_t n, const float* m, int64_t m_point, int64_t ld);
};
const WinogradKernels& winograd_kernels();

}  // namespace executorch::cpu
