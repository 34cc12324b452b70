#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace executorch {
namespace ET_RUNTIME_NAMESPACE {

/// Passed to a backend's set_option() and get_option(); carries nothing so far.
class BackendOptionContext final {
 public:
  explicit BackendOptionContext() {}
};

}  // namespace ET_RUNTIME_NAMESPACE
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::ET_RUNTIME_NAMESPACE::BackendOptionContext;
}  // namespace executor
}  // namespace torch
