#include <executorch/runtime/platform/abort.h>

#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime {

void runtime_abort() {
  pal_abort();
}

}  // namespace executorch::runtime
