#include <executorch/cpu/scratch.h>

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#endif

namespace executorch::cpu {

// The header of a block. The block's usable bytes begin kLine bytes after it.
struct Scratch::Block {
  Block* next;
  size_t bytes;

  char* data() { return reinterpret_cast<char*>(this) + kLine; }
};

void Scratch::guard(void* from, size_t bytes) {
  ASAN_POISON_MEMORY_REGION(from, bytes);
}

void Scratch::guard_free() const {
  Block* free = first_;
  if (block_ != nullptr) {
    guard(block_->data() + at_, block_->bytes - at_);
    free = block_->next;
  }
  for (; free != nullptr; free = free->next) guard(free->data(), free->bytes);
}

void Scratch::end() {
  for (Block* block = first_; block != nullptr; block = block->next) {
    ASAN_UNPOISON_MEMORY_REGION(block->data(), block->bytes);
  }
  first_ = block_ = nullptr;
}

void* Scratch::take(Size size) {
  constexpr auto kHeader = static_cast<size_t>(kLine);
  const Size rounded = round_up(max(size, kLine), kLine) + kGuard;
  if (!size.within(INT64_MAX) || !(rounded + kLine).fits<size_t>()) return nullptr;
  const auto bytes = static_cast<size_t>(rounded.value());
  const auto next_piece = [&] {
    char* const piece = block_->data() + at_;
    at_ += bytes;
    ASAN_UNPOISON_MEMORY_REGION(piece, static_cast<size_t>(size.value()));
    return piece;
  };
  if (block_ != nullptr && bytes <= block_->bytes - at_) return next_piece();
  // The first free block that is large enough, or a new one, becomes the successor of block_.
  Block** link = block_ == nullptr ? &first_ : &block_->next;
  Block** found = link;
  while (*found != nullptr && (*found)->bytes < bytes) found = &(*found)->next;
  Block* block = *found;
  if (block != nullptr) {
    *found = block->next;
  } else {
    void* const memory = source_(owner_, bytes + kHeader);
    if (memory == nullptr) return nullptr;
    block = new (memory) Block{nullptr, bytes};
    guard(block->data(), bytes);
  }
  block->next = *link;
  *link = block_ = block;
  at_ = 0;
  return next_piece();
}

LoopScratch::LoopScratch(Scratch& scratch)
    : scratch_(scratch),
      frame_(scratch),
      threads_(loop_threads()),
      slots_(threads_ == 1
                 ? nullptr
                 : reinterpret_cast<Slot*>(scratch.array<uint8_t>(Size(threads_) * sizeof(Slot)))) {
  for (size_t i = 0; slots_ != nullptr && i < threads_; ++i) new (slots_ + i) Slot{{&ask, this}};
}

void LoopScratch::count_products() {
  for (size_t i = 0; i < threads_; ++i) {
    scratch_.add_products(slots_[i].scratch.products_);
    slots_[i].scratch.products_ = 0;
  }
}

void* LoopScratch::ask(void* self, size_t bytes) {
  auto& loop = *static_cast<LoopScratch*>(self);
  const std::lock_guard<std::mutex> turn(loop.turn_);
  return loop.scratch_.array<char>(bytes);
}

void* HeapScratch::allocate(void* self, size_t bytes) {
  auto& heap = *static_cast<HeapScratch*>(self);
  constexpr auto kLine = static_cast<size_t>(Scratch::kLine);
  if (bytes > heap.left_ || bytes > SIZE_MAX - 2 * kLine) return nullptr;
  void* const memory = std::aligned_alloc(kLine, (bytes + 2 * kLine - 1) / kLine * kLine);
  if (memory == nullptr) return nullptr;
  heap.left_ -= bytes;
  heap.pieces_ = new (memory) Piece{heap.pieces_};
  return static_cast<char*>(memory) + kLine;
}

HeapScratch::~HeapScratch() {
  scratch_.end();
  while (pieces_ != nullptr) {
    Piece* const next = pieces_->next;
    std::free(pieces_);
    pieces_ = next;
  }
}

}  // namespace executorch::cpu
