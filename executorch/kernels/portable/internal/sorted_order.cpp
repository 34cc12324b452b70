#include <executorch/kernels/portable/internal/sorted_order.h>

#include <utility>

namespace torch::executor::native::internal {
namespace {

constexpr int64_t kBuckets = 256;
constexpr int64_t kFew = 128;  // words that comparisons sort faster

/// Sorts words whose bytes above `shift` are all equal: by the byte at `shift` in place, then each
/// bucket.
void sort_by_byte(uint64_t* words, int64_t n, int shift) {
  const auto byte_of = [shift](uint64_t word) { return word >> shift & (kBuckets - 1); };
  int64_t ends[kBuckets] = {};
  for (int64_t i = 0; i < n; ++i) ++ends[byte_of(words[i])];
  int64_t next[kBuckets];  // places in a bucket that are not taken yet begin here
  for (int64_t b = 0, begin = 0; b < kBuckets; ++b) {
    next[b] = begin;
    begin += ends[b];
    ends[b] = begin;
  }
  for (int64_t b = 0; b < kBuckets; ++b) {
    while (next[b] < ends[b]) {
      uint64_t word = words[next[b]];
      for (uint64_t to; (to = byte_of(word)) != static_cast<uint64_t>(b);) {
        std::swap(word, words[next[to]++]);
      }
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
  uint64_t differing = 0;
  for (int64_t i = 1; i < n; ++i) differing |= words[i] ^ words[0];
  int shift = 0;
  while (shift < 56 && differing >> (shift + 8) != 0) shift += 8;
  sort_by_byte(words, n, shift);
}

}  // namespace torch::executor::native::internal
