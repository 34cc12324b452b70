#include <executorch/extension/llm/tokenizers/regex_character_set.h>
#include <executorch/extension/llm/tokenizers/unicode.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace tokenizers::regex {
namespace {

/// The first two letters of categories, in the order of unicode::Category.
constexpr const char kCategories[] = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";

/// Properties for which Oniguruma takes the POSIX class of the second name.
constexpr std::pair<const char*, const char*> kPosix[] = {
    {"Alpha", "alpha"}, {"Alphabetic", "alpha"},  {"Upper", "upper"},   {"Uppercase", "upper"},
    {"Lower", "lower"}, {"Lowercase", "lower"},   {"Digit", "digit"},   {"Alnum", "alnum"},
    {"Space", "space"}, {"White_Space", "space"}, {"Blank", "blank"},   {"Cntrl", "cntrl"},
    {"Graph", "graph"}, {"Print", "print"},       {"XDigit", "xdigit"}, {"ASCII", "ascii"}};

/// Longer names of properties, and those by which add_property() knows them.
constexpr std::pair<const char*, const char*> kLongNames[] = {{"Letter", "L"},
                                                              {"Number", "N"},
                                                              {"Punctuation", "P"},
                                                              {"Punct", "P"},
                                                              {"Symbol", "S"},
                                                              {"Mark", "M"},
                                                              {"Separator", "Z"},
                                                              {"Other", "C"},
                                                              {"Alphabetic", "L"},
                                                              {"Uppercase_Letter", "Lu"},
                                                              {"Lowercase_Letter", "Ll"},
                                                              {"Script=Han", "Han"},
                                                              {"sc=Han", "Han"}};

/// Whether two names of a property are the same: Oniguruma looks at letters only, of either case.
bool same(std::string_view a, std::string_view b, Dialect dialect) {
  if (dialect != Dialect::kOniguruma) return a == b;
  const auto plain = [](std::string_view name) {
    std::string letters;
    for (const char c : name) {
      if (c != ' ' && c != '-' && c != '_') {
        letters += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
      }
    }
    return letters;
  };
  return plain(a) == plain(b);
}

}  // namespace

void CharacterSet::ignore_case() {
  const auto named = ranges;
  for (const auto& [low, high] : named) {
    for (uint32_t c = low; c <= high && c - low < 512; ++c) {
      for (const uint32_t other : unicode::same_but_for_case(c)) ranges.emplace_back(other, other);
    }
  }
  for (CharacterSet& inner : nested) inner.ignore_case();
}

void CharacterSet::finish() {
  std::sort(ranges.begin(), ranges.end());
  for (CharacterSet& inner : nested) inner.finish();
  for (uint32_t c = 0; c < 128; ++c) ascii[c] = compute(c);
}

bool CharacterSet::compute(uint32_t c) const {
  if (operation != Operation::kUnion) {
    const bool left = nested[0].has(c);
    const bool right = nested[1].has(c);
    const bool found = operation == Operation::kIntersection ? left && right
                       : operation == Operation::kDifference ? left && !right
                                                             : left != right;
    return found != negated;
  }
  const uint32_t properties = unicode::properties(c);
  bool found = (categories >> (properties & 31) & 1) != 0 || (flags & properties & ~31u) != 0 ||
               (spaces && unicode::is_space(c));
  for (size_t i = 0; !found && i < ranges.size() && ranges[i].first <= c; ++i) {
    found = c <= ranges[i].second;
  }
  for (size_t i = 0; !found && i < nested.size(); ++i) found = nested[i].has(c);
  return found != negated;
}

void add_words(CharacterSet& set, Dialect dialect, bool in_class) {
  const bool ruby = dialect == Dialect::kOniguruma;
  set.flags = ruby ? unicode::kOnigurumaWord : unicode::kWord;
  // Outside of classes Oniguruma's words have these characters of Latin-1, too.
  if (ruby && !in_class) set.ranges = {{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}};
}

bool add_posix_class(std::string_view name, CharacterSet& set, bool any_case) {
  const auto from = [](unicode::Category first, unicode::Category last) {
    return (2u << last) - (1u << first);
  };
  const uint32_t none = 1u << unicode::kUnassigned | 1u << unicode::kSurrogate;
  if (name == "alpha") {
    set.flags = unicode::kOnigurumaAlpha;
  } else if (name == "upper") {
    set.flags = unicode::kOnigurumaUpper | (any_case ? unicode::kOnigurumaLower : 0u);
  } else if (name == "lower") {
    set.flags = unicode::kOnigurumaLower | (any_case ? unicode::kOnigurumaUpper : 0u);
  } else if (name == "word") {
    set.flags = unicode::kOnigurumaWord;
  } else if (name == "digit") {
    set.categories = 1u << unicode::kDecimalDigit;
  } else if (name == "alnum") {
    set.flags = unicode::kOnigurumaAlpha;
    set.categories = 1u << unicode::kDecimalDigit;
  } else if (name == "space") {
    set.spaces = true;
  } else if (name == "blank") {
    set.categories = 1u << unicode::kSpaceSeparator;
    set.ranges.emplace_back('\t', '\t');
  } else if (name == "punct") {
    set.categories = from(unicode::kConnector, unicode::kOtherSymbol);
  } else if (name == "cntrl") {
    set.categories = 1u << unicode::kControl;
  } else if (name == "graph") {
    set.negated = !set.negated;
    set.spaces = true;
    set.categories = none | 1u << unicode::kControl;
  } else if (name == "print") {
    set.negated = !set.negated;
    set.categories = none | from(unicode::kLineSeparator, unicode::kControl);
  } else if (name == "xdigit") {
    set.ranges = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  } else if (name == "ascii") {
    set.ranges.emplace_back(0, 127);
  } else {
    return false;
  }
  return true;
}

bool add_ascii_class(std::string_view name, CharacterSet& set) {
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
  static const std::pair<const char*, Ranges> kClasses[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  for (const auto& [known, ranges] : kClasses) {
    if (name == known) {
      set.ranges = ranges;
      return true;
    }
  }
  return false;
}

bool add_property(std::string_view name, CharacterSet& set, Dialect dialect, bool in_class,
                  bool any_case) {
  if (dialect == Dialect::kOniguruma) {
    if (same(name, "Word", dialect)) {
      add_words(set, dialect, in_class);
      return true;
    }
    for (const auto& [property, posix] : kPosix) {
      if (same(name, property, dialect)) return add_posix_class(posix, set, any_case);
    }
  }
  for (const auto& [longer, shorter] : kLongNames) {
    name = same(name, longer, dialect) ? shorter : name;
  }
  if (name == "Han") {
    set.flags = unicode::kHan;
    return true;
  }
  for (uint32_t i = 0; i < unicode::kCategories; ++i) {
    const std::string_view category(kCategories + 2 * i, 2);
    if (!name.empty() && same(category.substr(0, name.size()), name, dialect)) {
      set.categories |= 1u << i;
    }
  }
  return set.categories != 0;
}

}  // namespace tokenizers::regex
