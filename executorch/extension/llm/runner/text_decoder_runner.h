#pragma once

#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/sampler/sampler.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace executorch::extension::llm {

/// One call of a program: tokens to logits. Forms of programs: program_form.h. What it is given
/// must outlive it.
class TextDecoderRunner {
 public:
  /// `io_manager` may be null: then tokens and positions are the inputs. `sampler` chooses tokens
  /// in logits_to_token(); null: one is made for each call.
  explicit TextDecoderRunner(Module* module, IOManager* io_manager,
                             std::string method_name = "forward",
                             std::unique_ptr<Sampler> sampler = nullptr, Stats* stats = nullptr);
  virtual ~TextDecoderRunner() = default;

  /// Logits of a call with `input`, int64 or int32 [1, t], at position `start_pos`. A program
  /// without positions takes the whole text as `input`. The logits lie in the program's memory
  /// until the next call.
  virtual runtime::Result<aten::Tensor> step(TensorPtr& input, int64_t start_pos);

  /// Loads the method and looks at its form.
  ET_NODISCARD virtual runtime::Error load();
  virtual bool is_method_loaded();

  const std::string& method_name() const { return method_name_; }
  /// After load().
  const ProgramForm& form() const { return form_; }

  /// Tokens that logits_to_token() never gives.
  void exclude_tokens(std::vector<uint64_t> tokens) { excluded_ = std::move(tokens); }

  /// The next token, by the last row of logits; -1 if they cannot be read.
  int32_t logits_to_token(const aten::Tensor& logits_tensor, const float temperature = 0.0f);

 protected:
  Module* module_;
  IOManager* io_manager_;
  std::string method_name_;
  std::unique_ptr<Sampler> sampler_;
  Stats* stats_;
  /// Loads the method, whose form `find_form` then reads.
  ET_NODISCARD runtime::Error load_as(
      runtime::Result<ProgramForm> (*find_form)(Module&, const std::string&));
  /// Logits of a call with `n` tokens, or their embeddings, in the type that the method takes.
  runtime::Result<aten::Tensor> run(const TensorPtr& tokens, int64_t n, int64_t start_pos);

  /// `tensor`, int64 or int32, with another element type and number of dims (1 or 2), if it has not
  /// those already. InvalidArgument, with a message in the log, for numbers that do not fit.
  static runtime::Result<TensorPtr> as_input(const TensorPtr& tensor, aten::ScalarType type,
                                             size_t dims);

  /// load() finds it out.
  ProgramForm form_;

 private:
  runtime::Result<std::vector<TensorPtr>> inputs_of(const TensorPtr& tokens, int64_t n) const;
  runtime::Result<std::vector<runtime::EValue>> execute(const TensorPtr& tokens, int64_t n,
                                                        int64_t start_pos);
  int32_t sample(const aten::Tensor& logits, float temperature);

  std::vector<uint64_t> excluded_;
  bool is_form_known_ = false;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextDecoderRunner;
}  // namespace torch::executor
