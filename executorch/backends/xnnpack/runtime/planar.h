/// Images that lie channel by channel.
///
/// Payloads say NHWC; the engine's float convolutions are faster over planes, and need no other
/// layout of the weights for them. So internal values that only convolutions, poolings,
/// elementwise nodes and transposes touch are kept as NCHW. Their shapes then say so: a transpose
/// before them becomes another one, often a copy, elementwise nodes need not know, and nodes with a
/// window have the flag kPlanar.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>

namespace executorch::backends::xnnpack {

/// Of Node::flags, beyond those that payloads have.
constexpr uint32_t kPlanar = 1u << 31;

/// Where an image's channels, height and width stand in the shapes of the node.
struct ImageDims {
  size_t c, h, w;
  explicit ImageDims(const Node& node)
      : c((node.flags & kPlanar) != 0 ? 1 : 3), h(c == 1 ? 2 : 1), w(c == 1 ? 3 : 2) {}
};

/// Changes the graph as read, and returns it. Without dense float convolutions it stays as it is.
Graph& choose_planar_values(Graph& graph);

/// A max pooling and a global average pooling with kPlanar.
bool run_planar_pooling(const Graph& graph, const Node& node, cpu::Scratch& scratch);
bool run_planar_mean(const Graph& graph, const Node& node);

}  // namespace executorch::backends::xnnpack
