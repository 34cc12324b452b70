#include <executorch/cpu/size.h>
#include <executorch/extension/llm/runner/encoder_input.h>
#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <utility>

namespace executorch::extension::llm {
namespace {

using aten::ScalarType;
using aten::SizesType;
using cpu::Size;
using runtime::Error;
using runtime::Result;

std::string described_input(const EncoderInput& input) {
  return (input.is_dynamic ? "at most " : "") +
         described(input.type, {input.sizes.data(), input.sizes.size()});
}

bool is_float(ScalarType type) {
  return type == ScalarType::Float || type == ScalarType::Half || type == ScalarType::BFloat16;
}

/// Raw sound as a tensor of bytes, or of the encoder's type, whichever the number of bytes fits.
Result<TensorPtr> raw_tensor(const EncoderInput& input, const RawAudio& audio) {
  const std::vector<SizesType> sizes = {audio.batch_size, audio.n_channels, audio.n_samples};
  Size count = 1;
  for (const SizesType size : sizes) count *= size > 0 ? Size(size) : Size::invalid();
  const size_t n_bytes = audio.data.size();
  const Size of_elements = count * static_cast<int64_t>(runtime::elementSize(input.type));
  const bool has_elements = of_elements.ok() && Size(n_bytes).value_or(-1) == of_elements.value();
  const bool has_bytes = count.ok() && Size(n_bytes).value_or(-1) == count.value();
  ET_CHECK_OR_RETURN_ERROR(
      has_elements || has_bytes, InvalidArgument,
      "raw_audio: %zu bytes are not %d times %d channels of %d samples, of a byte each or as "
      "'%s' takes them: %s",
      n_bytes, static_cast<int>(sizes[0]), static_cast<int>(sizes[1]), static_cast<int>(sizes[2]),
      input.method.c_str(), runtime::toString(input.type));
  return make_tensor_ptr(sizes, std::vector<uint8_t>(audio.data),
                         has_elements ? input.type : ScalarType::Byte);
}

Result<TensorPtr> media_tensor(const EncoderInput& input, const MultimodalInput& media) {
  if (const Image* const image = media.try_get_image()) return image->toTensor();
  if (const Audio* const audio = media.try_get_audio()) return audio->toTensor();
  if (const RawAudio* const audio = media.try_get_raw_audio()) return raw_tensor(input, *audio);
  ET_LOG(Error, "method '%s' encodes no %s", input.method.c_str(), media.type_name());
  return Error::InvalidArgument;
}

/// Adds or removes leading dims of 1 until there are `rank` dims, if that is possible.
std::vector<SizesType> with_rank(std::vector<SizesType> sizes, size_t rank) {
  while (sizes.size() > rank && sizes.front() == 1) sizes.erase(sizes.begin());
  while (sizes.size() < rank) sizes.insert(sizes.begin(), 1);
  return sizes;
}

bool fits(const EncoderInput& input, const std::vector<SizesType>& sizes) {
  if (!input.is_dynamic || sizes.size() != input.sizes.size()) return sizes == input.sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > input.sizes[i]) return false;
  }
  return true;
}

}  // namespace

Result<EncoderInput> encoder_input(Module& module, const std::string& method) {
  ET_ASSIGN_OR_RETURN(const auto meta, module.method_meta(method));
  ET_CHECK_OR_RETURN_ERROR(meta.num_inputs() == 1, InvalidArgument,
                           "method '%s' has %zu inputs; expected one, of what it encodes",
                           method.c_str(), meta.num_inputs());
  const auto tensor = meta.input_tensor_meta(0);
  ET_CHECK_OR_RETURN_ERROR(tensor.ok(), InvalidArgument, "method '%s': its input is no tensor",
                           method.c_str());
  const Result<bool> is_dynamic = is_input_dynamic(module, method, 0);
  if (!is_dynamic.ok()) return is_dynamic.error();
  EncoderInput input;
  input.method = method;
  input.type = tensor->scalar_type();
  input.sizes.assign(tensor->sizes().begin(), tensor->sizes().end());
  input.is_dynamic = *is_dynamic;
  return input;
}

Result<TensorPtr> fit_encoder_input(const EncoderInput& input, const MultimodalInput& media) {
  const Result<TensorPtr> tensor = media_tensor(input, media);
  if (!tensor.ok()) return tensor.error();
  const ScalarType type = (*tensor)->scalar_type();
  const auto found = (*tensor)->sizes();
  auto sizes = with_rank({found.begin(), found.end()}, input.sizes.size());
  if ((type != input.type && !is_float(input.type)) || !fits(input, sizes)) {
    ET_LOG(Error, "method '%s' takes %s; the %s is %s", input.method.c_str(),
           described_input(input).c_str(), media.type_name(),
           described(type, {found.data(), found.size()}).c_str());
    return Error::InvalidArgument;
  }
  TensorPtr view = make_tensor_ptr(*tensor, std::move(sizes));
  return type == input.type ? view : clone_tensor_ptr(*view, input.type);
}

}  // namespace executorch::extension::llm
