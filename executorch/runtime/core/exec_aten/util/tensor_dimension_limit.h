#pragma once

#include <cstddef>

namespace executorch::runtime {

/// The most dimensions that a tensor may have: buffers for shapes are arrays of this size.
constexpr size_t kTensorDimensionLimit = 16;

}  // namespace executorch::runtime
