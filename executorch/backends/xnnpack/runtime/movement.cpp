/// Nodes that move elements of any type: transpose, reshape, copy, slice, pad, concatenate.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/copy.h>

#include <algorithm>
#include <cstring>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

bool can_move(const Value& x, const Value& y) {
  return (has_runs(x.type) || x.type == Type::int32) && same_type(x, y);
}

using Strides = std::array<int64_t, kMaxRank>;

Strides strides_of(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (size_t d = shape.rank; d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

int64_t dot(const Strides& strides, const std::array<uint32_t, kMaxRank>& index) {
  int64_t sum = 0;
  for (size_t d = 0; d < kMaxRank; ++d) sum += strides[d] * index[d];
  return sum;
}

/// Copies a box of elements from x to y. Each array has its own offset of the first element and its
/// own step (`x_step`, `y_step`) in each dim.
void copy_box(const Shape& box, const Value& x, int64_t x_first, const Strides& x_step,
              const Value& y, int64_t y_first, const Strides& y_step) {
  if (box.numel() == 0) return;
  cpu::Copy::Dim dims[kMaxRank];
  cpu::Copy copy;
  for (size_t d = 0; d < box.rank; ++d) {
    if (box[d] == 1) continue;
    cpu::Copy::Dim* outer = copy.n_dims == 0 ? nullptr : &dims[copy.n_dims - 1];
    if (outer != nullptr && outer->src == x_step[d] * box[d] && outer->dst == y_step[d] * box[d]) {
      *outer = {outer->size * box[d], x_step[d], y_step[d]};
    } else {
      dims[copy.n_dims++] = {box[d], x_step[d], y_step[d]};
    }
  }
  const size_t size = element_size(x.type);
  copy.dims = dims;
  copy.element_size = size;
  copy.src = x.as<uint8_t>() + static_cast<size_t>(x_first) * size;
  copy.dst = y.as<uint8_t>() + static_cast<size_t>(y_first) * size;
  copy.run();
}

void fill(const Value& y, float number) {
  const int64_t n = y.shape.numel();
  if (is_affine(y.type)) {
    std::memset(y.data, quantize(number, y), static_cast<size_t>(n));
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

Error check_moved(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(can_move(x, y), node, "%s to %s, expected the same with the same quantization",
                 name_of(x.type), name_of(y.type));
  ET_XNN_REQUIRE(node.operation->form != Form::Pad || has_runs(x.type), node, "%s",
                 name_of(x.type));
  return Error::Ok;
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

bool run_transpose(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value &x = graph.in(node), &y = graph.out(node);
  const Strides own = strides_of(x.shape);
  Strides transposed{};
  for (size_t d = 0; d < x.shape.rank; ++d) transposed[d] = own[node.list[d]];
  copy_box(y.shape, x, 0, transposed, y, 0, strides_of(y.shape));
  return true;
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

bool run_slice(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value &x = graph.in(node), &y = graph.out(node);
  const Strides from = strides_of(x.shape);
  copy_box(y.shape, x, dot(from, node.list), from, y, 0, strides_of(y.shape));
  return true;
}

bool infer_pad(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  if (node.n_list != x.rank) return false;
  Shape y{x.rank, {}};
  for (uint32_t i = 0; i < x.rank; ++i) y[i] = x[i] + node.list[i] + node.list2[i];
  graph.out(node).shape = y;
  return true;
}

bool run_pad(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value &x = graph.in(node), &y = graph.out(node);
  fill(y, node.number);
  const Strides to = strides_of(y.shape);
  copy_box(x.shape, x, 0, strides_of(x.shape), y, dot(to, node.list), to);
  return true;
}

Error check_concatenate(const Graph& graph, const Node& node) {
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    const Value& x = graph.in(node, i);
    ET_XNN_REQUIRE(can_move(x, graph.out(node)) && x.shape.rank == graph.in(node).shape.rank, node,
                   "input %u is %s of rank %u, the output %s; expected the same", i,
                   name_of(x.type), x.shape.rank, name_of(graph.out(node).type));
  }
  // Payloads write a negative axis, which counts from the innermost dim, as 2^32 plus the axis.
  const auto rank = static_cast<int32_t>(graph.in(node).shape.rank);
  const auto axis = static_cast<int32_t>(node.axis);
  ET_XNN_REQUIRE(axis >= -rank && axis < rank, node, "axis %d of rank %d", axis, rank);
  return Error::Ok;
}

size_t axis_of(const Node& node, const Shape& shape) {
  const auto axis = static_cast<int32_t>(node.axis);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int32_t>(shape.rank) : axis);
}

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

bool run_concatenate(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value& y = graph.out(node);
  const size_t axis = axis_of(node, y.shape);
  const Strides to = strides_of(y.shape);
  int64_t first = 0;
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    const Value& x = graph.in(node, i);
    copy_box(x.shape, x, 0, strides_of(x.shape), y, first, to);
    first += x.shape[axis] * to[axis];
  }
  return true;
}

constexpr Operation view(Kind kind, Form form, bool (*infer)(Graph&, const Node&)) {
  return {.kind = kind,
          .form = form,
          .check = check_moved,
          .infer = infer,
          .run = run_copy,
          .is_view = true,
          .is_elementwise = form == Form::Unary};
}
constexpr Operation concatenate(Kind kind) {
  return {.kind = kind,
          .form = Form::Concatenate,
          .check = check_concatenate,
          .infer = infer_concatenate,
          .run = run_concatenate};
}

constexpr Operation kOperations[] = {
    view(Kind::XNNCopy, Form::Unary, infer_same),
    view(Kind::XNNStaticReshape, Form::Reshape, infer_reshape),
    {.kind = Kind::XNNStaticTranspose,
     .form = Form::Transpose,
     .check = check_transpose,
     .infer = infer_transpose,
     .run = run_transpose},
    {.kind = Kind::XNNStaticSlice,
     .form = Form::Slice,
     .check = check_moved,
     .infer = infer_slice,
     .run = run_slice},
    {.kind = Kind::XNNStaticConstantPad,
     .form = Form::Pad,
     .check = check_moved,
     .infer = infer_pad,
     .run = run_pad},
    concatenate(Kind::XNNConcatenate2),
    concatenate(Kind::XNNConcatenate3),
    concatenate(Kind::XNNConcatenate4),
    concatenate(Kind::XNNConcatenate5),
};

}  // namespace

Operations movement_operations() {
  return kOperations;
}

bool run_copy(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value &x = graph.in(node), &y = graph.out(node);
  if (x.data != y.data && x.shape.numel() != 0) {
    std::memmove(y.data, x.data, static_cast<size_t>(nbytes(x)));
  }
  return true;
}

}  // namespace executorch::backends::xnnpack
