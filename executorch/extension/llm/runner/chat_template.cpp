#include <executorch/extension/llm/jinja/from_json.h>
#include <executorch/extension/llm/jinja/syntax.h>
#include <executorch/extension/llm/jinja/template.h>
#include <executorch/extension/llm/jinja/text.h>
#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <algorithm>
#include <utility>

namespace executorch::extension::llm {
namespace {

struct NamedTemplate {
  const char* name;
  const char* jinja;
  /// kSystemInQuestion comes first.
  bool has_rest = false;
};

/// What systems say first goes into the first question, which is made if there is none: `ns.system`
/// is that, and `rest` has the other messages.
constexpr const char* kSystemInQuestion =
    "{%- set ns = namespace(n=0, system='') %}"
    "{%- for m in messages %}{%- if m.role != 'system' %}{%- break %}{%- endif %}"
    "{%- set ns.system = ns.system ~ ('\n' if ns.system else '') ~ m.content %}"
    "{%- set ns.n = loop.index %}{%- endfor %}"
    "{%- set rest = messages[ns.n:] %}"
    "{%- if ns.system and (not rest or rest[0].role != 'user') %}"
    "{%- set rest = [{'role': 'user', 'content': ''}] + rest %}{%- endif %}";

constexpr NamedTemplate kNamed[] = {
    {"chatml",
     "{%- for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}"
     "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"},
    {"llama2",
     "{{- bos_token }}{%- for m in rest %}"
     "{%- if m.role == 'assistant' %}{{ ' ' ~ m.content ~ ' </s><s>' }}{%- else %}{{ '[INST] ' }}"
     "{%- if loop.first and ns.system %}{{ '<<SYS>>\n' ~ ns.system ~ '\n<</SYS>>\n\n' }}"
     "{%- endif %}{{ m.content ~ ' [/INST]' }}{%- endif %}{%- endfor %}",
     true},
    {"llama3",
     "{{- bos_token }}{%- for m in messages %}{{ '<|start_header_id|>' ~ m.role ~ "
     "'<|end_header_id|>\n\n' ~ m.content ~ '<|eot_id|>' }}{%- endfor %}"
     "{%- if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"},
    {"gemma",
     "{{- bos_token }}{%- for m in rest %}{{ '<start_of_turn>' ~ ('model' if m.role == 'assistant' "
     "else m.role) ~ '\n' ~ (ns.system ~ '\n\n' if loop.first and ns.system else '') ~ m.content ~ "
     "'<end_of_turn>\n' }}{%- endfor %}"
     "{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{%- endif %}",
     true},
    {"phi",
     "{%- for m in messages %}{{ '<|' ~ m.role ~ '|>\n' ~ m.content ~ '<|end|>\n' }}{%- endfor %}"
     "{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{%- endif %}"},
    {"mistral",
     "{{- bos_token }}{%- for m in rest %}"
     "{%- if m.role == 'assistant' %}{{ ' ' ~ m.content ~ '</s>' }}{%- else %}{{ '[INST] ' ~ "
     "(ns.system ~ '\n\n' if loop.first and ns.system else '') ~ m.content ~ ' [/INST]' }}"
     "{%- endif %}{%- endfor %}",
     true},
    {"plain",
     "{%- for m in messages %}{%- if m.role == 'system' %}{{ m.content ~ '\n\n' }}{%- else %}"
     "{{ ('Assistant: ' if m.role == 'assistant' else 'User: ') ~ m.content ~ '\n' }}"
     "{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{ 'Assistant:' }}{%- endif %}"},
};

/// Put behind an answer that is to be continued, to tell where it ends: its own words may stand in
/// what the template writes behind it. Templates that trim answers take away the space.
constexpr std::string_view kAnswerEnd = "THE_ANSWER_ENDS_HERE ";

/// The stop string in what follows an answer: a mark such as <|im_end|> or [INST], else all of it.
std::string stop_string_in(const std::string& behind) {
  const std::string_view stripped = jinja::strip(behind);
  if (stripped.empty()) return "";
  const char closing = stripped[0] == '<' ? '>' : stripped[0] == '[' ? ']' : '\0';
  const size_t end = closing == '\0' ? stripped.npos : stripped.find(closing);
  if (end != stripped.npos) return std::string(stripped.substr(0, end + 1));
  return std::string(jinja::strip(behind, jinja::Side::Right));
}

using jinja::Value;
using Json = ::tokenizers::Json;

std::pair<Value, Value> member(const std::string& name, Value value) {
  return {Value::text(name), std::move(value)};
}

Value value_of(const ChatMessage& message) {
  std::vector<std::pair<Value, Value>> members = {member("role", Value::text(message.role)),
                                                  member("content", Value::text(message.content))};
  Json more = Json::parse(message.more, nullptr, false);
  if (!more.is_object()) more = Json::object();
  for (const auto& [name, value] : more.items()) {
    members.push_back(member(name, jinja::value_of(value)));
  }
  return Value::mapping(std::move(members));
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Template jinja;
};

SpecialTokens special_tokens_of(const ::tokenizers::Tokenizer* tokenizer) {
  const auto spelled = [&](uint64_t token) {
    if (!tokenizer->is_special(token)) return std::string();
    auto piece = tokenizer->id_to_piece(token);
    return piece.ok() ? std::move(*piece) : std::string();
  };
  if (tokenizer == nullptr) return {};
  return {spelled(tokenizer->bos_tok()), spelled(tokenizer->eos_tok())};
}

const std::vector<std::string>& ChatTemplate::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const NamedTemplate& one : kNamed) names.emplace_back(one.name);
    return names;
  }();
  return all;
}

