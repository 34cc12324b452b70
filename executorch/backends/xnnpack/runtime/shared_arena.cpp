#include <executorch/backends/xnnpack/runtime/shared_arena.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

namespace executorch::backends::xnnpack {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Arena {
  uint8_t* data;
  size_t bytes;
};

struct Idle {
  std::mutex mutex;
  std::vector<Arena> arenas;
  size_t users = 0;
};
Idle& idle() {
  static Idle instance;
  return instance;
}

void free_arena(uint8_t* data) {
  ::operator delete(data, kAlignment);
}

}  // namespace

SharedArena::SharedArena(size_t bytes) {
  Idle& kept = idle();
  {
    // The smallest that is large enough, else the largest is given up for a new one.
    std::lock_guard lock(kept.mutex);
    auto& arenas = kept.arenas;
    if (!arenas.empty()) {
      auto best =
          std::min_element(arenas.begin(), arenas.end(), [&](const Arena& a, const Arena& b) {
            const bool a_fits = a.bytes >= bytes, b_fits = b.bytes >= bytes;
            return a_fits != b_fits ? a_fits : a_fits ? a.bytes < b.bytes : a.bytes > b.bytes;
          });
      data_ = best->data;
      bytes_ = best->bytes;
      arenas.erase(best);
    }
  }
  if (data_ != nullptr && bytes_ >= bytes) return;
  if (data_ != nullptr) free_arena(data_);
  bytes_ = bytes;
  data_ =
      static_cast<uint8_t*>(::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow));
}

SharedArena::~SharedArena() {
  if (data_ == nullptr) return;
  std::lock_guard lock(idle().mutex);
  idle().arenas.push_back({data_, bytes_});
}

SharedArenaUser::SharedArenaUser() {
  std::lock_guard lock(idle().mutex);
  ++idle().users;
}

SharedArenaUser::~SharedArenaUser() {
  std::lock_guard lock(idle().mutex);
  if (--idle().users > 0) return;
  for (const Arena& arena : idle().arenas) free_arena(arena.data);
  idle().arenas.clear();
}

}  // namespace executorch::backends::xnnpack
