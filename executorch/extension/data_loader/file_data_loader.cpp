#include <executorch/extension/data_loader/file_data_loader.h>

namespace executorch::extension {

using runtime::Result;

Result<FileDataLoader> FileDataLoader::from(const char* file_name, size_t alignment) {
  ET_CHECK_OK_OR_RETURN_ERROR(
      internal::check_alignment(file_name == nullptr ? "file loader" : file_name, alignment));
  auto file = internal::FileHandle::open(file_name);
  if (!file.ok()) return file.error();
  return FileDataLoader(std::move(file.get()), alignment);
}

}  // namespace executorch::extension
