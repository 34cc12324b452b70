#pragma once

#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <utility>

namespace executorch::extension {

/// Like FileDataLoader, for a file that somebody else opened. Takes the descriptor over and closes
/// it in the end.
class FileDescriptorDataLoader final : public internal::FileReader {
 public:
  /// `file_descriptor_uri` has the form `fd:///<decimal number>`; anything else, and an alignment
  /// that is not a power of two, is InvalidArgument.
  static runtime::Result<FileDescriptorDataLoader> fromFileDescriptorUri(
      const char* file_descriptor_uri, size_t alignment = alignof(std::max_align_t));

  FileDescriptorDataLoader(FileDescriptorDataLoader&& rhs) noexcept = default;
  ~FileDescriptorDataLoader() override = default;

 private:
  FileDescriptorDataLoader(internal::FileHandle file, size_t alignment)
      : FileReader(std::move(file), alignment) {}
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::FileDescriptorDataLoader;
}  // namespace torch::executor::util
