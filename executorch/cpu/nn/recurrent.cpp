#include <executorch/cpu/nn/recurrent.h>

#include <executorch/cpu/machine.h>
#include <executorch/cpu/nn/copy.h>

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/recurrent.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/vectors-inl.h>

#ifndef EXECUTORCH_CPU_NN_RECURRENT_ONCE
#define EXECUTORCH_CPU_NN_RECURRENT_ONCE
namespace executorch::cpu {
namespace {

using Cell = Recurrent::Cell;

/// One step of all rows of the batch, for some blocks of units. A block's weights are
/// [units of the layer, gates, units of the block], its bias [gates, units of the block]; what is
/// beyond the layer's units is zero.
struct RecurrentStep {
  const Recurrent* layer;
  const float* weights;
  const float* bias;
  const float* shares;  // of the step
  const float* before;  // [batch, units]: the outputs of the last step
  float* out;           // [batch, units]
};

}  // namespace
}  // namespace executorch::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

// Vectors of units in a block: as many sums as hide the latency of multiply-adds.
constexpr int kVectors = 2;
constexpr int64_t kBlock = kVectors * kLanes;
// Rows of a batch that meet the weights of a block at once, as registers allow.
constexpr int kMostRows = ET_VECTOR_REGISTERS == 32 ? 3 : 1;

int64_t RecurrentBlock() {
  return kBlock;
}

/// A unit's state after the step; `old` is its output before, and `cell` is changed.
template <Cell kCell, int kGates>
HWY_INLINE V NextState(const V (&sums)[kGates], const V (&shares)[kGates], V old, V& cell) {
  const Floats d;
  if constexpr (kCell == Cell::Lstm) {
    const V into = Sigmoid(d, hn::Add(sums[0], shares[0]));
    const V forget = Sigmoid(d, hn::Add(sums[1], shares[1]));
    const V update = Tanh(d, hn::Add(sums[2], shares[2]));
    const V out = Sigmoid(d, hn::Add(sums[3], shares[3]));
    cell = hn::Add(hn::Mul(forget, cell), hn::Mul(into, update));
    return hn::Mul(out, Tanh(d, cell));
  } else if constexpr (kCell == Cell::Gru) {
    const V reset = Sigmoid(d, hn::Add(sums[0], shares[0]));
    const V keep = Sigmoid(d, hn::Add(sums[1], shares[1]));
    const V next = Tanh(d, hn::Add(shares[2], hn::Mul(sums[2], reset)));
    return hn::Add(hn::Mul(hn::Sub(old, next), keep), next);
  } else {
    const V x = hn::Add(sums[0], shares[0]);
    return kCell == Cell::Tanh ? Tanh(d, x) : KeepNaN(x, hn::Max(x, hn::Zero(d)));
  }
}

template <Cell kCell, int kGates, class Lanes>
HWY_INLINE void StoreState(const RecurrentStep& s, int64_t row, int64_t unit,
                           const V (&sums)[kGates], const Lanes& lanes) {
  const int64_t units = s.layer->units, at = row * units + unit;
  V shares[kGates];
  for (int g = 0; g < kGates; ++g) {
    shares[g] = lanes.load(s.shares + row * kGates * units + g * units + unit);
  }
  constexpr bool kHasCell = kCell == Cell::Lstm;
  V cell = kHasCell ? lanes.load(s.layer->c + at) : hn::Zero(Floats());
  lanes.store(NextState<kCell>(sums, shares, lanes.load(s.before + at), cell), s.out + at);
  if (kHasCell) lanes.store(cell, s.layer->c + at);
}

template <Cell kCell, int kGates, int kRows>
HWY_INLINE void RunBlock(const RecurrentStep& s, int64_t block, int64_t row) {
  const Floats d;
  const int64_t units = s.layer->units;
  const float* const bias = s.bias + block * kGates * kBlock;
  const float* w = s.weights + block * units * kGates * kBlock;
  V sums[kRows][kVectors][kGates];
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors * kGates; ++i) {
      sums[r][i % kVectors][i / kVectors] = hn::LoadU(d, bias + i * kLanes);
    }
  }
  for (int64_t k = 0; k < units; ++k, w += kGates * kBlock) {
    V h[kRows];
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) h[r] = hn::Set(d, s.before[(row + r) * units + k]);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors * kGates; ++i) {
      const V weights = hn::LoadU(d, w + i * kLanes);
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
        V& sum = sums[r][i % kVectors][i / kVectors];
        sum = hn::MulAdd(h[r], weights, sum);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t unit = block * kBlock + v * kLanes, left = units - unit;
      if (left >= kLanes) {
        StoreState<kCell>(s, row + r, unit, sums[r][v], AllLanes());
      } else if (left > 0) {
        StoreState<kCell>(s, row + r, unit, sums[r][v], FirstLanes(static_cast<size_t>(left)));
      }
    }
  }
}

