#pragma once

#include <cstdint>
#include <string_view>

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_layout.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// Named data, such as weights in a file beside a program. Data that are a tensor also have a
/// layout. All functions return NotFound for an unknown key.
class NamedDataMap {
 public:
  virtual ~NamedDataMap() = default;

  /// The layout borrows from the map.
  ET_NODISCARD virtual Result<const TensorLayout> get_tensor_layout(std::string_view key) const = 0;
  ET_NODISCARD virtual Result<FreeableBuffer> get_data(std::string_view key) const = 0;
  /// Copies the first `size` bytes of `key` into `buffer`; InvalidArgument when it has fewer.
  ET_NODISCARD virtual Error load_data_into(std::string_view key, void* buffer,
                                            size_t size) const = 0;
  ET_NODISCARD virtual Result<uint32_t> get_num_keys() const = 0;
  /// The key at `index`, in no particular order; borrowed from the map.
  ET_NODISCARD virtual Result<const char*> get_key(uint32_t index) const = 0;
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE
