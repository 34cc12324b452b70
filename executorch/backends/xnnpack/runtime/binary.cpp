/// Functions of two elements, broadcast as NumPy does.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <optional>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

constexpr int64_t kElementsPerTask = 8 * kRun;

/// The result's dims, merged where both operands go on in the same way; strides in elements, 0
/// where an operand is repeated.
struct Broadcast {
  int rank = 0;
  int64_t extent[kMaxRank], a[kMaxRank], b[kMaxRank];

  Broadcast(const Shape& out, const Shape& x, const Shape& y) {
    int64_t a_step = 1, b_step = 1;
    for (size_t i = 0; i < out.rank; ++i) {  // from the innermost
      const int64_t n = out.from_end(i);
      if (n == 1) continue;
      const int64_t a_stride = x.from_end(i) == 1 ? 0 : a_step;
      const int64_t b_stride = y.from_end(i) == 1 ? 0 : b_step;
      a_step *= x.from_end(i);
      b_step *= y.from_end(i);
      const int inner = rank - 1;
      if (rank > 0 && a_stride == a[inner] * extent[inner] &&
          b_stride == b[inner] * extent[inner]) {
        extent[inner] *= n;
        continue;
      }
      extent[rank] = n;
      a[rank] = a_stride;
      b[rank++] = b_stride;
    }
    if (rank == 0) {
      extent[0] = 1;
      a[0] = b[0] = 0;
      rank = 1;
    }
  }

  /// First elements of the operands for the innermost run `index`.
  void find(int64_t index, int64_t& a_first, int64_t& b_first) const {
    a_first = b_first = 0;
    for (int d = 1; d < rank; ++d) {
      const int64_t i = index % extent[d];
      index /= extent[d];
      a_first += i * a[d];
      b_first += i * b[d];
    }
  }
};

template <class F>
void apply(const float* a, bool a_moves, const float* b, bool b_moves, float* y, int64_t n) {
  constexpr F f;
  if (a_moves && b_moves) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (a_moves) {
    const float v = *b;
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], v);
  } else {
    const float v = *a;
    for (int64_t i = 0; i < n; ++i) y[i] = f(v, b_moves ? b[i] : *b);
  }
}

/// Computes n elements of y. An operand that does not move is a single element, used for all.
using Function = void (*)(const float* a, bool a_moves, const float* b, bool b_moves, float* y,
                          int64_t n);

using Op = cpu::Int8Binary::Op;

/// Sets `all` to compute the node from 8-bit integers directly, without converting them to floats
/// and back. Returns false if that is impossible.
bool as_integers(const Graph& graph, const Node& node, std::optional<Op> op, cpu::Int8Binary& all) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  if (!op || !is_affine(a.type) || a.type != b.type || !is_affine(y.type)) return false;
  all.op = *op;
  all.a_format = format_of(a);
  all.b_format = format_of(b);
  all.y_format = format_of(y);
  all.low = node.low;
  all.high = node.high;
  return true;
}

Error check_binary(const Graph& graph, const Node& node) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  ET_XNN_REQUIRE(has_runs(a.type) && has_runs(b.type) && has_runs(y.type), node, "%s and %s to %s",
                 name_of(a.type), name_of(b.type), name_of(y.type));
  return Error::Ok;
}

bool infer_binary(Graph& graph, const Node& node) {
  const Shape &a = graph.in(node, 0).shape, &b = graph.in(node, 1).shape;
  Shape& y = graph.out(node).shape;
  y.rank = std::max(a.rank, b.rank);
  for (size_t i = 0; i < y.rank; ++i) {
    const int64_t p = a.from_end(i), q = b.from_end(i);
    if (p != q && p != 1 && q != 1) return false;
    y[y.rank - 1 - i] = p == 1 ? q : p;
  }
  return true;
}

/// `op`: what the function is of integers.
bool run_binary(const Graph& graph, const Node& node, Function function, std::optional<Op> op) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  const int64_t total = y.shape.numel();
  if (total == 0) return true;
  const Broadcast form(y.shape, a.shape, b.shape);
  const int64_t inner = form.extent[0], runs_per_inner = (inner + kRun - 1) / kRun;
  const bool a_moves = form.a[0] != 0, b_moves = form.b[0] != 0;
  const bool bounded = node.low > -std::numeric_limits<float>::infinity() ||
                       node.high < std::numeric_limits<float>::infinity();
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::min(inner, kRun));
  cpu::Int8Binary integers;
  const bool whole = a_moves && b_moves && as_integers(graph, node, op, integers);
  cpu::parallel_for(total / inner * runs_per_inner, grain, [&](int64_t begin, int64_t end) {
    float a_room[kRun], b_room[kRun], y_room[kRun];
    for (int64_t run = begin; run < end; ++run) {
      const int64_t outer = run / runs_per_inner, i = run % runs_per_inner * kRun;
      const int64_t n = std::min(kRun, inner - i), first = outer * inner + i;
      int64_t a_first, b_first;
      form.find(outer, a_first, b_first);
      if (whole) {
        cpu::Int8Binary some = integers;
        some.n = n;
        some.a = a.as<uint8_t>() + a_first + i;
        some.b = b.as<uint8_t>() + b_first + i;
        some.y = y.as<uint8_t>() + first;
        some.run();
        continue;
      }
      const float* p = read_run(a, a_first + (a_moves ? i : 0), a_moves ? n : 1, a_room);
      const float* q = read_run(b, b_first + (b_moves ? i : 0), b_moves ? n : 1, b_room);
      float* to = place_of_run(y, first, y_room);
      function(p, a_moves, q, b_moves, to, n);
      if (bounded) clamp_run(to, n, node.low, node.high);
      write_run(y, first, n, to);
    }
  });
  return true;
}

bool infer_prelu(Graph& graph, const Node& node) {
  return infer_binary(graph, node) && graph.out(node).shape == graph.in(node).shape;
}

/// The operation of a kind that computes F of each pair of elements. kOp is the Op that computes
/// the same from 8-bit integers, if there is one.
template <Op... kOp, class F>
constexpr Operation binary(Kind kind, F, bool (*infer)(Graph&, const Node&) = infer_binary) {
  return {.kind = kind,
          .form = Form::Binary,
          .check = check_binary,
          .infer = infer,
          .run = [](const Graph& graph, const Node& node,
                    cpu::Scratch&) { return run_binary(graph, node, apply<F>, {kOp...}); },
          .is_elementwise = true};
}

constexpr Operation kOperations[] = {
    binary<Op::Add>(Kind::XNNAdd, [](float v, float w) { return v + w; }),
    binary<Op::Subtract>(Kind::XNNSubtract, [](float v, float w) { return v - w; }),
    binary<Op::Multiply>(Kind::XNNMultiply, [](float v, float w) { return v * w; }),
    binary(Kind::XNNDiv, [](float v, float w) { return v / w; }),
    // Of a NaN and a number, both give the NaN.
    binary(Kind::XNNMinimum, [](float v, float w) { return v < w || v != v ? v : w; }),
    binary(Kind::XNNMaximum, [](float v, float w) { return v > w || v != v ? v : w; }),
    binary(
        Kind::XNNPReLU, [](float v, float w) { return v < 0 ? v * w : v; }, infer_prelu),
};

}  // namespace

Operations binary_operations() {
  return kOperations;
}

}  // namespace executorch::backends::xnnpack
