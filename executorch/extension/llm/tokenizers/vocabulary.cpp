#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace tokenizers {
namespace {
constexpr size_t kMaxBytes = size_t{1} << 30;
}

std::vector<uint32_t> ranks_of(const std::vector<float>& scores) {
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(scores.size());
  for (const float score : scores) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(at - sorted.begin()));
  }
  return ranks;
}

void BytesMap::grow() {
  std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : slots_.size() * 2));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.value != kNoToken) {
      size_t i = hash_bytes(bytes_.data() + slot.offset, slot.length) & mask_;
      while (slots_[i].value != kNoToken) i = (i + 1) & mask_;
      slots_[i] = slot;
    }
  }
}

bool BytesMap::insert(std::string_view key, uint32_t value) {
  if (bytes_.size() + key.size() > kMaxBytes || find(key) != kNoToken) return false;
  if (slots_.empty() || count_ * 2 >= slots_.size()) grow();
  const uint64_t hash = hash_bytes(key.data(), key.size());
  size_t i = hash & mask_;
  while (slots_[i].value != kNoToken) i = (i + 1) & mask_;
  slots_[i] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(bytes_.size()),
               static_cast<uint32_t>(key.size()), value};
  bytes_ += key;
  ++count_;
  return true;
}

void PairMap::insert(uint32_t left, uint32_t right, Merge merge) {
  if (count_ * 2 >= slots_.size()) {
    std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : slots_.size() * 2));
    mask_ = slots_.size() - 1;
    count_ = 0;
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) {
        insert(static_cast<uint32_t>(slot.key >> 32), static_cast<uint32_t>(slot.key), slot.merge);
      }
    }
  }
  const uint64_t key = static_cast<uint64_t>(left) << 32 | right;
  size_t i = mix(key, 0) & mask_;
  while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask_;
  count_ += slots_[i].key == kEmpty ? 1 : 0;
  slots_[i] = {key, merge};
}

bool Vocabulary::add(std::string_view piece, uint64_t token) {
  // Tokens are dense but for a few: a file cannot make a table much larger than itself.
  if (token >= kLimit || token > 65536 + 64 * (map_.size() + 1) + 4 * bytes_.size() || has(token) ||
      !map_.insert(piece, static_cast<uint32_t>(token))) {
    return false;
  }
  if (token >= spans_.size()) spans_.resize(token + 1);
  spans_[token] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(piece.size())};
  bytes_ += piece;
  return true;
}

bool Vocabulary::add_beside(std::string_view piece, uint64_t token) {
  if (!add(piece, token)) return false;
  spans_[token].is_beside = true;
  return true;
}

}  // namespace tokenizers
