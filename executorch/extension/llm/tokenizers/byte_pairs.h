#pragma once

#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <string_view>
#include <vector>

namespace tokenizers {

/// A part of a word while byte pair encoding merges it. `token` is kNoToken for what never merges.
struct Symbol {
  uint32_t begin;
  uint32_t end;
  uint32_t token;
};

/// Merges neighbours, the pair of lowest rank first and the leftmost of equal ranks, until no pair
/// has one. `find(a, b, rank, token)` says whether two symbols merge. Short words look through an
/// array of ranks; long ones keep a heap, so that n symbols take n log n steps whatever they are.
template <typename Find>
void merge_symbols(std::vector<Symbol>& symbols, const Find& find);

namespace internal {

inline constexpr uint32_t kNoRank = 0xffffffff;

template <typename Find>
void merge_short(std::vector<Symbol>& symbols, const Find& find) {
  constexpr size_t kMost = 48;
  uint32_t ranks[kMost];
  uint32_t tokens[kMost];
  size_t n = symbols.size();
  const auto look = [&](size_t i) {
    ranks[i] = kNoRank;
    if (i + 1 < n) find(symbols[i], symbols[i + 1], ranks[i], tokens[i]);
  };
  for (size_t i = 0; i < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) best = ranks[i] < ranks[best] ? i : best;
    if (ranks[best] == kNoRank) break;
    symbols[best].end = symbols[best + 1].end;
    symbols[best].token = tokens[best];
    --n;
    for (size_t i = best + 1; i < n; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
      tokens[i] = tokens[i + 1];
    }
    look(best);
    if (best > 0) look(best - 1);
  }
  symbols.resize(n);
}

/// Two neighbours that can be merged; the heap's largest is merged first. `end` is the end of the
/// right one when the pair was pushed.
struct Candidate {
  uint32_t rank;
  uint32_t left;
  uint32_t right;
  uint32_t token;
  uint32_t end;
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

template <typename Find>
void merge_long(std::vector<Symbol>& symbols, const Find& find) {
  const auto n = static_cast<uint32_t>(symbols.size());
  // A symbol that was merged into the one before it has an end of 0.
  std::vector<uint32_t> next(n);
  std::vector<uint32_t> previous(n);
  std::vector<Candidate> heap;
  heap.reserve(n);
  const auto candidate = [&](uint32_t left, uint32_t right, Candidate& c) {
    c = {kNoRank, left, right, kNoToken, symbols[right].end};
    return find(symbols[left], symbols[right], c.rank, c.token);
  };
  Candidate c;
  for (uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
    if (i + 1 < n && candidate(i, i + 1, c)) heap.push_back(c);
  }
  std::make_heap(heap.begin(), heap.end());
  const auto push = [&](uint32_t left, uint32_t right) {
    if (candidate(left, right, c)) {
      heap.push_back(c);
      std::push_heap(heap.begin(), heap.end());
    }
  };
  // Symbols only grow, so an entry of the heap is outdated if the ends of its symbols have changed.
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate top = heap.back();
    heap.pop_back();
    if (symbols[top.left].end == 0 || next[top.left] != top.right ||
        symbols[top.right].end != top.end) {
      continue;
    }
    symbols[top.left].end = top.end;
    symbols[top.left].token = top.token;
    symbols[top.right].end = 0;
    next[top.left] = next[top.right];
    if (next[top.left] < n) {
      previous[next[top.left]] = top.left;
      push(top.left, next[top.left]);
    }
    if (previous[top.left] < n) push(previous[top.left], top.left);
  }
  symbols.erase(
      std::remove_if(symbols.begin(), symbols.end(), [](const Symbol& s) { return s.end == 0; }),
      symbols.end());
}

}  // namespace internal

template <typename Find>
void merge_symbols(std::vector<Symbol>& symbols, const Find& find) {
  if (symbols.size() <= 48) {
    internal::merge_short(symbols, find);
  } else {
    internal::merge_long(symbols, find);
  }
}

