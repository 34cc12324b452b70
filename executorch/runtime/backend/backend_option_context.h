#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// Passed to a backend's set_option() and get_option(); carries nothing so far.
class BackendOptionContext final {
 public:
  explicit BackendOptionContext() {}
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::BackendOptionContext;
}  // namespace torch::executor
