#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <cstddef>
#include <cstdint>

namespace executorch::extension {

/// The fixed header at byte 8 of a .ptd file; offsets count from the start of the file.
struct FlatTensorHeader {
  /// Bytes of the file that hold the header.
  static constexpr size_t kNumHeadBytes = 64;
  static constexpr size_t kHeaderOffset = 8;
  static constexpr size_t kMagicSize = 4;
  static constexpr char kMagic[kMagicSize] = {'F', 'H', '0', '1'};
  /// magic, length, flatbuffer offset and size, segment base offset, segment data size
  static constexpr uint32_t kHeaderExpectedLength = 4 + 4 + 8 + 8 + 8 + 8;

  /// Reads the header from the first bytes of a file. InvalidArgument when `size` is below
  /// kNumHeadBytes, NotFound when the magic is missing, InvalidExternalData when the header is bad.
  static runtime::Result<FlatTensorHeader> Parse(const void* data, size_t size);

  /// Length of the spliced header; the flatbuffer ends at flatbuffer_offset + flatbuffer_size.
  uint64_t flatbuffer_offset;
  uint64_t flatbuffer_size;
  uint64_t segment_base_offset;
  uint64_t segment_data_size;
};

}  // namespace executorch::extension
