/// Convolutions of NHWC images.
#include <executorch/backends/xnnpack/runtime/integer_weights.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

constexpr int64_t kMaxChannels = 1 << 24;
constexpr int64_t kElementsPerTask = 16384;

struct Layer {
  const Value &x, &w, &y;
  const Value* bias;
  const Window& window;
  bool transposed, depthwise;
  int64_t groups, inputs, outputs;  // channels of a group
  ImageDims dims;

  Layer(const Graph& graph, const Node& node)
      : x(graph.in(node, 0)),
        w(graph.in(node, 1)),
        y(graph.out(node)),
        bias(graph.has_input(node, 2) ? &graph.in(node, 2) : nullptr),
        window(node.window),
        transposed(node.kind == Kind::XNNConvTranspose2d),
        depthwise(node.kind == Kind::XNNDepthwiseConv2d),
        groups(node.groups),
        inputs(node.group_inputs),
        outputs(node.group_outputs),
        dims(node) {}

  int64_t channels_in() const { return groups * inputs; }
  int64_t channels_out() const { return groups * outputs; }
  int64_t taps() const { return window.size[0] * window.size[1]; }
  int64_t terms() const { return taps() * inputs; }
  bool is_planar() const { return dims.c == 1; }

  /// Height (0) or width (1), in elements of a dense image.
  cpu::ConvAxis axis(size_t d) const {
    cpu::ConvAxis axis{x.shape[dims.h + d], window.size[d],   y.shape[dims.h + d],
                       window.stride[d],    window.before[d], window.dilation[d]};
    axis.in_stride = (is_planar() ? 1 : channels_in()) * (d == 0 ? x.shape[dims.w] : 1);
    axis.out_stride = (is_planar() ? 1 : channels_out()) * (d == 0 ? y.shape[dims.w] : 1);
    axis.weight_stride = (depthwise ? channels_out() : inputs) * (d == 0 ? window.size[1] : 1);
    return axis;
  }
};

/// All elements as floats, in scratch memory unless they are; null if that is refused.
const float* floats(const Value& value, cpu::Scratch& scratch) {
  if (value.type == Type::fp32) return value.as<float>();
  const int64_t n = value.shape.numel();
  float* const room = scratch.array<float>(n);
  if (room == nullptr) return nullptr;
  cpu::parallel_for(n, kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRun) {
      read_run(value, i, std::min(kRun, end - i), room + i);
    }
  });
  return room;
}

bool run_float(const Layer& layer, const Node& node, cpu::Scratch& scratch) {
  const cpu::Scratch::Frame frame(scratch);
  const Shape &x = layer.x.shape, &y = layer.y.shape;
  const int64_t n = y.numel();
  const bool direct = layer.y.type == Type::fp32;
  cpu::Conv<float> conv;
  for (size_t d = 0; d < 2; ++d) conv.axis[1 + d] = layer.axis(d);
  conv.transposed = layer.transposed;
  conv.batch = x[0];
  conv.groups = layer.groups;
  conv.group_in = layer.inputs;
  conv.group_out = layer.outputs;
  conv.input = floats(layer.x, scratch);
  conv.in_batch = x.product(1, 4);
  conv.in_channel = layer.is_planar() ? x.product(2, 4) : 1;
  conv.weight = layer.w.as<float>();
  conv.weight_out = layer.depthwise ? 1 : layer.terms();
  conv.weight_group = layer.outputs * conv.weight_out;
  conv.weight_in = 1;
  if (layer.bias != nullptr) conv.bias = floats(*layer.bias, scratch);
  conv.out = direct ? layer.y.as<float>() : scratch.array<float>(n);
  conv.out_batch = y.product(1, 4);
  conv.out_channel = layer.is_planar() ? y.product(2, 4) : 1;
  conv.act = {cpu::Activation::Kind::Clamp, node.low, node.high};
  if (conv.input == nullptr || (layer.bias != nullptr && conv.bias == nullptr) ||
      conv.out == nullptr || !conv.run(scratch)) {
    return false;
  }
  if (direct) return true;
  cpu::parallel_for(n, kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRun) {
      write_run(layer.y, i, std::min(kRun, end - i), conv.out + i);
    }
  });
  return true;
}

/// A filter [taps, channels] as [channels, taps].
std::vector<int8_t> transposed_filter(const int8_t* filter, int64_t taps, int64_t channels) {
  std::vector<int8_t> result(static_cast<size_t>(taps * channels));
  for (int64_t i = 0; i < taps * channels; ++i) {
    result[static_cast<size_t>(i % channels * taps + i / channels)] = filter[i];
  }
  return result;
}

/// Fills in everything but the activations and the results.
cpu::Int8Conv integer_convolution(const Graph& graph, const Layer& layer, const Node& node) {
  const int64_t n = layer.channels_out();
  cpu::Int8Conv conv;
  conv.product = integer_product(graph, node, n, layer.terms(), layer.w.as<int8_t>());
  conv.product.n = layer.outputs;
  if (layer.depthwise) {
    conv.product.b.row_bytes = 1;
    conv.filter_step = n;
  }
  for (size_t d = 0; d < 2; ++d) conv.axis[d] = layer.axis(d);
  conv.transposed = layer.transposed;
  conv.batch = layer.x.shape[0];
  conv.groups = layer.groups;
  conv.group_in = layer.inputs;
  conv.group_out = layer.outputs;
  return conv;
}

