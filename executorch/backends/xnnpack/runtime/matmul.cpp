/// Fully connected layers and batched matrix products.
#include <executorch/backends/xnnpack/runtime/integer_weights.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/gemm/gemm.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

constexpr uint32_t kTransposedWeights = 1;

struct Layer {
  const Value &x, &w, &y;
  const Value* bias;
  bool transposed;
  int64_t k, n;

  Layer(const Graph& graph, const Node& node)
      : x(graph.in(node, 0)),
        w(graph.in(node, 1)),
        y(graph.out(node)),
        bias(graph.has_input(node, 2) ? &graph.in(node, 2) : nullptr),
        transposed(node.flags == kTransposedWeights),
        k(w.shape[transposed ? 0 : 1]),
        n(w.shape[transposed ? 1 : 0]) {}
  int64_t m() const { return x.shape.product(0, x.shape.rank - 1); }
};

cpu::Activation bounds(const Node& node) {
  if (node.low == -std::numeric_limits<float>::infinity() &&
      node.high == std::numeric_limits<float>::infinity()) {
    return {};
  }
  return {cpu::Activation::Kind::Clamp, node.low, node.high};
}

template <class T>
bool run_float(const Layer& layer, const Node& node, cpu::Scratch& scratch) {
  cpu::Gemm<T> gemm;
  gemm.m = layer.m();
  gemm.n = layer.n;
  gemm.k = layer.k;
  gemm.a = {layer.x.as<T>(), layer.k, 1};
  gemm.b = layer.transposed ? cpu::Matrix<const T>{layer.w.as<T>(), layer.n, 1}
                            : cpu::Matrix<const T>{layer.w.as<T>(), 1, layer.k};
  gemm.c = {layer.y.as<T>(), layer.n, 1};
  if (layer.bias != nullptr) gemm.addend = {layer.bias->as<T>(), 0, 1};
  gemm.act = bounds(node);
  return gemm.run(scratch);
}

/// Reads elements [first, first + n) as floats, into scratch memory unless they are floats. False
/// if scratch memory is refused.
bool floats(const Value& value, int64_t first, int64_t n, cpu::Scratch& scratch,
            const float*& result) {
  if (value.type == Type::fp32) {
    result = value.as<float>() + first;
    return true;
  }
  float* const room = scratch.array<float>(n);
  if (room == nullptr) return false;
  result = room;
  for (int64_t i = 0; i < n; i += kRun) read_run(value, first + i, std::min(kRun, n - i), room + i);
  return true;
}

/// Operands of several floating types: in float, a block of output channels after the other.
bool run_mixed(const Layer& layer, const Node& node, cpu::Scratch& scratch) {
  constexpr int64_t kChannels = 64;
  const int64_t m = layer.m(), k = layer.k, n = layer.n;
  float* const result = scratch.array<float>(cpu::Size(m) * kChannels);
  const float *x = nullptr, *bias = nullptr, *all_weights = nullptr;
  if (result == nullptr || !floats(layer.x, 0, m * k, scratch, x) ||
      (layer.bias != nullptr && !floats(*layer.bias, 0, n, scratch, bias)) ||
      (layer.transposed && !floats(layer.w, 0, n * k, scratch, all_weights))) {
    return false;
  }
  cpu::Gemm<float> gemm;
  gemm.m = m;
  gemm.k = k;
  gemm.a = {x, k, 1};
  gemm.c = {result, kChannels, 1};
  gemm.act = bounds(node);
  gemm.addend = {bias, 0, 1};
  for (int64_t j = 0; j < n; j += kChannels) {
    gemm.n = std::min(kChannels, n - j);
    const cpu::Scratch::Frame block(scratch);
    if (layer.transposed) {
      gemm.b = {all_weights + j, n, 1};
    } else {
      gemm.b = {nullptr, 1, k};
      if (!floats(layer.w, j * k, gemm.n * k, scratch, gemm.b.data)) return false;
    }
    if (!gemm.run(scratch)) return false;
    for (int64_t i = 0; i < m; ++i) {
      const float* row = result + i * kChannels;
      float* to = place_of_run(layer.y, i * n + j, nullptr);
      if (layer.y.type == Type::fp32) std::copy_n(row, gemm.n, to);
      write_run(layer.y, i * n + j, gemm.n, row);
    }
    if (gemm.addend.data != nullptr) gemm.addend.data += kChannels;
  }
  return true;
}

bool run_integer(const Graph& graph, const Layer& layer, const Node& node, cpu::Scratch& scratch) {
  cpu::Int8Gemm gemm = integer_product(graph, node, layer.n, layer.k, layer.w.data);
  gemm.m = layer.m();
  gemm.a = layer.x.as<int8_t>();
  const RowQuantization all{layer.x.scale, layer.x.zero_point};
  const bool dynamic = layer.x.type == Type::qdint8;
  gemm.rows = dynamic ? layer.x.row_quantization() : &all;
  gemm.rows_share = dynamic ? 1 : gemm.m;
  gemm.c = layer.y.data;
  return gemm.run(scratch);
}

