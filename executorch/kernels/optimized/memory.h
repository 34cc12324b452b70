/// Places for the tensors of a rewritten method.
#pragma once

#include <executorch/kernels/optimized/graph.h>

#include <utility>
#include <vector>

namespace executorch::optimized {

/// New addresses of values: (value, address). A fused instruction reads what the instructions that
/// it stands for read, but later, when the program's plan may have given those bytes away; so
/// results that live within one basic block are placed anew, by their lifetimes now, in the bytes
/// that such results had, or in the method's memory where those do not suffice. All others stay.
/// Sets FusedCall::bounce of calls whose output overlaps an operand.
/// False if the method's memory is used up, or if a tensor that cannot move would be overwritten
/// before a fused call reads it.
bool place_values(Graph& graph, std::vector<std::pair<int, char*>>& places);

}  // namespace executorch::optimized