bool run_integer(const Graph& graph, const Layer& layer, const Node& node, cpu::Scratch& scratch) {
  cpu::Int8Conv conv = integer_convolution(graph, layer, node);
  const bool dynamic = layer.x.type == Type::qdint8;
  const RowQuantization all{layer.x.scale, layer.x.zero_point};
  conv.product.a = layer.x.as<int8_t>();
  conv.product.rows = dynamic ? layer.x.row_quantization() : &all;
  conv.product.rows_share = dynamic ? 1 : conv.batch;
  conv.product.c = layer.y.data;
  return conv.run(node.filter, scratch);
}

Error check_convolution(const Graph& graph, const Node& node) {
  const Layer layer(graph, node);
  const bool depthwise = layer.depthwise;
  ET_XNN_REQUIRE(layer.x.shape.rank == 4 && layer.w.shape.rank == 4 && layer.y.shape.rank == 4,
                 node, "ranks %u, %u and %u, expected 4", layer.x.shape.rank, layer.w.shape.rank,
                 layer.y.shape.rank);
  for (const int64_t count : {layer.groups, layer.inputs, layer.outputs}) {
    ET_XNN_REQUIRE(count >= 1 && count <= kMaxChannels, node, "%lld groups or channels",
                   static_cast<long long>(count));
  }
  ET_XNN_REQUIRE(node.flags == 0, node, "unknown flags 0x%x", node.flags);
  const int64_t n = layer.channels_out(), height = layer.window.size[0],
                width = layer.window.size[1];
  const Shape filter =
      depthwise ? Shape{4, {1, height, width, n}} : Shape{4, {n, height, width, layer.inputs}};
  ET_XNN_REQUIRE(layer.w.place == Value::Place::Constant && layer.w.shape == filter &&
                     (!depthwise || layer.inputs == 1),
                 node, "the filter is not a constant of the shape that the node says");
  ET_XNN_REQUIRE(layer.bias == nullptr || (layer.bias->shape.numel() == n &&
                                           layer.bias->place == Value::Place::Constant),
                 node, "the bias is not a constant of %lld numbers", static_cast<long long>(n));
  const bool floating = is_float(layer.x.type) && layer.w.type == Type::fp32 &&
                        is_float(layer.y.type) &&
                        (layer.bias == nullptr || is_float(layer.bias->type));
  if (floating) return Error::Ok;
  ET_XNN_REQUIRE(layer.x.type != Type::qdint8 || (layer.x.row_dims == 3 && !depthwise), node,
                 "dynamically quantized rows of %u dims", layer.x.row_dims);
  return check_integer_product(graph, node, n, depthwise ? layer.taps() : layer.terms(),
                               depthwise ? 3 : 0);
}

bool infer_convolution(Graph& graph, const Node& node) {
  const Layer layer(graph, node);
  const Window& w = node.window;
  const ImageDims& dims = layer.dims;
  if (layer.x.shape[dims.c] != layer.channels_in()) return false;
  Shape y{4, {layer.x.shape[0]}};
  y[dims.c] = layer.channels_out();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t in = layer.x.shape[dims.h + axis];
    const cpu::Size padding = cpu::Size(w.before[axis]) + w.after[axis], reach = w.reach(axis);
    // For a convolution, how far the window can move within the padded image; for a transposed one,
    // the extent of the result.
    const cpu::Size rest =
        layer.transposed ? cpu::Size(in - 1) * w.stride[axis] + w.adjustment[axis] + reach - padding
                         : cpu::Size(in) + padding - reach;
    if (in < 1 || !rest.within(kMost)) return false;
    const cpu::Size out = layer.transposed ? rest : rest / w.stride[axis] + 1;
    if (!out.within(std::numeric_limits<int32_t>::max())) return false;
    y[dims.h + axis] = out.value();
  }
  graph.out(node).shape = y;
  return true;
}

void prepare_convolution(const Graph& graph, Node& node) {
  const Layer layer(graph, node);
  if (layer.w.type == Type::fp32) return;
  const int64_t k = layer.terms(), n = layer.channels_out();
  const auto* const filter = layer.w.as<int8_t>();
  std::vector<int8_t> rows;
  if (layer.depthwise) rows = transposed_filter(filter, k, n);
  prepare_integer_product(graph, node, n, k, layer.depthwise ? rows.data() : filter);
  cpu::Int8Conv conv = integer_convolution(graph, layer, node);
  const RowQuantization all{layer.x.scale, layer.x.zero_point};
  conv.product.rows = &all;
  if (!conv.pack(node.filter)) throw std::bad_alloc();
}

bool run_convolution(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Layer layer(graph, node);
  if (layer.w.type == Type::fp32) return run_float(layer, node, scratch);
  return run_integer(graph, layer, node, scratch);
}

constexpr Operation convolution(Kind kind) {
  return {.kind = kind,
          .form = Form::Convolution,
          .check = check_convolution,
          .infer = infer_convolution,
          .prepare = prepare_convolution,
          .run = run_convolution};
}

constexpr Operation kOperations[] = {
    convolution(Kind::XNNConv2d),
    convolution(Kind::XNNDepthwiseConv2d),
    convolution(Kind::XNNConvTranspose2d),
};

}  // namespace

Operations convolution_operations() {
  return kOperations;
}

}  // namespace executorch::backends::xnnpack
