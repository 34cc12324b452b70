/// Sorting of many numbers that needs no memory besides that of the resulting order.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace torch::executor::native::internal {

/// Sorts words: radix by radix in place, from the highest byte in which they differ.
void radix_sort(uint64_t* words, int64_t n);

/// A word, and how many words that equal it come before it in their order.
struct Selected {
  uint64_t word;
  int64_t equal_before;
};

/// The word at place k < n of the order of n words, which are moved: by the buckets of one radix
/// after the other that place k is in. Cost: linear in n.
Selected radix_select(uint64_t* words, int64_t n, int64_t k);

/// A sort key: an unsigned number that increases with x. Both zeros have the same key, and all NaNs
/// have the highest one.
template <class T>
uint64_t order_key(T x) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if constexpr (kIsFloat<T>) {
    const double value = static_cast<double>(x);
    if (value != value) return std::numeric_limits<uint64_t>::max();
    uint64_t bits = 0;
    if (value != 0) std::memcpy(&bits, &value, sizeof(bits));
    return bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(x)) ^ kSign;
  } else {
    return static_cast<uint64_t>(x);
  }
}

/// Whether order_key() of a T needs no more than 32 bits.
template <class T>
constexpr bool kHasShortKey = sizeof(T) <= 4;

/// The same in 32 bits, in the upper half of a word.
template <class T>
uint64_t short_key(T x) {
  static_assert(kHasShortKey<T>);
  constexpr uint32_t kSign = uint32_t{1} << 31;
  uint32_t bits = 0;
  if constexpr (kIsFloat<T>) {
    const float value = static_cast<float>(x);
    std::memcpy(&bits, &value, sizeof(bits));
    bits = value != 0 ? bits : 0;
    bits = value != value ? ~uint32_t{0} : bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    bits = static_cast<uint32_t>(static_cast<int32_t>(x)) ^ kSign;
  } else {
    bits = static_cast<uint32_t>(x);
  }
  return static_cast<uint64_t>(bits) << 32;
}

/// Writes the k smallest of n words to best, sorted, where word(i) is word i < n; k >= 1.
/// has_less(begin, end, w) may only be false if none of these words is less than w.
template <class Word, class HasLess>
void smallest_words(const Word& word, const HasLess& has_less, int64_t n, int64_t k,
                    uint64_t* best) {
  constexpr int64_t kFew = 64;  // kept sorted, and more as a heap with the largest on top
  const auto insert = [&](uint64_t w, int64_t i) {
    for (; i > 0 && best[i - 1] > w; --i) best[i] = best[i - 1];
    best[i] = w;
  };
  for (int64_t i = 0; i < k; ++i) k <= kFew ? insert(word(i), i) : void(best[i] = word(i));
  if (k > kFew) std::make_heap(best, best + k);
  constexpr int64_t kBlock = 32;
  const uint64_t& worst = best[k <= kFew ? k - 1 : 0];
  for (int64_t i = k, end; i < n; i = end) {
    end = std::min(i + kBlock, n);
    if (!has_less(i, end, worst)) continue;
    for (; i < end; ++i) {
      const uint64_t w = word(i);
      if (w >= worst) continue;
      if (k <= kFew) {
        insert(w, k - 1);
      } else {
        std::pop_heap(best, best + k);
        best[k - 1] = w;
        std::push_heap(best, best + k);
      }
    }
  }
  if (k > kFew) std::sort_heap(best, best + k);
}

/// Sorts the n distinct positions in `order`, each below 2^32, by key(position), a uint64_t.
/// Positions with equal keys are sorted by their numbers.
template <class Key>
void sort_by_key(const Key& key, int64_t n, int64_t* order) {
  uint64_t least = std::numeric_limits<uint64_t>::max(), most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t k = key(order[i]);
    least = std::min(least, k);
    most = std::max(most, k);
  }
  // The leading 32 bits of what keys have above the least, then the position.
  int shift = 0;
  while (n > 0 && (most - least) >> shift > std::numeric_limits<uint32_t>::max()) ++shift;
  auto* const words = reinterpret_cast<uint64_t*>(order);
  for (int64_t i = 0; i < n; ++i) words[i] |= (key(order[i]) - least) >> shift << 32;
  radix_sort(words, n);
  constexpr uint64_t kPosition = std::numeric_limits<uint32_t>::max();
  for (int64_t begin = 0, end = 0; shift > 0 && begin < n; begin = end) {
    while (end < n && words[end] >> 32 == words[begin] >> 32) ++end;
    if (end - begin < 2) continue;
    std::sort(words + begin, words + end, [&](uint64_t a, uint64_t b) {
      const auto i = static_cast<int64_t>(a & kPosition), j = static_cast<int64_t>(b & kPosition);
      const uint64_t x = key(i), y = key(j);
      return x != y ? x < y : i < j;
    });
  }
  for (int64_t i = 0; i < n; ++i) words[i] &= kPosition;
}

/// Whether positions below n can be sorted by sort_by_key().
constexpr bool are_positions(int64_t n) {
  return n <= int64_t{1} << 32;
}

}  // namespace torch::executor::native::internal
