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
/// Marks a fused call that writes where it reads to `bounce`.
/// False if that memory is used up, or a tensor that cannot move would be overwritten too early.
bool place_values(Graph& graph, std::vector<std::pair<int, char*>>& places);

}  // namespace executorch::optimized
