/// Who wrote the bytes of a method's memory last, while its instructions are walked in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace executorch::optimized {

/// Cost: a write is logarithmic in the number of writes (amortised), a question in that and linear
/// in the number of pieces that the range consists of.
class LastWriters {
 public:
  struct Writer {
    int node = -1;
    /// What was written; -1: a node that may have written.
    int value = -1;
  };

  void write(const void* begin, size_t n_bytes, Writer writer) {
    if (n_bytes == 0) return;
    const auto from = reinterpret_cast<uintptr_t>(begin), to = from + n_bytes;
    pieces_.insert_or_assign(to, at(to));
    pieces_.erase(pieces_.lower_bound(from), pieces_.find(to));
    pieces_.insert_or_assign(from, writer);
  }

  /// The last of the writers of any of these bytes; no node if nothing wrote them. `seen(1)` is
  /// called for each piece.
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

  /// The writer of the bytes from an address to the next one.
  std::map<uintptr_t, Writer> pieces_;
};

}  // namespace executorch::optimized
