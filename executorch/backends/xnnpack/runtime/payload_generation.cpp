/// Payloads made from nothing: a few nodes whose kinds, types and shapes go together.
#include <executorch/backends/xnnpack/runtime/payload_window.h>

#include <algorithm>
#include <array>

namespace executorch::backends::xnnpack::testing {
namespace {

using Kind = fb::XNodeUnion;
using Type = fb::XNNDatatype;
using Dims = std::vector<uint32_t>;
constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr Type kFloats[] = {Type::fp32, Type::fp32, Type::fp16, Type::bf16};
constexpr Type kMovable[] = {Type::fp32, Type::fp16, Type::bf16, Type::qint8, Type::quint8};

/// A value whose shape is known well enough to go on from it.
struct Result {
  uint32_t id = kNone;
  Type type = Type::fp32;
  Dims dims;
};

uint64_t numel(const Dims& dims) {
  uint64_t n = 1;
  for (const uint32_t dim : dims) n *= dim;
  return n;
}

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {
    graph_.version = "0";
    graph_.constant_data.push_back(std::make_unique<fb::ConstantDataOffsetT>());
  }

  Bytes make() {
    Result last = start();
    for (uint64_t n = one_in(2, random_) ? 1 : 1 + below(4, random_); n > 0; --n) last = add(last);
    give_back(last);
    graph_.num_externs = slots_;
    return pack_payload(graph_, data_.data(), data_.size());
  }

 private:
  bool chance(uint64_t n) { return one_in(n, random_); }

  /// Small, or one that may be large, of a shape that has room for it.
  uint32_t extent(uint64_t& room) {
    uint32_t n = chance(16) ? 0 : 1 + below(6, random_);
    if (chance(6)) n = Linear(random_)();
    if (n > room) n = chance(8) && may_be_empty_ ? n : 1 + below(3, random_);
    if (n == 0) may_be_empty_ = true;
    room /= std::max<uint64_t>(n, 1);
    return n;
  }
  Dims shape(size_t rank) {
    uint64_t room = 1 << 16;
    may_be_empty_ = false;
    Dims dims(rank);
    const size_t first = rank == 0 ? 0 : random_() % rank;
    for (size_t i = 0; i < rank; ++i) dims[(first + i) % rank] = extent(room);
    return dims;
  }

  uint32_t add_value(Type type, const Dims& dims, uint32_t data, uint32_t flags, uint32_t dim = 0) {
    fb::XNNTensorValueT tensor;
    tensor.datatype = type;
    tensor.num_dims = static_cast<uint32_t>(dims.size());
    tensor.dims = dims;
    tensor.constant_buffer_idx = data;
    tensor.flags = flags;
    tensor.external_id = flags == 0 ? kNone : slots_++;
    tensor.id_out = static_cast<uint32_t>(graph_.xvalues.size());
    auto value = std::make_unique<fb::XValueT>();
    fb::XNNQuantizedTensorValueT quantized;
    if (quantize(type, dims, dim, quantized)) {
      quantized.tensor_value = std::make_unique<fb::XNNTensorValueT>(tensor);
      value->xvalue_union.Set(std::move(quantized));
    } else {
      value->xvalue_union.Set(std::move(tensor));
    }
    graph_.xvalues.push_back(std::move(value));
    return static_cast<uint32_t>(graph_.xvalues.size() - 1);
  }

