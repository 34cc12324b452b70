#include <executorch/extension/llm/tokenizers/tokenizer_file.h>

#include <executorch/extension/llm/tokenizers/hf_tokenizer.h>
#include <executorch/extension/llm/tokenizers/json.h>
#include <executorch/extension/llm/tokenizers/llama2c_tokenizer.h>
#include <executorch/extension/llm/tokenizers/sentencepiece.h>
#include <executorch/extension/llm/tokenizers/tekken.h>
#include <executorch/extension/llm/tokenizers/tiktoken.h>
#include <executorch/extension/llm/tokenizers/vocab_tokenizer.h>

#include <filesystem>

namespace tokenizers {
namespace {

namespace fs = std::filesystem;
using Ptr = std::unique_ptr<Tokenizer>;

/// The tokenizer if it takes the bytes; else why not, behind the reasons of others.
Ptr tried(Ptr tokenizer, const char* kind, std::string_view bytes, std::string& reasons) {
  if (tokenizer->load_from_bytes(bytes) == Error::Ok) return tokenizer;
  reasons += (reasons.empty() ? "" : "; ") + std::string(kind) + ": " + tokenizer->error_message();
  return nullptr;
}

Ptr tiktoken(const TokenizerOptions& options) {
  if (options.special_tokens.empty() && options.pattern.empty()) {
    return std::make_unique<Tiktoken>();
  }
  return std::make_unique<Tiktoken>(options.pattern, options.special_tokens, options.bos_index,
                                    options.eos_index);
}

Ptr by_content(std::string_view bytes, std::string& reasons, const TokenizerOptions& options,
               std::string_view merges) {
  const size_t start = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start != std::string_view::npos && bytes[start] == '{') {
    const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
    if (json.is_discarded()) {
      reasons = "JSON that does not parse";
      return nullptr;
    }
    if (at(json, "model").is_object()) {
      return tried(std::make_unique<HFTokenizer>(), "tokenizer.json", bytes, reasons);
    }
    if (at(json, "config").is_object() && at(json, "vocab").is_array()) {
      return tried(std::make_unique<Tekken>(), "tekken.json", bytes, reasons);
    }
    return tried(std::make_unique<VocabTokenizer>(std::string(merges)), "vocab.json", bytes,
                 reasons);
  }
  Ptr found = tried(tiktoken(options), "tiktoken", bytes, reasons);
  if (found == nullptr) {
    found = tried(std::make_unique<SPTokenizer>(), "SentencePiece", bytes, reasons);
  }
  if (found == nullptr) {
    found = tried(std::make_unique<Llama2cTokenizer>(), "llama2.c", bytes, reasons);
  }
  return found;
}

/// The chat template; the default one where there are several.
std::string template_of(const Json& config) {
  const Json& value = at(config, "chat_template");
  if (value.is_array()) {
    for (const Json& entry : value) {
      if (string_at(entry, "name") == "default") return string_at(entry, "template");
    }
  }
  return value.is_string() ? value.get<std::string>() : std::string();
}

void apply_config(Tokenizer& tokenizer, std::string_view bytes) {
  const Json config = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!config.is_object()) return;
  tokenizer.set_chat_template(template_of(config));
  const auto token = [&](const char* key) {
    const Json& value = at(config, key);
    const std::string text =
        value.is_object() ? string_at(value, "content") : string_at(config, key);
    return text.empty() ? Result<uint64_t>(Error::OutOfRange) : tokenizer.piece_to_id(text);
  };
  const Result<uint64_t> bos = token("bos_token");
  const Result<uint64_t> eos = token("eos_token");
  if (bos.ok()) tokenizer.set_bos_tok(*bos);
  if (eos.ok()) tokenizer.set_eos_tok(*eos);
}

std::string file_or_nothing(const fs::path& path) {
  std::string message;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  Result<std::string> bytes = read_file(path.string(), message);
  return bytes.ok() ? std::move(*bytes) : std::string();
}

Ptr load(const std::string& given, std::string& reasons, const TokenizerOptions& options) {
  fs::path path(given);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    std::string names;
    for (const char* name : {"tokenizer.json", "tekken.json", "tokenizer.model",
                             "tokenizer.tiktoken", "vocab.json", "tokenizer.bin"}) {
      names += (names.empty() ? "" : ", ") + std::string(name);
      if (fs::is_regular_file(path / name, error)) {
        path /= name;
        break;
      }
    }
    if (path == given) {
      reasons = given + " is a directory without a tokenizer; expected one of " + names + " in it";
      return nullptr;
    }
  }
  Result<std::string> bytes = read_file(path.string(), reasons);
  if (!bytes.ok()) return nullptr;
  const fs::path folder = path.parent_path();
  const std::string merges = file_or_nothing(folder / "merges.txt");
  Ptr tokenizer = by_content(*bytes, reasons, options, merges);
  if (tokenizer == nullptr) {
    reasons = path.string() + " is no tokenizer: " + reasons;
    return nullptr;
  }
  const std::string config = file_or_nothing(folder / "tokenizer_config.json");
  if (!config.empty()) apply_config(*tokenizer, config);
  const std::string chat = file_or_nothing(folder / "chat_template.jinja");
  if (!chat.empty()) tokenizer->set_chat_template(chat);
  return tokenizer;
}

/// Runs `load`, whose exceptions become reasons.
template <typename Load>
Ptr guarded(std::string* error, const Load& load) {
  std::string reasons;
  Ptr tokenizer;
  try {
    tokenizer = load(reasons);
  } catch (const std::exception& e) {
    reasons = e.what();
  }
  if (tokenizer == nullptr && error != nullptr) *error = reasons;
  return tokenizer;
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_file(const std::string& path, std::string* error,
                                               const TokenizerOptions& options) {
  return guarded(error, [&](std::string& reasons) { return load(path, reasons, options); });
}

std::unique_ptr<Tokenizer> load_tokenizer_bytes(std::string_view bytes, std::string* error,
                                                const TokenizerOptions& options,
                                                std::string_view merges, std::string_view config) {
  return guarded(error, [&](std::string& reasons) {
    Ptr tokenizer = by_content(bytes, reasons, options, merges);
    if (tokenizer == nullptr) {
      reasons = "no tokenizer: " + reasons;
    } else if (!config.empty()) {
      apply_config(*tokenizer, config);
    }
    return tokenizer;
  });
}

}  // namespace tokenizers
