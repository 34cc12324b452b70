#include <executorch/backends/xnnpack/runtime/payload_fields.h>

#include <algorithm>

namespace executorch::backends::xnnpack::testing {
namespace {

using Kind = fb::XNodeUnion;

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
  const Operation* const operation = find_operation(node.type);
  if (table == nullptr || operation == nullptr) return {};
  switch (operation->form) {
    case Form::Unary:
    case Form::GlobalPooling:
      return of(*static_cast<fb::_XNNNode1x1T*>(table));
    case Form::Slope:
      return of(*static_cast<fb::XNNLeakyReLUT*>(table));
    case Form::Alpha:
      return of(*static_cast<fb::XNNELUT*>(table));
    case Form::Binary:
    case Form::BatchMatrixMultiply:
      return of(*static_cast<fb::_XNNNode2x1T*>(table));
    case Form::FullyConnected:
      return of(*static_cast<fb::XNNFullyConnectedT*>(table));
    case Form::Concatenate:
      return of(*static_cast<fb::_XNNCatT*>(table));
    case Form::Convolution:
      return of(*static_cast<fb::_XNNNodeConvT*>(table));
    case Form::Pooling:
      return of(*static_cast<fb::_XNNPooling2DT*>(table));
    case Form::ArgMaxPooling:
      return of(*static_cast<fb::XNNArgMaxPooling2dT*>(table));
    case Form::Transpose:
      return of(*static_cast<fb::XNNStaticTransposeT*>(table));
    case Form::Reshape:
      return of(*static_cast<fb::XNNStaticReshapeT*>(table));
    case Form::Slice:
      return of(*static_cast<fb::XNNStaticSliceT*>(table));
    case Form::Resize:
      return of(*static_cast<fb::XNNStaticResizeBilinear2DT*>(table));
    case Form::Pad:
      return of(*static_cast<fb::XNNStaticConstantPadT*>(table));
  }
  return {};
}

std::vector<Kind> kinds_of(std::initializer_list<Form> forms) {
  std::vector<Kind> found;
  for (const Kind kind : fb::EnumValuesXNodeUnion()) {
    const Operation* const operation = find_operation(kind);
    const bool wanted = operation != nullptr &&
                        std::find(forms.begin(), forms.end(), operation->form) != forms.end();
    if (wanted) found.push_back(kind);
  }
  return found;
}

void mutate_kind(Kind& kind, Random& random) {
  const Operation* const operation = find_operation(kind);
  if (operation == nullptr) return;
  const Form form = operation->form;
  const bool is_unary = form == Form::Unary || form == Form::GlobalPooling;
  const bool is_binary = form == Form::Binary || form == Form::BatchMatrixMultiply;
  const auto like = is_unary    ? kinds_of({Form::Unary, Form::GlobalPooling})
                    : is_binary ? kinds_of({Form::Binary, Form::BatchMatrixMultiply})
                                : kinds_of({form});
  kind = any_of(like, random);
}

}  // namespace executorch::backends::xnnpack::testing
