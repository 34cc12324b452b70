#include <executorch/extension/llm/tokenizers/added_tokens.h>

#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>

namespace tokenizers {
namespace {

/// Where the last character of text[0, at) starts.
size_t before(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
  return at;
}

uint32_t character(std::string_view text, size_t at) {
  return utf8::decode(text.data() + at, text.data() + text.size()).code_point;
}

bool is_word(std::string_view text, size_t at) {
  return (unicode::properties(character(text, at)) & unicode::kWord) != 0;
}

}  // namespace

void AddedTokens::split(std::string_view text, std::vector<Part>& parts) const {
  size_t done = 0;
  size_t stripped = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const uint32_t found =
        trie_.child(0, text[at]) == 0 ? kNoToken : trie_.longest(text.substr(at), length);
    if (found == kNoToken) {
      ++at;
      continue;
    }
    const Token& token = tokens_[found];
    size_t begin = at;
    size_t end = at + length;
    at = end;
    if (token.single_word && ((begin > 0 && is_word(text, before(text, begin))) ||
                              (end < text.size() && is_word(text, end)))) {
      continue;
    }
    // White space that the last token stripped on its right may be part of this token, but is no
    // text before it.
    while (token.strips_left && begin > done &&
           unicode::is_space(character(text, before(text, begin)))) {
      begin = before(text, begin);
    }
    begin = token.strips_left ? std::max(begin, done) : begin;
    if (token.strips_right) {
      // A token that begins within stripped white space ends with it, without searching it again:
      // that keeps this linear.
      end = std::max(end, stripped);
      while (end < text.size() && unicode::is_space(character(text, end))) {
        end += utf8::length_of(text[end]);
      }
      stripped = end;
    }
    if (begin > done) parts.push_back({text.substr(done, begin - done), kNoToken});
    // The last token may already have stripped this whole token.
    if (begin < end) {
      parts.push_back({text.substr(begin, end - begin), token.token});
      done = end;
    }
  }
  if (done < text.size()) parts.push_back({text.substr(done), kNoToken});
}

}  // namespace tokenizers
