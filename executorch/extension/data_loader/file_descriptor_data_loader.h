#pragma once

#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <utility>

namespace executorch {
namespace extension {

/// Like FileDataLoader, for a file that somebody else opened. Takes the descriptor over and closes
/// it in the end.
class FileDescriptorDataLoader final : public runtime::DataLoader {
 public:
  /// `file_descriptor_uri` has the form `fd:///<decimal number>`; anything else, and an alignment
  /// that is not a power of two, is InvalidArgument.
  static runtime::Result<FileDescriptorDataLoader> fromFileDescriptorUri(
      const char* file_descriptor_uri, size_t alignment = alignof(std::max_align_t));

  FileDescriptorDataLoader(FileDescriptorDataLoader&& rhs) noexcept = default;
  ~FileDescriptorDataLoader() override = default;

  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const DataLoader::SegmentInfo& segment_info) const override;
  ET_NODISCARD runtime::Result<size_t> size() const override;
  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* buffer) const override;

 private:
  FileDescriptorDataLoader(internal::FileHandle file, size_t alignment)
      : file_(std::move(file)), alignment_(alignment) {}

  internal::FileHandle file_;
  size_t alignment_;
};

}  // namespace extension
}  // namespace executorch

namespace torch {
namespace executor {
namespace util {
using ::executorch::extension::FileDescriptorDataLoader;
}  // namespace util
}  // namespace executor
}  // namespace torch