/// Leading dims of a batched product: how many, and the operands' matrix of each.
struct Batch {
  const Shape &a, &b, &y;

  int64_t count() const { return y.product(0, y.rank - 2); }
  int64_t matrix_of(const Shape& operand, int64_t index) const {
    int64_t at = 0, step = 1;
    for (size_t d = 2; d < y.rank; ++d) {
      const int64_t i = index % y.from_end(d);
      index /= y.from_end(d);
      if (operand.from_end(d) != 1) at += i * step;
      step *= operand.from_end(d);
    }
    return at;
  }
  /// Returns 1 if the operand's matrices are used one after the other, 0 if one matrix is used for
  /// all, and -1 if neither holds.
  int step(const Shape& operand) const {
    const int64_t own = operand.product(0, operand.rank - 2);
    return own == count() ? 1 : own == 1 ? 0 : -1;
  }
};

template <class T>
bool run_batches(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  const bool transposed = node.flags == kTransposedWeights;
  cpu::Gemm<T> gemm;
  gemm.m = y.shape.from_end(1);
  gemm.n = y.shape.last();
  gemm.k = a.shape.last();
  gemm.a = {a.as<T>(), gemm.k, 1};
  gemm.b = transposed ? cpu::Matrix<const T>{b.as<T>(), 1, gemm.k}
                      : cpu::Matrix<const T>{b.as<T>(), gemm.n, 1};
  gemm.c = {y.as<T>(), gemm.n, 1};
  gemm.act = bounds(node);
  const Batch batch{a.shape, b.shape, y.shape};
  const int64_t a_size = gemm.m * gemm.k, b_size = gemm.k * gemm.n, y_size = gemm.m * gemm.n;
  const int a_step = batch.step(a.shape), b_step = batch.step(b.shape);
  if (a_step >= 0 && b_step >= 0) {
    gemm.batch = batch.count();
    gemm.a_batch = a_step * a_size;
    gemm.b_batch = b_step * b_size;
    gemm.c_batch = y_size;
    return gemm.run(scratch);
  }
  for (int64_t i = 0; i < batch.count(); ++i) {
    gemm.a.data = a.as<T>() + batch.matrix_of(a.shape, i) * a_size;
    gemm.b.data = b.as<T>() + batch.matrix_of(b.shape, i) * b_size;
    gemm.c.data = y.as<T>() + i * y_size;
    if (!gemm.run(scratch)) return false;
  }
  return true;
}

/// Constant weights of a batched product: matrices of n output channels with k weights each.
struct IntegerMatrices {
  const Value& w;
  bool transposed;
  int64_t n, k, count;

  IntegerMatrices(const Graph& graph, const Node& node)
      : w(graph.in(node, 1)),
        transposed(node.flags == kTransposedWeights),
        n(w.shape.from_end(transposed ? 1 : 0)),
        k(w.shape.from_end(transposed ? 0 : 1)),
        count(w.shape.product(0, w.shape.rank - 2)) {}
  /// Channel by channel.
  const int8_t* rows(const Node& node) const {
    return transposed ? w.as<int8_t>() : node.transposed_weights.data();
  }
};

/// Rows of a by constant weights.
bool run_integer_batches(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  const IntegerMatrices w(graph, node);
  const int64_t m = y.shape.from_end(1), n = w.n, k = w.k;
  const cpu::Int8Gemm all = integer_product(graph, node, w.count * n, k, w.rows(node));
  const Batch batch{a.shape, b.shape, y.shape};
  for (int64_t i = 0; i < batch.count(); ++i) {
    const int64_t left = batch.matrix_of(a.shape, i), right = batch.matrix_of(b.shape, i);
    cpu::Int8Gemm gemm = all;
    gemm.m = m;
    gemm.n = gemm.ldc = n;
    gemm.a = a.as<int8_t>() + left * m * k;
    gemm.rows = a.row_quantization() + left * m;
    gemm.b.data += right * n * k;
    gemm.b.scales += right * n;
    gemm.sums += right * n;
    gemm.c = y.as<uint8_t>() + i * m * n * static_cast<int64_t>(element_size(y.type));
    if (!gemm.run(scratch)) return false;
  }
  return true;
}

Error check_fully_connected(const Graph& graph, const Node& node) {
  ET_XNN_REQUIRE(graph.in(node, 1).shape.rank == 2 && graph.in(node).shape.rank >= 1, node,
                 "ranks %u and %u, expected at least 1 and 2", graph.in(node).shape.rank,
                 graph.in(node, 1).shape.rank);
  ET_XNN_REQUIRE(node.flags <= kTransposedWeights, node, "unknown flags 0x%x", node.flags);
  const Layer layer(graph, node);
  const bool floating = is_float(layer.x.type) && is_float(layer.w.type) &&
                        is_float(layer.y.type) &&
                        (layer.bias == nullptr || is_float(layer.bias->type));
  if (floating) return Error::Ok;
  ET_XNN_REQUIRE(!layer.transposed, node, "[in, out] integer weights");
  ET_XNN_REQUIRE(layer.x.type != Type::qdint8 || layer.x.row_dims == 1, node,
                 "rows of %u dims, expected 1", layer.x.row_dims);
  return check_integer_product(graph, node, layer.n, layer.k, 0);
}

