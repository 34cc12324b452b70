#include <executorch/extension/llm/tokenizers/word_models.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tokenizers {
namespace {

constexpr std::string_view kSpace = "\u2581";

/// Byte pair encoding of characters, as in tokenizers' models::BPE.
class CharacterBpe : public WordModel {
 public:
  bool load(const Json& model, const Vocabulary& vocabulary, std::string& message) {
    prefix_ = string_at(model, "continuing_subword_prefix");
    suffix_ = string_at(model, "end_of_word_suffix");
    fuse_unknown_ = bool_at(model, "fuse_unk", false);
    whole_words_ = bool_at(model, "ignore_merges", false);
    vocabulary_ = &vocabulary;
    unknown_ = vocabulary.find(string_at(model, "unk_token"));
    if (string_at(model, "unk_token").empty()) unknown_ = kNoToken;
    if (bool_at(model, "byte_fallback", false)) bytes_ = byte_tokens(vocabulary);
    uint32_t rank = 0;
    // Words are spelled differently where they begin and end, and what is dropped leaves
    // neighbours behind that may merge.
    const bool drops = unknown_ == kNoToken &&
                       (bytes_.empty() || std::count(bytes_.begin(), bytes_.end(), kNoToken) != 0);
    cuts_before_space_ = !whole_words_ && !drops && prefix_.empty() && suffix_.empty() &&
                         vocabulary.find(kSpace) != kNoToken;
    for (const Json& merge : at(model, "merges")) {
      if (merge.is_string() && merge.get_ref<const std::string&>().rfind("#version", 0) == 0) {
        continue;  // the first line of a file of merges, taken over as it was
      }
      std::string left;
      std::string right;
      if (!read_merge(merge, left, right)) {
        message = "merge " + std::to_string(rank) + " is not two strings";
        return false;
      }
      const uint32_t a = vocabulary.find(left);
      const uint32_t b = vocabulary.find(right);
      const std::string merged = left + right.substr(std::min(prefix_.size(), right.size()));
      const uint32_t token = vocabulary.find(merged);
      if (a == kNoToken || b == kNoToken || token == kNoToken) {
        message = "merge " + std::to_string(rank) + " is of or to what is no token";
        return false;
      }
      cuts_before_space_ &= !goes_on_behind_word(merged);
      pairs_.insert(a, b, {rank++, token});
    }
    return true;
  }

  void encode(std::string_view word, std::vector<uint64_t>& tokens) const override {
    if (!cuts_before_space_) {
      encode_part(word, tokens);
      return;
    }
    // No merge crosses from a word to the space behind it.
    WordCaches::Lease lease(caches_);
    const char* const limit = word.data() + word.size();
    const auto encode_one = [&](std::string_view part, std::vector<uint64_t>& out) {
      encode_part(part, out);
    };
    size_t begin = 0;
    while (begin < word.size()) {
      size_t end = begin;
      while (word.substr(end, 3) == kSpace) end += 3;
      end = std::min(word.find(kSpace, end), word.size());
      (*lease).append(word.substr(begin, end - begin), limit, tokens, encode_one);
      begin = end;
    }
  }

 private:
  static bool goes_on_behind_word(std::string_view token) {
    while (token.substr(0, 3) == kSpace) token.remove_prefix(3);
    return token.find(kSpace) != std::string_view::npos;
  }

  void encode_part(std::string_view word, std::vector<uint64_t>& tokens) const {
    if (whole_words_) {
      const uint32_t whole = vocabulary_->find_of_model(word);
      if (whole != kNoToken) {
        tokens.push_back(whole);
        return;
      }
    }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    std::string spelled;
    bool after_unknown = false;
    const char* const begin = word.data();
    const char* const end = begin + word.size();
    for (const char* at = begin; at < end;) {
      const uint32_t length = utf8::decode(at, end).length;
      const auto start = static_cast<uint32_t>(at - begin);
      std::string_view piece(at, length);
      if (!prefix_.empty() || !suffix_.empty()) {
        spelled = at == begin ? std::string() : prefix_;
        spelled += piece;
        spelled += at + length == end ? suffix_ : std::string();
        piece = spelled;
      }
      const uint32_t token = vocabulary_->find_of_model(piece);
      at += length;
      const bool unknown = token == kNoToken && !as_bytes(piece, start, symbols);
      if (token != kNoToken) {
        symbols.push_back({start, start + length, token});
      } else if (unknown && unknown_ != kNoToken && !(fuse_unknown_ && after_unknown)) {
        symbols.push_back({start, start + length, unknown_});
      }
      after_unknown = unknown;
    }
    merge_symbols(symbols, pairs_);
    for (const Symbol& symbol : symbols) tokens.push_back(symbol.token);
  }

