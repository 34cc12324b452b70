#include <executorch/extension/llm/tokenizers/unicode.h>

#include <executorch/extension/llm/tokenizers/unicode_maps.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace tokenizers::unicode {
namespace {

#include <executorch/extension/llm/tokenizers/unicode_tables.inc>

constexpr uint32_t kLimit = 0x110000;

/// Reads the numbers of a table; see make_unicode_tables.py.
class Digits {
 public:
  explicit Digits(const char* at) : at_(at) {}

  uint32_t next() {
    uint32_t value = 0;
    for (int shift = 0;; shift += 5) {
      const uint32_t digit = value_of(*at_++);
      value |= (digit & 31) << shift;
      if (digit < 32) return value;
    }
  }
  int32_t next_signed() {
    const uint32_t value = next();
    return (value & 1) ? -static_cast<int32_t>(value / 2) - 1 : static_cast<int32_t>(value / 2);
  }

 private:
  static uint32_t value_of(char c) {
    return c >= 'a' && c <= 'z'   ? static_cast<uint32_t>(c - 'a')
           : c >= 'A' && c <= 'Z' ? static_cast<uint32_t>(c - 'A') + 26
           : c >= '0' && c <= '9' ? static_cast<uint32_t>(c - '0') + 52
           : c == '-'             ? 62
                                  : 63;
  }
  const char* at_;
};

template <typename Use>
void for_each_run(const char* table, Use use) {
  Digits digits(table);
  for (uint32_t at = 0; at < kLimit;) {
    const uint32_t count = digits.next();
    use(at, std::min(at + count, kLimit), digits.next());
    at += count;
  }
}

uint8_t scan_bits(uint32_t properties) {
  const uint32_t category = properties & 31;
  const auto within = [&](uint32_t low, uint32_t high) {
    return category >= low && category <= high;
  };
  uint8_t bits = 0;
  bits |= within(kUppercase, kOtherLetter) ? kLetter : 0;
  bits |= within(kDecimalDigit, kOtherNumber) ? kNumber : 0;
  bits |= within(kSpaceSeparator, kParagraphSeparator) ? kSpace : 0;
  const bool either = within(kModifierLetter, kEnclosingMark);
  bits |= either || category == kUppercase || category == kTitlecase ? kStart : 0;
  bits |= either || category == kLowercase ? kGoOn : 0;
  return bits;
}

const internal::Tables& make_tables() {
  static internal::Tables t;
  Digits classes(kClassList);
  const uint32_t count = classes.next();
  for (uint32_t i = 0; i < count; ++i) {
    t.properties[i] = classes.next();
    t.scan[i] = scan_bits(t.properties[i]);
  }
  std::vector<uint8_t> flat(kLimit);
  for_each_run(kClassRuns, [&](uint32_t begin, uint32_t end, uint32_t value) {
    std::memset(flat.data() + begin, static_cast<int>(value), end - begin);
  });
  // Blocks that are equal to the one before them, which most are, are kept once.
  std::map<std::string_view, uint16_t> blocks;
  for (uint32_t block = 0; block < kLimit >> 7; ++block) {
    const uint8_t* const values = flat.data() + block * 128;
    const std::string_view key(reinterpret_cast<const char*>(values), 128);
    const auto [found, is_new] = blocks.emplace(key, static_cast<uint16_t>(blocks.size()));
    if (is_new) t.class_of.insert(t.class_of.end(), values, values + 128);
    t.block_of[block] = found->second;
  }
  for (uint32_t c = 0; c < 128; ++c) t.ascii_scan[c] = t.scan[flat[c]];
  for (const char c : {'\t', '\n', '\v', '\f', '\r'}) {
    t.ascii_scan[static_cast<uint8_t>(c)] = kSpace;
  }
  t.ascii_scan['\n'] |= kNewline;
  t.ascii_scan['\r'] |= kNewline;
  return t;
}

std::vector<uint8_t> flat_runs(const char* table) {
  std::vector<uint8_t> flat(kLimit);
  for_each_run(table, [&](uint32_t begin, uint32_t end, uint32_t value) {
    std::memset(flat.data() + begin, static_cast<int>(value), end - begin);
  });
  return flat;
}

Mapping read_mapping(const char* table) {
  Mapping mapping;
  Digits digits(table);
  uint32_t c = 0;
  while (const uint32_t distance = digits.next()) {
    c += distance;
    std::u32string to;
    for (uint32_t n = digits.next(); n > 0; --n) {
      to += static_cast<char32_t>(static_cast<int32_t>(c) + digits.next_signed());
    }
    mapping.emplace(c, std::move(to));
  }
  return mapping;
}

}  // namespace

namespace internal {
const Tables& tables = make_tables();
}  // namespace internal

const Maps& maps() {
  static const Maps made = [] {
    Maps m;
    m.canonical = read_mapping(kCanonical);
    m.compatible = read_mapping(kCompatible);
    m.lower = read_mapping(kLower);
    m.folded = read_mapping(kFolded);
    m.combining = flat_runs(kCombiningRuns);
    m.breaks = flat_runs(kBreakRuns);
    m.scripts = flat_runs(kScriptRuns);
    Digits digits(kCompositions);
    for (uint32_t n = digits.next(); n > 0; --n) {
      const uint64_t first = digits.next();
      const uint32_t second = digits.next();
      m.compositions.emplace(first << 32 | second, digits.next());
      m.seconds.insert(second);
    }
    return m;
  }();
  return made;
}

uint8_t script(uint32_t c) {
  return c < kLimit ? maps().scripts[c] : 0;
}

uint8_t combining_class(uint32_t c) {
  return c < 0x300 || c >= kLimit ? 0 : maps().combining[c];
}

void append_lower(std::string& text, uint32_t c) {
  if (c < 128) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  const auto found = maps().lower.find(c);
  if (found == maps().lower.end()) {
    utf8::append(text, c);
    return;
  }
  for (const char32_t to : found->second) utf8::append(text, to);
}

uint32_t fold(uint32_t c) {
  if (c < 128) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const Maps& m = maps();
  if (const auto found = m.folded.find(c); found != m.folded.end()) return found->second[0];
  const auto found = m.lower.find(c);
  return found != m.lower.end() && found->second.size() == 1 ? found->second[0] : c;
}

std::vector<uint32_t> same_but_for_case(uint32_t c) {
  const uint32_t wanted = fold(c);
  std::vector<uint32_t> all{wanted};
  for (const Mapping* mapping : {&maps().lower, &maps().folded}) {
    for (const auto& entry : *mapping) {
      if (fold(entry.first) == wanted) all.push_back(entry.first);
    }
  }
  return all;
}

}  // namespace tokenizers::unicode
