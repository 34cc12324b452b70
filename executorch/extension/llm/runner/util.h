#pragma once

#include <executorch/extension/llm/runner/constants.h>
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
#define ET_UNWRAP_TOKENIZER(result__)                                                   \
  ({                                                                                    \
    auto tk_result__ = (result__);                                                      \
    if (!tk_result__.ok()) {                                                            \
      ET_LOG(Error, "tokenizer: error %u", static_cast<unsigned>(tk_result__.error())); \
      return ::executorch::runtime::Error::InvalidArgument;                             \
    }                                                                                   \
    std::move(tk_result__.get());                                                       \
  })

/// Declares or assigns `var__` in the same way.
#define ET_ASSIGN_OR_RETURN_TOKENIZER(var__, result__) var__ = ET_UNWRAP_TOKENIZER(result__)

/// Returns InvalidArgument, with a message in the log, if a tokenizers::Error is not Ok.
#define ET_CHECK_TK_OK_OR_RETURN_ERROR(result__, ...)                          \
  do {                                                                         \
    const auto tk_error__ = (result__);                                        \
    if (static_cast<unsigned>(tk_error__) != 0) {                              \
      ET_LOG(Error, "tokenizer: error %u", static_cast<unsigned>(tk_error__)); \
      return ::executorch::runtime::Error::InvalidArgument;                    \
    }                                                                          \
  } while (0)

namespace executorch {
namespace extension {
namespace llm {

/// Prints text to stdout, but not a single byte that is neither printable nor white space.
void safe_printf(const char* piece);

/// The length of `s` without the incomplete character it may end with. Bytes that are part of no
/// character count as characters.
size_t utf8_complete_prefix_len(const std::string& s);

/// The largest length, at most `len`, that does not end inside a character.
size_t utf8_safe_prefix_len(const std::string& s, size_t len);

/// How much of `text` may be shown: up to the first of `stops`, whose presence `stop_hit` tells;
/// else without an end that one of them begins with, or an incomplete character. Empty stops are
/// ignored.
size_t stop_safe_prefix_len(const std::string& text, const std::vector<std::string>& stops,
                            bool& stop_hit);

/// How many tokens of a kind a tokenizer is to add: at least none, and at most 127.
constexpr int8_t token_count(int32_t n) {
  return static_cast<int8_t>(n < 0 ? 0 : n > 127 ? 127 : n);
}

/// Since an arbitrary time.
long time_in_ms();

/// Memory of this process that is in RAM; 0 where that is not known.
size_t get_rss_bytes();

/// The second input of a method over explicit caches, in memory of the caller's: where the input
/// has one element, `start_pos`; else `cache_positions_vec`, filled with the positions of `seq_len`
/// tokens from `start_pos` on.
runtime::Result<TensorPtr> populate_start_pos_or_cache_position(
    Module* module, int64_t& start_pos, std::vector<int64_t>& cache_positions_vec, int seq_len,
    const char* method_name = "forward");

/// A copy of a float tensor. InvalidArgument for other types.
runtime::Result<extension::TensorPtr> convert_to_bfloat16(const extension::TensorPtr& src_tensor);

}  // namespace llm
}  // namespace extension
}  // namespace executorch

namespace torch {
namespace executor {
namespace util {
using ::executorch::extension::llm::get_rss_bytes;
using ::executorch::extension::llm::safe_printf;
using ::executorch::extension::llm::time_in_ms;
}  // namespace util
}  // namespace executor
}  // namespace torch
