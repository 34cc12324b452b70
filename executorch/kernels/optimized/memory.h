/// Memory planning for the tensors of a fused method.
#pragma once

#include <executorch/kernels/optimized/graph.h>

#include <utility>
#include <vector>

namespace executorch::optimized {

struct Placement {
  /// Values and their new addresses.
  std::vector<std::pair<int, char*>> addresses;
  /// Planned memory that holds nothing between executions, sorted.
  std::vector<Span<uint8_t>> temporary;
};

/// Computes new addresses of values. A fused instruction reads the operands of the instructions
/// that it replaces, but later than these did, when the program's memory plan may have reused their
/// bytes. So results that live within one basic block get new addresses, according to their new
/// lifetimes, in the bytes that such results had before, or in the method's memory if those do not
/// suffice. All other values stay in place. Also sets FusedCall::out_overlaps_operand of calls whose
/// output overlaps an operand. Returns false if the method's memory is used up, or if a tensor that
/// cannot move would be overwritten before a fused call reads it.
bool place_values(Graph& graph, Placement& placement);

}  // namespace executorch::optimized
