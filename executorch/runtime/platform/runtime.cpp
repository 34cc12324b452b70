#include <executorch/runtime/platform/runtime.h>

#include <executorch/runtime/platform/platform.h>

namespace executorch {
namespace runtime {

void runtime_init() {
  pal_init();
}

}  // namespace runtime
}  // namespace executorch
