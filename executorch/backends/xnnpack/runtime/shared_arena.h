/// Arenas that all delegates of the process share: one for each that runs at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::backends::xnnpack {

/// A user of arenas, which says how large they have to be. Idle arenas are kept as long as some
/// user may need them; an arena larger than all users need is freed.
class SharedArenaUser {
 public:
  SharedArenaUser();
  ~SharedArenaUser();
  SharedArenaUser(const SharedArenaUser&) = delete;
  SharedArenaUser& operator=(const SharedArenaUser&) = delete;

  /// Sets the size of the arenas that this user's next calls take.
  void set_bytes(size_t bytes);

 private:
  friend class SharedArena;
  friend struct IdleArenas;
  size_t bytes_ = 0;
  SharedArenaUser *previous_ = nullptr, *next_ = nullptr;
};

/// An arena of the user's size for the time of one call; 64-byte aligned.
class SharedArena {
 public:
  explicit SharedArena(const SharedArenaUser& user);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  /// Null when there is no memory.
  uint8_t* data() const;

 private:
  struct Block;
  friend struct IdleArenas;
  Block* block_ = nullptr;
};

/// The total size of all arenas that no call uses; for tests.
size_t idle_arena_bytes();

}  // namespace executorch::backends::xnnpack
