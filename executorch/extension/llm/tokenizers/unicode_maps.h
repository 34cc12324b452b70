#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tokenizers::unicode {

using Mapping = std::unordered_map<uint32_t, std::u32string>;

/// What normalizers look up; read from the tables when first asked for.
struct Maps {
  /// Full decompositions, without those of Hangul syllables; compatible: where it differs.
  Mapping canonical;
  Mapping compatible;
  Mapping lower;
  Mapping folded;
  /// first << 32 | second, to what they compose to; and all that are second in one.
  std::unordered_map<uint64_t, uint32_t> compositions;
  std::unordered_set<uint32_t> seconds;
  /// By code point.
  std::vector<uint8_t> combining;
  std::vector<uint8_t> breaks;
  std::vector<uint8_t> scripts;
};

const Maps& maps();

}  // namespace tokenizers::unicode
