#include <executorch/extension/llm/runner/text_prefiller.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

namespace {

TensorPtr tensor_of(std::vector<uint64_t>& tokens, size_t begin, size_t n) {
  return from_blob(tokens.data() + begin, {1, static_cast<aten::SizesType>(n)},
                   aten::ScalarType::Long);
}

Error check(const std::vector<uint64_t>& tokens, float temperature) {
  ET_CHECK_OR_RETURN_ERROR(!tokens.empty(), InvalidArgument, "prefill: the prompt has no tokens");
  return check_temperature(temperature);
}

}  // namespace

TextPrefiller::TextPrefiller(TextDecoderRunner* text_decoder_runner, bool use_kv_cache,
                             bool enable_parallel_prefill, int64_t max_seq_len)
    : text_decoder_runner_(text_decoder_runner),
      use_kv_cache_(use_kv_cache),
      enable_parallel_prefill_(enable_parallel_prefill),
      max_seq_len_(std::max<int64_t>(1, max_seq_len)) {}

Result<uint64_t> TextPrefiller::prefill(std::vector<uint64_t>& prompt_tokens, int64_t& start_pos,
                                        float temperature) {
  ET_CHECK_OK_OR_RETURN_ERROR(check(prompt_tokens, temperature));
  const auto chunk = static_cast<size_t>(
      std::min<uint64_t>(static_cast<uint64_t>(max_seq_len_), prompt_tokens.size()));
  if (!use_kv_cache_ || chunk == prompt_tokens.size()) {
    return prefill_chunk(prompt_tokens, start_pos, temperature);
  }
  for (size_t begin = 0;; begin += chunk) {
    const size_t end = std::min(begin + chunk, prompt_tokens.size());
    std::vector<uint64_t> part(prompt_tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                               prompt_tokens.begin() + static_cast<std::ptrdiff_t>(end));
    // Counted here, too: a class derived from this one need not move the position.
    const int64_t behind = start_pos + static_cast<int64_t>(part.size());
    const bool is_last = end == prompt_tokens.size();
    Result<uint64_t> next = prefill_chunk(part, start_pos, is_last ? temperature : 0.0f);
    if (!next.ok()) return next;
    start_pos = behind;
    if (is_last) return next;
  }
}

Result<uint64_t> TextPrefiller::prefill_chunk(std::vector<uint64_t>& prompt_tokens,
                                              int64_t& start_pos, float temperature) {
  ET_CHECK_OK_OR_RETURN_ERROR(check(prompt_tokens, temperature));
  const bool at_once = enable_parallel_prefill_ || !use_kv_cache_;
  const size_t step = at_once ? prompt_tokens.size() : 1;
  int32_t next = -1;
  for (size_t begin = 0; begin < prompt_tokens.size(); begin += step) {
    TensorPtr tokens = tensor_of(prompt_tokens, begin, step);
    ET_ASSIGN_OR_RETURN(const auto logits, text_decoder_runner_->step(tokens, start_pos));
    if (use_kv_cache_) start_pos += static_cast<int64_t>(step);
    if (begin + step < prompt_tokens.size()) continue;
    next = text_decoder_runner_->logits_to_token(logits, temperature);
  }
  if (next < 0) return Error::InvalidArgument;
  return static_cast<uint64_t>(next);
}

}  // namespace executorch::extension::llm