  bool quantize(Type type, const Dims& dims, uint32_t dim, fb::XNNQuantizedTensorValueT& out) {
    const float scale = chance(8) ? 1e30f : 0.01f * static_cast<float>(1 + below(99, random_));
    const auto scales = [&](uint64_t n) {
      return std::vector<float>(std::min<uint64_t>(n, 1 << 16), scale);
    };
    switch (type) {
      case Type::qint8:
      case Type::quint8:
      case Type::qint32: {
        fb::PerTensorQuantT quant;
        quant.scale = scale_ == 0 || chance(4) ? scale_ = scale : scale_;
        if (type != Type::qint32 && !is_weight_) {
          quant.zero_point = type == Type::qint8 ? 5 : 128;
        }
        out.quant_params.Set(quant);
        return true;
      }
      case Type::qcint8:
      case Type::qcint4:
      case Type::qcint32: {
        fb::PerChannelQuantT quant;
        quant.channel_dim = static_cast<int32_t>(dim);
        uint64_t n = dims[dim];
        if (type == Type::qcint8 && dims.size() > 2 && dim + 2 >= dims.size() && is_matrices_) {
          n *= numel(Dims(dims.begin(), dims.end() - 2));
        }
        quant.scale = scales(n);
        out.quant_params.Set(quant);
        return true;
      }
      case Type::qbint4: {
        fb::PerChannelGroupQuantT quant;
        quant.group_size = 32;
        quant.scale = scales(uint64_t{dims[0]} * (dims[1] / 32));
        out.quant_params.Set(quant);
        return true;
      }
      case Type::qdint8: {
        fb::PerTokenDynamicQuantT quant;
        quant.num_nonbatch_dims = static_cast<int32_t>(dim);
        out.quant_params.Set(quant);
        return true;
      }
      default:
        return false;
    }
  }

  uint32_t inner(Type type, const Dims& dims, uint32_t row_dims = 1) {
    return add_value(type, dims, 0, 0, row_dims);
  }
  Result input(Type type, const Dims& dims) { return {add_value(type, dims, 0, 1), type, dims}; }

  uint32_t constant(Type type, const Dims& dims, uint32_t channel_dim = 0) {
    uint64_t n = numel(dims);
    if (type == Type::fp32 || type == Type::qint32 || type == Type::qcint32) n *= 4;
    if (type == Type::fp16 || type == Type::bf16) n *= 2;
    if ((type == Type::qcint4 || type == Type::qbint4) && !dims.empty()) {
      n = dims.back() == 0 ? 0 : n / dims.back() * ((dims.back() + 1) / 2);
    }
    n = std::min<uint64_t>(n, 1 << 20);
    data_.resize((data_.size() + 15) / 16 * 16);
    auto entry = std::make_unique<fb::ConstantDataOffsetT>();
    entry->offset = data_.size();
    entry->size = n;
    for (uint64_t i = 0; i < n; ++i) {
      // Of floats, some in [0.0078, 128).
      data_.push_back(type == Type::fp32 && i % 4 == 3 ? 0x3C + static_cast<uint8_t>(i % 8 / 4)
                                                       : static_cast<uint8_t>(i * 37));
    }
    graph_.constant_data.push_back(std::move(entry));
    is_weight_ = true;
    const uint32_t id = add_value(
        type, dims, static_cast<uint32_t>(graph_.constant_data.size() - 1), 0, channel_dim);
    is_weight_ = false;
    return id;
  }

  template <class Table>
  void add_node(Kind kind, Table table) {
    auto node = std::make_unique<fb::XNodeT>();
    node->xnode_union.type = kind;
    node->xnode_union.value = new Table(std::move(table));
    if (chance(3)) {
      node->output_min_max = std::make_unique<fb::OutputMinMaxT>();
      node->output_min_max->output_min = chance(2) ? -1.0f : 0.0f;
      node->output_min_max->output_max = chance(2) ? 6.0f : 3e38f;
    }
    graph_.xnodes.push_back(std::move(node));
  }
  Result unary(Kind kind, const Result& x, Type type, const Dims& dims) {
    fb::_XNNNode1x1T table;
    table.input_id = x.id;
    table.output_id = inner(type, dims);
    const uint32_t id = table.output_id;
    add_node(kind, std::move(table));
    return {id, type, dims};
  }
  uint32_t rows_of(const Result& x, uint32_t row_dims) {
    fb::_XNNNode1x1T table;
    table.input_id = x.id;
    table.output_id = inner(Type::qdint8, x.dims, row_dims);
    const uint32_t id = table.output_id;
    add_node(Kind::XNNConvert, std::move(table));
    return id;
  }

  Result start() { return input(any_of(kMovable, random_), shape(chance(2) ? 4 : random_() % 7)); }

