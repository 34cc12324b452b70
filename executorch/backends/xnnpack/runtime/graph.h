/// A delegated part as it is run: values, and nodes in the order of execution.
///
/// Made once by read_graph(), which checks everything that the payload says, so that the operations
/// trust it; only shapes change afterwards, with those of the inputs.
#pragma once

#include <executorch/backends/xnnpack/serialization/schema_generated.h>
#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/size.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace executorch::backends::xnnpack {

using runtime::Error;
using Type = fb_xnnpack::XNNDatatype;

constexpr size_t kMaxRank = 6;
constexpr uint32_t kNoId = 0xFFFFFFFF;

/// Extents in memory order, innermost last.
struct Shape {
  uint32_t rank = 0;
  std::array<int64_t, kMaxRank> dim{};

  int64_t operator[](size_t i) const { return dim[i]; }
  int64_t& operator[](size_t i) { return dim[i]; }
  int64_t last() const { return rank == 0 ? 1 : dim[rank - 1]; }
  int64_t numel() const { return product(0, rank); }
  /// Product of the dims [from, to).
  int64_t product(size_t from, size_t to) const {
    int64_t n = 1;
    for (size_t i = from; i < to; ++i) n *= dim[i];
    return n;
  }
  /// The dim counted from the innermost, 1 beyond the rank.
  int64_t from_end(size_t i) const { return i < rank ? dim[rank - 1 - i] : 1; }
  bool operator==(const Shape&) const = default;
};

using cpu::RowQuantization;

struct Value {
  enum class Place : uint8_t { Internal, Constant, Input, Output };

  Type type = Type::invalid;
  Place place = Place::Internal;
  /// Those of the payload after read_graph(), later the extents of the present call.
  Shape shape;
  /// The value is an image that the payload has as NHWC, and that is kept as NCHW; `shape` is in
  /// the order NCHW.
  bool planar = false;
  /// Input, Output: position among the arguments of the call.
  uint32_t external = kNoId;
  /// qint8, quint8, qint32 and per-tensor weights: real = (q - zero_point) * scale.
  float scale = 1;
  int32_t zero_point = 0;
  /// Weights have either one scale per index of channel_dim (qcint8, qcint4), which is dim 0, or
  /// the innermost dim of depthwise filters; weights of a batched product have such scales for each
  /// of their matrices. Or they have one bfloat16 scale for each group of group_size weights of a
  /// row (qbint4).
  const float* channel_scales = nullptr;
  int64_t n_channel_scales = 0;
  const uint16_t* group_scales = nullptr;
  int64_t group_size = 0;
  uint32_t channel_dim = 0;
  /// qdint8: a row is the last row_dims dims. One RowQuantization per row follows the elements.
  uint32_t row_dims = 0;
  /// A constant's data is borrowed from the graph's buffers; that of other values is set for each
  /// call.
  void* data = nullptr;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  /// Number of rows of a qdint8 value.
  int64_t rows() const { return shape.product(0, shape.rank - row_dims); }
  RowQuantization* row_quantization() const {
    return reinterpret_cast<RowQuantization*>(as<uint8_t>() + (shape.numel() + 7) / 8 * 8);
  }
};

/// Bytes of one element; 4-bit types count as 1 (see nbytes()).
size_t element_size(Type type);
/// Bytes of a value of that shape.
int64_t nbytes(const Value& value);
bool is_float(Type type);
/// Quantized with one scale and zero point: qint8, quint8.
bool is_affine(Type type);

/// A window that moves over an image, of convolutions and poolings. Extents are height, width.
struct Window {
  int64_t size[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t before[2] = {0, 0};  // padding top, left
  int64_t after[2] = {0, 0};
  int64_t adjustment[2] = {0, 0};

  /// Pixels from the first tap to the last.
  cpu::Size reach(size_t axis) const { return cpu::Size(dilation[axis]) * (size[axis] - 1) + 1; }
  /// The largest number of taps that lie inside an image of that extent at the same time.
  int64_t taps_inside(size_t axis, int64_t extent) const {
    return std::min(size[axis], (extent + dilation[axis] - 1) / dilation[axis]);
  }
};

struct Operation;

struct Node {
  const Operation* operation = nullptr;
  /// The number of the node in the payload. A conversion that the runtime inserted has the number
  /// of the node it was inserted for.
  uint32_t index = 0;
  bool inserted = false;
  uint32_t input[5] = {kNoId, kNoId, kNoId, kNoId, kNoId};
  uint32_t n_inputs = 0;
  uint32_t output[2] = {kNoId, kNoId};
  uint32_t n_outputs = 1;
  fb_xnnpack::XNodeUnion kind{};
  /// The result is held within [low, high].
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  uint32_t flags = 0;
  /// Concatenate: axis. Reshape, slice, transpose, pad: their two lists of n_list entries.
  uint32_t axis = 0;
  uint32_t n_list = 0;
  std::array<uint32_t, kMaxRank> list{}, list2{};
  /// ELU's alpha, leaky ReLU's slope, the value of padding.
  float number = 0;
  Window window;
  int64_t groups = 1, group_inputs = 1, group_outputs = 1;
  /// Results of Operation::prepare.
  bool prepared = false;
  std::vector<int32_t> weight_sums;
  std::vector<float> group_sums, weight_scales;
  std::vector<int8_t> transposed_weights;
  cpu::Int8Filter filter;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  uint32_t n_externals = 0;
  /// Values by external slot; kNoId where a slot is not used.
  std::vector<uint32_t> externals;
  /// The memory of constants: named data, aligned copies, and, in older files, the payload itself.
  std::vector<runtime::FreeableBuffer> buffers;
  std::vector<std::unique_ptr<uint64_t[]>> copies;
  /// Bytes of the payload and of the named data that it uses.
  int64_t constant_bytes = 0;
  /// Some constants are read from the payload, which then has to outlive the graph.
  bool uses_payload = false;

  const Value& in(const Node& node, size_t i = 0) const { return values[node.input[i]]; }
  const Value& out(const Node& node, size_t i = 0) const { return values[node.output[i]]; }
  Value& out(const Node& node, size_t i = 0) { return values[node.output[i]]; }
  bool has_input(const Node& node, size_t i) const { return node.input[i] != kNoId; }
};

/// Reads and checks a payload of `size` bytes. `data` may be null. DelegateInvalidCompatibility: of
/// another format; NotSupported: valid, but not run here; else InvalidProgram or NotFound (named
/// data). The reason is logged. Throws where a container finds no memory.
runtime::Result<std::unique_ptr<Graph>> read_graph(const void* payload, size_t size,
                                                   const runtime::NamedDataMap* data);

/// Infers the shapes of all values from those of the external inputs. InvalidArgument, logged, when
/// they do not fit.
Error infer_shapes(Graph& graph);

}  // namespace executorch::backends::xnnpack
