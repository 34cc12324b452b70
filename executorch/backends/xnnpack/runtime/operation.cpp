#include <executorch/backends/xnnpack/runtime/operation.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
const Operation* find_operation(fb_xnnpack::XNodeUnion kind) {
  for (const auto family : {unary_operations, binary_operations, movement_operations,
                            pooling_operations, matmul_operations, convolution_operations}) {
    for (const Operation& each : family()) {
      if (each.kind == kind) return &each;
    }
  }
  return nullptr;
}

const char* name_of(Type type) {
  return fb_xnnpack::EnumNameXNNDatatype(type);
}

size_t element_size(Type type) {
  switch (type) {
    case Type::fp32:
    case Type::int32:
    case Type::qint32:
    case Type::qcint32:
      return 4;
    case Type::fp16:
    case Type::bf16:
      return 2;
    default:
      return 1;
  }
}

int64_t nbytes(const Value& value) {
  const int64_t n = value.shape.numel();
  switch (value.type) {
    case Type::qcint4:
    case Type::qbint4: {
      const int64_t last = value.shape.last();
      return last == 0 ? 0 : n / last * ((last + 1) / 2);
    }
    case Type::qdint8:
      return (n + 7) / 8 * 8 + value.rows() * static_cast<int64_t>(sizeof(RowQuantization));
    default:
      return n * static_cast<int64_t>(element_size(value.type));
  }
}

bool is_float(Type type) {
  return type == Type::fp32 || type == Type::fp16 || type == Type::bf16;
}
bool is_affine(Type type) {
  return type == Type::qint8 || type == Type::quint8;
}

bool same_type(const Value& a, const Value& b) {
  return a.type == b.type &&
         (!is_affine(a.type) || (a.scale == b.scale && a.zero_point == b.zero_point));
}

bool is_sane(const Shape& shape) {
  constexpr int64_t kMaxNumel = int64_t{1} << 40, kMaxExtent = INT32_MAX;
  cpu::Size n = 1;
  for (size_t i = 0; i < shape.rank; ++i) {
    if (shape[i] < 0 || shape[i] > kMaxExtent) return false;
    // An extent counts even beside an empty one, so that products of some of the dims are sane too.
    n *= std::max<int64_t>(shape[i], 1);
  }
  return n.within(kMaxNumel);
}

namespace {

/// The ranks of the outputs are those that the payload says: operations checked them.
bool infer(Graph& graph, const Node& node) {
  uint32_t ranks[2] = {};
  for (size_t i = 0; i < node.n_outputs; ++i) ranks[i] = graph.out(node, i).shape.rank;
  if (!node.operation->infer(graph, node)) return false;
  for (size_t i = 0; i < node.n_outputs; ++i) {
    Shape& y = graph.out(node, i).shape;
    if (y.rank == 0 && ranks[i] == 1) y = {1, {1}};  // how payloads write scalars
    if (!is_sane(y)) return false;
    if (y.rank == ranks[i]) continue;
    ET_LOG(Error, "XnnpackBackend: output %zu of %s has rank %u, expected %u", i,
           node.operation->name(), y.rank, ranks[i]);
    return false;
  }
  return true;
}

}  // namespace

Error infer_shapes(Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (infer(graph, node)) continue;
    ET_LOG(Error, "XnnpackBackend: node %zu (%s): the inputs' shapes do not fit:", i,
           node.operation->name());
    for (size_t j = 0; j < node.n_inputs; ++j) {
      if (!graph.has_input(node, j)) continue;
      const Shape& s = graph.in(node, j).shape;
      ET_LOG(Error, "  input %zu has rank %u, [%lld, %lld, %lld, %lld, %lld, %lld]", j, s.rank,
             static_cast<long long>(s[0]), static_cast<long long>(s[1]),
             static_cast<long long>(s[2]), static_cast<long long>(s[3]),
             static_cast<long long>(s[4]), static_cast<long long>(s[5]));
    }
    return Error::InvalidArgument;
  }
  return Error::Ok;
}

}  // namespace executorch::backends::xnnpack
