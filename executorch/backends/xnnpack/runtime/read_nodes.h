#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>

namespace executorch::backends::xnnpack {

/// Appends the payload's nodes to the graph, whose values are read; checks every field. Logs what
/// is wrong: InvalidProgram, or NotSupported for a kind that does not run.
Error read_nodes(const fb_xnnpack::XNNGraph& fb, Graph& graph);

/// A node that converts value `input` to the type of value `output`.
Node make_conversion(uint32_t input, uint32_t output);

}  // namespace executorch::backends::xnnpack
