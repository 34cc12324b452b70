#include <executorch/extension/llm/tokenizers/sentencepiece.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>

namespace tokenizers {
namespace {
constexpr std::string_view kSpace = "\u2581";
constexpr std::string_view kReplacement = "\ufffd";
}  // namespace

/// How many bytes at the front of `text` become `replacement`.
size_t SPTokenizer::normalize_front(std::string_view text, std::string_view& replacement) const {
  size_t length = 0;
  if (user_defined_.longest(text, length) == kNoToken &&
      charsmap_.find(text, true, length, replacement)) {
    return length;
  }
  if (length == 0) {
    const utf8::Character c = utf8::decode(text.data(), text.data() + text.size());
    if (!c.valid) {
      replacement = kReplacement;
      return 1;
    }
    length = c.length;
  }
  replacement = text.substr(0, length);
  return length;
}

std::string SPTokenizer::normalize(std::string_view text) const {
  std::string result;
  std::string_view piece;
  while (remove_spaces_ && !text.empty()) {
    const size_t length = normalize_front(text, piece);
    if (piece != " ") break;
    text.remove_prefix(length);
  }
  if (text.empty()) return result;
  result.reserve(text.size() * 3 / 2 + 8);
  const std::string_view space = escape_spaces_ ? kSpace : std::string_view(" ");
  if (dummy_prefix_ && !suffix_space_) result += space;
  bool after_space = remove_spaces_;
  while (!text.empty()) {
    text.remove_prefix(normalize_front(text, piece));
    while (after_space && !piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    if (piece.empty()) continue;
    for (const char c : piece) {
      if (c == ' ') {
        result += space;
      } else {
        result += c;
      }
    }
    after_space = remove_spaces_ && piece.back() == ' ';
  }
  const auto ends_with_space = [&] {
    return result.size() >= space.size() &&
           result.compare(result.size() - space.size(), space.size(), space) == 0;
  };
  while (remove_spaces_ && ends_with_space()) result.resize(result.size() - space.size());
  if (dummy_prefix_ && suffix_space_) result += space;
  return result;
}

Result<std::vector<uint64_t>> SPTokenizer::encode(const std::string& input, int8_t bos,
                                                  int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  try {
    if (input.size() >= kNoToken / 4) return Error::EncodeFailure;
    const std::string text = normalize(input);
    std::vector<uint64_t> tokens;
    tokens.reserve(text.size() / 3 + 8);
    tokens.insert(tokens.end(), has_bos_ && bos > 0 ? static_cast<size_t>(bos) : 0, bos_tok_);
    if (model_ == Model::kUnigram) {
      encode_unigram(text, tokens);
    } else if (model_ == Model::kBpe) {
      encode_bpe(text, tokens);
    } else {
      encode_units(text, tokens);
    }
    tokens.insert(tokens.end(), has_eos_ && eos > 0 ? static_cast<size_t>(eos) : 0, eos_tok_);
    return tokens;
  } catch (const std::exception&) {
    return Error::EncodeFailure;
  }
}

void SPTokenizer::add(std::string_view piece, uint32_t token, std::vector<uint64_t>& tokens) const {
  if (token != kNoToken && token != unknown_) {
    tokens.push_back(token);
  } else if (byte_fallback_) {
    for (const char c : piece) tokens.push_back(bytes_[static_cast<uint8_t>(c)]);
  } else if (tokens.empty() || tokens.back() != unknown_) {
    tokens.push_back(unknown_);
  }
}

/// The best path; its scores are rounded as sentencepiece rounds them, so that ties end alike.
void SPTokenizer::encode_unigram(std::string_view text, std::vector<uint64_t>& tokens) const {
  struct Best {
    float score = 0;
    uint32_t start = kNoToken;
    uint32_t token = 0;
  };
  std::vector<Best> best(text.size() + 1);
  const auto offer = [](Best& to, float score, size_t start, uint32_t token) {
    if (to.start == kNoToken || score > to.score) to = {score, static_cast<uint32_t>(start), token};
  };
  const float unknown_score = lowest_ - 10.0f;
  for (size_t start = 0; start < text.size();) {
    const size_t length = std::min<size_t>(utf8::length_of(text[start]), text.size() - start);
    const float score = best[start].score;
    bool has_single = false;
    uint32_t node = 0;
    for (size_t i = start; i < text.size(); ++i) {
      node = trie_.child(node, text[i]);
      if (node == 0) break;
      const uint32_t token = trie_.value(node);
      if (token == kNoToken || pieces_[token].type == Type::kUnused) continue;
      const float own = pieces_[token].type == Type::kUserDefined
                            ? static_cast<float>(i + 1 - start) * highest_ - 0.1f
                            : pieces_[token].score;
      offer(best[i + 1], own + score, start, token);
      has_single |= i + 1 - start == length;
    }
    if (!has_single) offer(best[start + length], unknown_score + score, start, unknown_);
    start += length;
  }
  std::vector<size_t> ends;
  for (size_t at = text.size(); at > 0; at = best[at].start) ends.push_back(at);
  for (size_t i = ends.size(); i-- > 0;) {
    const Best& b = best[ends[i]];
    add(text.substr(b.start, ends[i] - b.start), b.token, tokens);
  }
}

void SPTokenizer::encode_bpe(std::string_view text, std::vector<uint64_t>& tokens) const {
  if (!cuts_before_space_) {
    encode_bpe_part(text, tokens);
    return;
  }
  // No piece goes on from a word to the space behind it.
  WordCaches::Lease lease(caches_);
  const char* const limit = text.data() + text.size();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (text.substr(end, 3) == kSpace) end += 3;
    end = std::min(text.find(kSpace, end), text.size());
    (*lease).append(
        text.substr(begin, end - begin), limit, tokens,
        [&](std::string_view word, std::vector<uint64_t>& out) { encode_bpe_part(word, out); });
    begin = end;
  }
}

void SPTokenizer::encode_bpe_part(std::string_view text, std::vector<uint64_t>& tokens) const {
  std::vector<Symbol> symbols;
  // Symbols that the user defined do not merge; others merge with any neighbour.
  constexpr uint32_t kFrozen = kNoToken - 1;
  for (uint32_t at = 0; at < text.size();) {
    size_t length = 0;
    const bool frozen = user_defined_.longest(text.substr(at), length) != kNoToken;
    if (!frozen) length = std::min<size_t>(utf8::length_of(text[at]), text.size() - at);
    const auto end = static_cast<uint32_t>(at + length);
    symbols.push_back({at, end, frozen ? kFrozen : kNoToken});
    at = end;
  }
  merge_symbols(symbols, [&](const Symbol& a, const Symbol& b, uint32_t& rank, uint32_t& token) {
    if (a.token == kFrozen || b.token == kFrozen) return false;
    const uint32_t found = normal_.find(text.substr(a.begin, b.end - a.begin));
    if (found == kNoToken) return false;
    rank = rank_[found];
    token = found;
    return true;
  });
  for (const Symbol& symbol : symbols) {
    const std::string_view piece = text.substr(symbol.begin, symbol.end - symbol.begin);
    add_unused(piece, normal_.find(piece), tokens, 0);
  }
}

/// A piece that is not to be used becomes the parts that it was merged from.
void SPTokenizer::add_unused(std::string_view text, uint32_t token, std::vector<uint64_t>& tokens,
                             int depth) const {
  if (token == kNoToken || pieces_[token].type != Type::kUnused || depth > 64) {
    const uint32_t reserved = token == kNoToken ? reserved_.find(text) : token;
    add(text, reserved, tokens);
    return;
  }
  // Its best cut: where both parts are pieces and the worse of their scores is best.
  size_t cut = 0;
  uint32_t cut_rank = kNoToken;
  for (size_t i = utf8::length_of(text[0]); i < text.size(); i += utf8::length_of(text[i])) {
    const uint32_t left = normal_.find(text.substr(0, i));
    const uint32_t right = normal_.find(text.substr(i));
    if (left != kNoToken && right != kNoToken && std::max(rank_[left], rank_[right]) < cut_rank) {
      cut = i;
      cut_rank = std::max(rank_[left], rank_[right]);
    }
  }
  if (cut == 0) {
    add(text, token, tokens);
    return;
  }
  add_unused(text.substr(0, cut), normal_.find(text.substr(0, cut)), tokens, depth + 1);
  add_unused(text.substr(cut), normal_.find(text.substr(cut)), tokens, depth + 1);
}

/// Whole words, or single characters.
void SPTokenizer::encode_units(std::string_view text, std::vector<uint64_t>& tokens) const {
  while (!text.empty()) {
    size_t length = 0;
    if (model_ == Model::kWord) {
      // Also in models whose spaces stand behind words, a word begins at a space.
      length = std::min(text.find(kSpace, text.substr(0, 3) == kSpace ? 3 : 1), text.size());
    } else if (user_defined_.longest(text, length) == kNoToken) {
      length = std::min<size_t>(utf8::length_of(text[0]), text.size());
    }
    add(text.substr(0, length), normal_.find(text.substr(0, length)), tokens);
    text.remove_prefix(length);
  }
}

}  // namespace tokenizers
