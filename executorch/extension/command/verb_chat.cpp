#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/text_run.h>
#include <executorch/extension/command/verbs.h>
#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>

namespace executorch::extension::command {
namespace {

using llm::ChatMessage;
using llm::ChatTemplate;

ChatTemplate choose_template(const ChatVerb& verb, const llm::TextEngine& engine) {
  const std::string& own = engine.chat_template();
  if (verb.chat_template.empty() && own.empty()) {
    std::string names;
    for (const std::string& name : ChatTemplate::names()) names += " " + name;
    fail(verb.text.model_path +
         " comes with no chat template; say with --template which it was "
         "trained with:" +
         names + ", or a file with Jinja");
  }
  const bool is_own = verb.chat_template.empty();
  std::string cause;
  const std::string text = is_own ? own : template_text(verb.chat_template);
  auto chosen = ChatTemplate::of(text, cause, llm::special_tokens_of(engine.tokenizer()));
  if (!chosen.has_value()) {
    const bool is_file = !is_own && text != verb.chat_template;
    fail((is_own ? "the chat template of " + verb.text.model_path : "--template") +
         (is_file ? " " + verb.chat_template : "") + ": " + cause +
         (is_own ? "; another can be given with --template" : ""));
  }
  return std::move(*chosen);
}

/// A conversation and the next question.
class Chat {
 public:
  Chat(const ChatVerb& verb, TextRun& run)
      : verb_(verb), run_(run), template_(choose_template(verb, run.engine())) {
    const std::string& variables = verb.template_variables;
    if (!variables.empty() && !devtools::Json::parse(variables, nullptr, false).is_object()) {
      fail("--chat-template-kwargs is " + variables +
           "; expected a JSON object, such as {\"enable_thinking\": false}");
    }
    generation_ = run.generation();
    for (const std::string& stop : template_.stop_strings()) {
      generation_.stop_strings.push_back(stop);
      const auto token = run.engine().tokenizer()->piece_to_id(stop);
      if (token.ok()) generation_.stop_tokens.insert(*token);
    }
    reset();
  }

  void reset() {
    messages_.clear();
    if (!verb_.system.empty()) messages_.push_back({"system", verb_.system});
  }

  /// Null if the question is too long. That is reported, and the question is not kept.
  std::optional<llm::GenerationResult> answer(const std::string& question,
                                              const std::function<void(const std::string&)>& show) {
    const std::vector<ChatMessage> before = messages_;
    messages_.push_back({"user", question});
    std::vector<uint64_t> tokens = encode_what_fits();
    if (!run_.has_room_for(tokens.size())) {
      std::cerr << "executorch: the question is too long: with what belongs to it it has "
                << tokens.size() << " tokens, and " << run_.engine().context_length()
                << " have room\n";
      messages_ = before;
      return std::nullopt;
    }
    if (messages_.size() <= before.size()) {
      std::cerr << "(the context is full: the oldest " << before.size() + 1 - messages_.size()
                << " messages were forgotten)\n";
    }
    auto result = run_.run(std::move(tokens), generation_, show);
    messages_.push_back({"assistant", result.text});
    return result;
  }

 private:
  std::vector<uint64_t> encode() const {
    std::string cause;
    const auto prompt = template_.render(messages_, cause, "", verb_.template_variables);
    if (!prompt.has_value()) fail("the chat template refuses the conversation: " + cause);
    return run_.encode(prompt->text, prompt->begins_with_bos ? 1 : 0);
  }

  /// Forgets the oldest questions and answers where there is no room for another answer.
  std::vector<uint64_t> encode_what_fits() {
    const auto context = static_cast<uint64_t>(run_.engine().context_length());
    const size_t n_system = !messages_.empty() && messages_[0].role == "system" ? 1 : 0;
    std::vector<uint64_t> tokens = encode();
    while (tokens.size() > context - context / 4 && messages_.size() > n_system + 2) {
      const auto oldest = messages_.begin() + static_cast<std::ptrdiff_t>(n_system);
      messages_.erase(oldest, oldest + 2);
      tokens = encode();
    }
    return tokens;
  }

  const ChatVerb& verb_;
  TextRun& run_;
  ChatTemplate template_;
  llm::GenerationOptions generation_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

void chat(const ChatVerb& verb) {
  TextRun run(verb.text);
  Chat chat(verb, run);
  const bool is_terminal = isatty(0) != 0;
  if (is_terminal) std::cerr << "/reset forgets what was said; /quit, or Ctrl-D, ends.\n";
  std::string line;
  for (;;) {
    if (is_terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line == "/quit" || line == "/exit") break;
    if (line == "/reset") chat.reset();
    if (line.empty() || line == "/reset") continue;
    if (verb.text.json) {
      const auto result = chat.answer(line, {});
      if (result.has_value()) std::cout << devtools::json_text(run.json(*result)) << std::endl;
    } else if (chat.answer(line,
                           [](const std::string& text) { std::cout << text << std::flush; })) {
      std::cout << std::endl;
    }
  }
  if (is_terminal) std::cerr << "\n";
}

}  // namespace executorch::extension::command
