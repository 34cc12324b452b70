#pragma once

#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/tokenizers/error.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// The value of a tokenizers::Result; on an error, returns InvalidArgument from the function.
#define ET_UNWRAP_TOKENIZER(result__)                                               \
  ({                                                                                \
    auto tk_result__ = (result__);                                                  \
    if (!tk_result__.ok()) {                                                        \
      ET_LOG(Error, "tokenizer: %s", ::tokenizers::to_string(tk_result__.error())); \
      return ::executorch::runtime::Error::InvalidArgument;                         \
    }                                                                               \
    std::move(tk_result__.get());                                                   \
  })

/// Declares or assigns `var__` in the same way.
#define ET_ASSIGN_OR_RETURN_TOKENIZER(var__, result__) var__ = ET_UNWRAP_TOKENIZER(result__)

/// Returns InvalidArgument, with a message in the log, if a tokenizers::Error is not Ok.
#define ET_CHECK_TK_OK_OR_RETURN_ERROR(result__, ...)                      \
  do {                                                                     \
    const ::tokenizers::Error tk_error__ = (result__);                     \
    if (tk_error__ != ::tokenizers::Error::Ok) {                           \
      ET_LOG(Error, "tokenizer: %s", ::tokenizers::to_string(tk_error__)); \
      return ::executorch::runtime::Error::InvalidArgument;                \
    }                                                                      \
  } while (0)

namespace executorch::extension::llm {

/// Prints text to stdout, except a single byte that is neither printable nor white space.
void safe_printf(const char* piece);

/// The length of `s` without an incomplete UTF-8 character at its end. Invalid bytes count as
/// characters.
size_t utf8_complete_prefix_len(const std::string& s);

/// The largest length up to `len` that does not end within a character.
size_t utf8_safe_prefix_len(const std::string& s, size_t len);

/// How much of `text` may be shown. If it contains one of `stops`, all before the first of these,
/// and `stop_hit` is true. Else all but an end that may be the beginning of a stop string, or of a
/// character. Empty stops are ignored.
size_t stop_safe_prefix_len(const std::string& text, const std::vector<std::string>& stops,
                            bool& stop_hit);

/// Limits a number of tokens to the range that tokenizers accept, 0 to 127.
constexpr int8_t token_count(int32_t n) {
  return static_cast<int8_t>(n < 0 ? 0 : n > 127 ? 127 : n);
}

/// InvalidArgument, with a message in the log, unless `temperature` is finite and 0 or more.
runtime::Error check_temperature(float temperature);

/// Milliseconds since an arbitrary time.
long time_in_ms();

/// The resident memory of this process; 0 if it is not known.
size_t get_rss_bytes();

/// The second input of a method over explicit caches, as a tensor over memory of the caller's:
/// `start_pos` if the input has one element; else `cache_positions_vec`, filled with the positions
/// of `seq_len` tokens from `start_pos` on.
runtime::Result<TensorPtr> populate_start_pos_or_cache_position(
    Module* module, int64_t& start_pos, std::vector<int64_t>& cache_positions_vec, int seq_len,
    const char* method_name = "forward");

/// A copy of a float tensor. InvalidArgument for other types.
runtime::Result<extension::TensorPtr> convert_to_bfloat16(const extension::TensorPtr& src_tensor);

}  // namespace executorch::extension::llm

namespace torch::executor::util {
using ::executorch::extension::llm::get_rss_bytes;
using ::executorch::extension::llm::safe_printf;
using ::executorch::extension::llm::time_in_ms;
}  // namespace torch::executor::util
