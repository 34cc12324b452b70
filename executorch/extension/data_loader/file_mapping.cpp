#include <executorch/extension/data_loader/file_mapping.h>
#include <executorch/extension/data_loader/mman.h>

#include <cstdint>
#include <new>

namespace executorch::extension::internal {
namespace {

// The size of huge pages on x86-64, and on 64-bit ARM with pages of 4 KiB. On other machines this
// alignment does no harm.
constexpr size_t kHugePage = 2 << 20;

uintptr_t round_up(uintptr_t address, size_t unit) {
  return (address + unit - 1) / unit * unit;
}

// Maps the file at an address where huge pages fit. Null if the system refuses.
void* map_aligned(int fd, size_t size) {
  if (size < kHugePage || size > SIZE_MAX - kHugePage) {
    void* const pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }
  // Reserve more address space than needed, and give the rest back below.
  void* const space =
      ::mmap(nullptr, size + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(space), end = begin + size + kHugePage;
  const uintptr_t at = round_up(begin, kHugePage);
  const uintptr_t behind = round_up(at + size, get_os_page_size());
  void* const pages =
      ::mmap(reinterpret_cast<void*>(at), size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  if (pages == MAP_FAILED) {
    ::munmap(space, size + kHugePage);
    return nullptr;
  }
  if (at > begin) ::munmap(space, at - begin);
  if (end > behind) ::munmap(reinterpret_cast<void*>(behind), end - behind);
#if defined(MADV_HUGEPAGE)
  (void)::madvise(pages, size, MADV_HUGEPAGE);  // only a hint
#endif
  return pages;
}

}  // namespace

FileMapping* FileMapping::map(int fd, size_t size) {
  void* const data = size > 0 ? map_aligned(fd, size) : nullptr;
  if (data == nullptr) return nullptr;
  auto* const mapping = new (std::nothrow) FileMapping(static_cast<char*>(data), size);
  if (mapping == nullptr) ::munmap(data, size);
  return mapping;
}

FileMapping::~FileMapping() {
  ::munmap(data_, size_);
}

void FileMapping::remove_owner() {
  if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void FileMapping::forget(const void* data, size_t size) const {
  const size_t page = get_os_page_size();
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + size;
  const uintptr_t first = round_up(begin, page);
  const uintptr_t last = begin + size == reinterpret_cast<uintptr_t>(data_) + size_
                             ? round_up(end, page)
                             : end / page * page;
  give_back(first, last);
}

void FileMapping::give_back(uintptr_t begin, uintptr_t end) {
  if (begin >= end) return;
  void* const pages = reinterpret_cast<void*>(begin);
  (void)::munlock(pages, end - begin);
  (void)::madvise(pages, end - begin, MADV_DONTNEED);
}

}  // namespace executorch::extension::internal
