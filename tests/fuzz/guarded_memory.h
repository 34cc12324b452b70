#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Memory whose end meets an inaccessible page, or whose beginning does, so that an access beyond
/// it is a signal. Built with AddressSanitizer it comes from the heap, in blocks of exactly the
/// size asked for.
namespace executorch::fuzz {

class GuardedMemory {
 public:
  /// Blocks of up to `slot_bytes` come from `slots` slots that are mapped once.
  GuardedMemory(size_t slots, size_t slot_bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  enum class Guard { After, Before };
  /// `bytes` bytes filled with `fill` (larger blocks with zeros), aligned to `alignment`, at most
  /// that far from the guard. Null if the system has no more.
  uint8_t* allocate(size_t bytes, size_t alignment, Guard guard = Guard::After, uint8_t fill = 0);
  void free(void* block);
  /// Frees all; false if bytes between a block and its guard were written to.
  bool clear();
  size_t live() const { return blocks_.size(); }
  /// Nothing may write there any more.
  void protect(void* block);

 private:
  struct Block {
    uint8_t* data;
    uint8_t* room;  // the whole slot or mapping without its guard
    size_t bytes;
    size_t room_bytes;
    size_t slot;  // kMapped if none
  };
  bool release(const Block& block);

  std::vector<Block> blocks_;
  std::vector<size_t> free_slots_;
  uint8_t* slots_ = nullptr;
  size_t slot_bytes_;
  size_t count_;
  bool is_intact_ = true;
};

}  // namespace executorch::fuzz
