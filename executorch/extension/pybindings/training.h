#pragma once

#include <nanobind/nanobind.h>

namespace executorch::extension::pybindings {

/// What executorch.extension.training is made of: the optimizer, and a writer of .ptd files.
void bind_training(nanobind::module_& m);

}  // namespace executorch::extension::pybindings
