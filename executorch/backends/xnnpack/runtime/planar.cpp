#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/bilinear.h>
#include <executorch/cpu/nn/pool.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <limits>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

// The reverse of dense_dims(): dim d of planes is dim planar_dims(rank)[d] of the payload's value,
// [n, h, w, c] or [n, w, c].
const uint32_t* planar_dims(uint32_t rank) {
  static constexpr uint32_t kRows[] = {0, 2, 1}, kImages[] = {0, 3, 1, 2};
  return rank == 3 ? kRows : kImages;
}
bool is_image(const Shape& shape) {
  return shape.rank == 3 || shape.rank == 4;
}

class Choice {
 public:
  explicit Choice(Graph& graph)
      : graph_(graph),
        group_(graph.values.size()),
        planar_(graph.values.size()),
        rank_(graph.values.size()) {
    for (uint32_t id = 0; id < group_.size(); ++id) group_[id] = id;
    for (const Node& node : graph.nodes) {
      if (!is_transpose(node)) join_values(node);
    }
    // Values of a group get the same layout: a group is planar if all of its values can be, and if
    // a convolution profits from it.
    std::vector<bool> dense(group_.size()), convolves(group_.size());
    for (const Node& node : graph.nodes) {
      if (node.operation->form == Form::Convolution) convolves[group_of(node.output[0])] = true;
      const bool by_element = node.operation->is_elementwise || has_dims(node);
      const bool knows = is_transpose(node) || has_window(node) || is_row(node) ||
                         (by_element && has_one_rank(node));
      if (!knows) dense[group_of(node.output[0])] = true;
    }
    for (uint32_t id = 0; id < group_.size(); ++id) {
      const Value& value = graph.values[id];
      const bool is_inner = value.place == Value::Place::Internal && is_image(value.shape);
      const bool can_be = value.type == Type::fp32 && (is_inner || has_channels_only(id));
      if (!can_be) dense[group_of(id)] = true;
    }
    for (uint32_t id = 0; id < group_.size(); ++id) {
      const uint32_t group = group_of(id);
      planar_[id] = convolves[group] && !dense[group];
    }
  }

  void apply() {
    for (Node& node : graph_.nodes) {
      if (has_window(node) && planar_[node.input[0]]) node.flags |= kPlanar;
      if (is_transpose(node)) permute(node);
      if ((has_dims(node) || is_row(node)) && planar_[node.input[0]]) permute_dims(node);
    }
    for (size_t id = 0; id < planar_.size(); ++id) {
      if (!planar_[id]) continue;
      graph_.values[id].planar = true;
      Shape& shape = graph_.values[id].shape;
      Shape planes{shape.rank, {}};
      if (graph_.values[id].place == Value::Place::Constant) {
        planes = {rank_[id], {1, shape.numel(), 1, 1}};
      } else {
        for (uint32_t d = 0; d < shape.rank; ++d) planes[d] = shape[planar_dims(shape.rank)[d]];
      }
      shape = planes;
    }
  }

