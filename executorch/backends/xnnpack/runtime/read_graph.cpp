/// The payload's values and constants; its nodes are read in read_nodes.cpp.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/payload.h>
#include <executorch/backends/xnnpack/runtime/read_nodes.h>

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

namespace executorch::backends::xnnpack {
namespace {

namespace fb = fb_xnnpack;
using runtime::Result;
using Bytes = runtime::Span<const uint8_t>;

constexpr uint32_t kMaxExternals = 4096;
constexpr uint32_t kExternalInput = 1, kExternalOutput = 2;
constexpr uint32_t kMaxKeyBytes = 1024;

#define ET_REQUIRE_VALUE(condition, format, ...)                                                \
  ET_CHECK_OR_RETURN_ERROR(condition, InvalidProgram, "XnnpackBackend: value %u: " format, id_, \
                           ##__VA_ARGS__)

template <class Vector>
uint32_t length(const Vector* v) {
  return v == nullptr ? 0 : v->size();
}

/// Whether a quantized type goes with these parameters.
bool matches(Type type, fb::XNNQuantParams params) {
  switch (type) {
    case Type::qint8:
    case Type::quint8:
    case Type::qint32:
      return params == fb::XNNQuantParams::PerTensorQuant;
    case Type::qcint8:
    case Type::qcint32:
    case Type::qcint4:
      return params == fb::XNNQuantParams::PerChannelQuant;
    case Type::qdint8:
      return params == fb::XNNQuantParams::PerTokenDynamicQuant;
    case Type::qbint4:
      return params == fb::XNNQuantParams::PerChannelGroupQuant;
    case Type::fp32:
    case Type::fp16:
    case Type::bf16:
    case Type::int32:
      return params == fb::XNNQuantParams::NONE;
    default:
      return false;
  }
}

uint16_t bfloat16_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

class Reader {
 public:
  Reader(const fb::XNNGraph& fb, Bytes region, const runtime::NamedDataMap* data, Graph& graph)
      : fb_(fb), region_(region), data_(data), graph_(graph) {}

  Error read() {
    const uint32_t n = length(fb_.xvalues());
    graph_.n_externals = fb_.num_externs();
    ET_CHECK_OR_RETURN_ERROR(graph_.n_externals <= kMaxExternals, InvalidProgram,
                             "XnnpackBackend: %u external values, expected at most %u",
                             graph_.n_externals, kMaxExternals);
    graph_.externals.assign(graph_.n_externals, kNoId);
    graph_.values.resize(n);
    std::vector<bool> seen(n);
    for (uint32_t i = 0; i < n; ++i) {
      ET_CHECK_OK_OR_RETURN_ERROR(read_value(fb_.xvalues()->Get(i), seen));
    }
    for (const uint32_t id : quantized_on_entry_) quantize_on_entry(id);
    return read_nodes(fb_, graph_);
  }

 private:
  Error read_value(const fb::XValue* entry, std::vector<bool>& seen) {
    const fb::XNNTensorValue* tensor = nullptr;
    const fb::XNNQuantizedTensorValue* quantized = nullptr;
    if (entry != nullptr) {
      tensor = entry->xvalue_union_as_XNNTensorValue();
      quantized = entry->xvalue_union_as_XNNQuantizedTensorValue();
      if (quantized != nullptr) tensor = quantized->tensor_value();
    }
    ET_CHECK_OR_RETURN_ERROR(tensor != nullptr, InvalidProgram,
                             "XnnpackBackend: an entry of xvalues is not a tensor");
    id_ = tensor->id_out();
    ET_REQUIRE_VALUE(id_ < seen.size() && !seen[id_], "the id is taken or not below %zu",
                     seen.size());
    seen[id_] = true;
    Value& value = graph_.values[id_];
    ET_CHECK_OK_OR_RETURN_ERROR(read_shape(*tensor, value));
    const auto params =
        quantized == nullptr ? fb::XNNQuantParams::NONE : quantized->quant_params_type();
    ET_REQUIRE_VALUE(matches(value.type, params), "type %d (%s) does not go with %s",
                     static_cast<int>(value.type), name_of(value.type),
                     fb::EnumNameXNNQuantParams(params));
    if (quantized != nullptr) {
      ET_REQUIRE_VALUE(quantized->quant_params() != nullptr && params != fb::XNNQuantParams::NONE,
                       "no quantization parameters");
      ET_CHECK_OK_OR_RETURN_ERROR(read_quantization(*quantized, value));
    }
    return read_place(*tensor, value);
  }

  Error read_shape(const fb::XNNTensorValue& tensor, Value& value) {
    value.type = tensor.datatype();
    value.shape.rank = length(tensor.dims());
    ET_REQUIRE_VALUE(value.shape.rank <= kMaxRank && value.shape.rank == tensor.num_dims(),
                     "%u dims, num_dims says %u; expected at most %zu", value.shape.rank,
                     tensor.num_dims(), kMaxRank);
    for (uint32_t i = 0; i < value.shape.rank; ++i) value.shape[i] = tensor.dims()->Get(i);
    ET_REQUIRE_VALUE(is_sane(value.shape), "the extents are too large");
    return Error::Ok;
  }

  Error read_quantization(const fb::XNNQuantizedTensorValue& tensor, Value& value) {
    if (const auto* tensor_quant = tensor.quant_params_as_PerTensorQuant()) {
      value.scale = tensor_quant->scale();
      value.zero_point = tensor_quant->zero_point();
      const int low = value.type == Type::qint8 ? -128 : 0;
      const int high = value.type == Type::qint8 ? 127 : value.type == Type::quint8 ? 255 : 0;
      ET_REQUIRE_VALUE(std::isnormal(value.scale) && value.scale > 0,
                       "scale %g, expected a positive number", static_cast<double>(value.scale));
      ET_REQUIRE_VALUE(low <= value.zero_point && value.zero_point <= high,
                       "zero point %d, expected one of [%d, %d]", value.zero_point, low, high);
      return Error::Ok;
    }
    if (const auto* row = tensor.quant_params_as_PerTokenDynamicQuant()) {
      value.row_dims = static_cast<uint32_t>(row->num_nonbatch_dims());
      ET_REQUIRE_VALUE(value.row_dims >= 1 && value.row_dims <= value.shape.rank,
                       "rows of %d dims in a value of rank %u", row->num_nonbatch_dims(),
                       value.shape.rank);
      return Error::Ok;
    }
    if (const auto* channel = tensor.quant_params_as_PerChannelQuant()) {
      return read_channel_scales(*channel, value);
    }
    return read_group_scales(*tensor.quant_params_as_PerChannelGroupQuant(), value);
  }

  Error read_channel_scales(const fb::PerChannelQuant& quant, Value& value) {
    value.channel_dim = static_cast<uint32_t>(quant.channel_dim());
    ET_REQUIRE_VALUE(value.channel_dim < value.shape.rank, "channel dim %d in a value of rank %u",
                     quant.channel_dim(), value.shape.rank);
    // Several matrices may have scales of their own.
    const int64_t channels = value.shape[value.channel_dim],
                  matrices =
                      value.shape.product(0, value.shape.rank - std::min(value.shape.rank, 2u));
    const int64_t given =
        quant.scale_buffer_idx() == 0 ? length(quant.scale()) : quant.num_scales();
    // Both are as large as the file says: their product may be no number.
    const bool of_each = matrices > 0 && given % matrices == 0 && given / matrices == channels;
    const int64_t n = of_each ? given : channels;
    value.n_channel_scales = n;
    if (quant.scale_buffer_idx() == 0) {
      ET_REQUIRE_VALUE(length(quant.scale()) == n, "%u scales for %" PRId64 " channels",
                       length(quant.scale()), n);
      const float* scales = n == 0 ? nullptr : quant.scale()->data();
      auto bytes = copy(scales, static_cast<size_t>(n) * 4);
      ET_CHECK_OK_OR_RETURN_ERROR(bytes.error());
      value.channel_scales = reinterpret_cast<const float*>(*bytes);
      return Error::Ok;
    }
    ET_REQUIRE_VALUE(quant.num_scales() == n, "%u scales for %" PRId64 " channels",
                     quant.num_scales(), n);
    auto bytes = constant(quant.scale_buffer_idx(), n * 4, 4);
    ET_CHECK_OK_OR_RETURN_ERROR(bytes.error());
    value.channel_scales = reinterpret_cast<const float*>(*bytes);
    return Error::Ok;
  }

  Error read_group_scales(const fb::PerChannelGroupQuant& quant, Value& value) {
    value.group_size = quant.group_size();
    ET_REQUIRE_VALUE(value.shape.rank == 2 && quant.channel_dim() == 0,
                     "groups along dim %d of rank %u, expected rows of a matrix",
                     quant.channel_dim(), value.shape.rank);
    ET_REQUIRE_VALUE(value.group_size > 0 && value.group_size % 32 == 0 &&
                         value.shape[1] % value.group_size == 0,
                     "groups of %d in rows of %" PRId64 ", expected a multiple of 32 that divides",
                     quant.group_size(), value.shape[1]);
    const int64_t n = value.shape[0] * (value.shape[1] / value.group_size);
    if (quant.scale_buffer_idx() == 0) {
      ET_REQUIRE_VALUE(length(quant.scale()) == n, "%u scales, expected %" PRId64,
                       length(quant.scale()), n);
      auto bytes = copy(nullptr, static_cast<size_t>(n) * 2);
      ET_CHECK_OK_OR_RETURN_ERROR(bytes.error());
      auto* scales = reinterpret_cast<uint16_t*>(*bytes);
      for (uint32_t i = 0; i < n; ++i) scales[i] = bfloat16_of(quant.scale()->Get(i));
      value.group_scales = scales;
      return Error::Ok;
    }
    ET_REQUIRE_VALUE(quant.num_scales() == n, "%u scales, expected %" PRId64, quant.num_scales(),
                     n);
    auto bytes = constant(quant.scale_buffer_idx(), n * 2, 2);
    ET_CHECK_OK_OR_RETURN_ERROR(bytes.error());
    value.group_scales = reinterpret_cast<const uint16_t*>(*bytes);
    return Error::Ok;
  }

  /// Whether the value is external, a constant, or neither.
  Error read_place(const fb::XNNTensorValue& tensor, Value& value) {
    const uint32_t flags = tensor.flags(), index = tensor.constant_buffer_idx();
    ET_REQUIRE_VALUE(flags <= kExternalOutput, "unknown flags 0x%x", flags);
    if (tensor.dq_datatype() != Type::invalid) {
      ET_REQUIRE_VALUE(tensor.dq_datatype() == Type::qint8 && flags == kExternalInput &&
                           is_float(value.type) && value.shape.rank >= 1,
                       "only a floating input can be quantized on entry, and to qint8");
      quantized_on_entry_.push_back(id_);
    }
    if (flags != 0) {
      const uint32_t slot = tensor.external_id();
      ET_REQUIRE_VALUE(index == 0, "external and constant");
      ET_REQUIRE_VALUE(slot < graph_.n_externals && graph_.externals[slot] == kNoId,
                       "external id %u is taken or not below %u", slot, graph_.n_externals);
      ET_REQUIRE_VALUE(is_float(value.type) || is_affine(value.type) || value.type == Type::int32,
                       "external of type %s", name_of(value.type));
      value.place = flags == kExternalInput ? Value::Place::Input : Value::Place::Output;
      value.external = slot;
      graph_.externals[slot] = id_;
      return Error::Ok;
    }
    ET_REQUIRE_VALUE(tensor.external_id() == kNoId, "external id %u without flags",
                     tensor.external_id());
    if (index == 0) return Error::Ok;
    ET_REQUIRE_VALUE(value.type != Type::qdint8, "dynamically quantized constant");
    value.place = Value::Place::Constant;
    auto bytes = constant(index, nbytes(value), element_size(value.type));
    ET_CHECK_OK_OR_RETURN_ERROR(bytes.error());
    value.data = const_cast<uint8_t*>(*bytes);
    return Error::Ok;
  }

  /// The bytes of a constant, at least `n` of them, where they lie, unless they are not aligned.
  Result<const uint8_t*> constant(uint32_t index, int64_t n, size_t alignment) {
    auto found = find_constant(index);
    ET_CHECK_OK_OR_RETURN_ERROR(found.error());
    const Bytes bytes = *found;
    ET_REQUIRE_VALUE(bytes.size() >= static_cast<uint64_t>(n),
                     "constant %u has %zu bytes, expected %" PRId64, index, bytes.size(), n);
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return bytes.data();
    auto copied = copy(bytes.data(), static_cast<size_t>(n));
    ET_CHECK_OK_OR_RETURN_ERROR(copied.error());
    return static_cast<const uint8_t*>(*copied);
  }

  Result<Bytes> find_constant(uint32_t index) {
    const uint32_t n = length(fb_.constant_data());
    if (n == 0) {  // an older file
      const auto* list = fb_.constant_buffer();
      ET_REQUIRE_VALUE(index < length(list) && list->Get(index)->storage() != nullptr,
                       "constant %u of %u", index, length(list));
      graph_.uses_payload = true;
      return Bytes{list->Get(index)->storage()->data(), list->Get(index)->storage()->size()};
    }
    ET_REQUIRE_VALUE(index < n, "constant %u of %u", index, n);
    const auto* entry = fb_.constant_data()->Get(index);
    if (const auto* key = entry->named_key()) return find_named(key->string_view());
    ET_REQUIRE_VALUE(
        entry->offset() <= region_.size() && entry->size() <= region_.size() - entry->offset(),
        "constant %u is [%" PRIu64 ", +%" PRIu64 ") of %zu bytes", index, entry->offset(),
        entry->size(), region_.size());
    graph_.uses_payload = true;
    return Bytes{region_.data() + entry->offset(), static_cast<size_t>(entry->size())};
  }

  /// Each key is asked for once: a loader may read it from a file every time.
  Result<Bytes> find_named(std::string_view key) {
    ET_REQUIRE_VALUE(key.size() <= kMaxKeyBytes, "a key of %zu bytes", key.size());
    if (const auto known = named_.find(key); known != named_.end()) return known->second;
    ET_REQUIRE_VALUE(data_ != nullptr, "needs named data '%s', and there is none", key.data());
    auto buffer = data_->get_data(key);
    ET_CHECK_OK_OR_RETURN_ERROR(buffer.error(), "XnnpackBackend: value %u needs named data '%s'",
                                id_, key.data());
    auto data = buffer->data_safe();
    ET_CHECK_OK_OR_RETURN_ERROR(data.error());
    const Bytes bytes{static_cast<const uint8_t*>(*data), buffer->size()};
    graph_.buffers.push_back(std::move(*buffer));
    graph_.constant_bytes += static_cast<int64_t>(bytes.size());
    named_.emplace(key, bytes);
    return bytes;
  }

  /// Memory of the graph with a copy of `bytes`, unless that is null. Values that share unaligned
  /// constants may not make more of them than there are.
  Result<uint8_t*> copy(const void* bytes, size_t n) {
    copied_ += static_cast<int64_t>(n);
    ET_REQUIRE_VALUE(copied_ <= 2 * graph_.constant_bytes,
                     "copies of %" PRId64 " bytes of constants, which are %" PRId64, copied_,
                     graph_.constant_bytes);
    graph_.copies.push_back(std::make_unique<uint64_t[]>(n / 8 + 1));
    auto* data = reinterpret_cast<uint8_t*>(graph_.copies.back().get());
    if (bytes != nullptr && n != 0) std::memcpy(data, bytes, n);
    return data;
  }

  /// Older files: the id stands for the quantized value; the input gets another.
  void quantize_on_entry(uint32_t id) {
    const auto input = static_cast<uint32_t>(graph_.values.size());
    graph_.values.push_back(graph_.values[id]);
    graph_.externals[graph_.values[id].external] = input;
    Value& value = graph_.values[id];
    value.type = Type::qdint8;
    value.row_dims = 1;
    value.place = Value::Place::Internal;
    value.external = kNoId;
    graph_.nodes.push_back(make_conversion(input, id));
  }

  const fb::XNNGraph& fb_;
  Bytes region_;
  const runtime::NamedDataMap* data_;
  Graph& graph_;
  uint32_t id_ = 0;  // of the value that is being read
  int64_t copied_ = 0;
  std::map<std::string_view, Bytes> named_;
  std::vector<uint32_t> quantized_on_entry_;
};

}  // namespace

Result<std::unique_ptr<Graph>> read_graph(const void* payload, size_t size,
                                          const runtime::NamedDataMap* data) {
  auto parts = split_payload(payload, size);
  ET_CHECK_OK_OR_RETURN_ERROR(parts.error());
  auto graph = std::make_unique<Graph>();
  graph->constant_bytes = static_cast<int64_t>(size);
  Bytes bytes = parts->flatbuffer;
  constexpr size_t kAlignment = alignof(uint64_t);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    graph->copies.push_back(std::make_unique<uint64_t[]>(bytes.size() / 8 + 1));
    std::memcpy(graph->copies.back().get(), bytes.data(), bytes.size());
    bytes = {reinterpret_cast<const uint8_t*>(graph->copies.back().get()), bytes.size()};
  }
  flatbuffers::Verifier::Options limits;
  limits.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 4);  // an offset to each
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), limits);
  ET_CHECK_OR_RETURN_ERROR(verifier.VerifyBuffer<fb::XNNGraph>(nullptr), InvalidProgram,
                           "XnnpackBackend: the payload's flatbuffer is damaged");
  const auto& fb = *flatbuffers::GetRoot<fb::XNNGraph>(bytes.data());
  ET_CHECK_OK_OR_RETURN_ERROR(Reader(fb, parts->constants, data, *graph).read());
  const Error error = infer_shapes(*graph);
  ET_CHECK_OR_RETURN_ERROR(error == Error::Ok, InvalidProgram,
                           "XnnpackBackend: the nodes do not fit together");
  return graph;
}

}  // namespace executorch::backends::xnnpack
