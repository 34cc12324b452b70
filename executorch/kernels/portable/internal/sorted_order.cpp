#include <executorch/kernels/portable/internal/sorted_order.h>

#include <utility>

namespace torch::executor::native::internal {
namespace {

constexpr int64_t kBuckets = 256;
constexpr int64_t kFew = 128;  // words that comparisons sort faster

int64_t byte_of(uint64_t word, int shift) {
  return static_cast<int64_t>(word >> shift & (kBuckets - 1));
}

/// The place of the highest byte in which words differ; -1 if they are all equal.
int highest_difference(const uint64_t* words, int64_t n) {
  uint64_t differing = 0;
  for (int64_t i = 1; i < n; ++i) differing |= words[i] ^ words[0];
  if (differing == 0) return -1;
  int shift = 0;
  while (shift < 56 && differing >> (shift + 8) != 0) shift += 8;
  return shift;
}

/// Sorts words whose bytes above `shift` are all equal: by the byte at `shift` in place, then each
/// bucket.
void sort_by_byte(uint64_t* words, int64_t n, int shift) {
  int64_t ends[kBuckets] = {};
  for (int64_t i = 0; i < n; ++i) ++ends[byte_of(words[i], shift)];
  int64_t next[kBuckets];  // places in a bucket that are not taken yet begin here
  for (int64_t b = 0, begin = 0; b < kBuckets; ++b) {
    next[b] = begin;
    begin += ends[b];
    ends[b] = begin;
  }
  for (int64_t b = 0; b < kBuckets; ++b) {
    while (next[b] < ends[b]) {
      uint64_t word = words[next[b]];
      for (int64_t to; (to = byte_of(word, shift)) != b;) std::swap(word, words[next[to]++]);
      words[next[b]++] = word;
    }
  }
  if (shift == 0) return;
  for (int64_t b = 0, begin = 0; b < kBuckets; begin = ends[b++]) {
    radix_sort(words + begin, ends[b] - begin);
  }
}

}  // namespace

void radix_sort(uint64_t* words, int64_t n) {
  if (n <= kFew) return std::sort(words, words + n);
  const int shift = highest_difference(words, n);
  if (shift >= 0) sort_by_byte(words, n, shift);
}

Selected radix_select(uint64_t* words, int64_t n, int64_t k) {
  while (n > kFew) {
    const int shift = highest_difference(words, n);
    if (shift < 0) return {words[0], k};
    int64_t counts[kBuckets] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[byte_of(words[i], shift)];
    int64_t bucket = 0;
    while (k >= counts[bucket]) k -= counts[bucket++];
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t word = words[i];
      words[kept] = word;
      kept += byte_of(word, shift) == bucket;
    }
    n = kept;
  }
  std::nth_element(words, words + k, words + n);
  const uint64_t word = words[k];
  return {word, std::count(words, words + k, word)};
}

}  // namespace torch::executor::native::internal
