#include <executorch/backends/xnnpack/runtime/integer_weights.h>
#include <executorch/backends/xnnpack/runtime/operation.h>

#include <new>

namespace executorch::backends::xnnpack {
namespace {

// Sums of products of 8-bit numbers fit 32 bits.
constexpr int64_t kMaxTerms = 65'000;

/// A type that has a scale per channel must have `n` scales.
bool is_weight(const Value& w, int64_t n, uint32_t channel_dim) {
  switch (w.type) {
    case Type::qint8:
      return w.zero_point == 0;
    case Type::qcint8:
      return w.channel_dim == channel_dim && w.n_channel_scales == n;
    case Type::qcint4:
      return w.shape.rank == 2 && w.channel_dim == channel_dim;
    case Type::qbint4:
      return channel_dim == 0;
    default:
      return false;
  }
}

}  // namespace

Error check_integer_product(const Graph& graph, const Node& node, int64_t n, int64_t k,
                            uint32_t channel_dim, int64_t matrices) {
  const int64_t n_scales = n * matrices;
  const Value &x = graph.in(node, 0), &w = graph.in(node, 1), &y = graph.out(node);
  const Value* bias = graph.has_input(node, 2) ? &graph.in(node, 2) : nullptr;
  const bool dynamic = x.type == Type::qdint8 && is_float(y.type) && w.type != Type::qint8 &&
                       (bias == nullptr || bias->type == Type::fp32);
  const bool fixed = is_affine(x.type) && y.type == x.type &&
                     (w.type == Type::qcint8 || w.type == Type::qint8) &&
                     (bias == nullptr || bias->type == Type::qint32 || bias->type == Type::qcint32);
  ET_XNN_REQUIRE(dynamic || fixed, node, "%s with weights %s and bias %s to %s is not supported",
                 name_of(x.type), name_of(w.type), bias == nullptr ? "none" : name_of(bias->type),
                 name_of(y.type));
  ET_XNN_REQUIRE(w.place == Value::Place::Constant && is_weight(w, n_scales, channel_dim), node,
                 "integer weights that are not constant, or not symmetric with a scale for each "
                 "output channel");
  ET_XNN_REQUIRE(
      bias == nullptr || (bias->place == Value::Place::Constant && bias->shape.numel() == n), node,
      "the bias is not a constant of one number for each output channel");
  ET_XNN_REQUIRE(k <= kMaxTerms, node, "sums of %lld integer products, expected at most %lld",
                 static_cast<long long>(k), static_cast<long long>(kMaxTerms));
  return Error::Ok;
}

namespace {

cpu::Int8Weights weights_of(const Value& w, const Node& node, int64_t k, const void* rows) {
  cpu::Int8Weights b;
  b.data = static_cast<const uint8_t*>(rows);
  b.nibbles = w.type == Type::qcint4 || w.type == Type::qbint4;
  b.row_bytes = b.nibbles ? (k + 1) / 2 : k;
  if (w.type == Type::qbint4) {
    b.group_scales = reinterpret_cast<const cpu::BF16*>(w.group_scales);
    b.group_size = w.group_size;
  } else {
    b.scales = w.type == Type::qint8 ? node.weight_scales.data() : w.channel_scales;
  }
  return b;
}

}  // namespace

void prepare_integer_product(const Graph& graph, Node& node, int64_t n, int64_t k,
                             const void* rows) {
  const Value& w = graph.in(node, 1);
  const auto size = static_cast<size_t>(n);
  if (w.type == Type::qint8) node.weight_scales.assign(size, w.scale);
  if (w.type == Type::qbint4) {
    node.group_sums.resize(size);
  } else {
    node.weight_sums.resize(size);
  }
  cpu::HeapScratch scratch;
  if (!cpu::sum_rows(weights_of(w, node, k, rows), n, k, node.weight_sums.data(),
                     node.group_sums.data(), scratch)) {
    throw std::bad_alloc();
  }
}

cpu::Int8Gemm integer_product(const Graph& graph, const Node& node, int64_t n, int64_t k,
                              const void* rows) {
  const Value &w = graph.in(node, 1), &y = graph.out(node);
  cpu::Int8Gemm gemm;
  gemm.n = n;
  gemm.k = gemm.lda = k;
  gemm.ldc = n;
  gemm.b = weights_of(w, node, k, rows);
  gemm.unsigned_a = graph.in(node, 0).type == Type::quint8;
  gemm.sums = node.weight_sums.data();
  gemm.group_sums = node.group_sums.data();
  if (graph.has_input(node, 2)) {
    const Value& bias = graph.in(node, 2);
    if (bias.type == Type::fp32) {
      gemm.bias = bias.as<float>();
    } else {
      gemm.integer_bias = bias.as<int32_t>();
    }
  }
  gemm.low = node.low;
  gemm.high = node.high;
  gemm.out = y.type == Type::fp32    ? cpu::Int8Gemm::Out::F32
             : y.type == Type::fp16  ? cpu::Int8Gemm::Out::F16
             : y.type == Type::bf16  ? cpu::Int8Gemm::Out::BF16
             : y.type == Type::qint8 ? cpu::Int8Gemm::Out::Int8
                                     : cpu::Int8Gemm::Out::UInt8;
  gemm.c_quantization = {y.scale, y.zero_point};
  return gemm;
}

}  // namespace executorch::backends::xnnpack
