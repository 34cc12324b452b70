#pragma once

namespace executorch::extension::threadpool {

/// While one lives, work that its thread hands to the pool runs on that thread itself.
struct NoThreadPoolGuard {
  static bool is_enabled();
  static void set_enabled(bool enabled);

  NoThreadPoolGuard() : previous_(is_enabled()) { set_enabled(true); }
  ~NoThreadPoolGuard() { set_enabled(previous_); }
  NoThreadPoolGuard(const NoThreadPoolGuard&) = delete;
  NoThreadPoolGuard& operator=(const NoThreadPoolGuard&) = delete;

 private:
  const bool previous_;
};

}  // namespace executorch::extension::threadpool

// torch::executorch::threadpool, as upstream spells it. An alias, and no namespace of its own, in
// which torch::executor would look for executorch::runtime.
namespace executorch {
namespace threadpool = extension::threadpool;
}
namespace torch {
namespace executorch = ::executorch;
}
