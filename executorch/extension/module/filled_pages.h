#pragma once

#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace executorch::extension::internal {

/// Moves planned memory to huge pages where at least half of it was written. Caches of keys and
/// values, which each token reads as a whole, are then read up to twice as fast; memory that was
/// written little keeps small pages, so that a short text in a long cache takes little of it.
class FilledPages final {
 public:
  /// The memory must come from the system's heap and outlive this; spans may be empty.
  explicit FilledPages(runtime::Span<const runtime::Span<uint8_t>> memory);

  /// To be called after an execution has ended. It looks at a part of the memory only, so that no
  /// execution takes much longer than others.
  void collapse();

 private:
  std::vector<uint8_t*> small_;  // whole huge pages' memory, still in small pages
  // Systems without such pages need neither.
  [[maybe_unused]] size_t next_ = 0;  // the index of the one that is looked at next
  [[maybe_unused]] size_t at_once_ = 0;
};

}  // namespace executorch::extension::internal
