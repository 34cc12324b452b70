#pragma once

#include <executorch/devtools/inspect/table.h>
#include <executorch/extension/command/verbs.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/sampler/constraint/constraint.h>

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::command {

/// A language model that the command line chose, with one text. Ctrl-C ends the answer that is
/// being made, not the program. Throws Failure, as all of this.
class TextRun {
 public:
  explicit TextRun(const TextOptions& options);
  ~TextRun();

  llm::TextEngine& engine() { return *engine_; }
  /// Tokens of a text.
  std::vector<uint64_t> encode(const std::string& text, int n_bos) const;
  /// What the command line says of sampling and of where texts end.
  const llm::GenerationOptions& generation() const { return generation_; }
  /// Whether a prompt of so many tokens can be continued.
  bool has_room_for(size_t n_tokens) const;
  /// Continues a text; shows what comes if `show` is given, and how far reading the prompt is.
  llm::GenerationResult run(std::vector<uint64_t> tokens, llm::GenerationOptions generation,
                            const std::function<void(const std::string&)>& show);
  /// The JSON of a result: text, tokens and rates.
  devtools::Json json(const llm::GenerationResult& result) const;

 private:
  TextOptions options_;
  llm::GenerationOptions generation_;
  std::shared_ptr<llm::Constraint> constraint_;  // null: any text
  std::unique_ptr<llm::TextEngine> engine_;
  std::unique_ptr<llm::TextSession> session_;
  double load_seconds_ = 0;
};

/// The bytes of a file, or of a stream to its end.
std::string read_file(const std::string& path);
std::string read_all(std::istream& in);

/// Fails where --bos asks for tokens that `tokenizer` does not have. Below 0: it was not given.
void check_bos(int n_bos, const tokenizers::Tokenizer& tokenizer);

/// The value of --template: the name of a chat template, a Jinja text, or the Jinja text in the
/// file that it names.
std::string template_text(const std::string& given);

/// The prompt's tokens per second, up to the first new token; none if nothing was computed.
std::optional<double> prefill_rate(const llm::GenerationResult& result);
/// New tokens per second after the first; none if there are no others.
std::optional<double> decode_rate(const llm::GenerationResult& result);

}  // namespace executorch::extension::command