bool infer_fully_connected(Graph& graph, const Node& node) {
  const Layer layer(graph, node);
  if (layer.x.shape.rank == 0 || layer.x.shape.last() != layer.k) return false;
  if (layer.bias != nullptr && layer.bias->shape.numel() != layer.n) return false;
  const int64_t n = layer.n;
  Shape& y = graph.out(node).shape;
  y = layer.x.shape;
  y[y.rank - 1] = n;
  return true;
}

void prepare_fully_connected(const Graph& graph, Node& node) {
  const Layer layer(graph, node);
  if (is_float(layer.w.type)) return;
  prepare_integer_product(graph, node, layer.n, layer.k, layer.w.data);
}

bool run_fully_connected(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Layer layer(graph, node);
  if (!is_float(layer.w.type)) return run_integer(graph, layer, node, scratch);
  const Type type = layer.x.type;
  const bool same = layer.w.type == type && layer.y.type == type &&
                    (layer.bias == nullptr || layer.bias->type == type);
  if (!same) return run_mixed(layer, node, scratch);
  if (type == Type::fp32) return run_float<float>(layer, node, scratch);
  if (type == Type::fp16) return run_float<cpu::F16>(layer, node, scratch);
  return run_float<cpu::BF16>(layer, node, scratch);
}

Error check_batch_matmul(const Graph& graph, const Node& node) {
  const Value &a = graph.in(node, 0), &b = graph.in(node, 1), &y = graph.out(node);
  ET_XNN_REQUIRE(node.flags <= kTransposedWeights, node, "unknown flags 0x%x", node.flags);
  if (is_float(a.type) && a.type == b.type && a.type == y.type) return Error::Ok;
  ET_XNN_REQUIRE(
      a.type == Type::qdint8 && a.row_dims == 1 && b.type == Type::qcint8 && b.shape.rank >= 2,
      node, "%s times %s to %s, expected one floating type, or rows of qdint8 by qcint8",
      name_of(a.type), name_of(b.type), name_of(y.type));
  const bool transposed = node.flags == kTransposedWeights;
  return check_integer_product(
      graph, node, b.shape.from_end(transposed ? 1 : 0), b.shape.from_end(transposed ? 0 : 1),
      b.shape.rank - (transposed ? 2 : 1), b.shape.product(0, b.shape.rank - 2));
}

bool infer_batch_matmul(Graph& graph, const Node& node) {
  const Shape &a = graph.in(node, 0).shape, &b = graph.in(node, 1).shape;
  if (a.rank < 2 || b.rank < 2) return false;
  const bool transposed = node.flags == kTransposedWeights;
  if (a.last() != b.from_end(transposed ? 0 : 1)) return false;
  Shape y;
  y.rank = std::max(a.rank, b.rank);
  for (size_t d = 2; d < y.rank; ++d) {
    const int64_t p = a.from_end(d), q = b.from_end(d);
    if (p != q && p != 1 && q != 1) return false;
    y[y.rank - 1 - d] = p == 1 ? q : p;
  }
  y[y.rank - 2] = a.from_end(1);
  y[y.rank - 1] = b.from_end(transposed ? 1 : 0);
  graph.out(node).shape = y;
  return true;
}

void prepare_batch_matmul(const Graph& graph, Node& node) {
  if (is_float(graph.in(node).type)) return;
  const IntegerMatrices w(graph, node);
  const int64_t n = w.n, k = w.k, total = w.count * n * k;
  if (!w.transposed) {
    node.transposed_weights.resize(static_cast<size_t>(total));
    for (int64_t i = 0; i < total; ++i) {
      const int64_t from = i / (n * k) * n * k + i % k * n + i / k % n;
      node.transposed_weights[static_cast<size_t>(i)] = w.w.as<int8_t>()[from];
    }
  }
  prepare_integer_product(graph, node, w.count * n, k, w.rows(node));
}

bool run_batch_matmul(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Type type = graph.in(node).type;
  if (type == Type::fp32) return run_batches<float>(graph, node, scratch);
  if (type == Type::fp16) return run_batches<cpu::F16>(graph, node, scratch);
  if (type == Type::bf16) return run_batches<cpu::BF16>(graph, node, scratch);
  return run_integer_batches(graph, node, scratch);
}

constexpr Operation kOperations[] = {
    {.kind = Kind::XNNFullyConnected,
     .form = Form::FullyConnected,
     .check = check_fully_connected,
     .infer = infer_fully_connected,
     .prepare = prepare_fully_connected,
     .run = run_fully_connected},
    {.kind = Kind::XNNBatchMatrixMultiply,
     .form = Form::BatchMatrixMultiply,
     .check = check_batch_matmul,
     .infer = infer_batch_matmul,
     .prepare = prepare_batch_matmul,
     .run = run_batch_matmul},
};

}  // namespace

Operations matmul_operations() {
  return kOperations;
}

}  // namespace executorch::backends::xnnpack
