#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace executorch::extension::internal {

/// A whole file, mapped read-only, and shared by the loader that made it and the buffers that it
/// gave; the last of them unmaps it.
///
/// It lies where huge pages fit: the address is a multiple of their size, and the system is told to
/// use them. What it reads from a disk is then cached in pieces of that size, and memory is read
/// faster than where each page of 4 KiB costs a miss of the TLB.
class FileMapping {
 public:
  /// Maps a file, with one owner. Null if the file cannot be mapped as a whole: it is empty, or too
  /// large for the address space.
  static FileMapping* map(int fd, size_t size);

  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  char* data() const { return data_; }

  void add_owner() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void remove_owner();
  /// Gives the range's pages back to the system and unlocks them, except pages that it shares with
  /// its neighbours.
  void forget(const void* data, size_t size) const;

 private:
  FileMapping(char* data, size_t size) : data_(data), size_(size) {}
  ~FileMapping();
  static void give_back(uintptr_t begin, uintptr_t end);

  char* const data_;
  const size_t size_;
  std::atomic<size_t> owners_{1};
};

}  // namespace executorch::extension::internal
