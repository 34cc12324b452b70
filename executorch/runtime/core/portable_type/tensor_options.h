#pragma once

#include <cstdint>

namespace executorch {
namespace runtime {
namespace etensor {

/// The order of dimensions in memory that an operator is asked for.
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
};

enum class Layout : int8_t {
  Strided = 0,
};

}  // namespace etensor
}  // namespace runtime
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::runtime::etensor::Layout;
using ::executorch::runtime::etensor::MemoryFormat;
}  // namespace executor
}  // namespace torch
