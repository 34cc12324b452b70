#include <executorch/backends/xnnpack/runtime/node_report.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/platform.h>

#include <algorithm>
#include <iterator>

namespace executorch::backends::xnnpack {
namespace {

using aten::ScalarType;
using Kind = fb_xnnpack::XNodeUnion;

struct Cost {
  const char* family;
  int64_t flop;
};

Cost cost_of(const Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const int64_t out = graph.out(node).shape.numel();
  const Window& w = node.window;
  switch (node.operation->form) {
    case Form::FullyConnected:
      return {"matmul", 2 * out * x.last()};
    case Form::Convolution: {
      const bool transposed = node.kind == Kind::XNNConvTranspose2d;
      const bool depthwise = node.kind == Kind::XNNDepthwiseConv2d;
      const int64_t channels = transposed ? node.group_outputs : depthwise ? 1 : node.group_inputs;
      return {"convolution", 2 * (transposed ? x.numel() : out) * w.size[0] * w.size[1] * channels};
    }
    case Form::Pooling:
    case Form::ArgMaxPooling:
      return {"pooling", out * w.size[0] * w.size[1]};
    case Form::Concatenate:
    case Form::Transpose:
    case Form::Reshape:
    case Form::Slice:
    case Form::Pad:
      return {"copy", 0};
    default:
      break;
  }
  switch (node.kind) {
    case Kind::XNNBatchMatrixMultiply:
      return {"matmul", 2 * out * x.last()};
    case Kind::XNNSoftmax:
      return {"normalization", 5 * out};
    case Kind::XNNGlobalAvgPooling2d:
      return {"reduction", x.numel()};
    case Kind::XNNCopy:
      return {"copy", 0};
    default:
      return {"elementwise", out};
  }
}

ScalarType scalar_type(Type type) {
  switch (type) {
    case Type::fp16:
      return ScalarType::Half;
    case Type::bf16:
      return ScalarType::BFloat16;
    case Type::qint8:
      return ScalarType::Char;
    case Type::quint8:
      return ScalarType::Byte;
    case Type::int32:
      return ScalarType::Int;
    default:
      return ScalarType::Float;
  }
}

// Where the dims of the payload stand in the shape.
constexpr uint8_t kDense[] = {0, 1, 2, 3, 4, 5}, kPlanes[] = {0, 2, 3, 1, 4, 5};
static_assert(std::size(kDense) == kMaxRank && std::size(kPlanes) == kMaxRank);

const uint8_t* dims_of(const Value& value) {
  return value.planar ? kPlanes : kDense;
}

/// As the profiler writes other tensors: "Float[2,3]", and "qcint8[2,3]" for what is no such type.
void append_shape(std::string& text, const Value& value) {
  if (!text.empty()) text += ' ';
  text += is_float(value.type) || value.type == Type::int32
              ? runtime::toString(scalar_type(value.type))
              : name_of(value.type);
  text += '[';
  for (uint32_t d = 0; d < value.shape.rank; ++d) {
    if (d > 0) text += ',';
    text += std::to_string(value.shape[dims_of(value)[d]]);
  }
  text += ']';
}

int64_t bytes_of(const Value& value) {
  const int64_t groups = value.group_size == 0 ? 0 : value.shape.numel() / value.group_size;
  return nbytes(value) + groups * static_cast<int64_t>(sizeof(uint16_t));
}

std::string describe_work(const Graph& graph, const Node& node) {
  int64_t written = 0;
  for (uint32_t i = 0; i < node.n_outputs; ++i) written += bytes_of(graph.out(node, i));
  int64_t read = 0;
  std::string shapes;
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    if (!graph.has_input(node, i)) continue;
    const int64_t bytes = bytes_of(graph.in(node, i));
    read += node.operation->form == Form::Slice ? std::min(bytes, written) : bytes;
    append_shape(shapes, graph.in(node, i));
  }
  shapes += " ->";
  for (uint32_t i = 0; i < node.n_outputs; ++i) append_shape(shapes, graph.out(node, i));
  const Cost cost = cost_of(graph, node);
  std::string out = "{\"family\":\"";
  out.append(cost.family).append("\",\"flop\":").append(std::to_string(cost.flop));
  out.append(",\"bytes\":").append(std::to_string(read + written));
  return out.append(",\"shapes\":\"").append(shapes).append("\"}");
}

std::vector<float> meaning_of_rows(const Value& value) {
  std::vector<float> reals(static_cast<size_t>(value.shape.numel()));
  const size_t n_rows = static_cast<size_t>(value.rows());
  const size_t n = n_rows == 0 ? 0 : reals.size() / n_rows;
  for (size_t i = 0; i < reals.size(); ++i) {
    const RowQuantization& row = value.row_quantization()[i / n];
    reals[i] = static_cast<float>(value.as<int8_t>()[i] - row.zero_point) * row.scale;
  }
  return reals;
}

void log_value(runtime::EventTracer& tracer, const char* name, const Value& value) {
  std::vector<float> reals;
  void* data = value.data;
  if (value.type == Type::qdint8) {
    reals = meaning_of_rows(value);
    data = reals.data();
  }
  const uint32_t rank = value.shape.rank;
  aten::SizesType sizes[kMaxRank];
  aten::DimOrderType order[kMaxRank];
  aten::StridesType strides[kMaxRank];
  for (uint8_t d = 0; d < kMaxRank; ++d) order[dims_of(value)[d]] = d;
  int64_t stride = 1;
  for (uint32_t d = rank; d-- > 0; stride *= value.shape[d]) {
    if (value.shape[d] > INT32_MAX || stride > INT32_MAX) return;
    sizes[order[d]] = static_cast<aten::SizesType>(value.shape[d]);
    strides[order[d]] = static_cast<aten::StridesType>(stride);
  }
  aten::TensorImpl impl(scalar_type(value.type), rank, sizes, data, order, strides);
  runtime::event_tracer_log_output_delegate(&tracer, name, runtime::kUnsetDelegateDebugIntId,
                                            aten::Tensor(&impl));
}

}  // namespace

void NodeReports::log(runtime::EventTracer& tracer, const Graph& graph, size_t number,
                      et_timestamp_t start) {
  const auto end = runtime::pal_current_ticks();
  if (reports_.empty()) {
    for (const Node& node : graph.nodes) {
      std::string name = node.operation->name;
      name.append(node.inserted ? " before #" : " #").append(std::to_string(node.index));
      reports_.push_back({std::move(name), describe_work(graph, node)});
    }
  }
  const Report& report = reports_[number];
  tracer.log_profiling_delegate(report.name.c_str(), runtime::kUnsetDelegateDebugIntId, start, end,
                                report.work.data(), report.work.size());
  if (!tracer.intermediate_outputs_logging_status()) return;
  const Node& node = graph.nodes[number];
  for (uint32_t i = 0; i < node.n_outputs; ++i) {
    log_value(tracer, report.name.c_str(), graph.out(node, i));
  }
}

}  // namespace executorch::backends::xnnpack
