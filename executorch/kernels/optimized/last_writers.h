/// Tracks which node last wrote each byte of a method's memory, while instructions are visited in
/// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace executorch::optimized {

/// Cost: write() takes time logarithmic in the number of writes (amortized). last() takes as much,
/// plus time linear in the number of differently written pieces of its range.
class LastWriters {
 public:
  struct Writer {
    int node = -1;
    /// The value that was written; -1 if the node may have written these bytes.
    int value = -1;
  };

  void write(const void* begin, size_t n_bytes, Writer writer) {
    if (n_bytes == 0) return;
    const auto from = reinterpret_cast<uintptr_t>(begin), to = from + n_bytes;
    pieces_.insert_or_assign(to, at(to));
    pieces_.erase(pieces_.lower_bound(from), pieces_.find(to));
    pieces_.insert_or_assign(from, writer);
  }

  /// The latest writer of any of these bytes; its node is -1 if nothing wrote them. Calls seen(1)
  /// for each piece of the range.
  template <class F>
  Writer last(const void* begin, size_t n_bytes, const F& seen) const {
    const auto from = reinterpret_cast<uintptr_t>(begin), to = from + n_bytes;
    if (n_bytes == 0) return {};
    Writer latest = at(from);
    for (auto it = pieces_.upper_bound(from); it != pieces_.end() && it->first < to; ++it) {
      seen(1);
      if (it->second.node > latest.node) latest = it->second;
    }
    return latest;
  }

 private:
  Writer at(uintptr_t address) const {
    const auto next = pieces_.upper_bound(address);
    return next == pieces_.begin() ? Writer() : std::prev(next)->second;
  }

  /// Maps an address to the writer of the bytes from there up to the next address.
  std::map<uintptr_t, Writer> pieces_;
};

}  // namespace executorch::optimized
