/// Convolutions of NHWC images. All but depthwise ones are matrix products: row i of A holds what
/// the window sees from output pixel i, B the filter where it lies.
#include <executorch/backends/xnnpack/runtime/integer_weights.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <cstring>
#include <utility>

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
        outputs(node.group_outputs) {}

  int64_t channels_in() const { return groups * inputs; }
  int64_t channels_out() const { return groups * outputs; }
  int64_t taps() const { return window.size[0] * window.size[1]; }
  int64_t terms() const { return taps() * inputs; }
  int64_t pixels() const { return y.shape[1] * y.shape[2]; }  // of one image

  /// Where along an axis (0: y, 1: x) tap `tap` of output `out` reads; -1 where it reads nothing.
  int64_t source(int axis, int64_t out, int64_t tap) const {
    const int64_t extent = x.shape[1 + static_cast<size_t>(axis)];
    int64_t at;
    if (transposed) {
      at = out + window.before[axis] - tap * window.dilation[axis];
      if (at < 0 || at % window.stride[axis] != 0) return -1;
      at /= window.stride[axis];
    } else {
      at = out * window.stride[axis] - window.before[axis] + tap * window.dilation[axis];
    }
    return at >= 0 && at < extent ? at : -1;
  }

  struct Pixel {
    int64_t image, y, x;
  };
  Pixel pixel(int64_t index) const {
    const int64_t row = index / y.shape[2];
    return {row / y.shape[1], row % y.shape[1], index % y.shape[2]};
  }

  /// First element of what a tap of an output pixel reads; -1 for padding.
  int64_t pixel_source(const Pixel& p, int64_t tap_y, int64_t tap_x) const {
    const int64_t in_y = source(0, p.y, tap_y), in_x = source(1, p.x, tap_x);
    if (in_y < 0 || in_x < 0) return -1;
    return ((p.image * x.shape[1] + in_y) * x.shape[2] + in_x) * channels_in();
  }

  /// The window sees one pixel, the next for the next output: A is x.
  bool is_pointwise() const {
    return taps() == 1 && !transposed && window.stride[0] == 1 && window.stride[1] == 1 &&
           x.shape == Shape{4, {y.shape[0], y.shape[1], y.shape[2], channels_in()}};
  }
};

/// All elements as floats, in memory of the thread's unless they are.
const float* floats(const Value& value, cpu::Workspace& workspace) {
  const int64_t n = value.shape.numel();
  if (value.type == Type::fp32) return value.as<float>();
  float* const room = workspace.floats(static_cast<size_t>(n));
  cpu::parallel_for(n, kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRun) {
      read_run(value, i, std::min(kRun, end - i), room + i);
    }
  });
  return room;
}

void run_float(const Layer& layer, const Node& node) {
  static thread_local cpu::Workspace x_room, bias_room, y_room;
  const int64_t in = layer.channels_in(), out = layer.channels_out();
  const Shape &x = layer.x.shape, &y = layer.y.shape;
  const Window& w = layer.window;
  cpu::Conv<float> conv;
  for (size_t d = 0; d < 2; ++d) {
    cpu::ConvAxis& axis = conv.axis[1 + d];
    axis = {x[1 + d], w.size[d], y[1 + d], w.stride[d], w.before[d], w.dilation[d]};
    axis.in_stride = in * (d == 0 ? x[2] : 1);
    axis.out_stride = out * (d == 0 ? y[2] : 1);
    axis.weight_stride = (layer.depthwise ? out : layer.inputs) * (d == 0 ? w.size[1] : 1);
  }
  conv.transposed = layer.transposed;
  conv.batch = x[0];
  conv.groups = layer.groups;
  conv.group_in = layer.inputs;
  conv.group_out = layer.outputs;
  conv.input = floats(layer.x, x_room);
  conv.in_batch = x[1] * x[2] * in;
  conv.in_channel = 1;
  conv.weight = layer.w.as<float>();
  conv.weight_out = layer.depthwise ? 1 : layer.terms();
  conv.weight_group = layer.outputs * conv.weight_out;
  conv.weight_in = 1;
  conv.bias = layer.bias == nullptr ? nullptr : floats(*layer.bias, bias_room);
  const int64_t n = y.numel();
  const bool direct = layer.y.type == Type::fp32;
  conv.out = direct ? layer.y.as<float>() : y_room.floats(static_cast<size_t>(n));
  conv.out_batch = y[1] * y[2] * out;
  conv.out_channel = 1;
  conv.act = {cpu::Activation::Kind::Clamp, node.low, node.high};
  conv.run();
  if (direct) return;
  cpu::parallel_for(n, kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRun) {
      write_run(layer.y, i, std::min(kRun, end - i), conv.out + i);
    }
  });
}