std::optional<ChatTemplate> ChatTemplate::of(const std::string& text, std::string& cause,
                                             SpecialTokens special_tokens) {
  ChatTemplate made;
  made.special_tokens_ = std::move(special_tokens);
  made.name_ = "Jinja";
  std::string jinja = text;
  for (const NamedTemplate& one : kNamed) {
    if (text != one.name) continue;
    made.name_ = text;
    jinja = std::string(one.has_rest ? kSystemInQuestion : "") + one.jinja;
  }
  if (jinja.find("{{") == jinja.npos && jinja.find("{%") == jinja.npos) {
    cause = "found '" + text.substr(0, 80) + "'; expected Jinja, or one of";
    for (const std::string& name : names()) cause += " " + name;
    return std::nullopt;
  }
  auto parsed = jinja::Template::parse(jinja, cause);
  if (!parsed.has_value()) return std::nullopt;
  made.parsed_ = std::make_shared<const Parsed>(Parsed{std::move(*parsed)});

  const auto tokens = jinja::tokens_of(jinja);
  made.takes_tools_ = std::any_of(tokens.begin(), tokens.end(), [](const jinja::Token& token) {
    return token.kind == jinja::TokenKind::Name && token.text == "tools";
  });
  made.find_stop_string();
  return made;
}

void ChatTemplate::find_stop_string() {
  const std::string answer = "A2a", question = "Q3q";
  std::string unused;
  const auto sample =
      rendered({{"user", "Q1q"}, {"assistant", answer}, {"user", question}}, true, "", "", unused);
  if (!sample.has_value()) return;
  const size_t begin = sample->find(answer);
  const size_t end = begin == sample->npos ? begin : sample->find(question, begin);
  if (end == sample->npos) return;
  const size_t behind = begin + answer.size();
  std::string stop = stop_string_in(sample->substr(behind, end - behind));
  if (!stop.empty()) stop_strings_.push_back(std::move(stop));
}

std::optional<std::string> ChatTemplate::rendered(const std::vector<ChatMessage>& messages,
                                                  bool makes_answer, const std::string& tools,
                                                  const std::string& more,
                                                  std::string& cause) const {
  jinja::Mapping variables;
  jinja::Mapping given_variables;
  std::vector<Value> all;
  try {
    for (const ChatMessage& message : messages) all.push_back(value_of(message));
    if (!tools.empty()) {
      variables.items.push_back(
          member("tools", jinja::value_of(Json::parse(tools, nullptr, false))));
    }
    const Json given = Json::parse(more, nullptr, false);
    if (given.is_object()) given_variables = *jinja::value_of(given).as_mapping();
  } catch (const jinja::Failure& failure) {
    cause = failure.what();
    return std::nullopt;
  }
  variables.items.push_back(member("messages", Value::sequence(std::move(all))));
  variables.items.push_back(member("add_generation_prompt", Value::boolean(makes_answer)));
  if (!special_tokens_.bos.empty()) {
    variables.items.push_back(member("bos_token", Value::text(special_tokens_.bos)));
  }
  if (!special_tokens_.eos.empty()) {
    variables.items.push_back(member("eos_token", Value::text(special_tokens_.eos)));
  }
  // The first of a name is found, so none of those above is replaced.
  for (auto& one : given_variables.items) variables.items.push_back(std::move(one));
  return parsed_->jinja.render(variables, cause);
}

std::optional<ChatPrompt> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                               std::string& cause, const std::string& tools,
                                               const std::string& variables) const {
  std::vector<ChatMessage> given = messages;
  bool goes_on = !given.empty() && given.back().role == "assistant" && given.back().more.empty();
  if (goes_on && jinja::is_all_space(given.back().content)) {
    // Nothing was said: as if the question came last.
    given.pop_back();
    goes_on = false;
  }
  if (goes_on) given.back().content += kAnswerEnd;
  auto text = rendered(given, !goes_on, tools, variables, cause);
  if (!text.has_value()) return std::nullopt;
  if (goes_on) {
    const size_t at = text->rfind(jinja::strip(kAnswerEnd));
    if (at == std::string::npos) {
      cause = "the template does not write the last answer, which is to be continued";
      return std::nullopt;
    }
    const bool is_trimmed = text->compare(at, kAnswerEnd.size(), kAnswerEnd) != 0;
    text->resize(at);
    if (is_trimmed) *text = std::string(jinja::strip(*text, jinja::Side::Right));
  }
  ChatPrompt prompt;
  const std::string& bos = special_tokens_.bos;
  prompt.begins_with_bos = !bos.empty() && text->compare(0, bos.size(), bos) == 0;
  prompt.text = prompt.begins_with_bos ? text->substr(bos.size()) : std::move(*text);
  return prompt;
}

}  // namespace executorch::extension::llm
