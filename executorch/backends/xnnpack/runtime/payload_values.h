/// What generated payloads are made of: values and constants with their quantization, and nodes.
#pragma once

#include <executorch/backends/xnnpack/runtime/payload_window.h>

#include <algorithm>

namespace executorch::backends::xnnpack::testing {

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

inline uint64_t numel(const Dims& dims) {
  uint64_t n = 1;
  for (const uint32_t dim : dims) n *= dim;
  return n;
}

class PayloadValues {
 protected:
  explicit PayloadValues(Random& random) : random_(random) {
    graph_.version = "0";
    graph_.constant_data.push_back(std::make_unique<fb::ConstantDataOffsetT>());
  }

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
        if (type != Type::qint32 && !is_weight_) quant.zero_point = type == Type::qint8 ? 5 : 128;
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

  Random& random_;
  fb::XNNGraphT graph_;
  std::vector<uint8_t> data_;
  uint32_t slots_ = 0;
  float scale_ = 0;
  bool is_weight_ = false, is_matrices_ = false, may_be_empty_ = false;
};

}  // namespace executorch::backends::xnnpack::testing
