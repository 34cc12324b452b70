#include <executorch/extension/pybindings/strided_copy.h>

#include <cstring>

namespace executorch::extension::pybindings {

void strided_copy(std::byte* dst, const std::byte* src, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides, const std::vector<uint8_t>& order,
                  size_t item_bytes) {
  const size_t rank = sizes.size();
  for (int64_t size : sizes) {
    if (size == 0) return;
  }
  const int64_t inner = rank == 0 ? 1 : sizes[order[rank - 1]];
  const ptrdiff_t inner_step =
      rank == 0 ? 0 : strides[order[rank - 1]] * static_cast<ptrdiff_t>(item_bytes);
  std::vector<int64_t> index(rank, 0);
  while (true) {
    if (inner_step == static_cast<ptrdiff_t>(item_bytes)) {
      std::memcpy(dst, src, inner * item_bytes);
    } else {
      for (int64_t i = 0; i < inner; ++i) {
        std::memcpy(dst + i * item_bytes, src + i * inner_step, item_bytes);
      }
    }
    dst += inner * item_bytes;
    // Advance the outer dimensions like an odometer.
    size_t d = rank;
    while (true) {
      if (d <= 1) return;
      const size_t dim = order[--d - 1];
      const ptrdiff_t step = strides[dim] * static_cast<ptrdiff_t>(item_bytes);
      src += step;
      if (++index[dim] < sizes[dim]) break;
      src -= step * sizes[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace executorch::extension::pybindings
