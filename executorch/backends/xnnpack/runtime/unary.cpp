/// Functions of one element, softmax, and conversions between types.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;
using ActivationKind = cpu::Activation::Kind;

constexpr int64_t kElementsPerTask = 16 * kRun;

/// Computes n elements of y, which may be x.
using Function = void (*)(const Node& node, const float* x, float* y, int64_t n);

/// Calls F, which takes all elements, one element, or one element and the node's number.
template <class F>
void apply(const Node& node, const float* x, float* y, int64_t n) {
  constexpr F f;
  if constexpr (std::is_invocable_v<F, const Node&, const float*, float*, int64_t>) {
    f(node, x, y, n);
  } else if constexpr (std::is_invocable_v<F, float, float>) {
    const float number = node.number;
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i], number);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  }
}

template <ActivationKind kKind>
constexpr auto activation = [](const Node& node, const float* x, float* y, int64_t n) {
  cpu::apply(cpu::Activation{kKind, node.low, node.high}, x, y, n);
};

template <cpu::Function kFunction>
constexpr auto function = [](const Node&, const float* x, float* y, int64_t n) {
  cpu::apply(kFunction, cpu::Type::F32, x, y, n);
};

constexpr auto elu = [](const Node& node, const float* x, float* y, int64_t n) {
  cpu::apply(cpu::Elu{.negative = node.number}, cpu::Type::F32, x, y, n);
};

void same(const Node&, const float* x, float* y, int64_t n) {
  if (x != y) std::copy_n(x, n, y);
}

bool run_function(const Graph& graph, const Node& node, Function function) {
  const Value &x = graph.in(node), &y = graph.out(node);
  cpu::parallel_for(x.shape.numel(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    float x_room[kRun], y_room[kRun];
    for (int64_t i = begin; i < end; i += kRun) {
      const int64_t n = std::min(kRun, end - i);
      float* to = place_of_run(y, i, y_room);
      function(node, read_run(x, i, n, x_room), to, n);
      write_run(y, i, n, to);
    }
  });
  return true;
}

/// Quantizes each row by its own scale and zero point. Returns false if memory is refused.
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

Error check_unary(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(has_runs(x.type) && has_runs(y.type), node, "%s to %s", name_of(x.type),
                 name_of(y.type));
  return Error::Ok;
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
  return same_type(x, y) ? run_copy(graph, node, scratch) : run_function(graph, node, same);
}

template <class F>
constexpr Operation unary(Kind kind, F, Form form = Form::Unary) {
  return {.kind = kind,
          .form = form,
          .check = check_unary,
          .infer = infer_same,
          .run = [](const Graph& graph, const Node& node,
                    cpu::Scratch&) { return run_function(graph, node, apply<F>); },
          .in_place = true,
          .is_elementwise = true};
}

constexpr Operation kOperations[] = {
    unary(Kind::XNNClamp, activation<ActivationKind::Clamp>),
    unary(Kind::XNNGelu, activation<ActivationKind::Gelu>),
    unary(Kind::XNNHardswish, activation<ActivationKind::HardSwish>),
    unary(Kind::XNNSigmoid, activation<ActivationKind::Sigmoid>),
    unary(Kind::XNNTanh, activation<ActivationKind::Tanh>),
    unary(Kind::XNNExp, function<cpu::Function::Exp>),
    unary(Kind::XNNAbs, [](float v) { return std::fabs(v); }),
    unary(Kind::XNNCeiling, [](float v) { return std::ceil(v); }),
    unary(Kind::XNNCos, function<cpu::Function::Cos>),
    unary(Kind::XNNFloor, [](float v) { return std::floor(v); }),
    unary(Kind::XNNLog, function<cpu::Function::Log>),
    unary(Kind::XNNNegate, [](float v) { return -v; }),
    unary(Kind::XNNReciprocalSquareRoot, function<cpu::Function::Rsqrt>),
    unary(Kind::XNNSin, function<cpu::Function::Sin>),
    unary(Kind::XNNSquare, [](float v) { return v * v; }),
    unary(Kind::XNNSquareRoot, function<cpu::Function::Sqrt>),
    unary(
        Kind::XNNLeakyReLU, [](float v, float slope) { return v < 0 ? v * slope : v; },
        Form::Slope),
    unary(Kind::XNNELU, elu, Form::Alpha),
    {.kind = Kind::XNNSoftmax,
     .form = Form::Unary,
     .check = check_softmax,
     .infer = infer_same,
     .run = run_softmax,
     .in_place = true},
    {.kind = Kind::XNNConvert,
     .form = Form::Unary,
     .check = check_convert,
     .infer = infer_same,
     .run = run_convert},
};

}  // namespace

Operations unary_operations() {
  return kOperations;
}

bool infer_same(Graph& graph, const Node& node) {
  graph.out(node).shape = graph.in(node).shape;
  return true;
}

}  // namespace executorch::backends::xnnpack
