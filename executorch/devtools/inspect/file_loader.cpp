#include <executorch/devtools/inspect/file_loader.h>

#include <cstddef>
#include <new>

namespace executorch::devtools {

using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;

Result<size_t> FileLoader::size() const {
  file_.clear();
  const auto end = file_.seekg(0, std::ios::end).tellg();
  if (end < 0) {
    return Error::AccessFailed;
  }
  return static_cast<size_t>(end);
}

Result<FreeableBuffer> FileLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  constexpr std::align_val_t kAlignment{alignof(std::max_align_t)};
  void* const bytes = ::operator new(size + 1, kAlignment);
  FreeableBuffer buffer(bytes, size,
                        [](void*, void* data, size_t) { ::operator delete(data, kAlignment); });
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
  if (static_cast<size_t>(file_.gcount()) != size) {
    return Error::AccessFailed;
  }
  return buffer;
}

}  // namespace executorch::devtools
