/// How much memory and time a graph may take with its present shapes.
///
/// A payload of a few bytes can name values of any size: a pad or a window that is made to takes
/// hours, or all memory there is. So the graph is held to what it brings, the elements of its
/// inputs and outputs, for which the caller has memory, and the bytes of its constants. The bounds
/// are far above what models need, which grows with pixels times weights.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/size.h>
#include <executorch/runtime/core/result.h>

namespace executorch::backends::xnnpack {

/// The largest number of bytes that intermediate values may take at one time.
int64_t max_arena_bytes(const Graph& graph);

/// An estimate, in nanoseconds, of what the nodes take on one thread.
cpu::Size steps_of(const Graph& graph);

/// Returns steps_of(graph). NotSupported, with a message in the log, when that is out of all
/// proportion to the operands.
runtime::Result<uint64_t> check_work(const Graph& graph);

}  // namespace executorch::backends::xnnpack
