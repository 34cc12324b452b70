#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace executorch::extension::pybindings {

/// Copies a strided array into densely packed memory.
///   dst      room for the product of `sizes` elements
///   src      element [0, ..., 0]; `strides` in elements, any sign
///   order    dimensions from outermost to innermost in dst, a permutation of 0 .. rank-1
void strided_copy(std::byte* dst, const std::byte* src, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides, const std::vector<uint8_t>& order,
                  size_t item_bytes);

}  // namespace executorch::extension::pybindings
