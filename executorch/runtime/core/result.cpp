#include <executorch/runtime/core/result.h>

namespace executorch::runtime::internal {

void abort_on_error_access(Error error) {
  ET_CHECK_MSG(false, "Result holds %s, not a value; test ok() first", to_string(error));
  ET_UNREACHABLE();
}

}  // namespace executorch::runtime::internal
