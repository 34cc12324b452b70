/// Text continued by a program: the engine behind the runners, the command and the server.
///
///   EngineOptions files;
///   files.model_path = "model.pte";                          // the tokenizer is in the file
///   auto engine = TextEngine::load(files);
///   auto session = (*engine)->create_text_session();
///   (*session)->set_text(*(*engine)->encode("Once upon"));
///   GenerationOptions options;
///   options.on_text = [](const std::string& text) { std::cout << text; return true; };
///   auto result = (*session)->generate(options);
#pragma once

#include <executorch/extension/llm/runner/llm_session.h>
#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/extension/llm/sampler/sampling.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tokenizers {
class Tokenizer;
}  // namespace tokenizers

namespace executorch::extension::llm {

/// Why a text ended.
enum class FinishReason {
  Length,       ///< max_new_tokens
  EndOfText,    ///< a token of the model's or tokenizer's
  StopToken,    ///< one of stop_tokens
  StopString,   ///< one of stop_strings
  Complete,     ///< a logit processor said so
  ContextFull,  ///< the program takes no longer text
  Stopped,      ///< stop(), or on_text returned false
};
/// "length", "end_of_text" and so on.
const char* to_string(FinishReason reason);

/// What happens where the text outgrows the context.
enum class Window {
  Stop,   ///< it ends
  Exact,  ///< its first token is forgotten for each new one: all of it is computed again each time
  Half,   ///< the first half is forgotten: all of the rest is computed again, but rarely
};

struct GenerationOptions {
  SamplingOptions sampling;
  /// -1: as many as the context has room for.
  int64_t max_new_tokens = -1;
  /// End the text before the first of these; no part of one is given to on_text.
  std::vector<std::string> stop_strings;
  std::unordered_set<uint64_t> stop_tokens;
  /// End-of-text tokens are like others.
  bool ignore_eos = false;
  Window window = Window::Stop;
  /// Tokens to guess from earlier text and to check in one run, which is faster where a text
  /// repeats itself and changes nothing else. Used where the likeliest token is taken, without
  /// processors, by a program that gives logits at all positions. 0: none.
  int32_t n_draft = 0;
  /// Called in this order, before penalties and the choice.
  std::vector<std::shared_ptr<LogitProcessor>> processors;
  /// Called with text as it is made: whole characters, in order. False ends the text.
  std::function<bool(const std::string& text)> on_text;
  /// Called with each token that was chosen, before on_text gets its text; not with what ends the
  /// text.
  std::function<void(uint64_t token)> on_token;
  /// Called while the prompt is read: tokens done, of all that had to be computed.
  std::function<void(int64_t done, int64_t total)> on_prefill;
};

struct GenerationResult {
  /// Chosen tokens, without the one that ended the text.
  std::vector<uint64_t> tokens;
  /// All that on_text was given.
  std::string text;
  FinishReason finish_reason = FinishReason::Length;
  int64_t n_prompt_tokens = 0;
  /// How many tokens of the prompt were not computed again. For a program that finds out by itself
  /// what is new, this is what it may have kept.
  int64_t n_reused_tokens = 0;
  /// From the call to the first token; 0: the text ended before one was chosen.
  double time_to_first_token_seconds = 0;
  /// After that, for tokens.size() - 1 tokens.
  double decode_seconds = 0;
  /// Runs of the program after the first token: fewer than tokens where drafts were right.
  int64_t n_decode_runs = 0;
};

struct EngineOptions {
  std::string model_path;
  /// External data (.ptd).
  std::vector<std::string> data_files;
  /// Empty: the program's named data `tokenizer`, if it has that: such a file, with
  /// `tokenizer_merges` and `tokenizer_config` the files beside it.
  std::string tokenizer_path;
  /// Used instead, if it is given.
  std::shared_ptr<const ::tokenizers::Tokenizer> tokenizer;
  std::string method_name = "forward";
  Module::LoadMode load_mode = Module::LoadMode::Mmap;
};

class TextEngine;

/// A text and what the program remembers of it. It must not outlive its engine.
class TextSession final : public LLMSession {
 public:
  ~TextSession() override;

  runtime::Error prefill_tokens(const std::vector<uint64_t>& tokens,
                                const SamplingConfig* initial_sampling = nullptr) override;
  runtime::Result<DecodeResult> decode_one(const SamplingConfig& sampling) override;
  int64_t position() const override;
  runtime::Error reset() override;
  /// The generate() that runs, or the next decode_one(), ends; forgotten when the next generate()
  /// or prefill_tokens() begins.
  void stop() override;

  /// Replaces the text. Nothing is computed here; later only what follows the longest common
  /// beginning with what was computed before. Truncate, edit and return to earlier texts freely.
  /// InvalidArgument for tokens that are not in the vocabulary.
  runtime::Error set_text(std::vector<uint64_t> tokens);
  const std::vector<uint64_t>& text() const;

  /// Continues the text, and appends to it what it chooses. InvalidArgument if options or text
  /// cannot be used: the log says why. Errors of the program; the text then keeps what was chosen.
  runtime::Result<GenerationResult> generate(const GenerationOptions& options);

  /// Computes the text and gives, in order, the logits of each of its tokens but the first: token
  /// `i` was chosen by those. EndOfMethod after stop(), or where `on_logits` returned false. A
  /// program that gives the logits of the last position only is run once for each token.
  using OnLogits = std::function<bool(size_t i, runtime::Span<const float> logits)>;
  runtime::Error score(const OnLogits& on_logits);

 private:
  friend class TextEngine;
  friend class TextGeneration;
  struct State;
  explicit TextSession(std::unique_ptr<State> state);
  runtime::Error begin_steps();
  runtime::Error prepare_steps();
  runtime::Error score_tokens(const OnLogits& on_logits);

  std::unique_ptr<State> state_;
};

/// A program of a language model, its tokenizer, and what it says of itself. Errors are logged with
/// file and cause. What a program may be: language_model.h.
class TextEngine final : public LLMEngine {
 public:
  static runtime::Result<std::unique_ptr<TextEngine>> load(const EngineOptions& options);
  ~TextEngine() override;

  runtime::Result<std::unique_ptr<LLMSession>> create_session() override;
  runtime::Result<std::unique_ptr<TextSession>> create_text_session();
  LLMServingCapacity serving_capacity() const override;
  /// Under the names of constants.h.
  const std::unordered_map<std::string, int64_t>& metadata() const override;

  /// Null without one: texts are then tokens only, and no text comes out.
  const ::tokenizers::Tokenizer* tokenizer() const;
  /// The program's named data `chat_template`: a Jinja text, or the name of a template. May be
  /// empty.
  const std::string& chat_template() const;
  /// Most tokens in a text.
  int64_t context_length() const;
  /// Logits that the program gives for a token.
  int64_t vocabulary_size() const;
  const std::unordered_set<uint64_t>& eos_ids() const;
  /// Tokens of `text`, after `n_bos` of those that begin one. InvalidState without a tokenizer.
  runtime::Result<std::vector<uint64_t>> encode(const std::string& text, int8_t n_bos = 0) const;
  /// How often a prompt should begin with the token for that: 1 if the program names one.
  int8_t default_n_bos() const;

 private:
  struct State;
  explicit TextEngine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace executorch::extension::llm
