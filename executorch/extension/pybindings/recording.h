#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace executorch::extension::pybindings {

/// The ETDump of a program that was loaded with enable_etdump: what all of its methods do.
class Recording {
 public:
  /// With a debug buffer values are recorded, too, and methods run as they stand in the file.
  explicit Recording(size_t debug_buffer_bytes);

  runtime::EventTracer* tracer() { return &gen_; }
  /// Held by whoever runs a method: the tracer takes one event after the other.
  std::mutex& mutex() { return mutex_; }

  /// Writes what was recorded since the last time, and the bytes of values to `debug_buffer_path`.
  /// Throws RuntimeError where there is nothing, OSError where a file cannot be written, which may
  /// be tried again with another; warns (RuntimeWarning) where something did not fit.
  void write(const std::string& path, const std::optional<std::string>& debug_buffer_path);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  void set_debug_buffer();
  /// What was lost while it was recorded.
  runtime::Error write_files(const std::string& path,
                             const std::optional<std::string>& debug_buffer_path);

  etdump::ETDumpGen gen_;
  const std::unique_ptr<uint8_t[]> debug_buffer_;
  const size_t debug_buffer_bytes_;
  /// The last dump, as long as it is not written, and what was lost of it.
  std::unique_ptr<void, Free> dump_;
  size_t dump_bytes_ = 0;
  runtime::Error lost_ = runtime::Error::Ok;
  std::mutex mutex_;
};

}  // namespace executorch::extension::pybindings
