#include <executorch/extension/llm/tokenizers/byte_level_bpe.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

#include <array>

namespace tokenizers {

void ByteLevelBpe::encode(std::string_view word, std::vector<uint64_t>& out) const {
  if (whole_words) {
    const uint32_t whole = tokens.find(word);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  if (merges == Merges::kLongest) {
    encode_longest(word, out);
    return;
  }
  static thread_local std::vector<Symbol> symbols;
  symbols.clear();
  for (uint32_t i = 0; i < word.size(); ++i) {
    const uint32_t token = tokens.find(word.substr(i, 1));
    if (token != kNoToken || unknown != kNoToken || merges == Merges::kTokens) {
      symbols.push_back({i, i + 1, token});
    }
  }
  if (merges == Merges::kTokens) {
    merge_symbols(symbols, [&](const Symbol& a, const Symbol& b, uint32_t& rank, uint32_t& token) {
      const uint32_t found = tokens.find(word.substr(a.begin, b.end - a.begin));
      if (found == kNoToken) return false;
      rank = token = found;
      return true;
    });
  } else {
    merge_symbols(symbols, pairs);
  }
  for (const Symbol& symbol : symbols) {
    const uint32_t token = symbol.token == kNoToken ? unknown : symbol.token;
    if (token != kNoToken) out.push_back(token);
  }
  if (symbols.capacity() > 65536) symbols = {};
}

void ByteLevelBpe::encode_longest(std::string_view word, std::vector<uint64_t>& out) const {
  for (size_t begin = 0; begin < word.size();) {
    size_t length = std::min(longest, word.size() - begin);
    uint32_t found = kNoToken;
    while (length > 0 && (found = tokens.find(word.substr(begin, length))) == kNoToken) --length;
    if (length > 0 || unknown != kNoToken) out.push_back(length > 0 ? found : unknown);
    begin += std::max<size_t>(length, 1);
  }
}

namespace byte_alphabet {
namespace {

struct Tables {
  std::array<uint32_t, 256> characters;
  std::array<int16_t, 0x144> bytes;
};

Tables make_tables() {
  Tables t;
  t.bytes.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    t.characters[b] = itself ? b : next++;
    t.bytes[t.characters[b]] = static_cast<int16_t>(b);
  }
  return t;
}

const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

}  // namespace

uint32_t character(uint8_t byte) {
  return tables().characters[byte];
}

int byte(uint32_t character) {
  return character < tables().bytes.size() ? tables().bytes[character] : -1;
}

bool decode(std::string_view spelling, std::string& bytes) {
  bytes.clear();
  const char* const end = spelling.data() + spelling.size();
  for (const char* at = spelling.data(); at < end;) {
    const utf8::Character c = utf8::decode(at, end);
    const int value = c.valid ? byte(c.code_point) : -1;
    if (value < 0) return false;
    bytes += static_cast<char>(value);
    at += c.length;
  }
  return true;
}

std::string encode(std::string_view bytes) {
  std::string spelling;
  for (const char c : bytes) utf8::append(spelling, character(static_cast<uint8_t>(c)));
  return spelling;
}

}  // namespace byte_alphabet
}  // namespace tokenizers
