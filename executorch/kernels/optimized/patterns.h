/// The patterns that are fused. Each function replaces every occurrence of its pattern in a graph.
/// The graph must be fresh (Graph::refresh()) and has to be refreshed afterwards.
#pragma once

#include <executorch/cpu/types.h>
#include <executorch/kernels/optimized/arena.h>
#include <executorch/kernels/optimized/graph.h>
#include <executorch/kernels/portable/internal/engine.h>

namespace executorch::optimized {

/// softmax(scale * q k^T + mask) v around a softmax over the last dimension: scales before or after
/// the product; masks added or selected; the test for rows without any key; views and copies of
/// everything. A causal mask that the program computes is recognized and not computed
/// (causal_mask.h).
void fuse_attention(Graph& graph, Arena& arena);

/// A matrix product with its epilogue: bias, activation, addition of a residual. Operands are read
/// and the result is written through views, so that no weight is transposed.
void fuse_linear(Graph& graph, Arena& arena);

/// Products whose results the program only multiplies by one factor a row and adds to others, such as
/// the experts of a mixture: rows whose factor is zero are not computed. To be called after
/// fuse_linear() and a refresh.
void select_rows(Graph& graph, Arena& arena);

/// A convolution with an inference batch norm of constants (its factors are put into a copy of the
/// weights), an activation, and the addition of a residual.
void fuse_convolution(Graph& graph, Arena& arena);

/// Chains of convolutions, which are computed in bands of rows where that is faster
/// (cpu/nn/conv_chain.h). To be called after fuse_convolution() and a refresh.
void fuse_convolution_chains(Graph& graph, Arena& arena);

/// Max poolings whose indices nobody reads; they are then computed without indices.
void drop_pool_indices(Graph& graph, Arena& arena);

/// The loop over the steps of a recurrent layer, as exporters emit scan. To be called first.
void fuse_recurrent(Graph& graph, Arena& arena);

/// index_put_ of successive rows into a buffer of the program: the rows are read through views and
/// copied to their place.
void fuse_put(Graph& graph, Arena& arena);

/// Layer norm and RMS norm of rows that a program computes from elementary operators.
void fuse_norm(Graph& graph, Arena& arena);

/// Rotary position embedding of halves: x * cos + cat(-x[half:], x[:half]) * sin along the last
/// dimension. x and the tables are read through views.
void fuse_rotary(Graph& graph, Arena& arena);

/// gather whose operands are copies of views, such as a tensor that is expanded and permuted: it
/// reads what the views show.
void fuse_gather(Graph& graph, Arena& arena);

/// Elementwise operators whose results only other elementwise operators read. They are computed in
/// one pass over tiles; operands broadcast and are read through views.
void fuse_elementwise(Graph& graph, Arena& arena);

/// Add to `inputs` the values that a fused kernel reads at run time: the base of a chain, and those
/// arguments of its steps that are not tensors.
void add_inputs(const Graph& graph, const Graph::Chain& chain, std::vector<int>& inputs);
void add_numbers(const Graph& graph, const std::vector<Step>& steps, std::vector<int>& inputs);

inline cpu::Type engine_type(const Tensor& tensor) {
  using torch::executor::native::internal::engine_type;
  return engine_type(tensor.scalar_type()).value_or(cpu::Type::F32);
}

/// Undoes `steps`: `view` has the sizes that the steps give to `before`; afterwards it has the
/// sizes of `before` and shows where each element lies. Returns false if that is impossible.
bool undo_steps(Span<const Step> steps, const View& before, View& view);
/// Applies all steps to `view`. Returns false if a step does not apply.
bool apply_steps(Span<const Step> steps, View& view);

}  // namespace executorch::optimized
