#pragma once

#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/evalue.h>

#include <cstdint>
#include <memory>
#include <string>

namespace executorch::extension::llm {

/// Runs a program in two methods: token_embedding, and text_decoder over its caches
/// (program_form.h). What it is given must outlive it.
class MultimodalDecoderRunner : public TextDecoderRunner {
 public:
  /// `method_name`: "forward" means text_decoder.
  explicit MultimodalDecoderRunner(Module* module, IOManager* io_manager,
                                   std::string method_name = "forward",
                                   std::unique_ptr<Sampler> sampler = nullptr);

  /// Both methods, one after the other.
  runtime::Result<aten::Tensor> step(TensorPtr& tokens, int64_t start_pos) override;
  /// Logits after `embeddings`, [1, t, d] in the type that text_decoder takes, which stand at
  /// `start_pos`. They lie in the program's memory until the next call.
  runtime::Result<aten::Tensor> decode(const runtime::EValue& embeddings, int64_t start_pos);
  /// Embeddings [1, t, d] of tokens, int64 or int32 [1, t], in the program's memory.
  runtime::Result<aten::Tensor> embed(const TensorPtr& tokens);

  ET_NODISCARD runtime::Error load() override;
  bool is_method_loaded() override;

  /// How many tokens both methods take in a call. After load().
  int64_t max_tokens() const;

 private:
  ProgramForm embedding_form_;
  bool is_embedding_known_ = false;
};

}  // namespace executorch::extension::llm
