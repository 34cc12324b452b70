#include "text_mutation.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace executorch::fuzz {
namespace {

constexpr size_t kMaxBytes = 256 << 10;

constexpr const char* kNumbers[] = {"0",
                                    "-1",
                                    "1",
                                    "127",
                                    "255",
                                    "256",
                                    "65535",
                                    "16777215",
                                    "16777216",
                                    "2147483647",
                                    "2147483648",
                                    "4294967295",
                                    "4294967296",
                                    "-2147483648",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "18446744073709551615",
                                    "-9223372036854775808",
                                    "99999999999999999999999",
                                    "1e999",
                                    "-1e999",
                                    "1e-999",
                                    "0.5",
                                    "NaN",
                                    "null",
                                    "true",
                                    "[]",
                                    "{}",
                                    "\"\"",
                                    "\"a\"",
                                    "[[]]",
                                    "[\"a\",0]"};

constexpr const char* kPieces[] = {"{",
                                   "}",
                                   "[",
                                   "]",
                                   "(",
                                   ")",
                                   "\"",
                                   "\\",
                                   ",",
                                   ":",
                                   "*",
                                   "+",
                                   "?",
                                   "|",
                                   "^",
                                   "$",
                                   ".",
                                   "{1000}",
                                   "{0,}",
                                   "{0,1000}",
                                   "(?:",
                                   "(?=",
                                   "(?!",
                                   "(?<=",
                                   "(?i:",
                                   "[^",
                                   "\\p{L}",
                                   "\\u0000",
                                   "\\ud800",
                                   "\xff",
                                   "\xf4\x90\x80\x80",
                                   "\xed\xa0\x80",
                                   "\xe2\x96\x81",
                                   "\xef\xbf\xbd",
                                   "\r\n",
                                   "\n",
                                   "\t",
                                   "0x",
                                   "<0x41>",
                                   "<unk>",
                                   "$ref",
                                   "#",
                                   "anyOf"};

size_t position(const std::string& bytes, Random& random) {
  if (bytes.empty()) return 0;
  // The front of a file holds its structure, the rest is mostly vocabulary.
  return random() % (random() % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 2000));
}

size_t length_at(const std::string& bytes, size_t at, size_t most, Random& random) {
  return std::min(bytes.size() - at, 1 + random() % most);
}

bool is_in_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/// The number at or behind a position becomes another.
void change_number(std::string& bytes, Random& random) {
  const auto begin =
      std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(position(bytes, random)),
                   bytes.end(), is_in_number);
  const auto end = std::find_if_not(begin, bytes.end(), is_in_number);
  bytes.replace(begin, end, kNumbers[random() % std::size(kNumbers)]);
}

/// A word of 1, 2, 4 or 8 bytes, as binary formats have them, or a variable-length one.
void change_word(std::string& bytes, Random& random) {
  const size_t at = position(bytes, random);
  const uint64_t values[] = {0,
                             1,
                             0x7f,
                             0x80,
                             0xff,
                             0x7fffffff,
                             0x80000000,
                             0xffffffff,
                             0x7fffffffffffffff,
                             0x8000000000000000,
                             ~uint64_t{0},
                             random()};
  uint64_t value = values[random() % std::size(values)];
  std::string word;
  if (random() % 3 == 0) {
    for (; value >= 0x80; value >>= 7) word += static_cast<char>(value | 0x80);
    word += static_cast<char>(value);
  } else {
    for (size_t n = size_t{1} << random() % 4; n != 0; --n, value >>= 8) {
      word += static_cast<char>(value);
    }
  }
  bytes.replace(at, random() % 4 == 0 ? 0 : word.size(), word);
}

/// What stands between two positions stands there often.
void repeat(std::string& bytes, Random& random) {
  const size_t at = position(bytes, random);
  const std::string piece = bytes.substr(at, length_at(bytes, at, 40, random));
  const size_t most = random() % 8 == 0 ? 20000 : 40;
  std::string all;
  for (size_t n = random() % most; n != 0 && all.size() < kMaxBytes; --n) all += piece;
  bytes.insert(at, all);
}

void exchange(std::string& bytes, Random& random) {
  const size_t a = position(bytes, random), b = position(bytes, random);
  const std::string first = bytes.substr(a, length_at(bytes, a, 60, random));
  const std::string second = bytes.substr(b, length_at(bytes, b, 60, random));
  bytes.replace(a, first.size(), second);
  bytes.replace(std::min(b, bytes.size()), second.size(), first);
}

