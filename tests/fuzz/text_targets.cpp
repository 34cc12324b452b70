#include "text_targets.h"

#include <executorch/extension/llm/jinja/template.h>
#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/runner/wav_loader.h>
#include <executorch/extension/llm/sampler/constraint/constraint.h>
#include <executorch/extension/llm/server/api.h>
#include <executorch/extension/llm/server/http_connection.h>
#include <executorch/extension/llm/tokenizers/stream_decoder.h>
#include <executorch/extension/llm/tokenizers/tokenizer_file.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <memory>
#include <vector>

#include "tries.h"

namespace executorch::fuzz {
namespace {

using namespace executorch::extension::llm;
namespace server = executorch::extension::llm::server;

constexpr const char* kTexts[] = {
    "",
    "Hello, world! <|x|> 123  don't\n\n",
    "h\xc3\xa9llo w\xc3\xb6rld \xe2\x96\x81\xf0\x9f\x99\x82",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\xff\xfe\xed\xa0\x80 \xf4\x90\x80\x80\t\r\n",
    "ab ab abab <unk> <0x41> added"};

void decode_all(const tokenizers::Tokenizer& tokenizer, const std::vector<uint64_t>& tokens) {
  (void)tokenizer.decode_bytes(tokens, true);
  (void)tokenizer.decode_bytes(tokens);
  tokenizers::StreamDecoder stream(tokenizer);
  for (size_t i = 0; i < std::min<size_t>(tokens.size(), 50); ++i) {
    (void)stream.push(tokens[i]);
    (void)tokenizer.token_bytes(tokens[i]);
    (void)tokenizer.id_to_piece(tokens[i]);
    (void)tokenizer.is_special(tokens[i]);
  }
  (void)stream.finish();
}

bool use_tokenizer(const std::string& bytes, Random& random) {
  // The pieces that lie beside some kinds come out of the same bytes.
  const std::string_view all(bytes);
  const std::string_view rest = all.substr(random() % (bytes.size() + 1));
  std::string error;
  tokenizers::TokenizerOptions options;
  if (random() % 8 == 0) options.special_tokens = {"<|x|>", std::string(rest.substr(0, 5)), ""};
  if (random() % 16 == 0) options.pattern = rest.substr(0, random() % 60);
  const auto tokenizer = tokenizers::load_tokenizer_bytes(
      all, &error, options, random() % 8 == 0 ? rest : "", random() % 8 == 0 ? rest : "");
  if (tokenizer == nullptr) {
    if (error.empty()) fail("a tokenizer is refused without a reason");
    return false;
  }
  for (const std::string text : kTexts) {
    const auto tokens = tokenizer->encode(text, 1, 1);
    if (tokens.ok()) decode_all(*tokenizer, *tokens);
    (void)tokenizer->piece_to_id(text);
  }
  const auto limit = static_cast<uint64_t>(std::max(tokenizer->vocab_size(), 0));
  decode_all(*tokenizer, {0, limit / 2, limit - 1, limit, 0x7fffffff, 0x80000000, ~uint64_t{0}});
  (void)tokenizer->end_tokens();
  (void)special_tokens_of(tokenizer.get());
  return true;
}

bool use_pattern(const std::string& bytes, Random&) {
  tokenizers::UnicodeRegex regex;
  if (regex.compile(bytes) != tokenizers::Error::Ok) return false;
  for (const std::string text : kTexts) {
    size_t end = 0;
    for (const auto& match : regex.find_all(text)) {
      if (match.start < end || match.end < match.start || match.end > text.size()) {
        fail("matches are outside of the text, or overlap");
      }
      end = match.end;
    }
  }
  return true;
}

/// Single bytes, some words, and one token without bytes that ends texts.
const std::shared_ptr<const Vocabulary>& small_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens{""};
    for (int c = 0; c < 256; ++c) tokens.emplace_back(1, static_cast<char>(c));
    for (const char* word : {"ab", "abc", "true", "null", "{\"", "\":", "\", \"", "00", "  ",
                             "\n  ", "\xc3\xa9", "\xf0\x9f\x99\x82", "aaaaaaaa"}) {
      tokens.emplace_back(word);
    }
    return std::make_shared<const Vocabulary>(std::move(tokens));
  }();
  return vocabulary;
}

size_t count(const std::vector<uint64_t>& mask) {
  size_t n = 0;
  for (const uint64_t word : mask) n += static_cast<size_t>(std::popcount(word));
  return n;
}

uint64_t nth_allowed(const std::vector<uint64_t>& mask, size_t n) {
  for (uint64_t token = 0; token < mask.size() * 64; ++token) {
    if ((mask[token / 64] >> token % 64 & 1) != 0 && n-- == 0) return token;
  }
  return 0;
}