 private:
  bool is_transpose(const Node& node) const {
    return node.operation->form == Form::Transpose && is_image(graph_.in(node).shape);
  }
  // A reshape that adds or removes the one row of an image.
  bool is_row(const Node& node) const {
    if (node.operation->form != Form::Reshape) return false;
    const Shape &x = graph_.in(node).shape, &y = graph_.out(node).shape;
    if (x.rank + y.rank != 7 || !is_image(x)) return false;
    const Shape &image = x.rank == 4 ? x : y, &row = x.rank == 4 ? y : x;
    // At most one dim of the list is inferred, so the dims are the same in every call.
    return image[1] == 1 && image[0] == row[0] && image[2] == row[1] && image[3] == row[2] &&
           (y.rank == 3 || node.list[1] == 1);
  }
  // A constant with a single element has no layout.
  static bool has_layout(const Value& value) {
    return value.place != Value::Place::Constant || value.shape.numel() != 1;
  }
  // Whether values of a node have the same rank, and so do nodes that read the same constant.
  bool has_one_rank(const Node& node) {
    const uint32_t rank = graph_.out(node).shape.rank;
    for (uint32_t i = 0; i < node.n_inputs; ++i) {
      const uint32_t id = node.input[i];
      if (id == kNoId) continue;
      const Value& value = graph_.values[id];
      if (!has_layout(value)) continue;
      if (value.place == Value::Place::Constant) {
        if (rank_[id] == 0) rank_[id] = rank;
        if (rank_[id] != rank) return false;
      } else if (value.shape.rank != rank) {
        return false;
      }
    }
    return true;
  }
  // A constant with an element for each channel of images that it is added to or the like.
  bool has_channels_only(uint32_t id) const {
    const Value& value = graph_.values[id];
    return value.place == Value::Place::Constant && rank_[id] != 0 && value.shape.rank >= 1 &&
           value.shape.rank <= rank_[id] && value.shape.numel() == value.shape.from_end(0);
  }
  // Nodes of images that name dims: an axis, or a number for each dim.
  bool has_dims(const Node& node) const {
    const Form form = node.operation->form;
    return (form == Form::Concatenate || form == Form::Slice || form == Form::Pad) &&
           is_image(graph_.in(node).shape);
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
      if (id != kNoId && has_layout(graph_.values[id])) join(id);
    }
  }

  // A transpose that leaves all dims where they are is a copy, for which no memory is moved.
  void permute(Node& node) const {
    const auto list = node.list;
    bool moves = false;
    for (uint32_t d = 0; d < node.n_list; ++d) {
      const uint32_t from = list[planar_[node.output[0]] ? planar_dims(node.n_list)[d] : d];
      node.list[d] = planar_[node.input[0]] ? dense_dims(node.n_list)[from] : from;
      moves |= node.list[d] != d;
    }
    if (moves) return;
    node.kind = Kind::XNNCopy;
    node.operation = find_operation(node.kind);
  }

  void permute_dims(Node& node) const {
    const uint32_t rank = graph_.out(node).shape.rank;
    if (node.operation->form == Form::Concatenate) {
      const auto axis = static_cast<int32_t>(node.axis);
      node.axis = dense_dims(rank)[axis < 0 ? axis + static_cast<int32_t>(rank) : axis];
      return;
    }
    const auto list = node.list, list2 = node.list2;
    for (uint32_t d = 0; d < rank; ++d) {
      node.list[d] = list[planar_dims(rank)[d]];
      node.list2[d] = list2[planar_dims(rank)[d]];
    }
  }

  Graph& graph_;
  std::vector<uint32_t> group_;  // by value: another of its group, or itself
  std::vector<bool> planar_;     // by value
  std::vector<uint32_t> rank_;   // by constant: of the nodes that read it, or 0
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

void clamp(const Value& y, const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.low == -kInfinity && node.high == kInfinity) return;
  cpu::parallel_for(y.shape.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    clamp_run(y.as<float>() + begin, end - begin, node.low, node.high);
  });
}

}  // namespace

const uint32_t* dense_dims(uint32_t rank) {
  static constexpr uint32_t kRows[] = {0, 2, 1}, kImages[] = {0, 2, 3, 1};
  return rank == 3 ? kRows : kImages;
}

Graph& choose_planar_values(Graph& graph) {
  Choice(graph).apply();
  return graph;
}

bool run_planar_pooling(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value &x = graph.in(node), &y = graph.out(node);
  const int64_t height = y.shape[2], width = y.shape[3];
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
  clamp(y, node);
  return true;
}

bool run_planar_resize(const Graph& graph, const Node& node, const Resized& down,
                       const Resized& across, cpu::Scratch& scratch) {
  const Value &x = graph.in(node), &y = graph.out(node);
  cpu::Bilinear planes;
  planes.planes = x.shape[0] * x.shape[1];
  planes.in_w = x.shape[3];
  planes.out_h = y.shape[2];
  planes.out_w = y.shape[3];
  if (y.shape.numel() == 0) return true;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (x.shape[2] > kMost || x.shape[3] > kMost) return false;
  const auto pair_of = [](const Resized& axis) {
    return [&axis](int64_t i) {
      const Between at = axis.at(i);
      return cpu::Bilinear::Pair{at.low, at.high, 1 - at.weight, at.weight};
    };
  };
  if (!planes.place(pair_of(down), pair_of(across), scratch)) return false;
  planes.x = x.as<float>(), planes.y = y.as<float>();
  planes.x_row = x.shape[3], planes.x_plane = x.shape[2] * x.shape[3];
  planes.y_row = y.shape[3], planes.y_plane = y.shape[2] * y.shape[3];
  if (!planes.run(scratch)) return false;
  clamp(y, node);
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
