/// Memory whose end is watched, for tests and fuzzing.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/runtime/platform/assert.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace executorch::backends::xnnpack::testing {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressesAreWatched = true;
#else
inline constexpr bool kAddressesAreWatched = false;
#endif

/// Bytes behind which nothing can be touched: a read or write there ends the process, in any build.
/// Under the address sanitizer they are a block of exactly that size, else they end where a page
/// begins that must not be accessed.
class GuardedBytes {
 public:
  GuardedBytes() = default;
  explicit GuardedBytes(size_t n) : size_(n) {
    if (kAddressesAreWatched) {
      data_ = static_cast<uint8_t*>(std::malloc(n));
      return;
    }
    used_ = (n + page() - 1) / page() * page();
    auto& idle = kept()[used_];
    if (idle.empty()) {
      void* const all =
          mmap(nullptr, used_ + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ET_CHECK(all != MAP_FAILED);
      first_ = static_cast<uint8_t*>(all);
      ET_CHECK(mprotect(first_ + used_, page(), PROT_NONE) == 0);
    } else {
      first_ = idle.back();
      idle.pop_back();
    }
    data_ = first_ + used_ - n;
  }
  GuardedBytes(GuardedBytes&& other) noexcept { *this = std::move(other); }
  GuardedBytes& operator=(GuardedBytes&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(data_, other.data_);
    std::swap(used_, other.used_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~GuardedBytes() {
    if (kAddressesAreWatched) std::free(data_);
    if (first_ == nullptr) return;
    constexpr size_t kLargestKept = 1 << 20;
    if (used_ > kLargestKept) {
      munmap(first_, used_ + page());
    } else {
      allow_writing();
      kept()[used_].push_back(first_);
    }
  }
  uint8_t* get() const { return data_; }
  size_t size() const { return size_; }

  /// From now on writing ends the process, too, except under the address sanitizer.
  void forbid_writing() {
    if (used_ > 0) is_read_only_ = mprotect(first_, used_, PROT_READ) == 0;
  }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static std::map<size_t, std::vector<uint8_t*>>& kept() {
    static std::map<size_t, std::vector<uint8_t*>> instance;
    return instance;
  }
  void allow_writing() {
    if (is_read_only_) ET_CHECK(mprotect(first_, used_, PROT_READ | PROT_WRITE) == 0);
  }

  uint8_t *first_ = nullptr, *data_ = nullptr;
  size_t used_ = 0, size_ = 0;
  bool is_read_only_ = false;
};

/// Scratch memory of that kind, up to `limit` bytes.
class GuardedScratch {
 public:
  explicit GuardedScratch(size_t limit) : left_(limit), scratch_(&allocate, this) {}
  operator cpu::Scratch&() { return scratch_; }

 private:
  static void* allocate(void* self, size_t bytes) {
    auto& scratch = *static_cast<GuardedScratch*>(self);
    if (bytes > scratch.left_) return nullptr;
    scratch.left_ -= bytes;
    const size_t line = kAddressesAreWatched ? static_cast<size_t>(cpu::Scratch::kLine) : 0;
    scratch.blocks_.emplace_back(bytes + line);
    // malloc aligns to less than a cache line; the end of a page is aligned already.
    uint8_t* const data = scratch.blocks_.back().get();
    return line == 0 ? data : data + (line - reinterpret_cast<uintptr_t>(data) % line) % line;
  }

  size_t left_;
  std::vector<GuardedBytes> blocks_;
  cpu::Scratch scratch_;
};

}  // namespace executorch::backends::xnnpack::testing
