#pragma once

#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <utility>

namespace executorch::extension {

/// Reads each range of a file into a heap buffer of its own. Keeps the file open.
class FileDataLoader final : public internal::FileReader {
 public:
  /// `alignment` of the buffers: a power of two, else InvalidArgument.
  /// A file that cannot be opened gives AccessFailed.
  static runtime::Result<FileDataLoader> from(const char* file_name,
                                              size_t alignment = alignof(std::max_align_t));

  ET_DEPRECATED static runtime::Result<FileDataLoader> From(
      const char* file_name, size_t alignment = alignof(std::max_align_t)) {
    return from(file_name, alignment);
  }

  FileDataLoader(FileDataLoader&& rhs) noexcept = default;
  ~FileDataLoader() override = default;

 private:
  FileDataLoader(internal::FileHandle file, size_t alignment)
      : FileReader(std::move(file), alignment) {}
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::FileDataLoader;
}  // namespace torch::executor::util
