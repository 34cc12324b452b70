#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tokenizers::unicode {

using Mapping = std::unordered_map<uint32_t, std::u32string>;

/// Tables for normalizers; decoded from unicode_tables.inc on first use.
struct Maps {
  /// Full decompositions, except of Hangul syllables. `compatible` has only those that differ from
  /// `canonical`.
  Mapping canonical;
  Mapping compatible;
  Mapping lower;
  Mapping folded;
  /// compositions: first << 32 | second -> the character that they compose to. seconds: all
  /// characters that are the second of a pair.
  std::unordered_map<uint64_t, uint32_t> compositions;
  std::unordered_set<uint32_t> seconds;
  /// Indexed by code point.
  std::vector<uint8_t> combining;
  std::vector<uint8_t> breaks;
  std::vector<uint8_t> scripts;
};

const Maps& maps();

}  // namespace tokenizers::unicode
