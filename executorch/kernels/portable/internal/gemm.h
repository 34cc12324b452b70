/// Element types that matrix products, convolutions and windows are defined for.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

#include <type_traits>

namespace torch::executor::native::internal {

/// Calls f(T{}) with the C++ type of an element type that has products: the floating ones and the
/// integers of eager's matmul (not Bool, not UInt16 to UInt64). False for any other.
template <class F>
bool with_gemm_dtype(ScalarType type, F&& f) {
  bool known = false;
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_same_v<T, bool> && !(std::is_unsigned_v<T> && sizeof(T) > 1)) {
      known = true;
      f(tag);
    }
  });
  return known;
}

}  // namespace torch::executor::native::internal
