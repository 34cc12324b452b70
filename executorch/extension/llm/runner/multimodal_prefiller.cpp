#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/multimodal_prefiller.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <utility>

namespace executorch::extension::llm {
namespace {

using aten::Tensor;
using runtime::EValue;

/// What older programs call vision_encoder.
constexpr auto kImageEncoderMethod = "image_encoder";

/// The embeddings as [1, n, d], where they lie.
Result<TensorPtr> as_rows(const std::string& method, const EValue& value) {
  ET_CHECK_OR_RETURN_ERROR(value.isTensor(), InvalidArgument,
                           "method '%s' gives no tensor of embeddings", method.c_str());
  const Tensor tensor = value.toTensor();
  const auto sizes = tensor.sizes();
  const bool is_batch = sizes.size() == 3 && sizes[0] == 1;
  const bool is_in_order =
      runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size());
  if ((sizes.size() != 2 && !is_batch) || tensor.numel() == 0 || !is_in_order) {
    ET_LOG(Error, "method '%s' gives %s; expected embeddings [1, n, d], row after row",
           method.c_str(), described(tensor.scalar_type(), {sizes.data(), sizes.size()}).c_str());
    return Error::InvalidArgument;
  }
  if (is_batch) return make_tensor_ptr(tensor);
  return make_tensor_ptr(tensor, {1, sizes[0], sizes[1]});
}

}  // namespace

MultimodalPrefiller::MultimodalPrefiller(Module* module, MultimodalDecoderRunner* decoder_runner,
                                         Tokenizer* tokenizer, IOManager* io_manager)
    : module_(module), text_decoder_runner_(decoder_runner), tokenizer_(tokenizer) {
  (void)io_manager;  // the decoder has it
}

Error MultimodalPrefiller::load() {
  if (is_loaded_) return Error::Ok;
  ET_CHECK_OK_OR_RETURN_ERROR(text_decoder_runner_->load());
  ET_ASSIGN_OR_RETURN(const auto names, module_->method_names());
  for (const char* name : {kVisionEncoderMethod, kImageEncoderMethod, kAudioEncoderMethod}) {
    if (names.count(name) == 0) continue;
    ET_ASSIGN_OR_RETURN(encoders_[name], encoder_input(*module_, name));
  }
  context_length_ =
      read_metadata(*module_, text_decoder_runner_->form(), tokenizer_).at(kMaxContextLen);
  is_loaded_ = true;
  return Error::Ok;
}

bool MultimodalPrefiller::is_method_loaded() {
  return is_loaded_ && text_decoder_runner_->is_method_loaded();
}

Result<std::vector<uint64_t>> MultimodalPrefiller::tokens_of(const MultimodalInput& input,
                                                             int32_t bos, int32_t eos) const {
  if (const auto* const tokens = input.try_get_tokens()) return std::vector<uint64_t>(*tokens);
  return ET_UNWRAP_TOKENIZER(
      tokenizer_->encode(*input.try_get_text(), token_count(bos), token_count(eos)));
}

/// Calls `part` for at most `chunk` of `n` rows at a time; it gives the logits after them.
Error MultimodalPrefiller::read(int64_t n, int64_t chunk, int64_t start_pos, const Part& part) {
  ET_CHECK_OR_RETURN_ERROR(
      start_pos >= 0 && start_pos <= context_length_ && n <= context_length_ - start_pos,
      InvalidArgument, "%lld tokens at position %lld are beyond the context, whose length is %lld",
      static_cast<long long>(n), static_cast<long long>(start_pos),
      static_cast<long long>(context_length_));
  for (int64_t begin = 0; begin < n; begin += chunk) {
    ET_ASSIGN_OR_RETURN(last_logits_, part(begin, std::min(chunk, n - begin)));
  }
  return Error::Ok;
}

Error MultimodalPrefiller::read_tokens(std::vector<uint64_t>& tokens, int64_t start_pos) {
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  return read(
      n_tokens, text_decoder_runner_->max_tokens(), start_pos, [&](int64_t begin, int64_t n) {
        TensorPtr part = from_blob(tokens.data() + begin, {1, static_cast<aten::SizesType>(n)},
                                   aten::ScalarType::Long);
        return text_decoder_runner_->step(part, start_pos + begin);
      });
}

Error MultimodalPrefiller::read_embeddings(const Tensor& embeddings, int64_t start_pos) {
  const auto width = static_cast<aten::SizesType>(embeddings.size(2));
  auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(embeddings.const_data_ptr()));
  const auto row_bytes = static_cast<int64_t>(embeddings.nbytes()) / embeddings.size(1);
  const int64_t chunk = text_decoder_runner_->form().max_tokens;
  return read(embeddings.size(1), chunk, start_pos, [&](int64_t begin, int64_t n) {
    const TensorPtr part =
        from_blob(bytes + begin * row_bytes, {1, static_cast<aten::SizesType>(n), width},
                  embeddings.scalar_type());
    runtime::internal::keep_read_only(embeddings, *part);  // a program may give a constant
    return text_decoder_runner_->decode(EValue(part), start_pos + begin);
  });
}

Result<const EncoderInput*> MultimodalPrefiller::encoder_of(const MultimodalInput& input) const {
  const char* const method = input.is_image() ? kVisionEncoderMethod : kAudioEncoderMethod;
  auto found = encoders_.find(method);
  if (found == encoders_.end() && input.is_image()) found = encoders_.find(kImageEncoderMethod);
  if (found != encoders_.end()) return &found->second;
  ET_LOG(Error, "the program cannot read a piece of type %s: it has no method '%s'",
         input.type_name(), method);
  return Error::InvalidArgument;
}

/// Embeddings [1, n, d] of an image or of sound, in the program's memory.
Result<TensorPtr> MultimodalPrefiller::encode(const MultimodalInput& input) {
  const Result<const EncoderInput*> encoder = encoder_of(input);
  if (!encoder.ok()) return encoder.error();
  const std::string& method = (*encoder)->method;
  ET_ASSIGN_OR_RETURN(const TensorPtr media, fit_encoder_input(**encoder, input));
  const auto outputs = module_->execute(method, {EValue(media)});
  if (!outputs.ok()) return outputs.error();
  return as_rows(method, outputs->empty() ? EValue() : outputs->at(0));
}

Result<uint64_t> MultimodalPrefiller::prefill(const MultimodalInput& input, int64_t& start_pos,
                                              int32_t bos, int32_t eos) {
  last_logits_.reset();
  Error error = load();
  if (error != Error::Ok) return error;
  int64_t n = 0;
  if (input.is_text() || input.is_tokens()) {
    ET_ASSIGN_OR_RETURN(auto tokens, tokens_of(input, bos, eos));
    n = static_cast<int64_t>(tokens.size());
    error = read_tokens(tokens, start_pos);
  } else {
    const Result<TensorPtr> rows = encode(input);
    if (!rows.ok()) return rows.error();
    n = (*rows)->size(1);
    error = read_embeddings(**rows, start_pos);
  }
  if (error == Error::Ok && n == 0) {
    ET_LOG(Error, "a piece of type %s has no tokens", input.type_name());
    error = Error::InvalidArgument;
  }
  const int32_t next =
      error == Error::Ok ? text_decoder_runner_->logits_to_token(*last_logits_) : -1;
  if (next < 0) {
    last_logits_.reset();
    return error == Error::Ok ? Error::InvalidArgument : error;
  }
  start_pos += n;
  return static_cast<uint64_t>(next);
}

}  // namespace executorch::extension::llm
