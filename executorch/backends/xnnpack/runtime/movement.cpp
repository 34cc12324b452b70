/// Nodes that move elements of any type: transpose, reshape, copy, slice, pad, concatenate.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cstring>

namespace executorch::backends::xnnpack {
namespace {

constexpr int64_t kElementsPerTask = 16384;

bool can_move(const Value& x, const Value& y) {
  return (has_runs(x.type) || x.type == Type::int32) && same_type(x, y);
}

size_t bytes_of(const Value& value, int64_t elements) {
  return static_cast<size_t>(elements) * element_size(value.type);
}

/// Copies an innermost line of n elements, whose source is `step` apart.
template <class T>
void gather(const T* from, int64_t step, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

template <class F>
void with_element(size_t size, const F& f) {
  if (size == 1) return f(uint8_t{});
  if (size == 2) return f(uint16_t{});
  f(uint32_t{});
}

/// A box of a row-major array: its extents, and where and how far apart it lies in the array.
struct Box {
  Shape extent;
  int64_t first = 0;
  std::array<int64_t, kMaxRank> stride{};

  /// The box `extent` at `offsets` of an array of shape `whole`.
  Box(const Shape& box, const Shape& whole, const std::array<int64_t, kMaxRank>& offsets)
      : extent(box) {
    int64_t step = 1;
    for (size_t d = whole.rank; d-- > 0;) {
      stride[d] = step;
      first += offsets[d] * step;
      step *= whole[d];
    }
  }
  int64_t lines() const { return extent.rank == 0 ? 1 : extent.product(0, extent.rank - 1); }
  int64_t line(int64_t index) const {
    int64_t at = first;
    for (size_t d = extent.rank; d-- > 1;) {
      at += index % extent[d - 1] * stride[d - 1];
      index /= extent[d - 1];
    }
    return at;
  }
};

/// Copies a box, of the same extents in both.
void copy_box(const Value& x, const Box& from, const Value& y, const Box& to) {
  const int64_t n = from.extent.last();
  if (from.extent.numel() == 0) return;
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / n);
  const size_t bytes = bytes_of(x, n);
  cpu::parallel_for(from.lines(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(y.as<uint8_t>() + bytes_of(y, to.line(i)),
                  x.as<uint8_t>() + bytes_of(x, from.line(i)), bytes);
    }
  });
}

void fill(const Value& y, float number) {
  const int64_t n = y.shape.numel();
  if (is_affine(y.type)) {
    std::memset(y.data, quantise(number, y), static_cast<size_t>(n));
    return;
  }
  float run[kRun];
  std::fill_n(run, kRun, number);
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t count = std::min(kRun, n - i);
    float* to = place_of_run(y, i, run);
    if (to != run) std::fill_n(to, count, number);
    write_run(y, i, count, run);
  }
}

constexpr std::array<int64_t, kMaxRank> kOrigin{};

}  // namespace

Error check_moved(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(can_move(x, y), node, "%s to %s, expected the same with the same quantisation",
                 name_of(x.type), name_of(y.type));
  ET_XNN_REQUIRE(node.operation->form != Form::Pad || has_runs(x.type), node, "%s",
                 name_of(x.type));
  return Error::Ok;
}

void run_copy(const Graph& graph, Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  if (x.data != y.data) std::memcpy(y.data, x.data, bytes_of(x, x.shape.numel()));
}

Error check_transpose(const Graph& graph, const Node& node) {
  unsigned seen = 0;
  for (uint32_t i = 0; i < node.n_list; ++i) {
    ET_XNN_REQUIRE(node.list[i] < node.n_list, node, "dim %u of %u", node.list[i], node.n_list);
    seen |= 1u << node.list[i];
  }
  ET_XNN_REQUIRE(seen == (1u << node.n_list) - 1 && graph.in(node).shape.rank == node.n_list, node,
                 "%u dims of rank %u, or one twice", node.n_list, graph.in(node).shape.rank);
  return check_moved(graph, node);
}

bool infer_transpose(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  Shape y{x.rank, {}};
  for (size_t d = 0; d < x.rank; ++d) y[d] = x[node.list[d]];
  graph.out(node).shape = y;
  return true;
}

void run_transpose(const Graph& graph, Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  const Shape& shape = y.shape;
  if (shape.numel() == 0) return;
  const Box whole(x.shape, x.shape, kOrigin);
  Box from = whole;
  from.extent = shape;
  for (size_t d = 0; d < shape.rank; ++d) from.stride[d] = whole.stride[node.list[d]];
  const int64_t n = shape.last(), step = shape.rank == 0 ? 1 : from.stride[shape.rank - 1];
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / n);
  with_element(element_size(x.type), [&](auto zero) {
    using T = decltype(zero);
    cpu::parallel_for(from.lines(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* line = x.as<T>() + from.line(i);
        T* to = y.as<T>() + i * n;
        if (step == 1) {
          std::memcpy(to, line, bytes_of(x, n));
        } else {
          gather(line, step, n, to);
        }
      }
    });
  });
}

