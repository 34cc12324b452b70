/// Images that lie channel by channel.
///
/// Payloads say NHWC; the engine's float convolutions are faster over planes, and need no other
/// layout of the weights for them. So internal values that only convolutions, poolings, resizing,
/// elementwise nodes, nodes that move elements, and transposes touch are kept as NCHW, and those of
/// convolutions in one dim, which are reshaped to images of one row, as NCW. Their shapes
/// then say so: a transpose before them becomes another one, often a copy, nodes that name dims
/// (concatenate, slice, pad) name others, elementwise nodes need not know, and nodes with a window
/// have the flag kPlanar.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/backends/xnnpack/runtime/resized.h>
#include <executorch/cpu/scratch.h>

namespace executorch::backends::xnnpack {

/// A bit of Node::flags that the runtime sets itself; payloads must not have it.
constexpr uint32_t kPlanar = 1u << 31;

/// Which dims of the node's shapes are channels, height and width.
struct ImageDims {
  size_t c, h, w;
  explicit ImageDims(const Node& node)
      : c((node.flags & kPlanar) != 0 ? 1 : 3), h(c == 1 ? 2 : 1), w(c == 1 ? 3 : 2) {}
};

/// The dims of planes with `rank` dims, 3 or 4: dim i of the payload's value is dim
/// dense_dims(rank)[i] of planes.
const uint32_t* dense_dims(uint32_t rank);

/// Chooses the values to keep as NCHW, changes the graph accordingly, and returns it. Values that
/// no float32 convolution reads, directly or through nodes that keep the layout, stay as they are.
Graph& choose_planar_values(Graph& graph);

/// Run a pooling, resizing and a global average pooling over values in NCHW order.
bool run_planar_pooling(const Graph& graph, const Node& node, cpu::Scratch& scratch);
bool run_planar_resize(const Graph& graph, const Node& node, const Resized& down,
                       const Resized& across, cpu::Scratch& scratch);
bool run_planar_mean(const Graph& graph, const Node& node);

}  // namespace executorch::backends::xnnpack
