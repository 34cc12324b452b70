#pragma once

#include <executorch/extension/llm/tokenizers/regex.h>
#include <executorch/extension/llm/tokenizers/string_integer_map.h>
#include <executorch/extension/llm/tokenizers/trie.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// Finds given texts: from left to right, at each place the longest. One step a byte.
class SpecialTokenMatcher : public IRegex {
 public:
  SpecialTokenMatcher() = default;
  explicit SpecialTokenMatcher(const std::vector<std::string>& tokens) { set(tokens); }

  /// Takes the alternatives of a pattern `a|b|c`, where a backslash makes a plain character.
  Error compile(const std::string& pattern) override;
  std::vector<Match> find_all(const std::string& text) const override;

 private:
  void set(const std::vector<std::string>& tokens);

  Trie trie_;
};

namespace detail {

using TokenMap = StringIntegerMap<>;

/// ParseFailure where two elements have the same text or rank.
template <typename TContainer, typename TTokenOf, typename TRankOf>
Result<TokenMap> build_token_map(const TContainer& container, TTokenOf token_of, TRankOf rank_of) {
  TokenMap map(container, token_of, rank_of);
  for (const auto& [text, rank] : map) {
    const auto back = map.tryGetString(rank);
    if (!back.has_value() || *back != text) return Error::ParseFailure;
  }
  if (map.size() != container.size()) return Error::ParseFailure;
  return map;
}
template <typename TToken, typename TRank>
Result<TokenMap> build_token_map(std::vector<std::pair<TToken, TRank>> container) {
  return build_token_map(
      container, [](const auto& pair) -> const auto& { return pair.first; },
      [](const auto& pair) { return pair.second; });
}

/// Finds the texts of `special_token_map`; null where there are none.
inline Result<std::unique_ptr<IRegex>> build_special_token_regex(
    const TokenMap& special_token_map) {
  if (special_token_map.size() == 0) return std::unique_ptr<IRegex>();
  std::vector<std::string> texts;
  for (const auto& entry : special_token_map) texts.push_back(entry.first);
  return std::unique_ptr<IRegex>(std::make_unique<SpecialTokenMatcher>(texts));
}

}  // namespace detail
}  // namespace tokenizers
