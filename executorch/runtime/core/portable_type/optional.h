#pragma once

#include <optional>

namespace executorch {
namespace runtime {
namespace etensor {
using std::nullopt;
using std::nullopt_t;
using std::optional;
}  // namespace etensor
}  // namespace runtime
}  // namespace executorch

// Using-declarations, not aliases: a program may say `using namespace std` as well.
namespace torch {
namespace executor {
using std::nullopt;
using std::nullopt_t;
using std::optional;
}  // namespace executor
}  // namespace torch
