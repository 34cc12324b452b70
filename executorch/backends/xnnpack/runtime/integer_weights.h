/// What layers with integer weights share: which types go together, and their product.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/gemm/int8.h>

namespace executorch::backends::xnnpack {

/// Input 0 of the node is qdint8 (dynamic), qint8 or quint8 (static), input 1 constant integer
/// weights with n output channels along `channel_dim` and k weights each, of each of several
/// matrices, input 2 the bias, if any.
Error check_integer_product(const Graph& graph, const Node& node, int64_t n, int64_t k,
                            uint32_t channel_dim, int64_t matrices = 1);

/// Keeps in the node the sums and scales of its weights, `rows` of k; what integer_product() needs.
void prepare_integer_product(const Graph& graph, Node& node, int64_t n, int64_t k,
                             const void* rows);

/// Fills in all of the product except the activations: m, a, lda, rows, c, and ldc if it is not n.
cpu::Int8Gemm integer_product(const Graph& graph, const Node& node, int64_t n, int64_t k,
                              const void* rows);

}  // namespace executorch::backends::xnnpack