/// Rows of A of one group, from an image with pixels of integers.
struct Windows {
  const Layer& layer;
  const RowQuantization* images;  // padding is what stands for 0
  int64_t images_share;           // pixels of those that have one
  int64_t group;

  static void produce(const void* source, int64_t i0, int64_t ni, int8_t* to) {
    const Windows& w = *static_cast<const Windows*>(source);
    const int64_t terms = w.layer.terms();
    for (int64_t i = i0; i < i0 + ni; ++i, to += terms) w.copy(i, to);
  }

 private:
  void copy(int64_t index, int8_t* to) const {
    const int64_t width = layer.window.size[1], c = layer.inputs;
    const Layer::Pixel pixel = layer.pixel(index);
    // Taps of a row of the image lie side by side, unless some are padding.
    const bool joined = !layer.transposed && layer.window.dilation[1] == 1 && layer.groups == 1 &&
                        layer.source(1, pixel.x, 0) >= 0 &&
                        layer.source(1, pixel.x, width - 1) >= 0;
    for (int64_t y = 0; y < layer.window.size[0]; ++y) {
      const int64_t first = joined ? layer.pixel_source(pixel, y, 0) : -1;
      if (first >= 0) {
        std::memcpy(to, layer.x.as<int8_t>() + first, static_cast<size_t>(width * c));
        to += width * c;
        continue;
      }
      for (int64_t x = 0; x < width; ++x, to += c) {
        const int64_t at = layer.pixel_source(pixel, y, x);
        if (at < 0) {
          std::memset(to, images[index / images_share].zero_point, static_cast<size_t>(c));
        } else {
          std::memcpy(to, layer.x.as<int8_t>() + at + group * c, static_cast<size_t>(c));
        }
      }
    }
  }
};

void run_integer(const Graph& graph, const Layer& layer, Node& node) {
  const int64_t k = layer.terms(), n = layer.channels_out();
  const RowQuantization all{layer.x.scale, layer.x.zero_point};
  const bool dynamic = layer.x.type == Type::qdint8;
  cpu::Int8Gemm gemm = integer_product(graph, node, n, k);
  gemm.m = layer.x.shape[0] * layer.pixels();
  gemm.n = layer.outputs;
  gemm.rows = dynamic ? layer.x.row_quantization() : &all;
  gemm.rows_share = dynamic ? layer.pixels() : gemm.m;
  Windows windows{layer, gemm.rows, gemm.rows_share, 0};
  if (layer.is_pointwise()) {
    gemm.a = layer.x.as<int8_t>();
    gemm.lda = layer.channels_in();
  } else {
    gemm.source = &windows;
    gemm.produce = Windows::produce;
  }
  gemm.c = layer.y.data;
  for (; windows.group < layer.groups; ++windows.group) {
    gemm.run();
    // The next group's operands and results.
    if (gemm.a != nullptr) gemm.a += layer.inputs;
    gemm.b.data += layer.outputs * k;
    gemm.b.scales += layer.outputs;
    gemm.sums += layer.outputs;
    if (gemm.bias != nullptr) gemm.bias += layer.outputs;
    if (gemm.integer_bias != nullptr) gemm.integer_bias += layer.outputs;
    gemm.c = static_cast<uint8_t*>(gemm.c) +
             layer.outputs * static_cast<int64_t>(element_size(layer.y.type));
  }
}

