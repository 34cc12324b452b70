/// The steps of a recurrent layer.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace executorch::cpu {

/// A layer of `units` units, whose gates are sums of products with the units' last outputs:
///   sums[g, u] = bias[g, u] + sum_k weights(g, u, k) * h[k]       gates g, units u
/// and of a share of the input, which is computed for all steps before. Of a batch, each row has a
/// state of its own.
///   Lstm        gates i, f, u, o = sums + share
///               c = sigmoid(f) c + sigmoid(i) tanh(u); h = sigmoid(o) tanh(c)
///   Gru         gates r, z, n: r = sigmoid(sums_r + share_r), z = sigmoid(sums_z + share_z)
///               n = tanh(share_n + r sums_n); h = (h - n) z + n
///   Tanh, Relu  one gate: h = f(sums + share)
/// The weights are copied to scratch memory, in the order in which a step reads them. Threads share
/// the units of a step where they are many. Results do not depend on the number of threads.
struct Recurrent {
  enum class Cell : uint8_t { Lstm, Gru, Tanh, Relu };

  Cell cell = Cell::Lstm;
  int64_t steps = 0, batch = 0, units = 0;
  /// [gates, units, units]: element (g, u, k) lies at (g * units + u) * unit_stride + k * k_stride.
  const float* weights = nullptr;
  int64_t unit_stride = 0, k_stride = 0;
  const float* bias = nullptr;    // [gates, units], or null
  const float* shares = nullptr;  // [steps, batch, gates, units]
  float* h = nullptr;             // [batch, units]: before the first step, and after the last one
  float* c = nullptr;             // the same of Lstm
  float* out = nullptr;           // [steps, batch, units]: h after each step

  static int gates(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

  /// Returns false, with nothing written, if scratch memory is refused. Without steps it writes
  /// nothing. Memory of different operands must not overlap.
  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
