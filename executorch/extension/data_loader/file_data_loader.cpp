#include <executorch/extension/data_loader/file_data_loader.h>

namespace executorch {
namespace extension {

using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;

Result<FileDataLoader> FileDataLoader::from(const char* file_name, size_t alignment) {
  ET_CHECK_OK_OR_RETURN_ERROR(
      internal::check_alignment(file_name == nullptr ? "file loader" : file_name, alignment));
  auto file = internal::FileHandle::open(file_name);
  if (!file.ok()) {
    return file.error();
  }
  return FileDataLoader(std::move(file.get()), alignment);
}

Result<FreeableBuffer> FileDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  return file_.load(offset, size, alignment_);
}

Result<size_t> FileDataLoader::size() const {
  return file_.size_if_open();
}

Error FileDataLoader::load_into(size_t offset, size_t size, const SegmentInfo&,
                                void* buffer) const {
  return file_.read(offset, size, buffer);
}

}  // namespace extension
}  // namespace executorch
