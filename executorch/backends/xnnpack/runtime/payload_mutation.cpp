#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/serialization/objects/schema_generated.h>

#include <cstring>
#include <limits>
#include <utility>

namespace executorch::backends::xnnpack::testing {
namespace {

namespace fb = fb_xnnpack;

constexpr size_t kHeaderBytes = 32, kFlatbufferAt = 10, kConstantsAt = 18;

template <class T>
T read(const Bytes& bytes, size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}
template <class T>
void write(Bytes& bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof(value));
}

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

template <class T>
auto& any_of(std::vector<T>& list, Random& random) {
  return list[random() % list.size()];
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

void mutate_quantisation(fb::XNNQuantizedTensorValueT& value, Random& random) {
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
}

void mutate_value(fb::XValueT& value, Random& random) {
  auto* quantised = value.xvalue_union.AsXNNQuantizedTensorValue();
  auto* tensor =
      quantised != nullptr ? quantised->tensor_value.get() : value.xvalue_union.AsXNNTensorValue();
  if (tensor == nullptr) return;
  if (quantised != nullptr && random() % 3 == 0) return mutate_quantisation(*quantised, random);
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

/// The numbers and lists of a node's table.
struct Fields {
  std::vector<uint32_t*> numbers;
  std::vector<float*> floats;
  std::vector<std::vector<uint32_t>*> lists;
};

template <class T, class Member>
void add_if(Fields& fields, T& table, Member T::*member) {
  fields.numbers.push_back(&(table.*member));
}
template <class T, class... Members>
void add(Fields& fields, T& table, Members... members) {
  (add_if(fields, table, members), ...);
}

using Unary = fb::_XNNNode1x1T;
using Binary = fb::_XNNNode2x1T;
using Cat = fb::_XNNCatT;
using Conv = fb::_XNNNodeConvT;
using Pool = fb::_XNNPooling2DT;

constexpr fb::XNodeUnion kUnary[] = {
    fb::XNodeUnion::XNNSoftmax,    fb::XNodeUnion::XNNSigmoid,
    fb::XNodeUnion::XNNClamp,      fb::XNodeUnion::XNNFloor,
    fb::XNodeUnion::XNNConvert,    fb::XNodeUnion::XNNGlobalAvgPooling2d,
    fb::XNodeUnion::XNNSquareRoot, fb::XNodeUnion::XNNExp,
    fb::XNodeUnion::XNNCopy,       fb::XNodeUnion::XNNGelu,
    fb::XNodeUnion::XNNTanh,       fb::XNodeUnion::XNNHardswish};
constexpr fb::XNodeUnion kBinary[] = {
    fb::XNodeUnion::XNNAdd,      fb::XNodeUnion::XNNDiv,
    fb::XNodeUnion::XNNMinimum,  fb::XNodeUnion::XNNMaximum,
    fb::XNodeUnion::XNNMultiply, fb::XNodeUnion::XNNSubtract,
    fb::XNodeUnion::XNNPReLU,    fb::XNodeUnion::XNNBatchMatrixMultiply};
constexpr fb::XNodeUnion kCat[] = {fb::XNodeUnion::XNNConcatenate2, fb::XNodeUnion::XNNConcatenate3,
                                   fb::XNodeUnion::XNNConcatenate4,
                                   fb::XNodeUnion::XNNConcatenate5};
constexpr fb::XNodeUnion kConv[] = {fb::XNodeUnion::XNNConv2d, fb::XNodeUnion::XNNDepthwiseConv2d,
                                    fb::XNodeUnion::XNNConvTranspose2d};
constexpr fb::XNodeUnion kPool[] = {fb::XNodeUnion::XNNAvgPooling2d,
                                    fb::XNodeUnion::XNNMaxPooling2d};

template <size_t N>
bool among(const fb::XNodeUnion (&kinds)[N], fb::XNodeUnion kind) {
  for (const fb::XNodeUnion each : kinds) {
    if (each == kind) return true;
  }
  return false;
}

Fields fields_of(fb::XNodeUnionUnion& node) {
  Fields f;
  void* const table = node.value;
  if (table == nullptr) return f;
  if (among(kBinary, node.type)) {
    add(f, *static_cast<Binary*>(table), &Binary::input1_id, &Binary::input2_id, &Binary::output_id,
        &Binary::flags);
  } else if (among(kCat, node.type)) {
    add(f, *static_cast<Cat*>(table), &Cat::axis, &Cat::input1_id, &Cat::input2_id, &Cat::input3_id,
        &Cat::output_id, &Cat::flags);
  } else if (among(kConv, node.type)) {
    add(f, *static_cast<Conv*>(table), &Conv::padding_top, &Conv::padding_right,
        &Conv::padding_bottom, &Conv::padding_left, &Conv::kernel_height, &Conv::kernel_width,
        &Conv::subsampling_height, &Conv::subsampling_width, &Conv::dilation_height,
        &Conv::dilation_width, &Conv::group_input_channels, &Conv::group_output_channels,
        &Conv::groups, &Conv::adjustment_height, &Conv::adjustment_width, &Conv::input1_id,
        &Conv::filter_id, &Conv::bias_id, &Conv::output_id, &Conv::flags);
  } else if (among(kPool, node.type)) {
    add(f, *static_cast<Pool*>(table), &Pool::padding_top, &Pool::padding_right,
        &Pool::padding_bottom, &Pool::padding_left, &Pool::pooling_height, &Pool::pooling_width,
        &Pool::stride_height, &Pool::stride_width, &Pool::dilation_height, &Pool::dilation_width,
        &Pool::input_id, &Pool::output_id, &Pool::flags);
  } else if (auto* fc = node.AsXNNFullyConnected()) {
    using T = fb::XNNFullyConnectedT;
    add(f, *fc, &T::input1_id, &T::filter_id, &T::bias_id, &T::output_id, &T::flags);
  } else if (auto* transpose = node.AsXNNStaticTranspose()) {
    using T = fb::XNNStaticTransposeT;
    add(f, *transpose, &T::num_dims, &T::input_id, &T::output_id);
    f.lists = {&transpose->perm};
  } else if (auto* reshape = node.AsXNNStaticReshape()) {
    using T = fb::XNNStaticReshapeT;
    add(f, *reshape, &T::num_dims, &T::input_id, &T::output_id);
    f.lists = {&reshape->new_shape};
  } else if (auto* slice = node.AsXNNStaticSlice()) {
    using T = fb::XNNStaticSliceT;
    add(f, *slice, &T::num_dims, &T::input_id, &T::output_id);
    f.lists = {&slice->offsets, &slice->sizes};
  } else if (auto* pad = node.AsXNNStaticConstantPad()) {
    using T = fb::XNNStaticConstantPadT;
    add(f, *pad, &T::input_id, &T::output_id);
    f.lists = {&pad->pre_paddings, &pad->post_paddings};
    f.floats = {&pad->padding_value};
  } else if (auto* resize = node.AsXNNStaticResizeBilinear2D()) {
    using T = fb::XNNStaticResizeBilinear2DT;
    add(f, *resize, &T::new_height, &T::new_width, &T::input_id, &T::output_id, &T::flags);
  } else if (auto* arg_max = node.AsXNNArgMaxPooling2d()) {
    using T = fb::XNNArgMaxPooling2dT;
    add(f, *arg_max, &T::padding_top, &T::pooling_height, &T::pooling_width, &T::input_id,
        &T::output_value_id, &T::output_index_id);
  } else if (auto* leaky = node.AsXNNLeakyReLU()) {
    using T = fb::XNNLeakyReLUT;
    add(f, *leaky, &T::input_id, &T::output_id);
    f.floats = {&leaky->negative_slope};
  } else if (auto* elu = node.AsXNNELU()) {
    using T = fb::XNNELUT;
    add(f, *elu, &T::input_id, &T::output_id);
    f.floats = {&elu->alpha};
  } else if (node.type != fb::XNodeUnion::XNNScaledDotProductAttention) {
    add(f, *static_cast<Unary*>(table), &Unary::input_id, &Unary::output_id, &Unary::flags);
  }
  return f;
}

/// Another kind whose table has the same fields.
void mutate_kind(fb::XNodeUnion& kind, Random& random) {
  if (among(kUnary, kind)) kind = kUnary[random() % std::size(kUnary)];
  if (among(kBinary, kind)) kind = kBinary[random() % std::size(kBinary)];
  if (among(kCat, kind)) kind = kCat[random() % std::size(kCat)];
  if (among(kConv, kind)) kind = kConv[random() % std::size(kConv)];
  if (among(kPool, kind)) kind = kPool[random() % std::size(kPool)];
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
  if (!fields.lists.empty() && choice < 5)
    return mutate_list(*any_of(fields.lists, random), random);
  if (!fields.floats.empty() && choice == 5) {
    *any_of(fields.floats, random) = any_float(random);
  } else if (!fields.numbers.empty()) {
    *any_of(fields.numbers, random) = any_number(random);
  }
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
      write(bytes, at / 4 * 4 + 4 <= bytes.size() ? at / 4 * 4 : at - 4, any_number(random));
    }
  }
  return bytes;
}

Bytes mutate_fields(const Bytes& payload, Random& random) {
  const auto flatbuffer = read<uint32_t>(payload, kFlatbufferAt);
  const auto constants = read<uint32_t>(payload, kConstantsAt);
  const auto graph = fb::UnPackXNNGraph(&payload[flatbuffer]);
  for (uint64_t n = 1 + random() % 3; n > 0; --n) mutate_graph(*graph, random);
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(fb::CreateXNNGraph(fbb, graph.get()), "XN01");
  Bytes bytes(payload.begin(), payload.begin() + kHeaderBytes);
  const auto end = static_cast<uint32_t>((kHeaderBytes + fbb.GetSize() + 15) / 16 * 16);
  write(bytes, kFlatbufferAt, static_cast<uint32_t>(kHeaderBytes));
  write(bytes, kFlatbufferAt + 4, fbb.GetSize());
  write(bytes, kConstantsAt, end);
  bytes.resize(end);
  std::memcpy(&bytes[kHeaderBytes], fbb.GetBufferPointer(), fbb.GetSize());
  bytes.insert(bytes.end(), payload.begin() + constants, payload.end());
  return bytes;
}

}  // namespace executorch::backends::xnnpack::testing
