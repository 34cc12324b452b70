/// Arguments of convolution and pooling that have one value per spatial dim.
#pragma once

#include <executorch/kernels/portable/internal/shape.h>

#include <cinttypes>

namespace torch::executor::native::internal {

/// The number of spatial dims of the loops. Operators with fewer get leading dims of extent 1.
constexpr int kSpatial = 3;

/// Reads one value for all `n_spatial` dims, or one for each; an empty list gives `otherwise`,
/// where that is not nullptr. False, with a message naming `what`, for another length or a value
/// below `least`.
[[nodiscard]] inline bool read_spatial_list(KernelRuntimeContext& ctx, const char* op,
                                            const char* what, ArrayRef<int64_t> list, int n_spatial,
                                            int64_t least, const int64_t* otherwise,
                                            int64_t* values) {
  const size_t n = static_cast<size_t>(n_spatial);
  bool valid = list.size() == 1 || list.size() == n || (list.empty() && otherwise != nullptr);
  for (size_t d = 0; valid && d < n; ++d) {
    values[d] = list.empty() ? otherwise[d] : list[list.size() == 1 ? 0 : d];
    valid = values[d] >= least && values[d] <= INT32_MAX;
  }
  ET_REQUIRE(ctx, valid, InvalidArgument, false,
             "%s: %s is %s; 1 or %d values of at least %" PRId64 " were expected", op, what,
             ShapeText(list).c_str(), n_spatial, least);
  return true;
}

}  // namespace torch::executor::native::internal
