#include <executorch/backends/xnnpack/runtime/node_report.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/cpu/nn/copy.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/platform.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

using aten::ScalarType;
using Kind = fb_xnnpack::XNodeUnion;

struct Cost {
  const char* family;
  cpu::Size flop;
  bool int8 = false;  // products are of bytes
};

Cost cost_of(const Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const cpu::Size out = graph.out(node).shape.numel();
  const Window& w = node.window;
  switch (node.operation->form) {
    case Form::FullyConnected:
    case Form::BatchMatrixMultiply:
      return {"matmul", out * 2 * x.last(), !is_float(graph.in(node, 1).type)};
    case Form::Convolution: {
      const bool transposed = node.kind == Kind::XNNConvTranspose2d;
      const bool depthwise = node.kind == Kind::XNNDepthwiseConv2d;
      const int64_t channels = transposed ? node.group_outputs : depthwise ? 1 : node.group_inputs;
      const cpu::Size points = transposed ? x.numel() : out;
      return {"convolution", points * 2 * w.size[0] * w.size[1] * channels,
              !is_float(graph.in(node, 1).type)};
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
    case Form::GlobalPooling:
      return {"reduction", x.numel()};
    default:
      break;
  }
  if (node.kind == Kind::XNNSoftmax) return {"normalization", out * 5};
  if (node.operation->is_view) return {"copy", 0};
  return {"elementwise", out};
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

// The dim of a dense image's shape that is dim i of planes.
constexpr uint8_t kFromDense[] = {0, 3, 1, 2};

// The dim of the shape that is dim d of the payload's value.
uint32_t dim_of(const Value& value, uint32_t d) {
  return value.planar ? dense_dims(value.shape.rank)[d] : d;
}

/// Appends the type and the shape as the profiler writes those of other tensors, "Float[2,3]".
/// Types that tensors do not have are called as in the payload: "qcint8[2,3]".
void append_shape(std::string& text, const Value& value) {
  if (!text.empty()) text += ' ';
  text += is_float(value.type) || value.type == Type::int32
              ? runtime::toString(scalar_type(value.type))
              : name_of(value.type);
  text += '[';
  for (uint32_t d = 0; d < value.shape.rank; ++d) {
    if (d > 0) text += ',';
    text += std::to_string(value.shape[dim_of(value, d)]);
  }
  text += ']';
}

int64_t bytes_of(const Value& value) {
  const int64_t groups = value.group_size == 0 ? 0 : value.shape.numel() / value.group_size;
  return nbytes(value) + groups * static_cast<int64_t>(sizeof(uint16_t));
}

std::string describe_work(const Graph& graph, const Node& node, bool gives_images) {
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
  out.append(cost.family)
      .append("\",\"flop\":")
      .append(std::to_string(cost.flop.value_or(INT64_MAX)));
  out.append(",\"bytes\":").append(std::to_string(read + written));
  if (cost.int8) out.append(",\"int8\":true");
  if (gives_images) out.append(",\"images\":true");
  return out.append(",\"shapes\":\"").append(shapes).append("\"}");
}

/// Values that are images in NHWC, which the exporter's graph has in NCHW: what windows move over,
/// and what is computed of such element by element.
std::vector<bool> find_images(const Graph& graph) {
  std::vector<bool> images(graph.values.size());
  for (const Node& node : graph.nodes) {
    bool is_image = false;
    switch (node.operation->form) {
      case Form::Convolution:
      case Form::Pooling:
      case Form::ArgMaxPooling:
      case Form::GlobalPooling:
      case Form::Resize:
        is_image = true;
        break;
      case Form::FullyConnected:
      case Form::Transpose:
      case Form::Reshape:
        break;
      default:
        for (uint32_t i = 0; i < node.n_inputs; ++i) {
          // A copy of planes to a value that is none was a transpose.
          is_image |= graph.has_input(node, i) && images[node.input[i]] &&
                      graph.in(node, i).planar == graph.out(node).planar;
        }
    }
    for (uint32_t i = 0; i < node.n_outputs; ++i) {
      const Value& value = graph.out(node, i);
      images[node.output[i]] = value.planar || (is_image && value.shape.rank == 4);
    }
  }
  return images;
}

template <class T>
void dequantize(const Value& value, float* reals) {
  for (int64_t i = 0; i < value.shape.numel(); ++i) {
    reals[i] = static_cast<float>(value.as<T>()[i] - value.zero_point) * value.scale;
  }
}

bool is_quantized(Type type) {
  return is_affine(type) || type == Type::qdint8;
}

/// Writes the real numbers that quantized elements stand for.
void dequantize(const Value& value, float* reals) {
  if (value.type == Type::qint8) return dequantize<int8_t>(value, reals);
  if (value.type == Type::quint8) return dequantize<uint8_t>(value, reals);
  const int64_t n_rows = value.rows(), n = n_rows == 0 ? 0 : value.shape.numel() / n_rows;
  for (int64_t i = 0; i < n_rows * n; ++i) {
    const RowQuantization& row = value.row_quantization()[i / n];
    reals[i] = static_cast<float>(value.as<int8_t>()[i] - row.zero_point) * row.scale;
  }
}

/// Copies elements in the order NHWC to the order NCHW.
void nhwc_to_nchw(const Shape& shape, size_t size, const void* from, void* to) {
  const int64_t pixels = shape[1] * shape[2], channels = shape[3];
  const cpu::Copy::Dim dims[] = {{shape[0], pixels * channels, pixels * channels},
                                 {channels, 1, pixels},
                                 {pixels, channels, 1}};
  cpu::Copy{dims, 3, size, from, to}.run();
}

/// Logs a value: quantized values as floats, and images as NCHW. Returns false if memory is
/// refused.
bool log_value(runtime::EventTracer& tracer, const char* name, const Value& value, bool is_image,
               cpu::Scratch& scratch) {
  const Shape& shape = value.shape;
  void* data = value.data;
  auto type = scalar_type(value.type);
  if (is_quantized(value.type) && shape.numel() > 0) {
    auto* const reals = scratch.array<float>(shape.numel());
    if (reals == nullptr) return false;
    dequantize(value, reals);
    data = reals;
    type = ScalarType::Float;
  }
  const bool is_dense = is_image && !value.planar;
  if (is_dense) {
    const size_t size = runtime::elementSize(type);
    auto* const planes = scratch.array<uint8_t>(cpu::Size(shape.numel()) * size);
    if (planes == nullptr) return false;
    nhwc_to_nchw(shape, size, data, planes);
    data = planes;
  }
  aten::SizesType sizes[kMaxRank];
  aten::DimOrderType order[kMaxRank];
  aten::StridesType strides[kMaxRank];
  int64_t stride = 1;
  for (uint32_t d = shape.rank; d-- > 0;) {
    const int64_t extent = shape[is_dense ? kFromDense[d] : d];
    if (extent > INT32_MAX || stride > INT32_MAX) return true;  // no tensor
    order[d] = static_cast<aten::DimOrderType>(d);
    sizes[d] = static_cast<aten::SizesType>(extent);
    strides[d] = static_cast<aten::StridesType>(stride);
    stride *= extent;
  }
  aten::TensorImpl impl(type, shape.rank, sizes, data, order, strides);
  runtime::event_tracer_log_output_delegate(&tracer, name, runtime::kUnsetDelegateDebugIntId,
                                            aten::Tensor(&impl));
  return true;
}

}  // namespace

void NodeReports::make(const Graph& graph) {
  std::vector<Report> reports;
  images_ = find_images(graph);
  for (const Node& node : graph.nodes) {
    std::string name = node.operation->name();
    name.append(node.inserted ? " before #" : " #").append(std::to_string(node.index));
    reports.push_back({std::move(name), describe_work(graph, node, images_[node.output[0]])});
  }
  reports_ = std::move(reports);
}

bool NodeReports::log(runtime::EventTracer& tracer, const Graph& graph, size_t number,
                      et_timestamp_t start, cpu::Scratch& scratch) {
  const auto end = runtime::pal_current_ticks();
  const Report& report = reports_[number];
  tracer.log_profiling_delegate(report.name.c_str(), runtime::kUnsetDelegateDebugIntId, start, end,
                                report.work.data(), report.work.size());
  const Node& node = graph.nodes[number];
  if (!tracer.intermediate_outputs_logging_status()) return true;
  for (uint32_t i = 0; i < node.n_outputs; ++i) {
    const cpu::Scratch::Frame frame(scratch);
    if (!log_value(tracer, report.name.c_str(), graph.out(node, i), images_[node.output[i]],
                   scratch)) {
      return false;
    }
  }
  return true;
}

}  // namespace executorch::backends::xnnpack
