/// Conversations as one text, in the ways that well-known models were trained with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace executorch {
namespace extension {
namespace llm {

struct ChatMessage {
  /// "system", "user" or "assistant"; some templates know others, too.
  std::string role;
  std::string content;
};

/// chatml    <|im_start|>role, content, <|im_end|>; Qwen, SmolLM and many others
/// llama2    [INST] <<SYS>> ... [/INST]
/// llama3    <|start_header_id|>role<|end_header_id|> ... <|eot_id|>
/// gemma     <start_of_turn>user ... <end_of_turn>; what a system says stands in the first question
/// phi       <|user|> ... <|end|>
/// mistral   [INST] ... [/INST]; what a system says stands in the first question
/// plain     User: ... Assistant: ..., for models that know none of these
class ChatTemplate {
 public:
  /// Empty if there is none of this name.
  static std::optional<ChatTemplate> named(const std::string& name);
  /// By the marks in a template that is written in Jinja; empty if it has none that are known.
  static std::optional<ChatTemplate> recognized(const std::string& jinja);
  /// By name or Jinja text, whichever `text` is.
  static std::optional<ChatTemplate> of(const std::string& text);
  static const std::vector<std::string>& names();

  const std::string& name() const { return name_; }
  /// The conversation, followed by what makes the model answer, unless the last message is its own:
  /// that is then continued.
  std::string render(const std::vector<ChatMessage>& messages) const;
  /// The text begins with the token for that, which render() leaves out.
  bool begins_with_bos() const;
  /// What the model writes behind its answer.
  std::vector<std::string> stop_strings() const;

 private:
  explicit ChatTemplate(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

}  // namespace llm
}  // namespace extension
}  // namespace executorch
