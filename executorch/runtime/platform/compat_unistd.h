/// POSIX file calls under their own names on every system: open, close, read, lseek, fstat, pread.
#pragma once

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#include <windows.h>

#include <executorch/runtime/platform/compiler.h>

#define O_RDONLY _O_RDONLY
#define open _open
#define close _close
#define read _read
#define lseek _lseeki64
#define stat _stat64
#define fstat _fstat64

/// Reads without moving the file's position.
inline ssize_t pread(int fd, void* buffer, size_t count, uint64_t offset) {
  OVERLAPPED at = {};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD done = 0;
  const HANDLE file = reinterpret_cast<HANDLE>(_get_osfhandle(fd));
  if (!ReadFile(file, buffer, static_cast<DWORD>(count), &done, &at)) {
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
  }
  return static_cast<ssize_t>(done);
}
#endif
