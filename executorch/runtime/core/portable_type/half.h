#pragma once

#include <c10/util/Half.h>

namespace executorch::runtime::etensor {
using c10::Half;
}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Half;
}  // namespace torch::executor
