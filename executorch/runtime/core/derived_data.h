#pragma once

#include <executorch/runtime/core/data_loader.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace executorch {
namespace runtime {

/// Data that kernels derive once from a program's constants, for all of its methods, and read
/// instead of the constants: weights packed for a microkernel. It lives as long as the program.
/// Several threads may use it at once.
class DerivedData final {
 public:
  /// The header of a kernel's derived data. The kernel allocates and frees it.
  struct Entry {
    /// The constant's first byte.
    const void* source = nullptr;
    void (*free)(Entry* entry) = nullptr;
    Entry* next = nullptr;
    /// Whether the content is complete.
    std::atomic<bool> ready{false};
  };

  explicit DerivedData(const DataLoader* loader) : loader_(loader) {}
  DerivedData(DerivedData&& other) noexcept
      : loader_(other.loader_),
        data_(other.data_.exchange(nullptr)),
        size_(other.size_.load()),
        first_(other.first_.exchange(nullptr)) {}
  DerivedData(const DerivedData&) = delete;
  DerivedData& operator=(const DerivedData&) = delete;
  DerivedData& operator=(DerivedData&&) = delete;
  ~DerivedData() {
    for (Entry *entry = first_.load(), *next; entry != nullptr; entry = next) {
      next = entry->next;
      entry->free(entry);
    }
  }

  /// Tells where the program's constants are, once they are loaded. All calls pass the same range.
  void set_constants(const void* data, size_t size) {
    size_.store(size, std::memory_order_relaxed);
    data_.store(static_cast<const uint8_t*>(data), std::memory_order_release);
  }

  /// Bytes; 0 until the constants are loaded.
  size_t constants_size() const { return size_.load(std::memory_order_relaxed); }

  /// Gives back the memory of a constant that will rarely be read from now on; a later read gives
  /// the same bytes. Returns false and does nothing if the bytes are not constants of the program,
  /// or if the loader could not read them again. With `size` 0 it only tells whether release is
  /// possible.
  bool release(const void* source, size_t size) const {
    const auto* const begin = data_.load(std::memory_order_acquire);
    const size_t all = size_.load(std::memory_order_relaxed);
    const auto at = reinterpret_cast<uintptr_t>(source), first = reinterpret_cast<uintptr_t>(begin);
    if (begin == nullptr || at < first || at - first > all || size > all - (at - first)) {
      return false;
    }
    return loader_->release(source, size);
  }

  /// Returns the entry of a constant, which may not be ready yet; null if there is none.
  Entry* find(const void* source) const {
    return find(source, first_.load(std::memory_order_acquire), nullptr);
  }

  /// Adds an entry, unless its constant has one. Returns the one that it has now.
  Entry* add(Entry* entry) {
    Entry *first = first_.load(std::memory_order_acquire), *seen = nullptr;
    while (true) {
      if (Entry* const other = find(entry->source, first, seen)) return other;
      entry->next = seen = first;
      if (first_.compare_exchange_weak(first, entry, std::memory_order_acq_rel)) return entry;
    }
  }

 private:
  static Entry* find(const void* source, Entry* from, const Entry* to) {
    for (Entry* entry = from; entry != to; entry = entry->next) {
      if (entry->source == source) return entry;
    }
    return nullptr;
  }

  const DataLoader* loader_;
  std::atomic<const uint8_t*> data_{nullptr};
  std::atomic<size_t> size_{0};
  std::atomic<Entry*> first_{nullptr};
};

}  // namespace runtime
}  // namespace executorch
