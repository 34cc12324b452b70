#include <executorch/runtime/platform/runtime.h>

#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime {

void runtime_init() {
  pal_init();
}

}  // namespace executorch::runtime