  /// The result, as it is or moved to an output.
  void give_back(const Result& last) {
    auto& value = graph_.xvalues[last.id]->xvalue_union;
    auto* const quantized = value.AsXNNQuantizedTensorValue();
    auto* const tensor =
        quantized != nullptr ? quantized->tensor_value.get() : value.AsXNNTensorValue();
    if (tensor->flags != 0) return;
    tensor->flags = 2;
    tensor->external_id = slots_++;
  }

  Result add(const Result& x) {
    switch (below(x.dims.size() == 4 ? 20 : 11, random_)) {
      case 0:
        return add_unary(x);
      case 1:
        return add_binary(x);
      case 2:
        return add_slice(x);
      case 3:
        return add_pad(x);
      case 4:
        return add_transpose(x);
      case 5:
        return add_reshape(x);
      case 6:
        return add_concatenate(x);
      case 7:
      case 8:
        return add_fully_connected(x);
      case 9:
        return add_matmul(x);
      case 10:
        return unary(Kind::XNNSoftmax, x, x.type, x.dims);
      case 11:
        return unary(Kind::XNNGlobalAvgPooling2d, x, x.type, {x.dims[0], 1, 1, x.dims[3]});
      case 12:
      case 13:
        return add_pooling(x);
      case 14:
        return add_resize(x);
      default:
        return add_convolution(x);
    }
  }

  Result add_unary(const Result& x) {
    constexpr Kind kinds[] = {Kind::XNNClamp,      Kind::XNNCopy,  Kind::XNNGelu, Kind::XNNConvert,
                              Kind::XNNConvert,    Kind::XNNLog,   Kind::XNNExp,  Kind::XNNFloor,
                              Kind::XNNHardswish,  Kind::XNNTanh,  Kind::XNNSin,  Kind::XNNSigmoid,
                              Kind::XNNSquareRoot, Kind::XNNNegate};
    return unary(any_of(kinds, random_), x, chance(3) ? any_of(kMovable, random_) : x.type, x.dims);
  }

  Result add_binary(const Result& x) {
    constexpr Kind kinds[] = {Kind::XNNAdd,     Kind::XNNMultiply, Kind::XNNSubtract, Kind::XNNDiv,
                              Kind::XNNMaximum, Kind::XNNMinimum,  Kind::XNNPReLU};
    Dims dims = x.dims;
    for (uint32_t& dim : dims) dim = chance(3) ? 1 : dim;
    if (chance(4) && !dims.empty()) dims.erase(dims.begin());
    if (chance(16) && dims.size() < 6) dims.insert(dims.begin(), 1 + below(3, random_));
    const Type type = chance(4) ? any_of(kMovable, random_) : x.type;
    const bool is_constant = chance(2);
    const uint32_t other = is_constant ? constant(type, dims) : input(type, dims).id;
    fb::_XNNNode2x1T table;
    const bool transposed = chance(4);
    table.input1_id = transposed ? other : x.id;
    table.input2_id = transposed ? x.id : chance(8) ? x.id : other;
    const Dims out = dims.size() > x.dims.size() ? dims : x.dims;
    table.output_id = inner(x.type, out);
    const uint32_t id = table.output_id;
    add_node(any_of(kinds, random_), std::move(table));
    return {id, x.type, out};
  }

  Result add_slice(const Result& x) {
    fb::XNNStaticSliceT table;
    table.num_dims = static_cast<uint32_t>(x.dims.size());
    Dims out;
    for (const uint32_t dim : x.dims) {
      const uint32_t offset = chance(2) ? 0 : below(uint64_t{dim} + 1, random_);
      const uint32_t size = chance(2) ? 0 : below(uint64_t{dim} - offset + 1, random_);
      table.offsets.push_back(chance(32) ? Linear(random_)() : offset);
      table.sizes.push_back(chance(32) ? Linear(random_)() : size);
      out.push_back(size == 0 ? dim - offset : size);
    }
    return finish(Kind::XNNStaticSlice, std::move(table), x, out);
  }

