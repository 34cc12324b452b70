#pragma once

#include <c10/util/BFloat16.h>

namespace executorch::runtime::etensor {
using c10::BFloat16;
}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::BFloat16;
}  // namespace torch::executor
