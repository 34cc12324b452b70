#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

inline constexpr uint32_t kNoToken = 0xffffffff;

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15) * (b ^ 0xd1b54a32d192ed03);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// A hash of any bytes.
inline uint64_t hash_bytes(const char* text, size_t length) {
  uint64_t hash = length;
  while (length > 8) {
    uint64_t word;
    std::memcpy(&word, text, 8);
    hash = mix(hash, word);
    text += 8;
    length -= 8;
  }
  uint64_t word = 0;
  std::memcpy(&word, text, length);
  return mix(hash, word);
}

/// A hash map from byte strings to numbers, with open addressing; all strings are in one buffer.
class BytesMap {
 public:
  /// Adds an entry. False, with nothing changed, if the key exists.
  bool insert(std::string_view key, uint32_t value);
  /// The number of a key; kNoToken if it does not exist.
  uint32_t find(std::string_view key) const {
    if (slots_.empty()) return kNoToken;
    const uint64_t hash = hash_bytes(key.data(), key.size());
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.value == kNoToken) return kNoToken;
      if (slot.hash == static_cast<uint32_t>(hash >> 32) && slot.length == key.size() &&
          std::memcmp(bytes_.data() + slot.offset, key.data(), key.size()) == 0) {
        return slot.value;
      }
    }
  }
  size_t size() const { return count_; }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t offset;
    uint32_t length;
    uint32_t value = kNoToken;
  };
  void grow();

  std::vector<Slot> slots_;
  std::string bytes_;
  size_t mask_ = 0;
  size_t count_ = 0;
};

/// A hash map from pairs of tokens to the rank of their merge and the token that it makes.
class PairMap {
 public:
  struct Merge {
    uint32_t rank;
    uint32_t token;
  };
  /// Adds a pair's merge, or replaces it.
  void insert(uint32_t left, uint32_t right, Merge merge);
  const Merge* find(uint32_t left, uint32_t right) const {
    if (slots_.empty()) return nullptr;
    const uint64_t key = static_cast<uint64_t>(left) << 32 | right;
    for (size_t i = mix(key, 0) & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.key == key) return &slot.merge;
      if (slot.key == kEmpty) return nullptr;
    }
  }
  size_t size() const { return count_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge{0, 0};
  };
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t count_ = 0;
};

/// The rank of each score: 0 for the highest; equal scores have equal ranks.
std::vector<uint32_t> ranks_of(const std::vector<float>& scores);

/// The map from tokens to their bytes and back.
class Vocabulary {
 public:
  /// The limit of tokens that a file may have: more than any vocabulary has, and small enough for a
  /// table.
  static constexpr uint64_t kLimit = 1 << 24;

  /// Adds a token. False if the piece or the token exists already, or the token is too large.
  bool add(std::string_view piece, uint64_t token);
  /// Adds a token that is not part of the model: texts are split at it before the model sees them.
  bool add_beside(std::string_view piece, uint64_t token);
  uint32_t find(std::string_view piece) const { return map_.find(piece); }
  /// Like find(), but kNoToken for tokens that were added by add_beside().
  uint32_t find_of_model(std::string_view piece) const {
    const uint32_t token = map_.find(piece);
    return token != kNoToken && spans_[token].is_beside ? kNoToken : token;
  }
  bool has(uint64_t token) const {
    return token < spans_.size() && spans_[token].offset != kNoToken;
  }
  /// The bytes of a token; empty if it does not exist.
  std::string_view piece(uint64_t token) const {
    return has(token) ? std::string_view(bytes_).substr(spans_[token].offset, spans_[token].length)
                      : std::string_view();
  }
  /// One more than the largest token.
  size_t limit() const { return spans_.size(); }
  size_t size() const { return map_.size(); }

 private:
  struct Span {
    uint32_t offset = kNoToken;
    uint32_t length = 0;
    bool is_beside = false;
  };
  BytesMap map_;
  std::vector<Span> spans_;
  std::string bytes_;
};

}  // namespace tokenizers