template <Cell kCell, int kGates>
void RunBlocks(const RecurrentStep& s, int64_t begin, int64_t end) {
  const int64_t batch = s.layer->batch;
  for (int64_t block = begin; block < end; ++block) {
    int64_t row = 0;
    for (; row + kMostRows <= batch; row += kMostRows) {
      RunBlock<kCell, kGates, kMostRows>(s, block, row);
    }
    for (; row < batch; ++row) RunBlock<kCell, kGates, 1>(s, block, row);
  }
}

/// Blocks [begin, end) of a step.
void RunRecurrentStep(const RecurrentStep& s, int64_t begin, int64_t end) {
  switch (s.layer->cell) {
    case Cell::Lstm:
      return RunBlocks<Cell::Lstm, 4>(s, begin, end);
    case Cell::Gru:
      return RunBlocks<Cell::Gru, 3>(s, begin, end);
    case Cell::Tanh:
      return RunBlocks<Cell::Tanh, 1>(s, begin, end);
    case Cell::Relu:
      return RunBlocks<Cell::Relu, 1>(s, begin, end);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {
namespace {

HWY_EXPORT(RecurrentBlock);
HWY_EXPORT(RunRecurrentStep);

/// Copies [gates, units, depth] to [blocks, depth, gates, block], with zeros beyond the units.
void pack(const Recurrent& layer, const float* from, int64_t unit_stride, int64_t depth,
          int64_t k_stride, int64_t block, float* to) {
  const int64_t units = layer.units, gates = Recurrent::gates(layer.cell);
  const int64_t whole = units / block, rest = units % block, row = gates * block;
  if (rest > 0) {
    memset(to + whole * depth * row, 0, static_cast<size_t>(depth * row) * sizeof(float));
  }
  const auto copy = [&](int64_t n_blocks, int64_t first, int64_t n) {
    const Copy::Dim dims[] = {{n_blocks, block * unit_stride, depth * row},
                              {depth, k_stride, row},
                              {gates, units * unit_stride, block},
                              {n, unit_stride, 1}};
    Copy{dims, 4, sizeof(float), from + first * unit_stride, to + first * depth * gates}.run();
  };
  if (whole > 0) copy(whole, 0, block);
  if (rest > 0) copy(1, whole * block, rest);
}

}  // namespace

bool Recurrent::run(Scratch& scratch) const {
  if (steps <= 0 || batch <= 0 || units <= 0) return true;
  // Bytes of weights that a thread reads in a step; with fewer, waiting for one another costs more.
  constexpr int64_t kLeastBytes = 96 << 10;
  const int64_t n_gates = gates(cell), block = HWY_DYNAMIC_DISPATCH(RecurrentBlock)();
  const Size n_blocks = ceil_div(Size(units), block), row = n_blocks * n_gates * block;
  const Scratch::Frame frame(scratch);
  float* const packed = scratch.array<float>(row * units);
  float* const biases = scratch.array<float>(row);
  if (packed == nullptr || biases == nullptr) return false;
  scratch.add_products(Size(steps) * batch * units * units * n_gates);
  pack(*this, weights, unit_stride, units, k_stride, block, packed);
  if (bias != nullptr) {
    pack(*this, bias, 1, 1, 1, block, biases);
  } else {
    memset(biases, 0, static_cast<size_t>(row.value()) * sizeof(float));
  }
  const Size bytes = Size(batch) * units * n_gates * block * sizeof(float);
  const int64_t grain = 1 + kLeastBytes / bytes.value_or(kLeastBytes);
  RecurrentStep step = {this, packed, biases, shares, h, out};
  for (int64_t t = 0; t < steps; ++t) {
    parallel_for(n_blocks.value(), grain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(RunRecurrentStep)(step, begin, end);
    });
    step.before = step.out;
    step.out += batch * units;
    step.shares += batch * n_gates * units;
  }
  memcpy(h, step.before, static_cast<size_t>(batch * units) * sizeof(float));
  return true;
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
