#include <executorch/extension/module/temporary_pages.h>

#include <algorithm>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace executorch::extension::internal {
namespace {

// A largest result of less is not worth a system call.
constexpr size_t kLeastReleased = 256 << 10;
#if defined(__linux__)
// Results of at least two huge pages fill most of those that they lie in.
constexpr size_t kLeastHuge = 4 << 20;
// Results are small if the largest one has at most this fraction of its former size, in so many
// executions one after another.
constexpr size_t kSmallFraction = 4;
constexpr int kSmallExecutions = 2;
#endif

}  // namespace

TemporaryPages::TemporaryPages(const runtime::Temporaries& temporaries)
    : memory_(temporaries.memory) {
  for (const auto* tensor : temporaries.tensors) {
    if (tensor->nbytes() >= kLeastReleased) tensors_.push_back(tensor);
  }
}

size_t TemporaryPages::largest() const {
  size_t bytes = 0;
  for (const auto* tensor : tensors_) bytes = std::max(bytes, tensor->nbytes());
  return bytes;
}

#if defined(__linux__)

void TemporaryPages::fit() {
  const size_t bytes = largest();
  largest_ = std::max(largest_, bytes);
  if (!huge_ && bytes >= kLeastHuge) {
    huge_ = true;
    release(MADV_HUGEPAGE);
  }
  small_executions_ = bytes <= largest_ / kSmallFraction ? small_executions_ + 1 : 0;
  if (small_executions_ < kSmallExecutions || largest_ < kLeastReleased) return;
  release(MADV_NOHUGEPAGE);
  huge_ = false;
  largest_ = bytes;
}

// Gives the pages back; those that replace them are as `advice` says.
void TemporaryPages::release(int advice) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& memory : memory_) {
    const auto begin = (reinterpret_cast<uintptr_t>(memory.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(memory.data() + memory.size()) / page * page;
    if (begin >= end) continue;
    auto* const pages = reinterpret_cast<void*>(begin);
    (void)::madvise(pages, end - begin, MADV_DONTNEED);
    (void)::madvise(pages, end - begin, advice);
  }
}

#else

void TemporaryPages::fit() {}

#endif

}  // namespace executorch::extension::internal
