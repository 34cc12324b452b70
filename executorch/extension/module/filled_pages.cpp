#include <executorch/extension/module/filled_pages.h>

#include <algorithm>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace executorch::extension::internal {

#if defined(__linux__)

namespace {

constexpr size_t kPage = 4096, kHugePage = 2 << 20;
// 128 GiB of memory; what lies behind keeps small pages.
constexpr size_t kMostHugePages = 1 << 16;
// So many executions look at all of the memory.
constexpr size_t kExecutions = 32;
// MADV_COLLAPSE, which the C library's headers may lack. Systems that do not know it refuse it.
constexpr int kCollapse = 25;

bool is_half_resident(uint8_t* begin) {
  unsigned char pages[kHugePage / kPage];
  if (::mincore(begin, kHugePage, pages) != 0) return false;
  const auto n = std::count_if(std::begin(pages), std::end(pages),
                               [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<size_t>(n) >= std::size(pages) / 2;
}

}  // namespace

FilledPages::FilledPages(runtime::Span<const runtime::Span<uint8_t>> memory) {
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(kPage)) return;  // huge ones have another size
  for (const auto& span : memory) {
    const size_t before = -reinterpret_cast<uintptr_t>(span.data()) % kHugePage;
    for (size_t at = before; at <= span.size() && span.size() - at >= kHugePage; at += kHugePage) {
      if (small_.size() == kMostHugePages) break;
      small_.push_back(span.data() + at);
    }
  }
  at_once_ = (small_.size() + kExecutions - 1) / kExecutions;
}

void FilledPages::collapse() {
  for (size_t i = 0; i < at_once_ && !small_.empty(); ++i) {
    if (next_ >= small_.size()) next_ = 0;
    uint8_t* const begin = small_[next_];
    if (!is_half_resident(begin)) {
      ++next_;
      continue;
    }
    // Where the system has no huge page, it has none for the next attempt either.
    (void)::madvise(begin, kHugePage, kCollapse);
    small_[next_] = small_.back();
    small_.pop_back();
  }
}

#else

FilledPages::FilledPages(runtime::Span<const runtime::Span<uint8_t>>) {}

void FilledPages::collapse() {}

#endif

}  // namespace executorch::extension::internal
