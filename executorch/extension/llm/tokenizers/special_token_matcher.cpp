#include <executorch/extension/llm/tokenizers/special_token_matcher.h>

namespace tokenizers {

void SpecialTokenMatcher::set(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string, uint32_t>> entries;
  for (size_t i = 0; i < tokens.size(); ++i) {
    entries.emplace_back(tokens[i], static_cast<uint32_t>(i));
  }
  trie_ = {};
  trie_.build(std::move(entries));
}

Error SpecialTokenMatcher::compile(const std::string& pattern) {
  std::vector<std::string> tokens(1);
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '|') {
      tokens.emplace_back();
    } else if (pattern[i] == '\\' && ++i == pattern.size()) {
      return Error::RegexFailure;
    } else {
      tokens.back() += pattern[i];
    }
  }
  set(tokens);
  return Error::Ok;
}

std::vector<Match> SpecialTokenMatcher::find_all(const std::string& text) const {
  std::vector<Match> matches;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const bool found =
        !trie_.empty() && trie_.longest(std::string_view(text).substr(at), length) != kNoToken;
    if (found) matches.push_back({at, at + length});
    at += found ? length : 1;
  }
  return matches;
}

}  // namespace tokenizers
