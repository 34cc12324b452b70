#pragma once

#include <cstddef>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>

namespace executorch::runtime {

/// Reads spans of bytes of a program or data file. May be called from several threads at once.
class DataLoader {
 public:
  /// What a span is read for; a loader may choose how to read it by this.
  struct SegmentInfo {
    enum class Type {
      /// The program's own structure.
      Program,
      /// Constant tensors.
      Constant,
      /// A delegate's blob.
      Backend,
      /// Initial values of mutable buffers.
      Mutable,
      /// Data of another file.
      External,
    };

    Type segment_type;
    size_t segment_index;
    /// Names a Backend segment's delegate; borrowed.
    const char* descriptor;

    SegmentInfo() = default;
    explicit SegmentInfo(Type segment_type_, size_t segment_index_ = 0,
                         const char* descriptor_ = nullptr)
        : segment_type(segment_type_), segment_index(segment_index_), descriptor(descriptor_) {}
  };

  virtual ~DataLoader() = default;

  /// Loads `size` bytes from `offset` on. They stay valid until the buffer is freed, even if the
  /// loader is destroyed earlier.
  ET_NODISCARD virtual Result<FreeableBuffer> load(size_t offset, size_t size,
                                                   const SegmentInfo& segment_info) const = 0;

  /// Loads `size` bytes from `offset` on into `buffer`, which has room for them. Returns
  /// NotImplemented unless overridden.
  ET_NODISCARD virtual Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                       void* buffer) const {
    (void)offset;
    (void)size;
    (void)segment_info;
    (void)buffer;
    ET_LOG(Error, "load_into is not implemented for this data loader");
    return Error::NotImplemented;
  }

  /// Bytes of the whole source.
  ET_NODISCARD virtual Result<size_t> size() const = 0;
};

/// Calls loader.load(), and returns AccessFailed if the loader, which may be a user's, returns
/// fewer bytes than it was asked for, or a null address.
inline Result<FreeableBuffer> load_exactly(const DataLoader& loader, size_t offset, size_t size,
                                           const DataLoader::SegmentInfo& info) {
  Result<FreeableBuffer> loaded = loader.load(offset, size, info);
  ET_CHECK_OR_RETURN_ERROR(!loaded.ok() || loaded->size() >= size, AccessFailed,
                           "the data loader gave %zu bytes at offset %zu, expected %zu",
                           loaded->size(), offset, size);
  ET_CHECK_OR_RETURN_ERROR(!loaded.ok() || size == 0 || loaded->data() != nullptr, AccessFailed,
                           "the data loader gave a null address for %zu bytes at offset %zu", size,
                           offset);
  return loaded;
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::DataLoader;
}  // namespace torch::executor