bool use_constraint(const std::string& type, const std::string& text, Random& random) {
  using executorch::runtime::Error;
  std::string cause;
  const auto constraint = Constraint::compile(type, text, small_vocabulary(), {0}, cause);
  if (constraint == nullptr) {
    if (cause.empty()) fail("a constraint is refused without a cause");
    return false;
  }
  ConstrainedText made(constraint);
  std::vector<uint64_t> mask;
  for (int i = 0; i < 24 && !made.is_complete(); ++i) {
    if (made.allowed(mask) != Error::Ok) break;
    const size_t n = count(mask);
    if (n == 0) fail("no token is allowed, and that is no error");
    const uint64_t token = nth_allowed(mask, random() % n);
    if (token == 0) break;
    if (made.accept(token) != Error::Ok) fail("an allowed token is refused");
    if (random() % 8 == 0) (void)made.rollback(random() % 4);
    if (random() % 8 == 0) (void)made.accept_bytes(std::string(1, static_cast<char>(random())));
  }
  (void)made.accept(~uint64_t{0});
  return true;
}

bool use_regex(const std::string& bytes, Random& random) {
  return use_constraint("regex", bytes, random);
}
bool use_schema(const std::string& bytes, Random& random) {
  return use_constraint("json_schema", bytes, random);
}

bool use_request(const std::string& bytes, Random& random) {
  try {
    const auto request = server::parse_request(bytes, random() % 2 == 0, "m", 257);
    static std::string cause;
    static const auto llama3 = ChatTemplate::of("llama3", cause);
    (void)llama3->render(request.messages, cause);
    if (!request.format.type.empty()) {
      (void)use_constraint(request.format.type, request.format.text, random);
    }
  } catch (const server::ApiError& error) {
    if (error.status < 400 || error.message.empty()) fail("a request is refused without a reason");
    (void)server::error_body(error);
    return false;
  }
  return true;
}

bool use_chat_template(const std::string& bytes, Random& random) {
  using jinja::Value;
  std::string cause;
  const auto read = jinja::Template::parse(bytes, cause);
  if (!read.has_value()) {
    if (cause.empty()) fail("a chat template is refused without a cause");
    return false;
  }
  std::vector<Value> messages;
  for (const char* const role : {"system", "user", "assistant"}) {
    const std::string content = kTexts[random() % std::size(kTexts)];
    messages.push_back(Value::mapping({{Value::text("role"), Value::text(role)},
                                       {Value::text("content"), Value::text(content)}}));
  }
  jinja::Mapping variables;
  variables.items = {{Value::text("messages"), Value::sequence(std::move(messages))},
                     {Value::text("tools"), Value::sequence({Value::mapping({})})},
                     {Value::text("bos_token"), Value::text("<s>")},
                     {Value::text("add_generation_prompt"), Value::boolean(random() % 2 == 0)}};
  // So small that a mutant cannot take longer than others.
  jinja::Limits limits;
  limits.steps = 200'000;
  limits.bytes = 4 << 20;
  limits.output_bytes = 1 << 20;
  const auto text = read->render(variables, cause, limits);
  if (text.has_value() && text->size() > limits.output_bytes)
    fail("a text is longer than it may be");
  if (!text.has_value() && cause.empty()) fail("a chat template fails without a cause");
  return true;
}

bool use_http(const std::string& bytes, Random& random) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) fail("no sockets");
  // As much as a socket takes without a reader.
  const ssize_t sent = send(sockets[0], bytes.data(), std::min<size_t>(bytes.size(), 64 << 10),
                            MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
  shutdown(sockets[0], SHUT_WR);
  server::HttpLimits limits;
  if (random() % 4 == 0) limits = {random() % 200, random() % 4, random() % 100};
  server::HttpTimeouts timeouts;
  timeouts.head = timeouts.body = timeouts.idle = timeouts.write = std::chrono::milliseconds(500);
  server::HttpConnection connection(sockets[1], limits, timeouts);
  bool taken = false;
  while (true) {
    server::HttpRequest request;
    server::HttpFailure failure;
    const auto read = connection.read(request, failure);
    if (read == server::HttpConnection::Read::Request) {
      taken = true;
      if (request.body.size() > limits.body_bytes) fail("a body is larger than it may be");
      if (!connection.send({}, request.keep_alive)) break;
      continue;
    }
    if (read == server::HttpConnection::Read::Failed && failure.status < 400) {
      fail("a request fails without a status");
    }
    break;
  }
  close(sockets[0]);
  return taken;
}

bool use_wav(const std::string& bytes, Random&) {
  const auto header = load_wav_header(bytes.data(), bytes.size());
  if (header != nullptr && header->dataOffset > bytes.size()) fail("samples begin behind the end");
  const auto samples = detail::read_wav_samples(bytes.data(), bytes.size(), "wav");
  if (samples.size() > bytes.size() / 2) fail("there are more samples than bytes for them");
  return !samples.empty();
}

constexpr TextTarget kTargets[] = {{"tokenizer", use_tokenizer},
                                   {"pattern", use_pattern},
                                   {"regex", use_regex},
                                   {"schema", use_schema},
                                   {"request", use_request},
                                   {"http", use_http},
                                   {"wav", use_wav},
                                   {"chat_template", use_chat_template}};

}  // namespace

const TextTarget* find_text_target(const std::string& name) {
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const TextTarget& target) { return name == target.name; });
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace executorch::fuzz
