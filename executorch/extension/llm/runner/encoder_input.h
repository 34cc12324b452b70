/// Images and sound as the methods that encode them take them.
#pragma once

#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>

#include <string>
#include <vector>

namespace executorch {
namespace extension {
namespace llm {

/// The only input of an encoder.
struct EncoderInput {
  std::string method;
  aten::ScalarType type = aten::ScalarType::Float;
  /// The largest, if `is_dynamic`.
  std::vector<aten::SizesType> sizes;
  bool is_dynamic = false;
};

/// Loads the method for it. InvalidArgument, and what was found in the log, if it takes anything
/// but one tensor.
runtime::Result<EncoderInput> encoder_input(Module& module, const std::string& method);

/// A copy of an image, sound or raw sound as that input. Dims of 1 are added in front, or left out,
/// until there are as many as the encoder takes. Bytes and floats become floats of the encoder's
/// type, with the same values: 255 is 255.0. Raw sound has the encoder's elements in its bytes, or
/// a value in each. InvalidArgument, with what was found and expected in the log, for other sizes
/// and for floats where the encoder takes integers.
runtime::Result<TensorPtr> fit_encoder_input(const EncoderInput& input,
                                             const MultimodalInput& media);

}  // namespace llm
}  // namespace extension
}  // namespace executorch
