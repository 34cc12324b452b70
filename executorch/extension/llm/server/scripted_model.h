/// A model that follows a script, for tests: tokens are bytes, and the one after them ends a text.
#pragma once

#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/llm/server/served_model.h>
#include <executorch/extension/tensor/tensor.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

namespace executorch::extension::llm::server {

/// What it answers, and how long each token takes.
struct Script {
  /// The text that follows a prompt.
  std::function<std::string(const std::string& prompt)> answer;
  std::chrono::microseconds token_time{0};
  int64_t context_length = 4096;
  /// A prompt that has this in it makes the model fail.
  std::string failing = "FAIL";
  /// A prompt that has this in it has a token that is not in the vocabulary.
  std::string foreign = "FOREIGN";
};

inline constexpr uint64_t kScriptedEnd = 256;

class ScriptedText : public ServedText {
 public:
  explicit ScriptedText(const Script& script) : script_(script) {}

  const std::vector<uint64_t>& tokens() const override { return tokens_; }
  void stop() override { stopped_ = true; }

  runtime::Result<GenerationResult> generate(const std::vector<uint64_t>& prompt,
                                             const GenerationOptions& options) override {
    stopped_ = false;
    GenerationResult result;
    result.n_prompt_tokens = static_cast<int64_t>(prompt.size());
    result.n_reused_tokens =
        std::mismatch(prompt.begin(), prompt.end(), tokens_.begin(), tokens_.end()).first -
        prompt.begin();
    result.n_reused_tokens = std::min(result.n_reused_tokens, result.n_prompt_tokens - 1);
    tokens_ = prompt;
    const std::string given(prompt.begin(), prompt.end());
    if (given.find(script_.failing) != std::string::npos) return runtime::Error::Internal;
    const std::string answer = script_.answer(given);
    std::string waiting;
    ET_CHECK_OK_OR_RETURN_ERROR(run(answer, options, result, waiting));
    if (!waiting.empty() && result.finish_reason != FinishReason::StopString) {
      result.text += waiting;
      if (options.on_text) options.on_text(waiting);
    }
    return result;
  }

  /// Each token of the prompt is the likeliest in its place.
  runtime::Error score(const std::vector<uint64_t>& prompt,
                       const TextSession::OnLogits& on_logits) override {
    stopped_ = false;
    tokens_ = prompt;
    for (size_t i = 1; i < prompt.size(); ++i) {
      std::this_thread::sleep_for(script_.token_time);
      std::vector<float> logits(kScriptedEnd + 1, 0.0f);
      logits[prompt[i]] = 5.0f;
      if (stopped_ || !on_logits(i, {logits.data(), logits.size()})) {
        return runtime::Error::EndOfMethod;
      }
    }
    return runtime::Error::Ok;
  }

 private:
  runtime::Error run(const std::string& answer, const GenerationOptions& options,
                     GenerationResult& result, std::string& waiting) {
    while (true) {
      if (stopped_) return end(result, FinishReason::Stopped);
      if (static_cast<int64_t>(result.tokens.size()) >= options.max_new_tokens) {
        return end(result, FinishReason::Length);
      }
      std::this_thread::sleep_for(script_.token_time);
      const size_t at = result.tokens.size();
      uint64_t token = at < answer.size() ? static_cast<uint8_t>(answer[at]) : kScriptedEnd;
      for (const auto& processor : options.processors) {
        ET_CHECK_OK_OR_RETURN_ERROR(process(*processor, token));
      }
      if (!options.processors.empty()) token = best();
      for (const auto& processor : options.processors) {
        ET_CHECK_OK_OR_RETURN_ERROR(processor->accept(token));
      }
      logits_.clear();
      if (token == kScriptedEnd && !options.ignore_eos) return end(result, FinishReason::EndOfText);
      tokens_.push_back(token);
      result.tokens.push_back(token);
      if (options.on_token) options.on_token(token);
      waiting += static_cast<char>(token);
      bool hit = false;
      const size_t shown = stop_safe_prefix_len(waiting, options.stop_strings, hit);
      const std::string part = waiting.substr(0, shown);
      waiting.erase(0, shown);
      result.text += part;
      if (!part.empty() && options.on_text && !options.on_text(part)) {
        return end(result, FinishReason::Stopped);
      }
      if (hit) return end(result, FinishReason::StopString);
      for (const auto& processor : options.processors) {
        if (processor->is_complete()) return end(result, FinishReason::Complete);
      }
    }
  }

  /// The script's token is the likeliest, then letters that close what JSON has open.
  runtime::Error process(LogitProcessor& processor, uint64_t token) {
    if (logits_.empty()) {
      logits_.assign(kScriptedEnd + 1, 0.0f);
      for (const char c : std::string("\"}]0")) logits_[static_cast<uint8_t>(c)] = 1.0f;
      logits_[kScriptedEnd] = 2.0f;
      logits_[token] = 5.0f;
    }
    auto tensor = from_blob(logits_.data(), {1, static_cast<aten::SizesType>(logits_.size())});
    return processor.process(*tensor);
  }

  uint64_t best() const {
    return static_cast<uint64_t>(std::max_element(logits_.begin(), logits_.end()) -
                                 logits_.begin());
  }

  static runtime::Error end(GenerationResult& result, FinishReason reason) {
    result.finish_reason = reason;
    return runtime::Error::Ok;
  }

  const Script& script_;
  std::vector<uint64_t> tokens_;
  std::vector<float> logits_;
  std::atomic<bool> stopped_{false};
};

class ScriptedModel : public ServedModel {
 public:
  explicit ScriptedModel(Script script, const std::string& chat_template = "chatml")
      : script_(std::move(script)), template_(*ChatTemplate::of(chat_template, cause_)) {}

  runtime::Result<std::unique_ptr<ServedText>> create_text() override {
    ++n_texts;
    return std::unique_ptr<ServedText>(std::make_unique<ScriptedText>(script_));
  }
  runtime::Result<std::vector<uint64_t>> encode(const std::string& text, int8_t) const override {
    std::vector<uint64_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
    if (text.find(script_.foreign) != std::string::npos) tokens.push_back(kScriptedEnd + 1);
    return tokens;
  }
  int8_t default_n_bos() const override { return 0; }
  std::string decode(uint64_t token) const override {
    return token == kScriptedEnd ? "" : std::string(1, static_cast<char>(token));
  }
  std::vector<std::string> token_bytes() const override {
    std::vector<std::string> tokens;
    for (uint64_t i = 0; i <= kScriptedEnd; ++i) tokens.push_back(decode(i));
    return tokens;
  }
  const std::unordered_set<uint64_t>& end_tokens() const override { return ends_; }
  int64_t context_length() const override { return script_.context_length; }
  int64_t vocabulary_size() const override { return kScriptedEnd + 1; }
  const ChatTemplate& chat_template() const override { return template_; }

  std::atomic<int> n_texts{0};

 private:
  const Script script_;
  const std::unordered_set<uint64_t> ends_{kScriptedEnd};
  std::string cause_;
  const ChatTemplate template_;
};

}  // namespace executorch::extension::llm::server
