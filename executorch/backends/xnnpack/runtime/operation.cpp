#include <executorch/backends/xnnpack/runtime/operation.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

constexpr Operation unary(const char* name, Form form = Form::Unary) {
  return {.name = name,
          .form = form,
          .check = check_unary,
          .infer = infer_same,
          .run = run_unary,
          .in_place = true};
}
constexpr Operation binary(const char* name) {
  return {.name = name,
          .form = Form::Binary,
          .check = check_binary,
          .infer = infer_binary,
          .run = run_binary};
}
constexpr Operation pooling(const char* name) {
  return {.name = name,
          .form = Form::Pooling,
          .check = check_pooling,
          .infer = infer_pooling,
          .run = run_pooling};
}
constexpr Operation concatenate(const char* name) {
  return {.name = name,
          .form = Form::Concatenate,
          .check = check_concatenate,
          .infer = infer_concatenate,
          .run = run_concatenate};
}
constexpr Operation view(const char* name, Form form, bool (*infer)(Graph&, const Node&)) {
  return {.name = name,
          .form = form,
          .check = check_moved,
          .infer = infer,
          .run = run_copy,
          .is_view = true};
}
constexpr Operation convolution(const char* name) {
  return {.name = name,
          .form = Form::Convolution,
          .check = check_convolution,
          .infer = infer_convolution,
          .prepare = prepare_convolution,
          .run = run_convolution};
}

/// In the order of the union's members.
constexpr Operation kOperations[] = {
    {.name = "none", .form = Form::NotSupported},
    binary("Add"),
    {.name = "FullyConnected",
     .form = Form::FullyConnected,
     .check = check_fully_connected,
     .infer = infer_fully_connected,
     .prepare = prepare_fully_connected,
     .run = run_fully_connected},
    {.name = "Softmax",
     .form = Form::Unary,
     .check = check_softmax,
     .infer = infer_same,
     .run = run_softmax,
     .in_place = true},
    unary("Sigmoid"),
    {.name = "StaticTranspose",
     .form = Form::Transpose,
     .check = check_transpose,
     .infer = infer_transpose,
     .run = run_transpose},
    unary("Clamp"),
    convolution("Conv2d"),
    binary("Div"),
    {.name = "StaticResizeBilinear2D",
     .form = Form::Resize,
     .check = check_resize,
     .infer = infer_resize,
     .run = run_resize},
    {.name = "StaticConstantPad",
     .form = Form::Pad,
     .check = check_moved,
     .infer = infer_pad,
     .run = run_pad},
    pooling("AvgPooling2d"),
    binary("Minimum"),
    convolution("DepthwiseConv2d"),
    pooling("MaxPooling2d"),
    binary("Multiply"),
    binary("Subtract"),
    unary("Floor"),
    {.name = "Convert",
     .form = Form::Unary,
     .check = check_convert,
     .infer = infer_same,
     .run = run_convert},
    {.name = "GlobalAvgPooling2d",
     .form = Form::Unary,
     .check = check_pooling,
     .infer = infer_global_pooling,
     .run = run_global_pooling},
    view("StaticReshape", Form::Reshape, infer_reshape),
    {.name = "ArgMaxPooling2d",
     .form = Form::ArgMaxPooling,
     .check = check_arg_max,
     .infer = infer_pooling,
     .run = run_arg_max},
    unary("SquareRoot"),
    unary("Ceiling"),
    unary("Hardswish"),
    unary("LeakyReLU", Form::Slope),
    binary("Maximum"),
    unary("Negate"),
    unary("Square"),
    unary("ELU", Form::Alpha),
    unary("Abs"),
    {.name = "PReLU",
     .form = Form::Binary,
     .check = check_binary,
     .infer = infer_prelu,
     .run = run_binary},
    concatenate("Concatenate2"),
    concatenate("Concatenate3"),
    concatenate("Concatenate4"),
    {.name = "StaticSlice",
     .form = Form::Slice,
     .check = check_moved,
     .infer = infer_slice,
     .run = run_slice},
    // No exporter writes it.
    {.name = "ScaledDotProductAttention", .form = Form::NotSupported},
    {.name = "BatchMatrixMultiply",
     .form = Form::Binary,
     .check = check_batch_matmul,
     .infer = infer_batch_matmul,
     .prepare = prepare_batch_matmul,
     .run = run_batch_matmul},
    concatenate("Concatenate5"),
    convolution("ConvTranspose2d"),
    unary("ReciprocalSquareRoot"),
    unary("Log"),
    unary("Gelu"),
    unary("Tanh"),
    unary("Exp"),
    unary("Sin"),
    view("Copy", Form::Unary, infer_same),
    unary("Cos"),
};
static_assert(std::size(kOperations) == static_cast<size_t>(fb_xnnpack::XNodeUnion::MAX) + 1);

}  // namespace

const Operation* find_operation(fb_xnnpack::XNodeUnion kind) {
  const auto i = static_cast<size_t>(kind);
  return i < std::size(kOperations) ? &kOperations[i] : nullptr;
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
           node.operation->name, y.rank, ranks[i]);
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
           node.operation->name);
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
