#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define ET_INTERNAL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ET_INTERNAL_ASAN 1
#endif
#endif
#ifdef ET_INTERNAL_ASAN
extern "C" void __asan_poison_memory_region(void const volatile* address, size_t size);
#endif

namespace executorch::runtime::internal {

/// Allocates from a heap, and takes all pieces back in reset(). It keeps one block, as large as the
/// most that was allocated between two recent resets, so that an allocation costs a few additions
/// and pages stay warm. The block grows when more was needed, and shrinks when the maximum was long
/// ago. Under AddressSanitizer no block is kept, and every piece has exactly the size that was
/// asked for. Not safe to share between threads.
template <void* (*kAllocate)(size_t), void (*kFree)(void*)>
class HeapAllocator : public MemoryAllocator {
 public:
  HeapAllocator() : MemoryAllocator(0, nullptr) {}
  ~HeapAllocator() override {
    free_pieces();
    kFree(kept_);
  }

  /// Null, after a message, if the alignment is no power of two or the heap is exhausted.
  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    if (ET_LIKELY(kept_ != nullptr && isPowerOf2(alignment))) {
      uint8_t* const start = alignPointer(at_, alignment);
      if (start <= end_ && size <= static_cast<size_t>(end_ - start)) {
        at_ = start + size;
        return start;
      }
    }
    return allocate_piece(size, alignment);
  }

  void reset() override {
    if (taken() > 0) end_round();
  }

 private:
  struct Piece {
    Piece* next;
  };
  /// The alignment of the block: a cache line.
  static constexpr size_t kLine = 64;
  /// The number of resets after which the block may be given back. A step of a model has hundreds.
  static constexpr uint32_t kRounds = 1 << 14;
#ifdef ET_INTERNAL_ASAN
  static constexpr bool kKeeps = false;
#else
  static constexpr bool kKeeps = true;
#endif

  uint8_t* begin() const {
    return alignPointer(kept_, kLine);
  }
  size_t taken() const {
    return piece_bytes_ + (kept_ == nullptr ? 0 : static_cast<size_t>(at_ - begin()));
  }

  void* allocate_piece(size_t size, size_t alignment) {
    if (kept_ == nullptr && wanted_ > 0) {
      const size_t wanted = wanted_;
      wanted_ = 0;
      kept_ = kAllocate(wanted);
      if (kept_ != nullptr) {
        at_ = begin();
        end_ = static_cast<uint8_t*>(kept_) + wanted;
        return allocate(size, alignment);
      }
    }
    const size_t overhead = sizeof(Piece) + alignment;
    if (!isPowerOf2(alignment) || size > SIZE_MAX - overhead) {
      ET_LOG(Error, "cannot allocate %zu bytes aligned to %zu", size, alignment);
      return nullptr;
    }
    const size_t bytes = size + overhead;
    auto* const piece = static_cast<Piece*>(kAllocate(bytes));
    if (piece == nullptr) {
      ET_LOG(Error, "the heap has no %zu bytes", bytes);
      return nullptr;
    }
    piece->next = pieces_;
    pieces_ = piece;
    piece_bytes_ += bytes;
    uint8_t* const start = alignPointer(piece + 1, alignment);
#ifdef ET_INTERNAL_ASAN
    const uint8_t* const end = reinterpret_cast<uint8_t*>(piece) + bytes;
    __asan_poison_memory_region(start + size, static_cast<size_t>(end - (start + size)));
#endif
    return start;
  }

  void end_round() {
    const size_t bytes = taken();
    peak_ = bytes > peak_ ? bytes : peak_;
    const bool grows = pieces_ != nullptr;
    free_pieces();
    at_ = kept_ == nullptr ? nullptr : begin();
    if (kKeeps && (grows || ++rounds_ == kRounds)) resize_block(grows);
  }

  // The next allocation takes the new block. It is a little larger than the peak, because needs
  // often grow in steps.
  void resize_block(bool grows) {
    const size_t wanted = peak_ + peak_ / 8 + 2 * kLine;
    if (grows || static_cast<size_t>(end_ - at_) / 4 > wanted) {
      kFree(kept_);
      kept_ = nullptr;
      wanted_ = wanted;
    }
    rounds_ = 0;
    peak_ = 0;
  }

  void free_pieces() {
    while (pieces_ != nullptr) {
      Piece* const next = pieces_->next;
      kFree(pieces_);
      pieces_ = next;
    }
    piece_bytes_ = 0;
  }

  void* kept_ = nullptr;
  uint8_t* at_ = nullptr;
  uint8_t* end_ = nullptr;
  /// The size in bytes of the next block, after one was given back.
  size_t wanted_ = 0;
  /// The pieces that did not fit the block.
  Piece* pieces_ = nullptr;
  size_t piece_bytes_ = 0;
  /// The most that was taken between two of the last `rounds_` resets.
  size_t peak_ = 0;
  uint32_t rounds_ = 0;
};

}  // namespace executorch::runtime::internal
