#pragma once

#include <cstdint>

namespace executorch::runtime {

/// How the sizes of a tensor may change after it was made. The rank never changes.
enum class TensorShapeDynamism : uint8_t {
  /// Not at all.
  STATIC = 0,
  /// To any sizes with at most as many elements as at first.
  DYNAMIC_BOUND = 1,
  /// Unknown before the run. Treated as bounded by the memory it has.
  DYNAMIC_UNBOUND = 2,
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::TensorShapeDynamism;
}  // namespace torch::executor
