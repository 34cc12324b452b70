#include <executorch/extension/llm/runner/chat_template.h>

#include <algorithm>
#include <utility>

namespace executorch {
namespace extension {
namespace llm {
namespace {

/// How one role's message is written, for templates that write all roles alike.
struct Format {
  const char* name;
  /// Around the role's name, before the content, and behind it.
  const char *before_role, *behind_role, *behind_content;
  /// What the assistant is called.
  const char* assistant;
  /// What the first question begins with, if there is a message of the system; null: that is a
  /// message like others.
  const char* behind_system;
  bool begins_with_bos;
};

constexpr Format kFormats[] = {
    {"chatml", "<|im_start|>", "\n", "<|im_end|>\n", "assistant", nullptr, false},
    {"llama3", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", "assistant", nullptr,
     true},
    {"gemma", "<start_of_turn>", "\n", "<end_of_turn>\n", "model", "\n\n", true},
    {"phi", "<|", "|>\n", "<|end|>\n", "assistant", nullptr, false},
};

const Format* find_format(const std::string& name) {
  for (const Format& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

/// What systems say before the first question goes into it, followed by `between`.
std::vector<ChatMessage> with_system_in_question(std::vector<ChatMessage> messages,
                                                 const std::string& before,
                                                 const std::string& between) {
  std::string system;
  while (!messages.empty() && messages[0].role == "system") {
    system += (system.empty() ? "" : "\n") + messages[0].content;
    messages.erase(messages.begin());
  }
  if (system.empty()) return messages;
  if (messages.empty() || messages[0].role != "user") {
    messages.insert(messages.begin(), {"user", ""});
  }
  messages[0].content = before + system + between + messages[0].content;
  return messages;
}

std::string render_alike(std::vector<ChatMessage> messages, const Format& format) {
  if (format.behind_system != nullptr) {
    messages = with_system_in_question(std::move(messages), "", format.behind_system);
  }
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    const bool is_answer = role == "assistant";
    text += format.before_role + (is_answer ? format.assistant : role) + format.behind_role;
    text += content;
    if (is_answer && i + 1 == messages.size()) return text;
    text += format.behind_content;
  }
  return text + format.before_role + format.assistant + format.behind_role;
}

/// llama2 and mistral.
std::string render_inst(std::vector<ChatMessage> messages, bool is_llama2) {
  messages = is_llama2 ? with_system_in_question(std::move(messages), "<<SYS>>\n", "\n<</SYS>>\n\n")
                       : with_system_in_question(std::move(messages), "", "\n\n");
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant") {
      text += "[INST] " + messages[i].content + " [/INST]";
    } else {
      text += " " + messages[i].content;
      if (i + 1 == messages.size()) return text;
      text += is_llama2 ? " </s><s>" : "</s>";
    }
  }
  return text;
}

std::string render_plain(const std::vector<ChatMessage>& messages) {
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role == "system") {
      text += content + "\n\n";
      continue;
    }
    text += (role == "assistant" ? "Assistant: " : "User: ") + content;
    if (role == "assistant" && i + 1 == messages.size()) return text;
    text += "\n";
  }
  return text + "Assistant:";
}

}  // namespace

const std::vector<std::string>& ChatTemplate::names() {
  static const std::vector<std::string> all = {"chatml", "llama2",  "llama3", "gemma",
                                               "phi",    "mistral", "plain"};
  return all;
}

std::optional<ChatTemplate> ChatTemplate::named(const std::string& name) {
  if (std::find(names().begin(), names().end(), name) == names().end()) return std::nullopt;
  return ChatTemplate(name);
}

std::optional<ChatTemplate> ChatTemplate::recognized(const std::string& jinja) {
  const auto has = [&](const char* mark) { return jinja.find(mark) != std::string::npos; };
  if (has("<|im_start|>")) return ChatTemplate("chatml");
  if (has("<|start_header_id|>")) return ChatTemplate("llama3");
  if (has("<start_of_turn>")) return ChatTemplate("gemma");
  if (has("<|end|>") && has("<|assistant|>")) return ChatTemplate("phi");
  if (has("[INST]")) return ChatTemplate(has("<<SYS>>") ? "llama2" : "mistral");
  return std::nullopt;
}

std::optional<ChatTemplate> ChatTemplate::of(const std::string& text) {
  auto found = named(text);
  return found.has_value() ? found : recognized(text);
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages) const {
  if (const Format* const format = find_format(name_)) return render_alike(messages, *format);
  if (name_ == "plain") return render_plain(messages);
  return render_inst(messages, name_ == "llama2");
}

bool ChatTemplate::begins_with_bos() const {
  const Format* const format = find_format(name_);
  return format != nullptr ? format->begins_with_bos : name_ != "plain";
}

std::vector<std::string> ChatTemplate::stop_strings() const {
  if (name_ == "plain") return {"\nUser:"};
  const Format* const format = find_format(name_);
  if (format == nullptr) return {"</s>", "[INST]"};
  std::string mark = format->behind_content;
  while (!mark.empty() && mark.back() == '\n') mark.pop_back();
  return {mark};
}

}  // namespace llm
}  // namespace extension
}  // namespace executorch
