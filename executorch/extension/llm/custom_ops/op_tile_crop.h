/// Cuts an image [channels, height, width] into its square tiles, row after row:
/// [tiles, channels, tile_size, tile_size]. Both extents are multiples of `tile_size`.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>

namespace torch::executor::native {

using executorch::aten::Tensor;

Tensor& tile_crop_out_impl(KernelRuntimeContext& ctx, const Tensor& input, const int64_t tile_size,
                           Tensor& out);

}  // namespace torch::executor::native
