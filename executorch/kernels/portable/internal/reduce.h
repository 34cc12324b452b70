/// Reductions: for every element of the output, a state folded over the input elements that
/// belong to it.
///
/// A state is a struct, generic in the compute type C (dtype.h), with
///   // The next n elements; `index` elements came before.
///   void fold(const C* x, int64_t n, int64_t index);
///   // As fold for `width` <= kColumns states, whose elements are the columns of `rows` rows that
///   // are `pitch` apart:
///   static void fold_columns(State* states, const C* x, int64_t pitch, int64_t rows,
///                            int64_t width, int64_t index);
/// The engine hands it contiguous runs in C, in the input's logical order if `ordered`, whatever
/// the layout and type of the input.
#pragma once

#include <executorch/cpu/nn/reduce.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/loop.h>

namespace torch::executor::native::internal {

struct Reduction {
  Loop kept;     // operands: the outputs, then the input
  Loop reduced;  // operand 0: the input
  const void* in = nullptr;
  ScalarType in_type = ScalarType::Undefined;
};

/// Resizes the outputs (one or two; all of the reduced shape) and plans the loops. Dims whose bit
/// is set in `mask` are reduced, and kept with extent 1 if `keepdim`. Complex inputs are for those
/// that ask for them.
[[nodiscard]] bool prepare(KernelRuntimeContext& ctx, const char* op, const Tensor& in,
                           uint32_t mask, bool keepdim, bool ordered,
                           std::initializer_list<Tensor*> outs, Reduction& reduction,
                           bool allow_complex = false);

/// Reduces r to `out` by the engine, for F32, F16 and BF16 in a plain layout, with a result of the
/// same type. `indices`, which are Long, get the places of extremes of columns; then `out` may be
/// null. Returns false if the engine cannot or gets no scratch memory.
[[nodiscard]] bool reduce_by_engine(KernelRuntimeContext& ctx, const Reduction& r,
                                    const Tensor* out, executorch::cpu::Reduce::Op op,
                                    double divisor, const Tensor* indices = nullptr);

constexpr int64_t kReduceGrain = 16384;  // elements of the input
constexpr int64_t kReduceChunk = 1024;   // elements handed to a fold at once
constexpr int64_t kColumns = 256;        // states kept at once if kept dims are innermost
constexpr int64_t kColumnRows = 16;

/// Whether each output's elements are one run of a type that the engine stores.
[[nodiscard]] bool rows_for_engine(const Reduction& r);

/// Calls f(the output's elements, offsets) for each output element, on several threads.
template <class F>
void for_rows(const Reduction& r, const F& f) {
  const int in_operand = r.kept.n_operands - 1;
  const int64_t size = static_cast<int64_t>(elementSize(r.in_type));
  const int64_t grain = kReduceGrain / (r.reduced.numel > 0 ? r.reduced.numel : 1);
  executorch::cpu::parallel_for(
      r.kept.numel, grain > 1 ? grain : 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t offsets[kMaxOperands] = {};
          for (int k = 0; k < r.kept.n_operands; ++k) offsets[k] = r.kept.offset(k, i);
          f(static_cast<const char*>(r.in) + offsets[in_operand] * size, offsets);
        }
      });
}

/// Reduced dims innermost in memory: one state at a time over runs of the input.
template <class C, class State, class Finish>
void reduce_rows(const Reduction& r, const State& initial, Finish& finish) {
  const bool direct = r.in_type == scalar_type_of(kComputeOf<C>) && r.reduced.is_dense(0);
  for_rows(r, [&](const void* base, const int64_t* offsets) {
    C chunk[kReduceChunk];
    State state = initial;
    for (int64_t pos = 0; pos < r.reduced.numel; pos += kReduceChunk) {
      const int64_t m = r.reduced.numel - pos < kReduceChunk ? r.reduced.numel - pos : kReduceChunk;
      const C* x = chunk;
      if (direct) {
        x = static_cast<const C*>(base) + pos;
      } else {
        gather(r.reduced, 0, base, r.in_type, pos, m, chunk);
      }
      state.fold(x, m, pos);
    }
    finish(state, offsets);
  });
}

/// Kept dims innermost in memory: kColumns outputs at a time, so that whole cache lines are used
/// and the columns' folds are vectors.
template <class C, class State, class Finish>
void reduce_columns(const Reduction& r, int in_operand, const State& initial, Finish& finish) {
  const int64_t size = static_cast<int64_t>(elementSize(r.in_type));
  const int64_t row = r.kept.sizes[r.kept.ndim - 1];
  const bool direct = r.in_type == scalar_type_of(kComputeOf<C>) && r.reduced.ndim == 1;
  const auto tile_of = [&](int64_t first, int64_t width) {
    C tile[kColumnRows * kColumns];
    int64_t at[kMaxOperands] = {};
    for (int k = 0; k < r.kept.n_operands; ++k) at[k] = r.kept.offset(k, first);
    const char* base = static_cast<const char*>(r.in) + at[in_operand] * size;
    State states[kColumns];
    for (int64_t w = 0; w < width; ++w) states[w] = initial;
    for (int64_t pos = 0; pos < r.reduced.numel; pos += kColumnRows) {
      const int64_t rows =
          r.reduced.numel - pos < kColumnRows ? r.reduced.numel - pos : kColumnRows;
      if (direct) {
        const int64_t pitch = r.reduced.strides[0][0];
        State::fold_columns(states, reinterpret_cast<const C*>(base) + pos * pitch, pitch, rows,
                            width, pos);
        continue;
      }
      for (int64_t i = 0; i < rows; ++i) {
        load(base + r.reduced.offset(0, pos + i) * size, r.in_type, 1, width, tile + i * kColumns);
      }
      State::fold_columns(states, tile, kColumns, rows, width, pos);
    }
    for (int64_t w = 0; w < width; ++w) {
      finish(states[w], at);
      for (int k = 0; k < r.kept.n_operands; ++k) at[k] += r.kept.inner_stride(k);
    }
  };
  const int64_t per_row = (row + kColumns - 1) / kColumns;
  const int64_t grain = kReduceGrain / kColumns / r.reduced.numel;
  executorch::cpu::parallel_for(
      r.kept.numel / row * per_row, grain > 1 ? grain : 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i % per_row * kColumns;
          tile_of(i / per_row * row + column, row - column < kColumns ? row - column : kColumns);
        }
      });
}

/// Calls finish(state, offsets) for each output element, on several threads; offsets[k] is its
/// place in output k.
template <class C, class State, class Finish>
void reduce(const Reduction& r, const State& initial, Finish finish) {
  if (r.kept.numel == 0) return;
  const int in_operand = r.kept.n_operands - 1;
  const bool across = r.kept.inner_stride(in_operand) == 1 && r.reduced.ndim > 0 &&
                      r.reduced.numel > 0 && r.reduced.inner_stride(0) != 1;
  if (across) {
    reduce_columns<C>(r, in_operand, initial, finish);
  } else {
    reduce_rows<C>(r, initial, finish);
  }
}

}  // namespace torch::executor::native::internal