/// Merges neighbours by the merges of `pairs`.
inline void merge_symbols(std::vector<Symbol>& symbols, const PairMap& pairs) {
  merge_symbols(symbols, [&](const Symbol& a, const Symbol& b, uint32_t& rank, uint32_t& token) {
    const PairMap::Merge* const found = pairs.find(a.token, b.token);
    if (found == nullptr) return false;
    rank = found->rank;
    token = found->token;
    return true;
  });
}

/// Caches the tokens of words of at most 15 bytes that have at most four tokens. A word may evict
/// another one. For encodings in which a word's tokens do not depend on its neighbours.
class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  /// Appends the tokens of `word`; calls `encode(word, tokens)` if the word is not cached. `limit`
  /// is the end of the memory that may be read.
  template <typename Encode>
  void append(std::string_view word, const char* limit, std::vector<uint64_t>& tokens,
              const Encode& encode) {
    if (word.size() > 15) {
      encode(word, tokens);
      return;
    }
    uint64_t key[2] = {0, 0};
    load_key(word, limit, key);
    Slot& slot = slots_[mix(key[0], key[1]) % kSlots];
    if (slot.key[0] == key[0] && slot.key[1] == key[1]) {
      for (const uint32_t token : slot.tokens) {
        if (token == kNoToken) return;
        tokens.push_back(token);
      }
      return;
    }
    const size_t before = tokens.size();
    encode(word, tokens);
    const size_t count = tokens.size() - before;
    if (count <= 4) {
      slot.key[0] = key[0];
      slot.key[1] = key[1];
      for (size_t i = 0; i < 4; ++i) {
        slot.tokens[i] = i < count ? static_cast<uint32_t>(tokens[before + i]) : kNoToken;
      }
    }
  }

 private:
  static constexpr size_t kSlots = 1 << 14;
  struct Slot {
    // The last byte of the key is the word's length plus 1, so that no word has the key of an empty
    // slot.
    uint64_t key[2] = {0, 0};
    uint32_t tokens[4];
  };
  static void load_key(std::string_view word, const char* limit, uint64_t (&key)[2]) {
    const size_t n = word.size();
    if (limit - word.data() >= 16) {
      std::memcpy(key, word.data(), 16);
      const uint64_t all = ~uint64_t{0};
      key[0] &= n >= 8 ? all : (uint64_t{1} << n * 8) - 1;
      key[1] &= n > 8 ? (uint64_t{1} << (n - 8) * 8) - 1 : 0;
    } else {
      std::memcpy(key, word.data(), n);
    }
    key[1] |= static_cast<uint64_t>(n + 1) << 56;
  }
  std::vector<Slot> slots_;
};

/// A pool of caches for encode(), which is const and may run in several threads at the same time.
class WordCaches {
 public:
  class Lease {
   public:
    explicit Lease(WordCaches& owner) : owner_(owner) {
      const std::lock_guard<std::mutex> lock(owner_.mutex_);
      if (!owner_.free_.empty()) {
        cache_ = std::move(owner_.free_.back());
        owner_.free_.pop_back();
      }
    }
    ~Lease() {
      if (cache_ != nullptr) {
        const std::lock_guard<std::mutex> lock(owner_.mutex_);
        // Does not allocate: room was reserved when the cache was created.
        owner_.free_.push_back(std::move(cache_));
      }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() {
      if (cache_ == nullptr) {
        cache_ = std::make_unique<WordCache>();
        const std::lock_guard<std::mutex> lock(owner_.mutex_);
        owner_.free_.reserve(++owner_.made_);
      }
      return *cache_;
    }

   private:
    WordCaches& owner_;
    std::unique_ptr<WordCache> cache_;
  };

  void clear() { free_.clear(); }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
  size_t made_ = 0;
};

}  // namespace tokenizers