bool infer_reshape(Graph& graph, const Node& node) {
  const int64_t total = graph.in(node).shape.numel();
  Shape y{node.n_list, {}};
  int inferred = -1;
  int64_t known = 1;
  for (uint32_t i = 0; i < node.n_list; ++i) {
    y[i] = node.list[i];
    if (y[i] == 0) {
      if (inferred >= 0) return false;
      inferred = static_cast<int>(i);
      y[i] = 1;
    }
  }
  if (!is_sane(y)) return false;
  known = y.numel();
  if (inferred >= 0) {
    if (total % known != 0) return false;
    y[static_cast<size_t>(inferred)] = total / known;
  }
  graph.out(node).shape = y;
  return y.numel() == total;
}

bool infer_slice(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  if (node.n_list != x.rank) return false;
  Shape y{x.rank, {}};
  for (uint32_t i = 0; i < x.rank; ++i) {
    const int64_t offset = node.list[i], size = node.list2[i];
    if (offset > x[i]) return false;
    y[i] = size == 0 ? x[i] - offset : size;  // 0: to the end
    if (offset + y[i] > x[i]) return false;
  }
  graph.out(node).shape = y;
  return true;
}

void run_slice(const Graph& graph, Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  std::array<int64_t, kMaxRank> offsets{};
  std::copy(node.list.begin(), node.list.end(), offsets.begin());
  copy_box(x, Box(y.shape, x.shape, offsets), y, Box(y.shape, y.shape, kOrigin));
}

bool infer_pad(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  if (node.n_list != x.rank) return false;
  Shape y{x.rank, {}};
  for (uint32_t i = 0; i < x.rank; ++i) y[i] = x[i] + node.list[i] + node.list2[i];
  graph.out(node).shape = y;
  return true;
}

void run_pad(const Graph& graph, Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  fill(y, node.number);
  std::array<int64_t, kMaxRank> offsets{};
  std::copy(node.list.begin(), node.list.end(), offsets.begin());
  copy_box(x, Box(x.shape, x.shape, kOrigin), y, Box(x.shape, y.shape, offsets));
}

Error check_concatenate(const Graph& graph, const Node& node) {
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    const Value& x = graph.in(node, i);
    ET_XNN_REQUIRE(can_move(x, graph.out(node)) && x.shape.rank == graph.in(node).shape.rank, node,
                   "input %u is %s of rank %u, the output %s; expected the same", i,
                   name_of(x.type), x.shape.rank, name_of(graph.out(node).type));
  }
  // Negative axes, counted from the innermost, come as 2^32 less.
  const auto rank = static_cast<int32_t>(graph.in(node).shape.rank);
  const auto axis = static_cast<int32_t>(node.axis);
  ET_XNN_REQUIRE(axis >= -rank && axis < rank, node, "axis %d of rank %d", axis, rank);
  return Error::Ok;
}

namespace {
size_t axis_of(const Node& node, const Shape& shape) {
  const auto axis = static_cast<int32_t>(node.axis);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int32_t>(shape.rank) : axis);
}
}  // namespace

bool infer_concatenate(Graph& graph, const Node& node) {
  Shape y = graph.in(node).shape;
  const size_t axis = axis_of(node, y);
  for (uint32_t i = 1; i < node.n_inputs; ++i) {
    Shape x = graph.in(node, i).shape;
    y[axis] += x[axis];
    x[axis] = y[axis];
    if (!(x == y)) return false;
  }
  graph.out(node).shape = y;
  return true;
}

void run_concatenate(const Graph& graph, Node& node) {
  const Value& y = graph.out(node);
  const size_t axis = axis_of(node, y.shape);
  std::array<int64_t, kMaxRank> offsets{};
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    const Value& x = graph.in(node, i);
    // What lies behind the axis is one line.
    const auto merged = [&](const Shape& s) {
      return Shape{2, {s.product(0, axis), s.product(axis, s.rank)}};
    };
    const Shape from = merged(x.shape);
    offsets[1] = i == 0 ? 0 : offsets[1];
    copy_box(x, Box(from, from, kOrigin), y, Box(from, merged(y.shape), offsets));
    offsets[1] += from[1];
  }
}

}  // namespace executorch::backends::xnnpack
