#include <executorch/backends/xnnpack/runtime/payload_fields.h>

#include <limits>
#include <utility>

namespace executorch::backends::xnnpack::testing {
namespace {

/// Numbers at the edges of what is checked; small ones are ids and extents most often.
uint32_t any_number(Random& random) {
  constexpr uint32_t edges[] = {
      0,  1,   2,   4,       7,          8,          31,         32,         33,
      64, 128, 255, 1 << 16, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF};
  return random() % 2 == 0 ? static_cast<uint32_t>(random() % 24)
                           : edges[random() % std::size(edges)];
}

float any_float(Random& random) {
  using Limits = std::numeric_limits<float>;
  constexpr float edges[] = {0,
                             -0.0f,
                             1,
                             -1,
                             0.5f,
                             1e-30f,
                             1e30f,
                             Limits::min(),
                             Limits::denorm_min(),
                             Limits::max(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN()};
  return edges[random() % std::size(edges)];
}

void mutate_list(std::vector<uint32_t>& list, Random& random) {
  const uint64_t choice = random() % 6;
  if (choice == 0 && !list.empty()) {
    list.pop_back();
  } else if (choice == 1) {
    list.push_back(any_number(random));
  } else if (choice == 2 && list.size() > 1) {
    std::swap(any_of(list, random), any_of(list, random));
  } else if (!list.empty()) {
    any_of(list, random) = any_number(random);
  }
}

/// Takes an entry out, or puts one elsewhere.
template <class T>
void shuffle(std::vector<T>& list, Random& random) {
  if (list.empty()) return;
  const auto at = static_cast<std::ptrdiff_t>(random() % list.size());
  if (random() % 3 == 0) {
    list.erase(list.begin() + at);
  } else {
    std::swap(list[static_cast<size_t>(at)], any_of(list, random));
  }
}

/// Another kind of quantization, or none.
void replace_quantization(fb::XNNQuantParamsUnion& params, Random& random) {
  params.Reset();
  switch (random() % 5) {
    case 0:
      params.Set(fb::PerTensorQuantT());
      params.AsPerTensorQuant()->scale = 0.5f;
      break;
    case 1:
      params.Set(fb::PerChannelQuantT());
      break;
    case 2:
      params.Set(fb::PerTokenDynamicQuantT());
      params.AsPerTokenDynamicQuant()->num_nonbatch_dims = 1;
      break;
    case 3:
      params.Set(fb::PerChannelGroupQuantT());
      params.AsPerChannelGroupQuant()->group_size = 32;
      break;
    default:
      break;
  }
}

void mutate_quantization(fb::XNNQuantizedTensorValueT& value, Random& random) {
  auto& params = value.quant_params;
  if (auto* tensor = params.AsPerTensorQuant(); tensor != nullptr && random() % 4 != 0) {
    if (random() % 2 == 0) tensor->scale = any_float(random);
    if (random() % 2 == 0) tensor->zero_point = static_cast<int32_t>(any_number(random));
  } else if (auto* channel = params.AsPerChannelQuant(); channel != nullptr && random() % 4 != 0) {
    switch (random() % 4) {
      case 0:
        channel->channel_dim = static_cast<int32_t>(any_number(random));
        break;
      case 1:
        channel->num_scales = any_number(random);
        break;
      case 2:
        channel->scale.assign(random() % 24, any_float(random));
        [[fallthrough]];
      default:
        channel->scale_buffer_idx = any_number(random);
    }
  } else if (auto* row = params.AsPerTokenDynamicQuant(); row != nullptr && random() % 4 != 0) {
    row->num_nonbatch_dims = static_cast<int32_t>(any_number(random));
  } else if (auto* group = params.AsPerChannelGroupQuant(); group != nullptr && random() % 4 != 0) {
    switch (random() % 5) {
      case 0:
        group->channel_dim = static_cast<int32_t>(any_number(random));
        break;
      case 1:
        group->num_scales = any_number(random);
        break;
      case 2:
        group->group_size = static_cast<int32_t>(any_number(random));
        break;
      case 3:
        group->scale.assign(random() % 24, any_float(random));
        [[fallthrough]];
      default:
        group->scale_buffer_idx = any_number(random);
    }
  } else {
    replace_quantization(params, random);
  }
}

void mutate_value(fb::XValueT& value, Random& random) {
  auto* quantized = value.xvalue_union.AsXNNQuantizedTensorValue();
  auto* tensor =
      quantized != nullptr ? quantized->tensor_value.get() : value.xvalue_union.AsXNNTensorValue();
  if (tensor == nullptr) return;
  if (quantized != nullptr && random() % 3 == 0) return mutate_quantization(*quantized, random);
  constexpr int kTypes = static_cast<int>(fb::XNNDatatype::MAX) + 2;
  switch (random() % 8) {
    case 0:
      tensor->datatype = static_cast<fb::XNNDatatype>(random() % kTypes);
      break;
    case 1:
      tensor->num_dims = any_number(random);
      break;
    case 2:
    case 3:
      mutate_list(tensor->dims, random);
      if (random() % 4 != 0) tensor->num_dims = static_cast<uint32_t>(tensor->dims.size());
      break;
    case 4:
      tensor->constant_buffer_idx = any_number(random);
      break;
    case 5:
      (random() % 2 == 0 ? tensor->external_id : tensor->id_out) = any_number(random);
      break;
    case 6:
      tensor->flags = static_cast<uint32_t>(random() % 4);
      break;
    default:
      tensor->dq_datatype = static_cast<fb::XNNDatatype>(random() % kTypes);
  }
}

void mutate_node(fb::XNodeT& node, Random& random) {
  const uint64_t choice = random() % 8;
  if (choice == 0) return mutate_kind(node.xnode_union.type, random);
  if (choice == 1) {
    if (node.output_min_max == nullptr) node.output_min_max.reset(new fb::OutputMinMaxT());
    node.output_min_max->output_min = any_float(random);
    node.output_min_max->output_max = any_float(random);
    return;
  }
  Fields fields = fields_of(node.xnode_union);
  if (!fields.lists.empty() && choice < 5) {
    return mutate_list(*any_of(fields.lists, random), random);
  }
  if (!fields.floats.empty() && choice == 5) {
    *any_of(fields.floats, random) = any_float(random);
    return;
  }
  std::vector<uint32_t*> numbers = fields.inputs;
  for (const auto* more : {&fields.outputs, &fields.amounts, &fields.flags}) {
    numbers.insert(numbers.end(), more->begin(), more->end());
  }
  if (!numbers.empty()) *any_of(numbers, random) = any_number(random);
}

void mutate_constant(fb::ConstantDataOffsetT& entry, fb::XNNGraphT& graph, Random& random) {
  switch (random() % 4) {
    case 0:
      entry.offset = random() % 2 == 0 ? random() % 4096 : ~uint64_t{0} - random() % 64;
      break;
    case 1:
      entry.size = random() % 2 == 0 ? random() % 4096 : ~uint64_t{0} - random() % 64;
      break;
    case 2:
      entry.named_key = any_of(graph.constant_data, random)->named_key;
      break;
    default:
      entry.named_key += 'x';
  }
}

void mutate_graph(fb::XNNGraphT& graph, Random& random) {
  switch (random() % 12) {
    case 0:
      graph.num_externs = any_number(random);
      break;
    case 1:
      shuffle(graph.xnodes, random);
      break;
    case 2:
      shuffle(graph.xvalues, random);
      break;
    case 3:
      if (!graph.constant_data.empty()) {
        mutate_constant(*any_of(graph.constant_data, random), graph, random);
      }
      break;
    case 4:
    case 5:
    case 6:
    case 7:
      if (!graph.xvalues.empty()) mutate_value(*any_of(graph.xvalues, random), random);
      break;
    default:
      if (!graph.xnodes.empty()) mutate_node(*any_of(graph.xnodes, random), random);
  }
}

}  // namespace

Bytes mutate_bytes(const Bytes& payload, Random& random) {
  Bytes bytes = payload;
  if (random() % 16 == 0) bytes.resize(random() % bytes.size());
  if (bytes.size() < 8) return bytes;
  for (uint64_t n = 1 + random() % 6; n > 0; --n) {
    // Most of it is header and graph; weights behind them mean the same whatever they are.
    const size_t at = random() % bytes.size();
    if (random() % 2 == 0) {
      bytes[at] = static_cast<uint8_t>(random());
    } else {
      const uint32_t word = any_number(random);
      std::memcpy(&bytes[at / 4 * 4 + 4 <= bytes.size() ? at / 4 * 4 : at - 4], &word,
                  sizeof(word));
    }
  }
  return bytes;
}

Bytes mutate_fields(const Bytes& payload, Random& random) {
  const UnpackedPayload parts = unpack_payload(payload);
  for (uint64_t n = 1 + random() % 3; n > 0; --n) mutate_graph(*parts.graph, random);
  return pack_payload(*parts.graph, parts.constants.data(), parts.constants.size());
}

}  // namespace executorch::backends::xnnpack::testing
