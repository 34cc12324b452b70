/// The functions of the operating system that memory-mapped loaders use, under the names that
/// upstream gives them in the global namespace.
#pragma once

#include <executorch/runtime/platform/compiler.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

/// Bytes of a page of memory.
inline size_t get_os_page_size() {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

/// Writes the size of the open file `fd` to `out_size`; -1, with errno, where it cannot be told.
inline int get_file_stat(int fd, size_t* out_size) {
  struct stat status;
  const int result = ::fstat(fd, &status);
  if (result >= 0) *out_size = static_cast<size_t>(status.st_size);
  return result;
}

/// `offset` in the type that mmap() takes.
inline off_t get_mmap_offset(size_t offset) {
  return static_cast<off_t>(offset);
}

/// Hints that the pages will be read soon, in order.
inline void madvise_pages_willneed_sequential(void* addr, size_t len) {
  (void)::madvise(addr, len, MADV_WILLNEED);
  (void)::madvise(addr, len, MADV_SEQUENTIAL);
}

/// Schedules the read-ahead of a whole file on Apple's systems; does nothing on others.
inline void fcntl_rdadvise_apple(int fd, size_t file_size) {
#if defined(__APPLE__)
  struct radvisory advice = {0, static_cast<int>(file_size)};
  (void)::fcntl(fd, F_RDADVISE, &advice);
#else
  (void)fd;
  (void)file_size;
#endif
}