void take_from(const std::string& other, std::string& bytes, Random& random) {
  if (other.empty()) return;
  const size_t from = position(other, random), at = position(bytes, random);
  const std::string piece = other.substr(from, length_at(other, from, 400, random));
  bytes.replace(at, random() % 2 == 0 ? 0 : piece.size(), piece);
}

void change(std::string& bytes, const std::vector<std::string>& others, Random& random) {
  const size_t at = position(bytes, random);
  switch (random() % 10) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      break;
    case 1:
      bytes.erase(at, length_at(bytes, at, 50, random));
      break;
    case 2:
    case 3:
      change_number(bytes, random);
      break;
    case 4:
      change_word(bytes, random);
      break;
    case 5:
      repeat(bytes, random);
      break;
    case 6:
      exchange(bytes, random);
      break;
    case 7:
      take_from(others[random() % others.size()], bytes, random);
      break;
    case 8:
      bytes.insert(at, kPieces[random() % std::size(kPieces)]);
      break;
    default:
      if (random() % 8 == 0) bytes.resize(at);
      break;
  }
}

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void list_values(Json& value, std::vector<Json*>& values) {
  values.push_back(&value);
  if (!value.is_structured()) return;
  for (Json& each : value) list_values(each, values);
}

Json extreme_value(Random& random) {
  const Json parsed = Json::parse(kNumbers[random() % std::size(kNumbers)], nullptr, false);
  if (!parsed.is_discarded()) return parsed;
  return kPieces[random() % std::size(kPieces)];
}

/// A value, or the name of one, becomes another.
void change_value(Json& value, const Json& other, Random& random) {
  switch (random() % 7) {
    case 0:
      value = extreme_value(random);
      break;
    case 1:
      if (value.is_string())
        value = value.get<std::string>() + "\xf0\x9f\x99\x82" + std::string(1, '\0');
      break;
    case 2:
      if (value.is_structured() && !value.empty()) {
        value.erase(std::next(value.begin(), static_cast<int>(random() % value.size())));
      }
      break;
    case 3:
      if (value.is_array() && !value.empty()) {
        const Json again = value[random() % value.size()];
        for (size_t n = random() % (random() % 8 == 0 ? 500 : 5); n != 0; --n)
          value.push_back(again);
      }
      break;
    case 4:
      // A value of the file stands in the place of another.
      value = other;
      break;
    case 5:
      if (value.is_object() && !value.empty()) {
        const auto it = std::next(value.begin(), static_cast<int>(random() % value.size()));
        const Json content = *it;
        value[other.is_string() ? other.get<std::string>() : it.key() + "_"] = content;
      }
      break;
    default:
      if (value.is_object() && text_of(value).size() < 2000) {
        // It holds itself where it held something else.
        for (size_t n = 1 + random() % 30; n != 0 && !value.empty(); --n) {
          const Json before = value;
          Json& into = *std::next(value.begin(), static_cast<int>(random() % value.size()));
          into = random() % 2 == 0 ? before : Json::array({before});
          if (text_of(value).size() > 20000) break;
        }
      }
      break;
  }
}

/// Empty where it is no JSON.
std::string change_values(const std::string& bytes, const std::string& other, Random& random) {
  Json json = Json::parse(bytes, nullptr, false);
  Json source = random() % 2 == 0 ? json : Json::parse(other, nullptr, false);
  if (json.is_discarded() || source.is_discarded()) return "";
  std::vector<Json*> sources;
  list_values(source, sources);
  for (size_t n = 1 + random() % 4; n != 0; --n) {
    std::vector<Json*> values;
    list_values(json, values);
    // Vocabularies have most values, and are the least of the structure.
    Json* value = values[random() % values.size()];
    for (int k = 0; k < 3 && !value->is_structured(); ++k) value = values[random() % values.size()];
    const Json content = *sources[random() % sources.size()];
    change_value(*value, content, random);
  }
  return text_of(json);
}

}  // namespace

std::string mutate_text(std::string bytes, const std::vector<std::string>& others, Random& random) {
  if (random() % 4 != 0) {
    std::string changed = change_values(bytes, others[random() % others.size()], random);
    if (!changed.empty() && changed.size() <= kMaxBytes) return changed;
  }
  for (size_t n = 1 + random() % 8; n != 0 && !bytes.empty(); --n) change(bytes, others, random);
  if (bytes.size() > kMaxBytes) bytes.resize(kMaxBytes);
  return bytes;
}

}  // namespace executorch::fuzz