/// Sums of one output pixel of a depthwise convolution.
void sum_taps(const Layer& layer, int64_t index, std::vector<const int8_t*>& taps,
              std::vector<int8_t>& repeated, int32_t* sums) {
  const int64_t n = layer.channels_out(), in = layer.channels_in();
  const Layer::Pixel pixel = layer.pixel(index);
  for (int64_t t = 0; t < layer.taps(); ++t) {
    const int64_t at =
        layer.pixel_source(pixel, t / layer.window.size[1], t % layer.window.size[1]);
    const auto slot = static_cast<size_t>(t);
    taps[slot] = at < 0 ? nullptr : layer.x.as<int8_t>() + at;
    if (at < 0 || in == n) continue;
    int8_t* const to = repeated.data() + t * n;  // a channel has several filters
    for (int64_t c = 0; c < n; ++c) to[c] = taps[slot][c / layer.outputs];
    taps[slot] = to;
  }
  cpu::DepthwiseSums{taps.data(), layer.taps(), layer.x.zero_point, layer.w.as<int8_t>(), n, sums}
      .run();
}

void run_depthwise(const Layer& layer, Node& node) {
  const int64_t n = layer.channels_out();
  const float* scales = weight_scales(layer.w, node, n);
  // Scaled once, so that what lies half-way between two integers is rounded as such.
  Value y = layer.y;
  const float unit = is_affine(y.type) ? std::exchange(y.scale, 1.0f) : 1.0f;
  std::vector<float> factors(static_cast<size_t>(n));
  for (int64_t c = 0; c < n; ++c) {
    factors[static_cast<size_t>(c)] = layer.x.scale * scales[c] / unit;
  }
  const std::vector<int32_t> zeros(static_cast<size_t>(layer.bias == nullptr ? n : 0));
  const int32_t* bias = layer.bias == nullptr ? zeros.data() : layer.bias->as<int32_t>();
  const int64_t pixels = y.shape[0] * layer.pixels();
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / (n * layer.taps()));
  cpu::parallel_for(pixels, grain, [&](int64_t begin, int64_t end) {
    std::vector<const int8_t*> taps(static_cast<size_t>(layer.taps()));
    std::vector<int8_t> repeated(layer.outputs == 1 ? 0 : taps.size() * static_cast<size_t>(n));
    std::vector<int32_t> sums(static_cast<size_t>(n));
    float room[kRun];
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      sum_taps(layer, pixel, taps, repeated, sums.data());
      for (int64_t c = 0; c < n; c += kRun) {
        const int64_t count = std::min(kRun, n - c);
        const int32_t* sum = sums.data() + c;
        const float* factor = factors.data() + c;
        for (int64_t i = 0; i < count; ++i) {
          // Wraps rather than overflows where a file says nonsense.
          const uint32_t all = static_cast<uint32_t>(sum[i]) + static_cast<uint32_t>(bias[c + i]);
          room[i] = static_cast<float>(static_cast<int32_t>(all)) * factor[i];
        }
        clamp_run(room, count, node.low / unit, node.high / unit);
        write_run(y, pixel * n + c, count, room);
      }
    }
  });
}

}  // namespace

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
                 "dynamically quantised rows of %u dims", layer.x.row_dims);
  return check_integer_product(graph, node, n, depthwise ? layer.taps() : layer.terms(),
                               depthwise ? 3 : 0);
}

bool infer_convolution(Graph& graph, const Node& node) {
  const Layer layer(graph, node);
  const Window& w = node.window;
  if (layer.x.shape[3] != layer.channels_in()) return false;
  Shape y{4, {layer.x.shape[0], 0, 0, layer.channels_out()}};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t in = layer.x.shape[1 + axis], padding = w.before[axis] + w.after[axis];
    const int64_t window = w.dilation[axis] * (w.size[axis] - 1) + 1;
    const int64_t rest = in + padding - window;
    const int64_t out = layer.transposed
                            ? (in - 1) * w.stride[axis] + w.adjustment[axis] + window - padding
                        : rest < 0 ? -1
                                   : rest / w.stride[axis] + 1;
    if (in < 1 || out < 0) return false;
    y[1 + axis] = out;
  }
  graph.out(node).shape = y;
  return true;
}

void run_convolution(const Graph& graph, Node& node) {
  const Layer layer(graph, node);
  if (layer.y.shape.numel() == 0) return;
  if (layer.w.type == Type::fp32) return run_float(layer, node);
  if (layer.depthwise) return run_depthwise(layer, node);
  run_integer(graph, layer, node);
}

}  // namespace executorch::backends::xnnpack
