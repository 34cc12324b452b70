#include <executorch/extension/llm/sampler/constraint/code_points.h>

#include <algorithm>

namespace executorch::extension::llm::constraint {
namespace {

constexpr CodePointSet::Range kSurrogates{0xd800, 0xdfff};

ByteSet byte_range(int first, int last) {
  ByteSet set;
  for (int b = first; b <= last; ++b) set.set(static_cast<size_t>(b));
  return set;
}

const Digits kUtf8Bytes{0x80, 0xbf, byte_range};
const Digits kHex{0, 15, [](int first, int last) {
                    ByteSet set;
                    for (int d = first; d <= last; ++d) {
                      set.set(static_cast<size_t>(d < 10 ? '0' + d : 'a' + d - 10));
                      if (d >= 10) set.set(static_cast<size_t>('A' + d - 10));
                    }
                    return set;
                  }};

/// What of `range` lies in first..last; empty if first > last.
CodePointSet::Range overlap(CodePointSet::Range range, uint32_t first, uint32_t last) {
  return {std::max(range.first, first), std::min(range.last, last)};
}

std::vector<int> utf8_bytes(uint32_t c) {
  const auto tail = [c](int shift) { return static_cast<int>(0x80 | ((c >> shift) & 0x3f)); };
  const auto head = [c](uint32_t mark, int shift) { return static_cast<int>(mark | (c >> shift)); };
  if (c < 0x80) return {static_cast<int>(c)};
  if (c < 0x800) return {head(0xc0, 6), tail(0)};
  if (c < 0x10000) return {head(0xe0, 12), tail(6), tail(0)};
  return {head(0xf0, 18), tail(12), tail(6), tail(0)};
}

std::vector<int> hex_digits(uint32_t c) {
  return {static_cast<int>(c >> 12 & 15), static_cast<int>(c >> 8 & 15),
          static_cast<int>(c >> 4 & 15), static_cast<int>(c & 15)};
}

void add_hex(NfaBuilder& builder, State from, State to, uint32_t first, uint32_t last) {
  add_digits(builder, from, to, kHex, hex_digits(first), hex_digits(last));
}

/// Code points beyond 0xffff as \uD83D\uDE00; `from` is behind the first \u.
void add_surrogate_pairs(NfaBuilder& builder, State from, State to, CodePointSet::Range range) {
  const uint32_t first = range.first - 0x10000, last = range.last - 0x10000;
  const auto add = [&](uint32_t high_first, uint32_t high_last, uint32_t low_first,
                       uint32_t low_last) {
    const State middle = builder.add_state();
    add_hex(builder, from, middle, 0xd800 + high_first, 0xd800 + high_last);
    add_hex(builder, builder.add_text(middle, "\\u"), to, 0xdc00 + low_first, 0xdc00 + low_last);
  };
  uint32_t high_first = first >> 10, high_last = last >> 10;
  const uint32_t low_first = first & 0x3ff, low_last = last & 0x3ff;
  if (high_first == high_last) return add(high_first, high_last, low_first, low_last);
  if (low_first != 0) add(high_first, high_first, low_first, 0x3ff), ++high_first;
  if (low_last != 0x3ff) add(high_last, high_last, 0, low_last), --high_last;
  if (high_first <= high_last) add(high_first, high_last, 0, 0x3ff);
}

}  // namespace

const Digits kDecimal{0, 9,
                      [](int first, int last) { return byte_range('0' + first, '0' + last); }};

CodePointSet::CodePointSet(std::initializer_list<Range> ranges) {
  for (const Range range : ranges) add(range.first, range.last);
}

void CodePointSet::add(uint32_t first, uint32_t last) {
  if (first < kSurrogates.first && last > kSurrogates.last) {
    add(first, kSurrogates.first - 1);
    return add(kSurrogates.last + 1, last);
  }
  if (first >= kSurrogates.first && first <= kSurrogates.last) first = kSurrogates.last + 1;
  if (last >= kSurrogates.first && last <= kSurrogates.last) last = kSurrogates.first - 1;
  last = std::min(last, kMax);
  if (first > last) return;
  auto at = std::find_if(ranges_.begin(), ranges_.end(),
                         [first](Range r) { return uint64_t{r.last} + 1 >= first; });
  Range merged{first, last};
  const auto begin = at;
  for (; at != ranges_.end() && at->first <= last + 1; ++at) {
    merged = {std::min(merged.first, at->first), std::max(merged.last, at->last)};
  }
  ranges_.insert(ranges_.erase(begin, at), merged);
}

void CodePointSet::add(const CodePointSet& other) {
  for (const Range range : other.ranges_) add(range.first, range.last);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet result;
  uint32_t next = 0;
  for (const Range range : ranges_) {
    if (range.first > next) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kMax) result.add(next, kMax);
  return result;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  CodePointSet rest = complement();
  rest.add(other);
  return rest.complement();
}

bool CodePointSet::contains(uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [code_point](Range r) {
    return r.first <= code_point && code_point <= r.last;
  });
}

