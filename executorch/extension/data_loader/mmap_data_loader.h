#pragma once

#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/extension/data_loader/file_mapping.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <utility>

namespace executorch::extension {

/// Maps a file read-only: nothing is copied, and pages that are not touched are never read. They are
/// huge ones where the system has some for files, so that weights are read faster.
class MmapDataLoader final : public runtime::DataLoader {
 public:
  enum class MlockConfig {
    NoMlock,               ///< plain mapping
    UseMlock,              ///< loads fail with NotSupported when the pages cannot be locked
    UseMlockIgnoreErrors,  ///< locking is tried
    UseMadvise,            ///< the system is told that the pages will be needed soon, in order
  };

  /// A file that cannot be opened gives AccessFailed.
  static runtime::Result<MmapDataLoader> from(const char* file_name,
                                              MlockConfig mlock_config = MlockConfig::UseMlock);

  ET_DEPRECATED static runtime::Result<MmapDataLoader> From(
      const char* file_name, MlockConfig mlock_config = MlockConfig::UseMlock) {
    return from(file_name, mlock_config);
  }

  ET_DEPRECATED static runtime::Result<MmapDataLoader> From(const char* file_name, bool use_mlock) {
    return from(file_name, use_mlock ? MlockConfig::UseMlock : MlockConfig::NoMlock);
  }

  MmapDataLoader(MmapDataLoader&& rhs) noexcept
      : file_(std::move(rhs.file_)),
        mlock_config_(rhs.mlock_config_),
        mapping_(std::exchange(rhs.mapping_, nullptr)) {}
  ~MmapDataLoader() override {
    if (mapping_ != nullptr) mapping_->remove_owner();
  }

  /// The returned buffer may outlive the loader.
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const DataLoader::SegmentInfo& segment_info) const override;
  ET_NODISCARD runtime::Result<size_t> size() const override;
  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* buffer) const override;

 private:
  MmapDataLoader(internal::FileHandle file, MlockConfig mlock_config)
      : file_(std::move(file)),
        mlock_config_(mlock_config),
        mapping_(internal::FileMapping::map(file_.fd(), file_.size())) {}

  runtime::Result<runtime::FreeableBuffer> map_range(size_t offset, size_t size) const;
  runtime::Error settle_pages(void* pages, size_t size, size_t offset) const;

  internal::FileHandle file_;
  MlockConfig mlock_config_;
  internal::FileMapping* mapping_;  // null: each range is mapped by itself
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::MmapDataLoader;
}  // namespace torch::executor::util
