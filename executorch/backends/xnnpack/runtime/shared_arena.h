/// Arenas that all delegates of the process share: one for each that runs at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::backends::xnnpack {

/// An arena for the time of one call; 64-byte aligned. Empty when there is no memory.
class SharedArena {
 public:
  explicit SharedArena(size_t bytes);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

/// While one lives, arenas are kept from call to call.
class SharedArenaUser {
 public:
  SharedArenaUser();
  ~SharedArenaUser();
  SharedArenaUser(const SharedArenaUser&) = delete;
  SharedArenaUser& operator=(const SharedArenaUser&) = delete;
};

}  // namespace executorch::backends::xnnpack
