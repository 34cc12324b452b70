#include <executorch/extension/llm/tokenizers/llama2c_tokenizer.h>

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>
#include <executorch/extension/llm/tokenizers/byte_pairs.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace tokenizers {
namespace {

// Pieces 0 to 2 are unknown, first and last; the 256 bytes follow.
constexpr uint64_t kFirstByte = 3;

template <typename T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return true;
}

}  // namespace

Llama2cTokenizer::Llama2cTokenizer() = default;
Llama2cTokenizer::~Llama2cTokenizer() = default;

Error Llama2cTokenizer::load(const std::string& tokenizer_path) {
  std::string message;
  Result<std::string> bytes = read_file(tokenizer_path, message);
  return bytes.ok() ? load_from_bytes(*bytes) : fail(bytes.error(), message);
}

Error Llama2cTokenizer::load_from_bytes(std::string_view bytes) {
  try {
    if (!parse(bytes, true) && !parse(bytes, false)) {
      return fail(Error::ParseFailure,
                  "not scores, lengths and pieces that end where the file ends");
    }
    initialized_ = true;
    error_message_.clear();
    return Error::Ok;
  } catch (const std::exception& e) {
    return fail(Error::ParseFailure, e.what());
  }
}

bool Llama2cTokenizer::parse(std::string_view bytes, bool has_header) {
  initialized_ = false;
  pieces_.clear();
  tokens_ = {};
  int32_t count = 0;
  int32_t bos = 1;
  int32_t eos = 2;
  int32_t longest = 0;
  if (has_header && (!take(bytes, count) || !take(bytes, bos) || !take(bytes, eos))) return false;
  if (!take(bytes, longest) || longest <= 0 || bos < 0 || eos < 0) return false;
  std::vector<float> scores;
  while (!bytes.empty()) {
    float score = 0;
    int32_t length = 0;
    if (!take(bytes, score) || !take(bytes, length) || length < 0 || length > longest ||
        static_cast<size_t>(length) > bytes.size() || !std::isfinite(score) ||
        pieces_.size() >= Vocabulary::kLimit) {
      return false;
    }
    scores.push_back(score);
    pieces_.emplace_back(bytes.substr(0, static_cast<size_t>(length)));
    bytes.remove_prefix(static_cast<size_t>(length));
    tokens_.insert(pieces_.back(), static_cast<uint32_t>(pieces_.size() - 1));
  }
  const size_t n = pieces_.size();
  // What has a header need not know every byte.
  if (n < kFirstByte + (has_header ? 0 : 256) || (has_header && static_cast<size_t>(count) != n) ||
      static_cast<size_t>(bos) >= n || static_cast<size_t>(eos) >= n) {
    return false;
  }
  rank_ = ranks_of(scores);
  vocab_size_ = static_cast<int32_t>(n);
  bos_tok_ = static_cast<uint64_t>(bos);
  eos_tok_ = static_cast<uint64_t>(eos);
  return true;
}

Result<std::string> Llama2cTokenizer::id_to_piece(uint64_t token) const {
  if (!initialized_) return Error::Uninitialized;
  if (token >= pieces_.size()) return Error::OutOfRange;
  return pieces_[token];
}

Result<uint64_t> Llama2cTokenizer::piece_to_id(const std::string& text) const {
  const uint32_t token = initialized_ ? tokens_.find(text) : kNoToken;
  if (token == kNoToken) return initialized_ ? Error::OutOfRange : Error::Uninitialized;
  return static_cast<uint64_t>(token);
}

Result<std::vector<uint64_t>> Llama2cTokenizer::encode(const std::string& input, int8_t bos,
                                                       int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  try {
    if (input.size() >= kNoToken / 2) return Error::EncodeFailure;
    std::vector<uint64_t> tokens(bos > 0 ? static_cast<size_t>(bos) : 0, bos_tok_);
    const std::string text = input.empty() ? input : " " + input;
    std::vector<Symbol> symbols;
    for (uint32_t at = 0; at < text.size();) {
      const utf8::Character c = utf8::decode(text.data() + at, text.data() + text.size());
      const uint32_t token = tokens_.find(std::string_view(text).substr(at, c.length));
      if (token != kNoToken) symbols.push_back({at, at + c.length, token});
      for (uint32_t i = 0; token == kNoToken && i < c.length; ++i) {
        const uint64_t byte_token = kFirstByte + static_cast<uint8_t>(text[at + i]);
        if (byte_token >= pieces_.size()) return Error::EncodeFailure;
        symbols.push_back({at + i, at + i + 1, static_cast<uint32_t>(byte_token)});
      }
      at += c.length;
    }
    const auto spelled = [&](const Symbol& s) {
      // A byte by itself is written as <0xNN>, which merges with nothing.
      return std::string_view(pieces_[s.token]);
    };
    std::string both;
    merge_symbols(symbols, [&](const Symbol& a, const Symbol& b, uint32_t& rank, uint32_t& token) {
      both.assign(spelled(a)).append(spelled(b));
      const uint32_t found = tokens_.find(both);
      if (found == kNoToken) return false;
      rank = rank_[found];
      token = found;
      return true;
    });
    for (const Symbol& symbol : symbols) tokens.push_back(symbol.token);
    tokens.insert(tokens.end(), eos > 0 ? static_cast<size_t>(eos) : 0, eos_tok_);
    return tokens;
  } catch (const std::exception&) {
    return Error::EncodeFailure;
  }
}

Result<std::string> Llama2cTokenizer::decode(uint64_t prev_token, uint64_t token,
                                             bool skip_special_tokens) const {
  if (skip_special_tokens && is_special(token)) return std::string();
  std::string text = TK_UNWRAP(token_bytes(token));
  // The space in front of the first word is the tokenizer's; one that is written as a byte is not.
  if (prev_token == bos_tok_ && pieces_[token][0] == ' ') text.erase(0, 1);
  return text;
}

Result<std::string> Llama2cTokenizer::token_bytes(uint64_t token) const {
  const std::string piece = TK_UNWRAP(id_to_piece(token));
  unsigned byte = 0;
  char end = 0;
  if (piece.size() == 6 && std::sscanf(piece.c_str(), "<0x%2X%c", &byte, &end) == 2 && end == '>') {
    return std::string(1, static_cast<char>(byte));
  }
  return piece;
}

bool Llama2cTokenizer::is_special(uint64_t token) const {
  return token < kFirstByte || token == bos_tok_ || token == eos_tok_;
}

}  // namespace tokenizers
