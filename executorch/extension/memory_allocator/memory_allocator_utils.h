#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <cstddef>
#include <cstdint>

namespace executorch::extension::utils {

/// Bytes to ask malloc for so that `size` bytes at a multiple of `alignment` fit.
/// InvalidArgument when `alignment` is not a power of two or the sum overflows.
inline runtime::Result<size_t> get_aligned_size(size_t size, size_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) return runtime::Error::InvalidArgument;
  const size_t slack = alignment > alignof(std::max_align_t) ? alignment - 1 : 0;
  if (size > SIZE_MAX - slack) return runtime::Error::InvalidArgument;
  return size + slack;
}

}  // namespace executorch::extension::utils
