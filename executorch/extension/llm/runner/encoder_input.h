/// Images and sound as the methods that encode them take them.
#pragma once

#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>

#include <string>
#include <vector>

namespace executorch::extension::llm {

/// The only input of an encoder.
struct EncoderInput {
  std::string method;
  aten::ScalarType type = aten::ScalarType::Float;
  /// The sizes; their upper bounds, if `is_dynamic`.
  std::vector<aten::SizesType> sizes;
  bool is_dynamic = false;
};

/// Describes the input of a method, which is loaded for that. InvalidArgument, with what was found
/// in the log, if the method takes anything but one tensor.
runtime::Result<EncoderInput> encoder_input(Module& module, const std::string& method);

/// Copies an image, sound or raw sound to a tensor for that input. Leading dims of 1 are added or
/// removed to get the encoder's rank. Bytes and floats are converted to the encoder's type without
/// scaling: 255 becomes 255.0. The bytes of raw sound are elements of the encoder's type, or one
/// value each. InvalidArgument, with what was found and expected in the log, for other sizes, and
/// for floats where the encoder takes integers.
runtime::Result<TensorPtr> fit_encoder_input(const EncoderInput& input,
                                             const MultimodalInput& media);

}  // namespace executorch::extension::llm