  Result add_pad(const Result& x) {
    fb::XNNStaticConstantPadT table;
    table.padding_value = 1.5f;
    uint64_t room = (1 << 18) / std::max<uint64_t>(numel(x.dims), 1);
    Dims out;
    for (const uint32_t dim : x.dims) {
      const auto amount = [&] {
        const uint32_t n = chance(6) ? Linear(random_)() : below(3, random_);
        return n > room && !chance(32) ? 0 : n;
      };
      table.pre_paddings.push_back(amount());
      table.post_paddings.push_back(amount());
      out.push_back(dim + table.pre_paddings.back() + table.post_paddings.back());
      room /= std::max<uint64_t>(out.back() / std::max<uint32_t>(dim, 1), 1);
    }
    return finish(Kind::XNNStaticConstantPad, std::move(table), x, out);
  }

  Result add_transpose(const Result& x) {
    fb::XNNStaticTransposeT table;
    table.num_dims = static_cast<uint32_t>(x.dims.size());
    for (uint32_t i = 0; i < table.num_dims; ++i) table.perm.push_back(i);
    std::shuffle(table.perm.begin(), table.perm.end(), random_);
    if (table.num_dims == 4 && chance(2)) {
      table.perm = chance(2) ? Dims{0, 2, 3, 1} : Dims{0, 3, 1, 2};
    }
    Dims out;
    for (const uint32_t from : table.perm) out.push_back(x.dims[from]);
    return finish(Kind::XNNStaticTranspose, std::move(table), x, out);
  }

  Result add_reshape(const Result& x) {
    fb::XNNStaticReshapeT table;
    uint64_t rest = numel(x.dims);
    Dims out;
    for (const uint32_t factor : {2u, 3u, 4u, 5u, 1u}) {
      if (out.size() < 5 && chance(2) && rest % factor == 0) {
        out.push_back(factor);
        rest /= factor;
      }
    }
    if (out.size() < 6) out.push_back(static_cast<uint32_t>(rest));
    table.new_shape = out;
    if (chance(2)) any_of(table.new_shape, random_) = 0;
    if (chance(16)) any_of(table.new_shape, random_) = Linear(random_)();
    table.num_dims = static_cast<uint32_t>(out.size());
    return finish(Kind::XNNStaticReshape, std::move(table), x, out);
  }

  Result add_concatenate(const Result& x) {
    if (x.dims.empty()) return x;
    fb::_XNNCatT table;
    table.axis = below(x.dims.size(), random_);
    Dims out = x.dims;
    constexpr Kind kinds[] = {Kind::XNNConcatenate2, Kind::XNNConcatenate3, Kind::XNNConcatenate4,
                              Kind::XNNConcatenate5};
    const size_t n = 2 + below(4, random_);
    std::array<uint32_t, 5> ids;
    ids.fill(kNone);
    ids[0] = x.id;
    for (size_t i = 1; i < n; ++i) {
      Dims dims = x.dims;
      if (chance(2)) dims[table.axis] = chance(4) ? Linear(random_)() % 65600 : below(5, random_);
      const bool same = numel(dims) > (1 << 18) || chance(3);
      ids[i] = same ? x.id : input(x.type, dims).id;
      out[table.axis] += same ? x.dims[table.axis] : dims[table.axis];
    }
    table.input1_id = ids[0];
    table.input2_id = ids[1];
    table.input3_id = ids[2];
    table.input4_id = ids[3];
    table.input5_id = ids[4];
    if (chance(4)) table.axis -= static_cast<uint32_t>(x.dims.size());
    table.output_id = inner(x.type, out);
    const uint32_t id = table.output_id;
    add_node(kinds[n - 2], std::move(table));
    return {id, x.type, out};
  }

  template <class Table>
  Result finish(Kind kind, Table table, const Result& x, const Dims& out, Type type) {
    table.input_id = x.id;
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(kind, std::move(table));
    return {id, type, out};
  }
  template <class Table>
  Result finish(Kind kind, Table table, const Result& x, const Dims& out) {
    return finish(kind, std::move(table), x, out, x.type);
  }

