#pragma once

#include <optional>

namespace executorch::runtime::etensor {
using std::nullopt;
using std::nullopt_t;
using std::optional;
}  // namespace executorch::runtime::etensor

// Using-declarations, not aliases: a program may say `using namespace std` as well.
namespace torch::executor {
using std::nullopt;
using std::nullopt_t;
using std::optional;
}  // namespace torch::executor
