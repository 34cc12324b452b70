#include <executorch/extension/data_loader/mman.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/runtime/platform/log.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace executorch::extension {

using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;

namespace {

// The mapping starts at the page that holds the first byte of `data`.
void unmap(void*, void* data, size_t size) {
  const size_t lead = reinterpret_cast<uintptr_t>(data) % get_os_page_size();
  ::munmap(static_cast<char*>(data) - lead, size + lead);
}

void leave_mapping(void* context, void* data, size_t size) {
  auto* const mapping = static_cast<internal::FileMapping*>(context);
  mapping->forget(data, size);
  mapping->remove_owner();
}

}  // namespace

Result<MmapDataLoader> MmapDataLoader::from(const char* file_name, MlockConfig mlock_config) {
  auto file = internal::FileHandle::open(file_name);
  if (!file.ok()) return file.error();
  return MmapDataLoader(std::move(file.get()), mlock_config);
}

Error MmapDataLoader::settle_pages(void* pages, size_t size, size_t offset) const {
  switch (mlock_config_) {
    case MlockConfig::NoMlock:
      break;
    case MlockConfig::UseMlock:
    case MlockConfig::UseMlockIgnoreErrors:
      ET_CHECK_OR_RETURN_ERROR(::mlock(pages, size) == 0 || mlock_config_ != MlockConfig::UseMlock,
                               NotSupported,
                               "%s: cannot lock %zu bytes at offset %zu: %s (errno %d)",
                               file_.name(), size, offset, std::strerror(errno), errno);
      break;
    case MlockConfig::UseMadvise:
      // Only hints: a system that does not know them still works.
      (void)::madvise(pages, size, MADV_SEQUENTIAL);
      (void)::madvise(pages, size, MADV_WILLNEED);
      break;
  }
  return Error::Ok;
}

Result<FreeableBuffer> MmapDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  ET_CHECK_OK_OR_RETURN_ERROR(file_.check_range(offset, size));
  if (size == 0) {
    return FreeableBuffer(nullptr, 0, /*free_fn=*/nullptr);
  }
  if (mapping_ == nullptr) return map_range(offset, size);
  mapping_->add_owner();
  FreeableBuffer buffer(mapping_->data() + offset, size, leave_mapping, mapping_);
  const size_t lead = offset % get_os_page_size();
  ET_CHECK_OK_OR_RETURN_ERROR(settle_pages(mapping_->data() + offset - lead, size + lead, offset));
  return buffer;
}

Result<FreeableBuffer> MmapDataLoader::map_range(size_t offset, size_t size) const {
  const size_t lead = offset % get_os_page_size();
  void* const pages = ::mmap(nullptr, size + lead, PROT_READ, MAP_PRIVATE, file_.fd(),
                             static_cast<off_t>(offset - lead));
  ET_CHECK_OR_RETURN_ERROR(pages != MAP_FAILED, AccessFailed,
                           "%s: cannot map %zu bytes at offset %zu: %s (errno %d)", file_.name(),
                           size, offset, std::strerror(errno), errno);
  FreeableBuffer buffer(static_cast<char*>(pages) + lead, size, unmap);
  ET_CHECK_OK_OR_RETURN_ERROR(settle_pages(pages, size + lead, offset));
  return buffer;
}

Result<size_t> MmapDataLoader::size() const {
  return file_.size_if_open();
}

Error MmapDataLoader::load_into(size_t offset, size_t size, const SegmentInfo&,
                                void* buffer) const {
  return file_.read(offset, size, buffer);
}

}  // namespace executorch::extension