  Result add_fully_connected(const Result& x) {
    if (x.dims.empty() || x.dims.back() > 70'000) return x;
    const uint32_t k = x.dims.back(), n = chance(8) ? 0 : 1 + below(80, random_);
    fb::XNNFullyConnectedT table;
    table.input1_id = x.id;
    table.bias_id = kNone;
    const bool integers = x.type == Type::qint8 || x.type == Type::quint8;
    const bool has_bias = chance(2);
    Type type = x.type;
    if (integers) {
      table.filter_id = constant(chance(4) ? Type::qint8 : Type::qcint8, {n, k});
      if (has_bias) table.bias_id = constant(chance(2) ? Type::qint32 : Type::qcint32, {n});
    } else if (chance(2)) {
      const Type w = k % 32 == 0 && k > 0 ? Type::qbint4 : chance(2) ? Type::qcint4 : Type::qcint8;
      table.input1_id = rows_of(x, 1);
      table.filter_id = constant(w, {n, k});
      if (has_bias) table.bias_id = constant(Type::fp32, {n});
      type = any_of(kFloats, random_);
    } else {
      const bool transposed = chance(3);
      const Type w = chance(3) ? any_of(kFloats, random_) : x.type;
      const Dims dims = transposed ? Dims{k, n} : Dims{n, k};
      table.filter_id = chance(4) ? input(w, dims).id : constant(w, dims);
      if (has_bias) table.bias_id = constant(chance(2) ? w : Type::fp32, {n});
      table.flags = transposed ? 1 : 0;
      type = chance(4) ? any_of(kFloats, random_) : x.type;
    }
    Dims out = x.dims;
    out.back() = n;
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(Kind::XNNFullyConnected, std::move(table));
    return {id, type, out};
  }

  Result add_matmul(const Result& x) {
    if (x.dims.size() < 2 || x.dims.back() > 5000) return x;
    const uint32_t k = x.dims.back(), n = below(40, random_);
    const bool transposed = chance(2), dynamic = chance(2);
    Dims dims = x.dims, out = x.dims;
    for (size_t i = 0; i + 2 < dims.size(); ++i) dims[i] = chance(2) ? 1 : dims[i];
    while (dims.size() > 2 && chance(3)) dims.erase(dims.begin());
    dims[dims.size() - 2] = transposed ? n : k;
    dims.back() = transposed ? k : n;
    out.back() = n;
    fb::_XNNNode2x1T table;
    table.flags = transposed ? 1 : 0;
    Type type = x.type;
    if (dynamic) {
      table.input1_id = rows_of(x, 1);
      is_matrices_ = true;
      const auto rank = static_cast<uint32_t>(dims.size());
      table.input2_id = constant(Type::qcint8, dims, transposed ? rank - 2 : rank - 1);
      is_matrices_ = false;
      type = Type::fp32;
    } else {
      table.input1_id = x.id;
      table.input2_id = chance(2) ? constant(x.type, dims) : input(x.type, dims).id;
    }
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(Kind::XNNBatchMatrixMultiply, std::move(table));
    return {id, type, out};
  }

  static uint32_t reach(const WindowAxis& axis, int64_t in) {
    const auto of = [](const uint32_t* field) { return field == nullptr ? 1 : int64_t{*field}; };
    const auto pad = [](const uint32_t* field) { return field == nullptr ? 0 : int64_t{*field}; };
    const int64_t window = of(axis.dilation) * (of(axis.size) - 1) + 1;
    const int64_t padding = pad(axis.before) + pad(axis.after);
    const int64_t stride = axis.stride == nullptr ? of(axis.size) : of(axis.stride);
    const int64_t out = axis.transposed
                            ? (in - 1) * stride + pad(axis.adjustment) + window - padding
                            : (in + padding - window) / std::max<int64_t>(stride, 1) + 1;
    return static_cast<uint32_t>(std::clamp<int64_t>(out, 0, 1 << 20));
  }

  Result add_pooling(const Result& x) {
    Dims out = x.dims;
    if (chance(4)) {
      fb::XNNArgMaxPooling2dT table;
      for (int d = 0; d < 2; ++d) {
        const WindowAxis axis = axis_of(table, d);
        couple(axis, x.dims[static_cast<size_t>(d) + 1], true, random_);
        out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
      }
      table.input_id = x.id;
      table.output_value_id = inner(x.type, out);
      const uint32_t id = table.output_value_id;
      table.output_index_id = add_value(Type::int32, out, 0, 2);
      add_node(Kind::XNNArgMaxPooling2d, std::move(table));
      return {id, x.type, out};
    }
    fb::_XNNPooling2DT table;
    for (int d = 0; d < 2; ++d) {
      const WindowAxis axis = axis_of(table, d);
      couple(axis, x.dims[static_cast<size_t>(d) + 1], true, random_);
      out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
    }
    return finish(chance(2) ? Kind::XNNMaxPooling2d : Kind::XNNAvgPooling2d, std::move(table), x,
                  out);
  }

  Result add_resize(const Result& x) {
    fb::XNNStaticResizeBilinear2DT table;
    const auto number = [&] {
      return chance(8) ? Linear(random_)() & 0x1FFFF : 1 + below(9, random_);
    };
    table.new_height = number();
    table.new_width = number();
    table.flags = chance(2) ? 8 : 0;
    const Dims out = {x.dims[0], table.new_height, table.new_width, x.dims[3]};
    return finish(Kind::XNNStaticResizeBilinear2D, std::move(table), x, out);
  }

  Result add_convolution(const Result& x) {
    const uint32_t channels = x.dims[3];
    if (channels == 0 || channels > 4096) return x;
    constexpr Kind kinds[] = {Kind::XNNConv2d, Kind::XNNConvTranspose2d, Kind::XNNDepthwiseConv2d};
    const Kind kind = any_of(kinds, random_);
    const bool depthwise = kind == Kind::XNNDepthwiseConv2d;
    fb::_XNNNodeConvT table;
    table.groups = depthwise || chance(6) ? channels : 1;
    if (channels % 2 == 0 && chance(4) && !depthwise) table.groups = 2;
    table.group_input_channels = channels / table.groups;
    table.group_output_channels = chance(2) ? 1 : 1 + below(20, random_);
    table.kernel_height = chance(64) ? Linear(random_)() & 0x1FFFF : 1 + below(4, random_);
    table.kernel_width = chance(32) ? Linear(random_)() & 0x1FFFF : 1 + below(4, random_);
    const uint32_t n = table.groups * table.group_output_channels;
    const uint64_t taps = uint64_t{table.kernel_height} * table.kernel_width;
    if (taps * n * table.group_input_channels > (1 << 18)) {
      table.kernel_height = table.kernel_width = 1;
    }
    Dims out = x.dims;
    out[3] = n;
    for (int d = 0; d < 2; ++d) {
      const WindowAxis axis = axis_of(table, kind == Kind::XNNConvTranspose2d, d);
      couple(axis, x.dims[static_cast<size_t>(d) + 1], false, random_);
      out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
    }
    const Dims filter =
        depthwise ? Dims{1, table.kernel_height, table.kernel_width, n}
                  : Dims{n, table.kernel_height, table.kernel_width, table.group_input_channels};
    table.input1_id = x.id;
    table.bias_id = kNone;
    const uint32_t dim = depthwise ? 3 : 0;
    const bool integers = x.type == Type::qint8 || x.type == Type::quint8, has_bias = chance(2);
    Type type = x.type;
    if (integers) {
      table.filter_id = constant(chance(4) ? Type::qint8 : Type::qcint8, filter, dim);
      if (has_bias) table.bias_id = constant(Type::qcint32, {n});
    } else if (!depthwise && chance(4)) {
      table.input1_id = rows_of(x, 3);
      table.filter_id = constant(Type::qcint8, filter, dim);
      if (has_bias) table.bias_id = constant(Type::fp32, {n});
      type = Type::fp32;
    } else {
      table.filter_id = constant(Type::fp32, filter);
      if (has_bias) table.bias_id = constant(any_of(kFloats, random_), {n});
      if (chance(4)) type = any_of(kFloats, random_);
    }
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(kind, std::move(table));
    return {id, type, out};
  }

  Random& random_;
  fb::XNNGraphT graph_;
  std::vector<uint8_t> data_;
  uint32_t slots_ = 0;
  float scale_ = 0;
  bool is_weight_ = false, is_matrices_ = false, may_be_empty_ = false;
};

}  // namespace

Bytes generate_payload(Random& random) {
  return Maker(random).make();
}

}  // namespace executorch::backends::xnnpack::testing
