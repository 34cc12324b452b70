#include <executorch/backends/xnnpack/runtime/shared_arena.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace executorch::backends::xnnpack {

constexpr size_t kLine = 64;

/// The header of an arena, directly in front of the arena's bytes.
struct alignas(kLine) SharedArena::Block {
  size_t bytes;
  Block* next;
};

/// The arenas that no call uses. The lists link arenas and users directly, without memory of their
/// own, so that giving an arena back cannot fail.
struct IdleArenas {
  std::mutex mutex;
  SharedArena::Block* arenas = nullptr;
  SharedArenaUser* users = nullptr;
  size_t largest_need = 0;

  static IdleArenas& instance() {
    static IdleArenas kept;
    return kept;
  }

  /// Takes the smallest idle arena of at least `bytes`, else the largest idle arena. Null if there
  /// is none.
  SharedArena::Block* take(size_t bytes) {
    SharedArena::Block** best = nullptr;
    for (auto** at = &arenas; *at != nullptr; at = &(*at)->next) {
      if (best == nullptr || is_better((*at)->bytes, (*best)->bytes, bytes)) best = at;
    }
    if (best == nullptr) return nullptr;
    SharedArena::Block* const taken = *best;
    *best = taken->next;
    return taken;
  }

  void give_back(SharedArena::Block* block) {
    if (block->bytes > largest_need) return free(block);
    block->next = arenas;
    arenas = block;
  }

  /// Called when a user is added, is removed, or needs another size: frees the arenas that are now
  /// too large.
  void update() {
    largest_need = 0;
    for (auto* user = users; user != nullptr; user = user->next_) {
      largest_need = std::max(largest_need, user->bytes_);
    }
    for (auto** at = &arenas; *at != nullptr;) {
      SharedArena::Block* const block = *at;
      if (users != nullptr && block->bytes <= largest_need) {
        at = &block->next;
        continue;
      }
      *at = block->next;
      free(block);
    }
  }

  static void free(SharedArena::Block* block) {
    ::operator delete (static_cast<void*>(block), std::align_val_t{kLine});
  }

 private:
  static bool is_better(size_t a, size_t b, size_t wanted) {
    const bool a_fits = a >= wanted, b_fits = b >= wanted;
    return a_fits != b_fits ? a_fits : a_fits ? a < b : a > b;
  }
};

SharedArenaUser::SharedArenaUser() {
  auto& kept = IdleArenas::instance();
  const std::lock_guard lock(kept.mutex);
  next_ = kept.users;
  if (next_ != nullptr) next_->previous_ = this;
  kept.users = this;
}

SharedArenaUser::~SharedArenaUser() {
  auto& kept = IdleArenas::instance();
  const std::lock_guard lock(kept.mutex);
  (previous_ == nullptr ? kept.users : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  kept.update();
}

void SharedArenaUser::set_bytes(size_t bytes) {
  auto& kept = IdleArenas::instance();
  const std::lock_guard lock(kept.mutex);
  bytes_ = bytes;
  kept.update();
}

SharedArena::SharedArena(const SharedArenaUser& user) {
  auto& kept = IdleArenas::instance();
  const size_t bytes = user.bytes_;
  {
    const std::lock_guard lock(kept.mutex);
    block_ = kept.take(bytes);
  }
  if (block_ != nullptr && block_->bytes >= bytes) return;
  if (block_ != nullptr) IdleArenas::free(block_);
  block_ = nullptr;
  if (bytes > SIZE_MAX - sizeof(Block)) return;
  void* const memory =
      ::operator new (sizeof(Block) + bytes, std::align_val_t{kLine}, std::nothrow);
  if (memory != nullptr) block_ = new (memory) Block{bytes, nullptr};
}

SharedArena::~SharedArena() {
  if (block_ == nullptr) return;
  auto& kept = IdleArenas::instance();
  const std::lock_guard lock(kept.mutex);
  kept.give_back(block_);
}

size_t idle_arena_bytes() {
  auto& kept = IdleArenas::instance();
  const std::lock_guard lock(kept.mutex);
  size_t bytes = 0;
  for (auto* block = kept.arenas; block != nullptr; block = block->next) bytes += block->bytes;
  return bytes;
}

uint8_t* SharedArena::data() const {
  return block_ == nullptr ? nullptr : reinterpret_cast<uint8_t*>(block_ + 1);
}

}  // namespace executorch::backends::xnnpack
