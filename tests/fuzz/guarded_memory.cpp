#include "guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace executorch::fuzz {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMapped = SIZE_MAX, kHeap = SIZE_MAX - 1;
constexpr uint8_t kUntouched = 0xC5;
// Fewer bytes next to a block are looked at than a slot has.
constexpr size_t kLookedAt = 64;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

size_t round_up(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

uint8_t* map(size_t bytes) {
  void* found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return found == MAP_FAILED ? nullptr : static_cast<uint8_t*>(found);
}

// The bytes of the room within kLookedAt of the block.
template <class F>
void around(uint8_t* data, size_t bytes, uint8_t* room, size_t room_bytes, const F& f) {
  const size_t before = std::min<size_t>(static_cast<size_t>(data - room), kLookedAt);
  f(data - before, before);
  uint8_t* end = data + bytes;
  f(end, std::min<size_t>(static_cast<size_t>(room + room_bytes - end), kLookedAt));
}

}  // namespace

GuardedMemory::GuardedMemory(size_t slots, size_t slot_bytes)
    : slot_bytes_(round_up(slot_bytes, kPage)), count_(slots) {
  if (kHasSanitizer) return;
  slots_ = map(count_ * (slot_bytes_ + kPage) + kPage);
  for (size_t i = count_; slots_ != nullptr && i-- > 0;) {
    mprotect(slots_ + kPage + i * (slot_bytes_ + kPage), slot_bytes_, PROT_READ | PROT_WRITE);
    free_slots_.push_back(i);
  }
}

GuardedMemory::~GuardedMemory() {
  clear();
  if (slots_ != nullptr) munmap(slots_, count_ * (slot_bytes_ + kPage) + kPage);
}

uint8_t* GuardedMemory::allocate(size_t bytes, size_t alignment, Guard guard, uint8_t fill) {
  Block block{nullptr, nullptr, bytes, bytes, kHeap};
  if (kHasSanitizer) {
    void* made = nullptr;
    if (posix_memalign(&made, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
    block.data = block.room = static_cast<uint8_t*>(made);
    std::memset(made, fill, std::min(bytes, slot_bytes_));
    if (bytes > slot_bytes_) std::memset(block.data + slot_bytes_, 0, bytes - slot_bytes_);
    blocks_.push_back(block);
    return block.data;
  }
  block.room_bytes = slot_bytes_;
  if (bytes <= slot_bytes_ && !free_slots_.empty()) {
    block.slot = free_slots_.back();
    free_slots_.pop_back();
    block.room = slots_ + kPage + block.slot * (slot_bytes_ + kPage);
  } else {
    block.slot = kMapped;
    block.room_bytes = round_up(std::max<size_t>(bytes, 1), kPage);
    uint8_t* mapped = map(block.room_bytes + 2 * kPage);
    if (mapped == nullptr ||
        mprotect(mapped + kPage, block.room_bytes, PROT_READ | PROT_WRITE) != 0) {
      return nullptr;
    }
    block.room = mapped + kPage;
  }
  const size_t slack = block.room_bytes - bytes;
  block.data = block.room + (guard == Guard::After ? slack / alignment * alignment : 0);
  if (block.slot != kMapped) std::memset(block.data, fill, bytes);
  around(block.data, bytes, block.room, block.room_bytes,
         [](uint8_t* from, size_t n) { std::memset(from, kUntouched, n); });
  blocks_.push_back(block);
  return block.data;
}

bool GuardedMemory::release(const Block& block) {
  bool is_intact = true;
  if (block.slot == kHeap) {
    std::free(block.data);
    return true;
  }
  around(block.data, block.bytes, block.room, block.room_bytes, [&](const uint8_t* from, size_t n) {
    is_intact &= std::all_of(from, from + n, [](uint8_t byte) { return byte == kUntouched; });
  });
  if (block.slot == kMapped) {
    munmap(block.room - kPage, block.room_bytes + 2 * kPage);
  } else {
    free_slots_.push_back(block.slot);
  }
  return is_intact;
}

void GuardedMemory::free(void* data) {
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (blocks_[i].data == data) {
      is_intact_ &= release(blocks_[i]);
      blocks_[i] = blocks_.back();
      blocks_.pop_back();
      return;
    }
  }
}

bool GuardedMemory::clear() {
  for (const Block& block : blocks_) is_intact_ &= release(block);
  blocks_.clear();
  return std::exchange(is_intact_, true);
}

void GuardedMemory::protect(void* data) {
  for (Block& block : blocks_) {
    if (block.data == data && block.slot == kMapped) {
      mprotect(block.room, block.room_bytes, PROT_READ);
    }
  }
}

}  // namespace executorch::fuzz
