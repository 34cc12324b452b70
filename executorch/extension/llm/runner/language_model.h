/// A program that remembers a text: what was computed for it is not computed again.
#pragma once

#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace executorch::extension::llm {

/// Computes the logits of any text with a program of any form (program_form.h). With a program over
/// caches, it computes the positions from the first changed token on. A program without explicit
/// caches is given the whole text; an incremental one finds out by itself what is new. A long text
/// is read in pieces, so that the memory of activations does not grow with it.
class LanguageModel {
 public:
  /// `decoder` must be loaded, and must outlive this object. `max_chunk`: the most tokens in one
  /// call over caches.
  LanguageModel(TextDecoderRunner& decoder, int64_t max_chunk);

  struct Call {
    /// If set to true, logits() ends before the next run of the program, with EndOfMethod.
    const std::atomic<bool>* stop = nullptr;
    /// Called after each run with the number of tokens done, and of all that have to be computed.
    std::function<void(int64_t done, int64_t total)> on_progress;
  };
  /// The logits after each of the last `n_rows` tokens of `text`, in the last `n_rows` rows; after
  /// the last token only, unless the program gives all positions. The tensor is the program's
  /// memory and valid until the next call. `text` must not be empty; `n_rows` is at most its length
  /// and max_chunk().
  runtime::Result<aten::Tensor> logits(runtime::Span<const uint64_t> text, int64_t n_rows,
                                       const Call& call);

  /// The most tokens in one call over caches.
  int64_t max_chunk() const { return max_chunk_; }

  /// The most rows of logits that one call of logits() gives: 1 unless the program gives all
  /// positions.
  int64_t max_rows() const;

  /// How many tokens at the beginning of `text` need not be computed, or, for a program without
  /// explicit caches, may be known to it.
  int64_t known_tokens(runtime::Span<const uint64_t> text) const;

  /// The most tokens of a long text that are read at once. More would hardly be faster.
  static constexpr int64_t kPiece = 256;

  /// Forgets the text.
  void reset() { known_.clear(); }

 private:
  runtime::Result<aten::Tensor> run(runtime::Span<const uint64_t> text, int64_t begin, int64_t n);
  int64_t piece() const;

  TextDecoderRunner& decoder_;
  int64_t max_chunk_;
  /// The text whose tokens the program has seen.
  std::vector<uint64_t> known_;
  std::vector<int64_t> input_;
};

}  // namespace executorch::extension::llm