  bool as_bytes(std::string_view piece, uint32_t start, std::vector<Symbol>& symbols) const {
    const bool all = !bytes_.empty() && std::all_of(piece.begin(), piece.end(), [&](char c) {
      return bytes_[static_cast<uint8_t>(c)] != kNoToken;
    });
    for (size_t i = 0; all && i < piece.size(); ++i) {
      const auto at = static_cast<uint32_t>(start + i);
      symbols.push_back({at, at + 1, bytes_[static_cast<uint8_t>(piece[i])]});
    }
    return all;
  }

  const Vocabulary* vocabulary_ = nullptr;
  PairMap pairs_;
  std::string prefix_;
  std::string suffix_;
  std::vector<uint32_t> bytes_;
  uint32_t unknown_ = kNoToken;
  bool fuse_unknown_ = false;
  bool whole_words_ = false;
  bool cuts_before_space_ = false;
  mutable WordCaches caches_;
};

/// The longest piece that the rest of the word starts with, again and again; all or nothing.
class WordPiece : public WordModel {
 public:
  bool load(const Json& model, const Vocabulary& vocabulary, std::string& message) {
    const std::string prefix = string_at(model, "continuing_subword_prefix", "##");
    unknown_ = vocabulary.find(string_at(model, "unk_token", "[UNK]"));
    const Json& most = at(model, "max_input_chars_per_word");
    most_ = most.is_number_unsigned() ? most.get<size_t>() : 100;
    if (unknown_ == kNoToken) {
      message = "WordPiece: the unknown token is not in the vocabulary";
      return false;
    }
    std::vector<std::pair<std::string, uint32_t>> first;
    std::vector<std::pair<std::string, uint32_t>> later;
    for (uint32_t token = 0; token < vocabulary.limit(); ++token) {
      const std::string piece(vocabulary.piece(token));
      if (!piece.empty()) {
        first.emplace_back(piece, token);
        if (piece.compare(0, prefix.size(), prefix) == 0) {
          later.emplace_back(piece.substr(prefix.size()), token);
        }
      }
    }
    first_.build(std::move(first));
    later_.build(std::move(later));
    return true;
  }

  void encode(std::string_view word, std::vector<uint64_t>& tokens) const override {
    const size_t before = tokens.size();
    const auto characters = std::count_if(
        word.begin(), word.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
    bool known = static_cast<size_t>(characters) <= most_;
    for (size_t begin = 0; known && begin < word.size();) {
      size_t length = 0;
      const uint32_t token = (begin == 0 ? first_ : later_).longest(word.substr(begin), length);
      known = token != kNoToken;
      if (known) {
        tokens.push_back(token);
        begin += length;
      }
    }
    if (!known) {
      tokens.resize(before);
      tokens.push_back(unknown_);
    }
  }

 private:
  Trie first_;
  Trie later_;
  uint32_t unknown_ = kNoToken;
  size_t most_ = 100;
};

/// The pieces of the largest sum of scores.
class Unigram : public WordModel {
 public:
  bool load(const Json& model, const Vocabulary& vocabulary, std::string& message) {
    const Json& unknown = at(model, "unk_id");
    if (unknown.is_number_unsigned()) {
      if (unknown.get<uint64_t>() >= vocabulary.limit()) {
        message = "Unigram: unk_id is not in the vocabulary";
        return false;
      }
      unknown_ = unknown.get<uint32_t>();
    }
    if (bool_at(model, "byte_fallback", false)) {
      bytes_ = byte_tokens(vocabulary);
      if (std::count(bytes_.begin(), bytes_.end(), kNoToken) != 0) bytes_.clear();
    }
    std::vector<std::pair<std::string, uint32_t>> entries;
    double lowest = std::numeric_limits<double>::infinity();
    uint32_t token = 0;
    for (const Json& entry : at(model, "vocab")) {
      scores_.push_back(entry[1].get<double>());
      lowest = std::min(lowest, scores_.back());
      entries.emplace_back(entry[0].get<std::string>(), token++);
    }
    unknown_score_ = lowest - 10.0;
    trie_.build(std::move(entries));
    return true;
  }

