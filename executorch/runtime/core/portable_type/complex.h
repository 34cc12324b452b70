#pragma once

#include <c10/util/complex.h>

namespace executorch {
namespace runtime {
namespace etensor {
using c10::complex;
}  // namespace etensor
}  // namespace runtime
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::runtime::etensor::complex;
}  // namespace executor
}  // namespace torch
