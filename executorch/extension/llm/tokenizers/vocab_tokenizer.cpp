#include <executorch/extension/llm/tokenizers/vocab_tokenizer.h>

#include <executorch/extension/llm/tokenizers/known_patterns.h>
#include <executorch/extension/llm/tokenizers/word_models.h>

#include <algorithm>

namespace tokenizers {

Error VocabTokenizer::parse(std::string_view bytes) {
  const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!json.is_object() || json.empty()) {
    return fail(Error::ParseFailure, "not a JSON object of token numbers");
  }
  std::vector<std::pair<uint64_t, const std::string*>> sorted;
  for (const auto& entry : json.get_ref<const Json::object_t&>()) {
    if (!entry.second.is_number_unsigned()) {
      return fail(Error::ParseFailure, "the token of \"" + entry.first + "\" is not a number");
    }
    sorted.emplace_back(entry.second.get<uint64_t>(), &entry.first);
  }
  std::sort(sorted.begin(), sorted.end());
  std::string spelled;
  for (const auto& [token, key] : sorted) {
    const bool decoded = byte_alphabet::decode(*key, spelled);
    const std::string& text = decoded ? spelled : *key;
    const bool special =
        text.size() > 4 && text.substr(0, 2) == "<|" && text.substr(text.size() - 2) == "|>";
    if (special ? !add_special(text, token) : !add_token(text, token)) {
      return fail(Error::ParseFailure,
                  "token " + std::to_string(token) + " comes twice or is too large");
    }
  }
  bpe_.merges = merges_.empty() ? ByteLevelBpe::Merges::kLongest : ByteLevelBpe::Merges::kPairs;
  bpe_.whole_words = false;
  const Error error = merges_.empty() ? Error::Ok : read_merges();
  return error != Error::Ok ? error : set_pattern(patterns::kGpt2);
}

Error VocabTokenizer::read_merges() {
  std::string_view rest = merges_;
  std::string left;
  std::string right;
  uint32_t rank = 0;
  for (size_t line = 1; !rest.empty(); ++line) {
    std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty() || text.substr(0, 8) == "#version") continue;
    const size_t space = text.find(' ');
    const std::string where = "merges, line " + std::to_string(line) + ": ";
    if (space == std::string_view::npos || !byte_alphabet::decode(text.substr(0, space), left) ||
        !byte_alphabet::decode(text.substr(space + 1), right)) {
      return fail(Error::ParseFailure, where + "not two tokens");
    }
    const uint32_t a = bpe_.tokens.find(left);
    const uint32_t b = bpe_.tokens.find(right);
    const uint32_t merged = bpe_.tokens.find(left + right);
    if (a == kNoToken || b == kNoToken || merged == kNoToken) {
      return fail(Error::ParseFailure, where + "of or to what is no token");
    }
    bpe_.pairs.insert(a, b, {rank++, merged});
  }
  return Error::Ok;
}

bool VocabTokenizer::encode_text(std::string_view text, std::vector<uint64_t>& tokens) const {
  if (bpe_.merges == ByteLevelBpe::Merges::kPairs) {
    return BPETokenizerBase::encode_text(text, tokens);
  }
  // Cuts before every space, which stays with the word behind it, and around punctuation.
  size_t begin = 0;
  const auto finish = [&](size_t end) {
    if (end > begin) {
      bpe_.encode(text.substr(begin, end - begin), tokens);
      begin = end;
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool mark = c > 32 && c < 127 && !std::isalnum(c);
    if (c == ' ' || mark) finish(i);
    if (mark) finish(i + 1);
  }
  finish(text.size());
  return true;
}

}  // namespace tokenizers
