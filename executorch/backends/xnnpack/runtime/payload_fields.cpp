#include <executorch/backends/xnnpack/runtime/payload_fields.h>

namespace executorch::backends::xnnpack::testing {
namespace {

using Kind = fb::XNodeUnion;

constexpr Kind kUnary[] = {Kind::XNNSoftmax,    Kind::XNNSigmoid, Kind::XNNClamp,
                           Kind::XNNFloor,      Kind::XNNConvert, Kind::XNNGlobalAvgPooling2d,
                           Kind::XNNSquareRoot, Kind::XNNExp,     Kind::XNNCopy,
                           Kind::XNNGelu,       Kind::XNNTanh,    Kind::XNNHardswish};
constexpr Kind kBinary[] = {
    Kind::XNNAdd,      Kind::XNNDiv,      Kind::XNNMinimum, Kind::XNNMaximum,
    Kind::XNNMultiply, Kind::XNNSubtract, Kind::XNNPReLU,   Kind::XNNBatchMatrixMultiply};
constexpr Kind kCat[] = {Kind::XNNConcatenate2, Kind::XNNConcatenate3, Kind::XNNConcatenate4,
                         Kind::XNNConcatenate5};
constexpr Kind kConv[] = {Kind::XNNConv2d, Kind::XNNDepthwiseConv2d, Kind::XNNConvTranspose2d};
constexpr Kind kPool[] = {Kind::XNNAvgPooling2d, Kind::XNNMaxPooling2d};

template <size_t N>
bool among(const Kind (&kinds)[N], Kind kind) {
  for (const Kind each : kinds) {
    if (each == kind) return true;
  }
  return false;
}

template <class T>
Fields of(T& t) {
  return {{&t.input_id}, {&t.output_id}, {}, {&t.flags}, {}, {}};
}
Fields of(fb::_XNNNode2x1T& t) {
  return {{&t.input1_id, &t.input2_id}, {&t.output_id}, {}, {&t.flags}, {}, {}};
}
Fields of(fb::XNNFullyConnectedT& t) {
  return {{&t.input1_id, &t.filter_id, &t.bias_id}, {&t.output_id}, {}, {&t.flags}, {}, {}};
}
Fields of(fb::_XNNCatT& t) {
  return {{&t.input1_id, &t.input2_id, &t.input3_id, &t.input4_id, &t.input5_id},
          {&t.output_id},
          {&t.axis},
          {&t.flags},
          {},
          {}};
}
Fields of(fb::_XNNNodeConvT& t) {
  return {{&t.input1_id, &t.filter_id, &t.bias_id},
          {&t.output_id},
          {&t.padding_top, &t.padding_right, &t.padding_bottom, &t.padding_left,
           &t.subsampling_height, &t.subsampling_width, &t.dilation_height, &t.dilation_width,
           &t.adjustment_height, &t.adjustment_width, &t.kernel_height, &t.kernel_width, &t.groups,
           &t.group_input_channels, &t.group_output_channels},
          {&t.flags},
          {},
          {}};
}
Fields of(fb::_XNNPooling2DT& t) {
  return {
      {&t.input_id},
      {&t.output_id},
      {&t.padding_top, &t.padding_right, &t.padding_bottom, &t.padding_left, &t.pooling_height,
       &t.pooling_width, &t.stride_height, &t.stride_width, &t.dilation_height, &t.dilation_width},
      {&t.flags},
      {},
      {}};
}
Fields of(fb::XNNArgMaxPooling2dT& t) {
  return {{&t.input_id},
          {&t.output_value_id, &t.output_index_id},
          {&t.padding_top, &t.padding_right, &t.padding_bottom, &t.padding_left, &t.pooling_height,
           &t.pooling_width},
          {&t.flags},
          {},
          {}};
}
Fields of(fb::XNNStaticTransposeT& t) {
  return {{&t.input_id}, {&t.output_id}, {&t.num_dims}, {&t.flags}, {}, {&t.perm}};
}
Fields of(fb::XNNStaticReshapeT& t) {
  return {{&t.input_id}, {&t.output_id}, {&t.num_dims}, {&t.flags}, {}, {&t.new_shape}};
}
Fields of(fb::XNNStaticSliceT& t) {
  return {{&t.input_id}, {&t.output_id}, {&t.num_dims}, {&t.flags}, {}, {&t.offsets, &t.sizes}};
}
Fields of(fb::XNNStaticConstantPadT& t) {
  return {{&t.input_id}, {&t.output_id},     {},
          {&t.flags},    {&t.padding_value}, {&t.pre_paddings, &t.post_paddings}};
}
Fields of(fb::XNNStaticResizeBilinear2DT& t) {
  return {{&t.input_id}, {&t.output_id}, {&t.new_height, &t.new_width}, {&t.flags}, {}, {}};
}
Fields of(fb::XNNLeakyReLUT& t) {
  return {{&t.input_id}, {&t.output_id}, {}, {&t.flags}, {&t.negative_slope}, {}};
}
Fields of(fb::XNNELUT& t) {
  return {{&t.input_id}, {&t.output_id}, {}, {&t.flags}, {&t.alpha}, {}};
}

}  // namespace

Fields fields_of(fb::XNodeUnionUnion& node) {
  void* const table = node.value;
  if (table == nullptr) return {};
  if (among(kBinary, node.type)) return of(*static_cast<fb::_XNNNode2x1T*>(table));
  if (among(kCat, node.type)) return of(*static_cast<fb::_XNNCatT*>(table));
  if (among(kConv, node.type)) return of(*static_cast<fb::_XNNNodeConvT*>(table));
  if (among(kPool, node.type)) return of(*static_cast<fb::_XNNPooling2DT*>(table));
  switch (node.type) {
    case Kind::XNNFullyConnected:
      return of(*node.AsXNNFullyConnected());
    case Kind::XNNStaticTranspose:
      return of(*node.AsXNNStaticTranspose());
    case Kind::XNNStaticReshape:
      return of(*node.AsXNNStaticReshape());
    case Kind::XNNStaticSlice:
      return of(*node.AsXNNStaticSlice());
    case Kind::XNNStaticConstantPad:
      return of(*node.AsXNNStaticConstantPad());
    case Kind::XNNStaticResizeBilinear2D:
      return of(*node.AsXNNStaticResizeBilinear2D());
    case Kind::XNNArgMaxPooling2d:
      return of(*node.AsXNNArgMaxPooling2d());
    case Kind::XNNLeakyReLU:
      return of(*node.AsXNNLeakyReLU());
    case Kind::XNNELU:
      return of(*node.AsXNNELU());
    case Kind::XNNScaledDotProductAttention:
      return {};
    default:
      return of(*static_cast<fb::_XNNNode1x1T*>(table));
  }
}

void mutate_kind(Kind& kind, Random& random) {
  if (among(kUnary, kind)) kind = any_of(kUnary, random);
  if (among(kBinary, kind)) kind = any_of(kBinary, random);
  if (among(kCat, kind)) kind = any_of(kCat, random);
  if (among(kConv, kind)) kind = any_of(kConv, random);
  if (among(kPool, kind)) kind = any_of(kPool, random);
}

}  // namespace executorch::backends::xnnpack::testing
