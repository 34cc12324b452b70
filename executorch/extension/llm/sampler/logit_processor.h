#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <cstdint>

namespace executorch::extension::llm {

/// Changes logits before a token is chosen: a constraint, a bias, a watermark. Processors are
/// called one after the other, each on what the one before it left.
///
///   for each token:  process(logits)  a token is chosen  accept(token)
class LogitProcessor {
 public:
  virtual ~LogitProcessor() = default;

  /// Changes, in place, the logits of the next token: the last row of `logits`, whose last
  /// dimension is the vocabulary; -infinity excludes a token. The runner of this project gives
  /// float [1, v].
  virtual runtime::Error process(aten::Tensor logits) = 0;

  /// What was chosen after process(). An end-of-text token is told, too.
  virtual runtime::Error accept(uint64_t token) {
    (void)token;
    return runtime::Error::Ok;
  }

  /// True when nothing may follow: the runner then ends the text without choosing another token.
  /// Asked after each accept().
  virtual bool is_complete() const { return false; }
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::LogitProcessor;
}  // namespace torch::executor
