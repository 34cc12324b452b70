/// Functions of one element, softmax, and conversions between types.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;
using ActivationKind = cpu::Activation::Kind;

constexpr int64_t kElementsPerTask = 16 * kRun;

template <class F>
void each(const float* x, float* y, int64_t n, const F& f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

void apply(ActivationKind kind, const float* x, float* y, int64_t n) {
  cpu::apply(cpu::Activation{kind}, x, y, n);
}

void compute(const Node& node, const float* x, float* y, int64_t n) {
  const float number = node.number;
  switch (node.kind) {
    case Kind::XNNSigmoid:
      return apply(ActivationKind::Sigmoid, x, y, n);
    case Kind::XNNTanh:
      return apply(ActivationKind::Tanh, x, y, n);
    case Kind::XNNGelu:
      return apply(ActivationKind::Gelu, x, y, n);
    case Kind::XNNHardswish:
      return apply(ActivationKind::HardSwish, x, y, n);
    case Kind::XNNClamp:
      return cpu::apply({ActivationKind::Clamp, node.low, node.high}, x, y, n);
    case Kind::XNNExp:
      return cpu::apply(cpu::Function::Exp, cpu::Type::F32, x, y, n);
    case Kind::XNNFloor:
      return each(x, y, n, [](float v) { return std::floor(v); });
    case Kind::XNNCeiling:
      return each(x, y, n, [](float v) { return std::ceil(v); });
    case Kind::XNNSquareRoot:
      return each(x, y, n, [](float v) { return std::sqrt(v); });
    case Kind::XNNReciprocalSquareRoot:
      return each(x, y, n, [](float v) { return 1 / std::sqrt(v); });
    case Kind::XNNNegate:
      return each(x, y, n, [](float v) { return -v; });
    case Kind::XNNSquare:
      return each(x, y, n, [](float v) { return v * v; });
    case Kind::XNNAbs:
      return each(x, y, n, [](float v) { return std::fabs(v); });
    case Kind::XNNLeakyReLU:
      return each(x, y, n, [number](float v) { return v < 0 ? v * number : v; });
    case Kind::XNNELU:
      return each(x, y, n, [number](float v) { return v < 0 ? number * std::expm1(v) : v; });
    case Kind::XNNLog:
      return each(x, y, n, [](float v) { return std::log(v); });
    case Kind::XNNSin:
      return each(x, y, n, [](float v) { return std::sin(v); });
    case Kind::XNNCos:
      return each(x, y, n, [](float v) { return std::cos(v); });
    default:  // a conversion
      if (x != y) std::copy_n(x, n, y);
  }
}

/// Whether there was memory for it.
bool convert_rows(const Value& x, const Value& y, cpu::Scratch& scratch) {
  const int64_t rows = y.rows();
  if (rows == 0) return true;
  const int64_t n = y.shape.numel() / rows;
  const cpu::ThreadScratch<float> rooms(scratch, x.type == Type::fp32 ? 0 : n);
  if (!rooms) return false;
  rooms.parallel_for(rows, std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(n, 1)),
                     [&](int64_t begin, int64_t end, float* room) {
                       for (int64_t r = begin; r < end; ++r) {
                         const float* row = read_run(x, r * n, n, room);
                         y.row_quantization()[r] =
                             cpu::quantize_row(row, n, y.as<int8_t>() + r * n);
                       }
                     });
  return true;
}

}  // namespace

bool infer_same(Graph& graph, const Node& node) {
  graph.out(node).shape = graph.in(node).shape;
  return true;
}

Error check_unary(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(has_runs(x.type) && has_runs(y.type), node, "%s to %s", name_of(x.type),
                 name_of(y.type));
  return Error::Ok;
}

bool run_unary(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value &x = graph.in(node), &y = graph.out(node);
  cpu::parallel_for(x.shape.numel(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    float x_room[kRun], y_room[kRun];
    for (int64_t i = begin; i < end; i += kRun) {
      const int64_t n = std::min(kRun, end - i);
      float* to = place_of_run(y, i, y_room);
      compute(node, read_run(x, i, n, x_room), to, n);
      write_run(y, i, n, to);
    }
  });
  return true;
}

Error check_softmax(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(is_float(x.type) && x.type == y.type, node, "%s to %s, expected one floating type",
                 name_of(x.type), name_of(y.type));
  return Error::Ok;
}

bool run_softmax(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value& x = graph.in(node);
  cpu::Softmax softmax;
  softmax.type = engine_type(x.type);
  softmax.n = x.shape.last();
  softmax.outer = softmax.n == 0 ? 0 : x.shape.numel() / softmax.n;
  softmax.x = x.data;
  softmax.y = graph.out(node).data;
  return softmax.run(scratch);
}

Error check_convert(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  if (y.type != Type::qdint8) return check_unary(graph, node);
  ET_XNN_REQUIRE(is_float(x.type) && x.shape.rank == y.shape.rank, node,
                 "%s of rank %u to qdint8 of rank %u", name_of(x.type), x.shape.rank, y.shape.rank);
  return Error::Ok;
}

bool run_convert(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value &x = graph.in(node), &y = graph.out(node);
  if (y.type == Type::qdint8) return convert_rows(x, y, scratch);
  return (same_type(x, y) ? run_copy : run_unary)(graph, node, scratch);
}

}  // namespace executorch::backends::xnnpack
