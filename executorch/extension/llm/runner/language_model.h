/// A program that remembers a text: what was computed for it is not computed again.
#pragma once

#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace executorch {
namespace extension {
namespace llm {

/// Logits of any text by any form of program (program_form.h). Of a program over caches, positions
/// from the first changed token on are computed anew; a program without them is given the whole
/// text, and finds by itself what is new, if it keeps anything.
class LanguageModel {
 public:
  /// `decoder`, loaded, must outlive this. `max_chunk`: tokens in one call over caches, at most.
  LanguageModel(TextDecoderRunner& decoder, int64_t max_chunk);

  struct Call {
    /// Ends it between two runs, with EndOfMethod.
    const std::atomic<bool>* stop = nullptr;
    /// After each run: tokens done, of all that had to be computed.
    std::function<void(int64_t done, int64_t total)> on_progress;
  };
  /// Logits after the last `n_rows` tokens of `text`, in the last `n_rows` rows; after the last
  /// only, unless the program gives all positions. They lie in the program's memory until the next
  /// call. `text` must not be empty, and `n_rows` at most its length and max_chunk().
  runtime::Result<aten::Tensor> logits(runtime::Span<const uint64_t> text, int64_t n_rows,
                                       const Call& call);

  /// Tokens in one call over caches, at most.
  int64_t max_chunk() const { return max_chunk_; }

  /// Tokens at the beginning of `text` that need not be computed, or that the program may keep.
  int64_t known_tokens(runtime::Span<const uint64_t> text) const;

  /// Forgets the text.
  void reset() { known_.clear(); }

 private:
  runtime::Result<aten::Tensor> run(runtime::Span<const uint64_t> text, int64_t begin, int64_t n);

  TextDecoderRunner& decoder_;
  int64_t max_chunk_;
  /// The text whose tokens the program has seen.
  std::vector<uint64_t> known_;
  std::vector<int64_t> input_;
};

}  // namespace llm
}  // namespace extension
}  // namespace executorch
