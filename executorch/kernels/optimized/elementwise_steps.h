/// How the steps of an expression compute an instruction of a program.
#pragma once

#include <executorch/cpu/nn/expression.h>
#include <executorch/kernels/optimized/graph.h>

#include <optional>

namespace executorch::optimized {

/// The steps that compute an instruction. Registers are filled in later.
struct Computation {
  cpu::Expression::Step steps[2];
  int n_steps = 0;
  /// The values that a, b and c of the first step read; -1 if there is none.
  int operands[3] = {-1, -1, -1};
  /// Which operands, and whether the result, are Bool. All others are of a floating type.
  bool is_bool[3] = {};
  bool gives_bool = false;
};

/// Whether node n converts between two different types that the engine stores.
bool is_cast(const Graph& graph, int n);

/// How to compute node n; nothing if an expression cannot.
std::optional<Computation> translate(const Graph& graph, int n);

}  // namespace executorch::optimized
