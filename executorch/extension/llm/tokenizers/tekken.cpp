#include <executorch/extension/llm/tokenizers/tekken.h>

#include <executorch/extension/llm/tokenizers/base64.h>
#include <executorch/extension/llm/tokenizers/json.h>

namespace tokenizers {

Error Tekken::parse(std::string_view bytes) {
  const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  const Json& config = at(json, "config");
  const Json& vocab = at(json, "vocab");
  if (!config.is_object() || !vocab.is_array()) {
    return fail(Error::ParseFailure, "not JSON with \"config\" and \"vocab\"");
  }
  version_ = string_at(config, "version");
  const auto count = [&](const char* key, uint64_t otherwise) {
    const Json& value = at(config, key);
    return value.is_number_unsigned() ? value.get<uint64_t>() : otherwise;
  };
  const uint64_t n_special = count("default_num_special_tokens", 1000);
  const uint64_t size = count("default_vocab_size", n_special + vocab.size());
  if (n_special > 65536 || size < n_special || size - n_special > vocab.size()) {
    return fail(Error::ParseFailure, "more tokens announced than there are");
  }
  std::vector<SpecialTokenInfo> special = given_;
  for (const Json& entry : at(json, "special_tokens")) {
    const Json& rank = at(entry, "rank");
    if (given_.empty() && rank.is_number_unsigned()) {
      special.push_back({rank.get<uint64_t>(), string_at(entry, "token_str"), true});
    }
  }
  if (special.empty()) {
    special = {{0, "<unk>", true}, {1, "<s>", true}, {2, "</s>", true}};
  }
  std::vector<bool> named(n_special);
  for (const SpecialTokenInfo& token : special) {
    if (token.rank >= n_special || named[token.rank] || !add_special(token.token_str, token.rank)) {
      return fail(Error::ParseFailure, "special token " + token.token_str + " is not one of " +
                                           std::to_string(n_special) + ", or comes twice");
    }
    named[token.rank] = true;
  }
  for (uint64_t i = 0; i < n_special; ++i) {
    if (!named[i] && !add_special("<SPECIAL_" + std::to_string(i) + ">", i)) {
      return fail(Error::ParseFailure, "special token " + std::to_string(i) + " has no name left");
    }
  }
  for (uint64_t i = 0; i < size - n_special; ++i) {
    const Json& rank = at(vocab[i], "rank");
    const Result<std::string> text = base64::decode(string_at(vocab[i], "token_bytes"));
    if (!rank.is_number_unsigned() || rank.get<uint64_t>() != i || !text.ok()) {
      return fail(Error::ParseFailure,
                  "vocab entry " + std::to_string(i) + " has no bytes, or another rank");
    }
    // A byte string may be spelled like a special token; the text of that one is found first.
    if (!add_token(*text, n_special + i)) {
      return fail(Error::ParseFailure, "vocab entry " + std::to_string(i) + " comes twice");
    }
  }
  const std::string pattern = string_at(config, "pattern");
  return pattern.empty() ? fail(Error::ParseFailure, "config has no pattern")
                         : set_pattern(pattern);
}

}  // namespace tokenizers
