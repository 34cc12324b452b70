#pragma once

#include <cstddef>

#include <executorch/runtime/core/result.h>

namespace executorch::etdump {

/// Where the bytes of recorded tensors go: beside the ETDump, which refers to them by offset.
class DataSinkBase {
 public:
  virtual ~DataSinkBase() = default;

  /// Appends `length` bytes, aligned as the sink promises. The offset from the sink's start at
  /// which they begin; for no bytes, what get_used_bytes() says. A null `ptr` stands for zeros.
  virtual runtime::Result<size_t> write(const void* ptr, size_t length) = 0;

  /// Bytes so far, with padding.
  virtual size_t get_used_bytes() const = 0;
};

}  // namespace executorch::etdump
