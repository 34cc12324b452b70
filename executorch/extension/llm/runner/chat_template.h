/// Conversations as one text, in the ways that models were trained with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tokenizers {
class Tokenizer;
}

namespace executorch::extension::llm {

struct ChatMessage {
  /// "system", "user" or "assistant"; some templates know others, too.
  std::string role;
  std::string content;
  /// The JSON of an object of what else templates may read, as "tool_calls"; or empty.
  std::string more = {};
};

/// The texts of the special tokens that templates write; empty for a token that does not exist.
struct SpecialTokens {
  std::string bos;
  std::string eos;
};
/// The special tokens of a tokenizer. Empty for null.
SpecialTokens special_tokens_of(const ::tokenizers::Tokenizer* tokenizer);

struct ChatPrompt {
  std::string text;
  /// Whether the beginning-of-text token belongs in front of `text`, which does not contain it.
  bool begins_with_bos = false;
};

/// A template in Jinja (extension/llm/jinja), given by the model or under one of these names:
///
/// chatml    <|im_start|>role, content, <|im_end|>; Qwen, SmolLM and many others
/// llama2    [INST] <<SYS>> ... [/INST]
/// llama3    <|start_header_id|>role<|end_header_id|> ... <|eot_id|>
/// gemma     <start_of_turn>user ... <end_of_turn>; what a system says stands in the first question
/// phi       <|user|> ... <|end|>
/// mistral   [INST] ... [/INST]; what a system says stands in the first question
/// plain     User: ... Assistant: ..., for models that know none of these
class ChatTemplate {
 public:
  /// Makes a template from a name or a Jinja text. Empty after an error; `cause` then says what is
  /// wrong.
  static std::optional<ChatTemplate> of(const std::string& text, std::string& cause,
                                        SpecialTokens special_tokens = {});
  static const std::vector<std::string>& names();

  /// One of names(), or "Jinja".
  const std::string& name() const { return name_; }
  /// Renders a conversation, followed by the text that makes the model answer; if the last message
  /// is the model's, it is left open to be continued. Empty after an error, if the template rejects
  /// the conversation or fails.
  /// `tools` is JSON, a list of functions that the model may call, for templates that take them;
  /// `variables` is the JSON of an object of more variables, as {"enable_thinking": false}.
  std::optional<ChatPrompt> render(const std::vector<ChatMessage>& messages, std::string& cause,
                                   const std::string& tools = "",
                                   const std::string& variables = "") const;
  /// Whether the template has the variable `tools` in it.
  bool takes_tools() const { return takes_tools_; }
  /// What the model writes behind its answer, found by how the template writes one: the first mark
  /// in brackets behind it, else all that comes before the next question.
  const std::vector<std::string>& stop_strings() const { return stop_strings_; }

 private:
  struct Parsed;
  ChatTemplate() = default;
  void find_stop_string();
  std::optional<std::string> rendered(const std::vector<ChatMessage>& messages, bool makes_answer,
                                      const std::string& tools, const std::string& more,
                                      std::string& cause) const;

  std::string name_;
  std::shared_ptr<const Parsed> parsed_;
  SpecialTokens special_tokens_;
  std::vector<std::string> stop_strings_;
  bool takes_tools_ = false;
};

}  // namespace executorch::extension::llm
