#pragma once

#include <cstdint>

namespace executorch::runtime::etensor {

/// The order of dimensions in memory that an operator is asked for.
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
};

enum class Layout : int8_t {
  Strided = 0,
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Layout;
using ::executorch::runtime::etensor::MemoryFormat;
}  // namespace torch::executor
