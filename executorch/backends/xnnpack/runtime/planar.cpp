#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/pool.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

// Dim d of NCHW is dim kPlanarDims[d] of NHWC, and back.
constexpr uint32_t kPlanarDims[] = {0, 3, 1, 2}, kDenseDims[] = {0, 2, 3, 1};

class Choice {
 public:
  explicit Choice(Graph& graph)
      : graph_(graph), group_(graph.values.size()), planar_(graph.values.size()) {
    for (uint32_t id = 0; id < group_.size(); ++id) group_[id] = id;
    for (const Node& node : graph.nodes) {
      if (!is_transpose(node)) join_values(node);
    }
    // Values of a group get the same layout: a group is planar if all of its values can be.
    std::vector<bool> dense(group_.size());
    for (uint32_t id = 0; id < group_.size(); ++id) {
      const Value& value = graph.values[id];
      const bool is_image = value.place == Value::Place::Internal && value.shape.rank == 4;
      const bool can_be = value.type == Type::fp32 && (is_image || has_channels_only(value));
      if (!can_be) dense[group_of(id)] = true;
    }
    for (const Node& node : graph.nodes) {
      const bool knows = is_transpose(node) || has_window(node) || has_dims(node) ||
                         node.operation->is_elementwise;
      if (!knows) dense[group_of(node.output[0])] = true;
    }
    for (uint32_t id = 0; id < group_.size(); ++id) planar_[id] = !dense[group_of(id)];
  }

  bool pays() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      const bool convolves = node.kind == Kind::XNNConv2d || node.kind == Kind::XNNConvTranspose2d;
      return convolves && planar_[node.input[0]];
    });
  }

  void apply() {
    for (Node& node : graph_.nodes) {
      if (has_window(node) && planar_[node.input[0]]) node.flags |= kPlanar;
      if (is_transpose(node)) turn(node);
      if (has_dims(node) && planar_[node.input[0]]) turn_dims(node);
    }
    for (size_t id = 0; id < planar_.size(); ++id) {
      if (!planar_[id]) continue;
      graph_.values[id].planar = true;
      Shape& shape = graph_.values[id].shape;
      if (graph_.values[id].place == Value::Place::Constant) {
        shape = {4, {1, shape.numel(), 1, 1}};
      } else {
        shape = {4, {shape[0], shape[3], shape[1], shape[2]}};
      }
    }
  }

 private:
  bool is_transpose(const Node& node) const {
    return node.operation->form == Form::Transpose && graph_.in(node).shape.rank == 4;
  }
  // A constant with an element for each channel.
  static bool has_channels_only(const Value& value) {
    return value.place == Value::Place::Constant && value.shape.rank >= 1 &&
           value.shape.rank <= 4 && value.shape.numel() == value.shape.from_end(0);
  }
  // Nodes of images that name dims: an axis, or a number for each dim.
  bool has_dims(const Node& node) const {
    const Form form = node.operation->form;
    return (form == Form::Concatenate || form == Form::Slice || form == Form::Pad) &&
           graph_.in(node).shape.rank == 4;
  }
  // Nodes that run on planes: float32 convolutions, means and resizing of images, and poolings of
  // which each window contains a pixel of the image.
  bool has_window(const Node& node) const {
    const Form form = node.operation->form;
    if (form == Form::Convolution) return graph_.in(node, 1).type == Type::fp32;
    if (form == Form::GlobalPooling || form == Form::Resize) return true;
    if (form != Form::Pooling) return false;
    const Window& w = node.window;
    bool filled = true;
    for (int d = 0; d < 2; ++d) {
      filled &= w.dilation[d] == 1 && w.before[d] < w.size[d] && w.after[d] < w.size[d];
    }
    return filled;
  }
  uint32_t group_of(uint32_t id) {
    while (group_[id] != id) id = group_[id] = group_[group_[id]];
    return id;
  }

  // Puts all values of a node into one group.
  void join_values(const Node& node) {
    const uint32_t group = group_of(node.output[0]);
    const auto join = [&](uint32_t id) { group_[group_of(id)] = group; };
    for (uint32_t i = 1; i < node.n_outputs; ++i) join(node.output[i]);
    const uint32_t n_images = has_window(node) ? 1 : node.n_inputs;
    for (uint32_t i = 0; i < n_images; ++i) {
      const uint32_t id = node.input[i];
      if (id == kNoId) continue;
      const Value& value = graph_.values[id];
      // A constant with a single element has no layout.
      if (value.place != Value::Place::Constant || value.shape.numel() != 1) join(id);
    }
  }

  void turn(Node& node) const {
    const auto list = node.list;
    for (uint32_t d = 0; d < 4; ++d) {
      const uint32_t from = list[planar_[node.output[0]] ? kPlanarDims[d] : d];
      node.list[d] = planar_[node.input[0]] ? kDenseDims[from] : from;
    }
  }

  static void turn_dims(Node& node) {
    if (node.operation->form == Form::Concatenate) {
      const auto axis = static_cast<int32_t>(node.axis);
      node.axis = kDenseDims[axis < 0 ? axis + 4 : axis];
      return;
    }
    const auto list = node.list, list2 = node.list2;
    for (uint32_t d = 0; d < 4; ++d) {
      node.list[d] = list[kPlanarDims[d]];
      node.list2[d] = list2[kPlanarDims[d]];
    }
  }

  Graph& graph_;
  std::vector<uint32_t> group_;  // by value: another of its group, or itself
  std::vector<bool> planar_;     // by value
};

