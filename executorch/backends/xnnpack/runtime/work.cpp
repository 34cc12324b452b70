#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/work.h>

#include <algorithm>
#include <cinttypes>

namespace executorch::backends::xnnpack {
namespace {

using cpu::Size;
using Kind = fb_xnnpack::XNodeUnion;

/// The number of elements in the graph's inputs and outputs, and of bytes in its constants.
struct Operands {
  int64_t pixels = 0, weights = 0;

  explicit Operands(const Graph& graph) : weights(graph.constant_bytes) {
    // Count the largest input and the largest output kLike times instead of adding all of them up:
    // one tensor may be given for many slots.
    constexpr int64_t kLike = 8;
    int64_t input = 0, output = 0;
    for (const uint32_t id : graph.externals) {
      if (id == kNoId) continue;
      const Value& value = graph.values[id];
      int64_t& most = value.place == Value::Place::Input ? input : output;
      most = std::max(most, value.shape.numel());
    }
    pixels = kLike * (input + output);
  }
};

Size convolution_steps(const Graph& graph, const Node& node) {
  const int64_t in = graph.in(node).shape.numel(), out = graph.out(node).shape.numel();
  const bool transposed = node.kind == Kind::XNNConvTranspose2d;
  const Size taps = Size(node.window.size[0]) * node.window.size[1];
  const Size products =
      transposed ? taps * in * node.group_outputs : taps * out * node.group_inputs;
  return products / std::clamp<int64_t>(std::max(node.group_inputs, node.group_outputs), 1, 8) +
         in + out;
}

/// An estimate for one node, in nanoseconds on one thread.
Size steps_of(const Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const Size in = x.numel(), out = graph.out(node).shape.numel();
  switch (node.operation->form) {
    case Form::FullyConnected:
      return out * x.last() / 8 + in + out;
    case Form::Convolution:
      return convolution_steps(graph, node);
    case Form::Pooling:
    case Form::ArgMaxPooling: {
      const ImageDims dims(node);
      const Size taps =
          Size(node.window.taps_inside(0, x[dims.h])) * node.window.taps_inside(1, x[dims.w]);
      const int64_t channels = std::max<int64_t>(x[dims.c], 1);
      return out * taps + out / channels * taps * 8 + out;
    }
    case Form::BatchMatrixMultiply: {
      const Shape& y = graph.out(node).shape;
      return out * x.last() / 8 + in + out + Size(y.product(0, y.rank - 2)) * 128;
    }
    case Form::GlobalPooling:
      return in + out;
    default:
      return out * 8;
  }
}

}  // namespace

int64_t max_arena_bytes(const Graph& graph) {
  constexpr int64_t kAnyway = int64_t{1} << 28, kMost = int64_t{1} << 46;
  const Operands has(graph);
  const Size bytes = (Size(has.pixels) + has.weights) * 512 + kAnyway;
  return std::min(bytes.value_or(kMost), kMost);
}

Size steps_of(const Graph& graph) {
  Size steps = 0;
  for (const Node& node : graph.nodes) steps += steps_of(graph, node);
  return steps;
}

runtime::Result<uint64_t> check_work(const Graph& graph) {
  constexpr int64_t kAnyway = int64_t{1} << 29, kEach = 1 << 13;
  const Operands has(graph);
  const Size allowed =
      Size(has.pixels) * has.weights + (Size(has.pixels) + has.weights) * kEach + kAnyway;
  const int64_t limit = allowed.value_or(INT64_MAX);
  Size steps = 0;
  for (const Node& node : graph.nodes) {
    steps += steps_of(graph, node);
    ET_CHECK_OR_RETURN_ERROR(steps.within(limit), NotSupported,
                             "XnnpackBackend: up to %s #%u, more than %" PRId64
                             " steps for inputs and outputs of up to %" PRId64
                             " elements and %" PRId64 " bytes of constants",
                             node.operation->name(), node.index, limit, has.pixels, has.weights);
  }
  return static_cast<uint64_t>(steps.value_or(INT64_MAX));
}

}  // namespace executorch::backends::xnnpack