  void encode(std::string_view word, std::vector<uint64_t>& tokens) const override {
    struct Best {
      double score = 0;
      uint32_t start = kNoToken;
      uint32_t token = 0;
    };
    static thread_local std::vector<Best> best;
    best.assign(word.size() + 1, Best());
    const auto offer = [](Best& to, double score, size_t start, uint32_t token) {
      if (to.start == kNoToken || score > to.score) {
        to = {score, static_cast<uint32_t>(start), token};
      }
    };
    const char* const end = word.data() + word.size();
    for (size_t start = 0; start < word.size();) {
      const size_t length = utf8::decode(word.data() + start, end).length;
      const double score = best[start].score;
      bool has_single = false;
      uint32_t node = 0;
      for (size_t i = start; i < word.size(); ++i) {
        node = trie_.child(node, word[i]);
        if (node == 0) break;
        const uint32_t token = trie_.value(node);
        if (token != kNoToken) {
          offer(best[i + 1], score + scores_[token], start, token);
          has_single |= i + 1 - start == length;
        }
      }
      if (!has_single) offer(best[start + length], score + unknown_score_, start, kNoToken);
      start += length;
    }
    const size_t first = tokens.size();
    // From the end; characters in a row that are unknown are one token, or their bytes.
    bool after_unknown = false;
    for (size_t at = word.size(); at > 0; at = best[at].start) {
      const bool unknown = best[at].token == kNoToken || best[at].token == unknown_;
      if (!unknown) {
        tokens.push_back(best[at].token);
      } else if (!bytes_.empty()) {
        for (size_t i = at; i > best[at].start; --i) {
          tokens.push_back(bytes_[static_cast<uint8_t>(word[i - 1])]);
        }
      } else if (!after_unknown && unknown_ != kNoToken) {
        tokens.push_back(unknown_);
      }
      after_unknown = unknown;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
    if (best.capacity() > 65536) best = {};
  }

 private:
  Trie trie_;
  std::vector<double> scores_;
  std::vector<uint32_t> bytes_;
  uint32_t unknown_ = kNoToken;
  double unknown_score_ = 0;
};

class WordLevel : public WordModel {
 public:
  bool load(const Json& model, const Vocabulary& vocabulary, std::string&) {
    vocabulary_ = &vocabulary;
    unknown_ = vocabulary.find(string_at(model, "unk_token", "<unk>"));
    return true;
  }
  void encode(std::string_view word, std::vector<uint64_t>& tokens) const override {
    const uint32_t found = vocabulary_->find_of_model(word);
    const uint32_t token = found == kNoToken ? unknown_ : found;
    if (token != kNoToken) tokens.push_back(token);
  }

 private:
  const Vocabulary* vocabulary_ = nullptr;
  uint32_t unknown_ = kNoToken;
};

template <typename Model>
std::unique_ptr<WordModel> loaded(const Json& model, const Vocabulary& vocabulary,
                                  std::string& message) {
  auto made = std::make_unique<Model>();
  return made->load(model, vocabulary, message) ? std::move(made) : nullptr;
}

}  // namespace

std::vector<uint32_t> byte_tokens(const Vocabulary& vocabulary) {
  std::vector<uint32_t> tokens(256);
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    tokens[byte] = vocabulary.find(name);
  }
  return tokens;
}

bool read_merge(const Json& merge, std::string& left, std::string& right) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    left = merge[0].get<std::string>();
    right = merge[1].get<std::string>();
    return true;
  }
  if (!merge.is_string()) return false;
  const std::string& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return true;
}

bool read_vocabulary(const Json& model, Vocabulary& vocabulary, std::string& message) {
  const Json& entries = at(model, "vocab");
  if (entries.is_object()) {
    // In order of the numbers, which are dense but for a few.
    std::vector<std::pair<uint64_t, const std::string*>> sorted;
    for (const auto& entry : entries.get_ref<const Json::object_t&>()) {
      if (!entry.second.is_number_unsigned()) {
        message = "vocabulary: the token of \"" + entry.first + "\" is not a number";
        return false;
      }
      sorted.emplace_back(entry.second.get<uint64_t>(), &entry.first);
    }
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [token, piece] : sorted) {
      if (!vocabulary.add(*piece, token)) {
        message = "vocabulary: token " + std::to_string(token) + " comes twice or is too large";
        return false;
      }
    }
    return true;
  }
  if (!entries.is_array()) {
    message = "the model has no vocabulary";
    return false;
  }
  uint64_t token = 0;
  for (const Json& entry : entries) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() ||
        !std::isfinite(entry[1].get<double>())) {
      message = "vocabulary: entry " + std::to_string(token) + " is not a piece and its score";
      return false;
    }
    if (!vocabulary.add(entry[0].get_ref<const std::string&>(), token++)) {
      message = "vocabulary: piece of entry " + std::to_string(token - 1) + " comes twice";
      return false;
    }
  }
  return true;
}

std::unique_ptr<WordModel> make_word_model(const Json& model, const Vocabulary& vocabulary,
                                           std::string& message) {
  std::string type = string_at(model, "type");
  if (type.empty()) {
    // Old files do not say.
    type = at(model, "merges").is_array() ? "BPE" : at(model, "vocab").is_array() ? "Unigram" : "";
  }
  const bool has_scores = at(model, "vocab").is_array();
  if (type == "BPE" && !has_scores) return loaded<CharacterBpe>(model, vocabulary, message);
  if (type == "WordPiece" && !has_scores) return loaded<WordPiece>(model, vocabulary, message);
  if (type == "Unigram" && has_scores) return loaded<Unigram>(model, vocabulary, message);
  if (type == "WordLevel" && !has_scores) return loaded<WordLevel>(model, vocabulary, message);
  message = "unknown model " + type + ", or its vocabulary is of another model";
  return nullptr;
}

}  // namespace tokenizers