// `begin`, `count` and `divisor` have room for an entry per output.
cpu::PoolAxis pool_axis(const Window& w, int d, int64_t in, int64_t out, int32_t* begin,
                        int32_t* count, float* divisor) {
  cpu::PoolAxis axis{.in = in, .out = out, .stride = w.stride[d]};
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * w.stride[d] - w.before[d];
    begin[o] = static_cast<int32_t>(std::max<int64_t>(first, 0));
    count[o] = static_cast<int32_t>(std::min(first + w.size[d], in) - begin[o]);
    divisor[o] = static_cast<float>(count[o]);
    if (count[o] != w.size[d]) continue;
    if (axis.whole_end == 0) axis.whole_begin = o;
    axis.whole_end = o + 1;
  }
  axis.begin = begin;
  axis.count = count;
  axis.divisor = divisor;
  return axis;
}

}  // namespace

Graph& choose_planar_values(Graph& graph) {
  Choice choice(graph);
  if (choice.pays()) choice.apply();
  return graph;
}

bool run_planar_pooling(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value &x = graph.in(node), &y = graph.out(node);
  const int64_t height = y.shape[2], width = y.shape[3], n = y.shape.numel();
  const cpu::Scratch::Frame frame(scratch);
  const cpu::Size extent = cpu::Size(height) + width;
  int32_t* const begins = scratch.array<int32_t>(extent);
  int32_t* const counts = scratch.array<int32_t>(extent);
  float* const divisors = scratch.array<float>(extent);
  if (begins == nullptr || counts == nullptr || divisors == nullptr) return false;
  cpu::Pool2d pool;
  pool.max = node.kind == Kind::XNNMaxPooling2d;
  pool.batch = x.shape[0];
  pool.channels = x.shape[1];
  pool.h = pool_axis(node.window, 0, x.shape[2], height, begins, counts, divisors);
  pool.w = pool_axis(node.window, 1, x.shape[3], width, begins + height, counts + height,
                     divisors + height);
  pool.x = x.data;
  pool.y = y.data;
  if (!pool.run(scratch)) return false;
  const float infinity = std::numeric_limits<float>::infinity();
  if (node.low == -infinity && node.high == infinity) return true;
  cpu::parallel_for(n, 1 << 14, [&](int64_t begin, int64_t end) {
    clamp_run(y.as<float>() + begin, end - begin, node.low, node.high);
  });
  return true;
}

bool run_planar_mean(const Graph& graph, const Node& node) {
  constexpr int64_t kSums = 16;  // side by side, so that they can be vectors
  const Value &x = graph.in(node), &y = graph.out(node);
  const int64_t pixels = x.shape.product(2, 4), n = y.shape.numel();
  cpu::parallel_for(n, 1 + (1 << 14) / pixels, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* const from = x.as<float>() + plane * pixels;
      float sums[kSums] = {};
      for (int64_t p = 0; p < pixels; p += kSums) {
        for (int64_t i = 0; i < std::min(kSums, pixels - p); ++i) sums[i] += from[p + i];
      }
      for (int64_t i = 1; i < kSums; ++i) sums[0] += sums[i];
      y.as<float>()[plane] = sums[0] / static_cast<float>(pixels);
    }
    clamp_run(y.as<float>() + begin, end - begin, node.low, node.high);
  });
  return true;
}

}  // namespace executorch::backends::xnnpack
