#pragma once

#include <executorch/extension/llm/runner/encoder_input.h>
#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/runner/multimodal_decoder_runner.h>
#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;
using tokenizers::Tokenizer;

/// Reads the pieces of a prompt: text and tokens by the method token_embedding, images by
/// vision_encoder (or image_encoder, its older name), sound by audio_encoder. An encoder gives
/// embeddings [1, n, d] or [n, d], which text_decoder takes like those of n tokens. What is longer
/// than a call takes is read in parts. What it is given must outlive it.
class MultimodalPrefiller {
 public:
  explicit MultimodalPrefiller(Module* module, MultimodalDecoderRunner* decoder_runner,
                               Tokenizer* tokenizer, IOManager* io_manager);
  virtual ~MultimodalPrefiller() = default;

  /// Reads a piece at position `start_pos`, and moves `start_pos` behind it unless there is an
  /// error. `bos`, `eos`: how many beginning- and end-of-text tokens to put around a text. Returns
  /// the likeliest next token. InvalidArgument, with what was found and expected in the log, if the
  /// program has no method or no room for the piece.
  virtual Result<uint64_t> prefill(const MultimodalInput& input, int64_t& start_pos,
                                   int32_t bos = 0, int32_t eos = 0);

  ET_NODISCARD virtual Error load();
  virtual bool is_method_loaded();

  /// The logits after the last piece, in the program's memory, which the next call overwrites. None
  /// after an error.
  const std::optional<aten::Tensor>& last_logits() const { return last_logits_; }

 private:
  using Part = std::function<Result<aten::Tensor>(int64_t begin, int64_t n)>;

  Result<std::vector<uint64_t>> tokens_of(const MultimodalInput& input, int32_t bos,
                                          int32_t eos) const;
  Error read_tokens(std::vector<uint64_t>& tokens, int64_t start_pos);
  Error read_embeddings(const aten::Tensor& embeddings, int64_t start_pos);
  Error read(int64_t n, int64_t chunk, int64_t start_pos, const Part& part);
  Result<TensorPtr> encode(const MultimodalInput& input);
  Result<const EncoderInput*> encoder_of(const MultimodalInput& input) const;

  Module* module_;
  MultimodalDecoderRunner* text_decoder_runner_;
  Tokenizer* tokenizer_;

  bool is_loaded_ = false;
  /// Method name -> its input, for the encoders of the program.
  std::unordered_map<std::string, EncoderInput> encoders_;
  int64_t context_length_ = 0;
  std::optional<aten::Tensor> last_logits_;
};

}  // namespace executorch::extension::llm