std::vector<uint32_t> decode_utf8(const std::string& text) {
  std::vector<uint32_t> decoded;
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) {
      return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
    };
    const uint8_t head = byte(i);
    const size_t length = head < 0x80 ? 1 : head >> 5 == 6 ? 2 : head >> 4 == 14 ? 3 : 4;
    uint32_t c = length == 1 ? head : head & (0xffu >> (length + 1));
    for (size_t k = 1; k < length; ++k) c = c << 6 | (byte(i + k) & 0x3f);
    const bool fits = i + length <= text.size() && c <= CodePointSet::kMax &&
                      !(c >= kSurrogates.first && c <= kSurrogates.last);
    // Written again it must be the same: that refuses long forms and wrong bytes.
    bool same = fits;
    for (size_t k = 0; same && k < length; ++k) {
      const std::vector<int> bytes = utf8_bytes(c);
      same = bytes.size() == length && bytes[k] == byte(i + k);
    }
    if (!same) throw Unusable("not UTF-8 at byte " + std::to_string(i));
    decoded.push_back(c);
    i += length;
  }
  return decoded;
}

void add_digits(NfaBuilder& builder, State from, State to, const Digits& digits,
                const std::vector<int>& first, const std::vector<int>& last) {
  const size_t n = first.size();
  if (n == 1) return builder.add_bytes(from, to, digits.bytes_of(first[0], last[0]));
  const std::vector<int> first_rest(first.begin() + 1, first.end());
  const std::vector<int> last_rest(last.begin() + 1, last.end());
  const std::vector<int> least(n - 1, digits.least), most(n - 1, digits.most);
  const auto add = [&](int low, int high, const std::vector<int>& rest_first,
                       const std::vector<int>& rest_last) {
    const State middle = builder.add_state();
    builder.add_bytes(from, middle, digits.bytes_of(low, high));
    add_digits(builder, middle, to, digits, rest_first, rest_last);
  };
  int low = first[0], high = last[0];
  if (low == high) return add(low, high, first_rest, last_rest);
  if (first_rest != least) add(low, low, first_rest, most), ++low;
  if (last_rest != most) add(high, high, least, last_rest), --high;
  if (low <= high) add(low, high, least, most);
}

void add_utf8(NfaBuilder& builder, State from, State to, const CodePointSet& set) {
  constexpr uint32_t kLengths[] = {0, 0x80, 0x800, 0x10000, CodePointSet::kMax + 1};
  ByteSet ascii;
  for (const CodePointSet::Range range : set.ranges()) {
    for (size_t i = 0; i < 4; ++i) {
      const auto part = overlap(range, kLengths[i], kLengths[i + 1] - 1);
      if (part.first > part.last) continue;
      if (i == 0) {
        ascii |= byte_range(static_cast<int>(part.first), static_cast<int>(part.last));
      } else {
        add_digits(builder, from, to, kUtf8Bytes, utf8_bytes(part.first), utf8_bytes(part.last));
      }
    }
  }
  if (ascii.any()) builder.add_bytes(from, to, ascii);
}

void add_json_character(NfaBuilder& builder, State from, State to, const CodePointSet& set) {
  static const CodePointSet kEscaped{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
  add_utf8(builder, from, to, set.without(kEscaped));
  const State escape = builder.add_state(), hex = builder.add_state();
  builder.add_byte(from, escape, '\\');
  builder.add_byte(escape, hex, 'u');
  ByteSet letters;
  for (const auto& [letter, meaning] : {std::pair{'"', '"'},
                                        {'\\', '\\'},
                                        {'/', '/'},
                                        {'b', '\b'},
                                        {'f', '\f'},
                                        {'n', '\n'},
                                        {'r', '\r'},
                                        {'t', '\t'}}) {
    if (set.contains(static_cast<uint32_t>(meaning))) letters.set(static_cast<size_t>(letter));
  }
  if (letters.any()) builder.add_bytes(escape, to, letters);
  for (const CodePointSet::Range range : set.ranges()) {
    const auto short_part = overlap(range, 0, 0xffff);
    if (short_part.first <= short_part.last) {
      add_hex(builder, hex, to, short_part.first, short_part.last);
    }
    const auto long_part = overlap(range, 0x10000, CodePointSet::kMax);
    if (long_part.first <= long_part.last) add_surrogate_pairs(builder, hex, to, long_part);
  }
}

}  // namespace executorch::extension::llm::constraint
