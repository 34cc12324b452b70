#include <executorch/extension/llm/runner/grammar.h>
#include <executorch/extension/llm/server/text_engine_model.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <stdexcept>

namespace executorch::extension::llm::server {
namespace {

class EngineText : public ServedText {
 public:
  explicit EngineText(std::unique_ptr<TextSession> session) : session_(std::move(session)) {}

  runtime::Result<GenerationResult> generate(const std::vector<uint64_t>& prompt,
                                             const GenerationOptions& options) override {
    ET_CHECK_OK_OR_RETURN_ERROR(session_->set_text(prompt));
    return session_->generate(options);
  }
  runtime::Error score(const std::vector<uint64_t>& prompt,
                       const TextSession::OnLogits& on_logits) override {
    const runtime::Error error = session_->set_text(prompt);
    return error == runtime::Error::Ok ? session_->score(on_logits) : error;
  }
  const std::vector<uint64_t>& tokens() const override { return session_->text(); }
  void stop() override { session_->stop(); }

 private:
  std::unique_ptr<TextSession> session_;
};

class EngineModel : public ServedModel {
 public:
  EngineModel(std::unique_ptr<TextEngine> engine, ChatTemplate chat_template)
      : engine_(std::move(engine)),
        chat_template_(std::move(chat_template)),
        end_tokens_(engine_->eos_ids()) {
    for (const std::string& stop : chat_template_.stop_strings()) {
      const auto token = engine_->tokenizer()->piece_to_id(stop);
      if (token.ok()) end_tokens_.insert(*token);
    }
  }

  runtime::Result<std::unique_ptr<ServedText>> create_text() override {
    ET_ASSIGN_OR_RETURN(auto session, engine_->create_text_session());
    return std::unique_ptr<ServedText>(std::make_unique<EngineText>(std::move(session)));
  }

  runtime::Result<std::vector<uint64_t>> encode(const std::string& text,
                                                int8_t n_bos) const override {
    return engine_->encode(text, n_bos);
  }
  int8_t default_n_bos() const override { return engine_->default_n_bos(); }

  std::string decode(uint64_t token) const override {
    const auto bytes = engine_->tokenizer()->token_bytes(token);
    return bytes.ok() ? *bytes : std::string();
  }

  std::vector<std::string> token_bytes() const override {
    return constraint_tokens(*engine_->tokenizer(), static_cast<size_t>(vocabulary_size()),
                             end_tokens());
  }

  const std::unordered_set<uint64_t>& end_tokens() const override { return end_tokens_; }
  int64_t context_length() const override { return engine_->context_length(); }
  int64_t vocabulary_size() const override { return engine_->vocabulary_size(); }
  const ChatTemplate& chat_template() const override { return chat_template_; }

 private:
  std::unique_ptr<TextEngine> engine_;
  ChatTemplate chat_template_;
  std::unordered_set<uint64_t> end_tokens_;
};

}  // namespace

std::unique_ptr<ServedModel> serve_engine(std::unique_ptr<TextEngine> engine,
                                          const std::string& chat_template) {
  if (engine->tokenizer() == nullptr) {
    throw std::runtime_error("the program has no tokenizer inside: give one with --tokenizer");
  }
  const std::string& own = engine->chat_template();
  const std::string text = !chat_template.empty() ? chat_template : own.empty() ? "plain" : own;
  std::string cause;
  auto chosen = ChatTemplate::of(text, cause, special_tokens_of(engine->tokenizer()));
  if (!chosen) throw std::runtime_error("the chat template cannot be used: " + cause);
  return std::make_unique<EngineModel>(std::move(engine), std::move(*chosen));
}

}  // namespace executorch::extension::llm::server
