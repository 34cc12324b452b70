#pragma once

#include <c10/util/BFloat16.h>

namespace executorch {
namespace runtime {
namespace etensor {
using c10::BFloat16;
}  // namespace etensor
}  // namespace runtime
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::runtime::etensor::BFloat16;
}  // namespace executor
}  // namespace torch
