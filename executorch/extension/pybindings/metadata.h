#pragma once

#include <nanobind/nanobind.h>

namespace executorch::extension::pybindings {

/// Adds the classes MethodMeta and TensorInfo.
void bind_metadata(nanobind::module_& m);

}  // namespace executorch::extension::pybindings
