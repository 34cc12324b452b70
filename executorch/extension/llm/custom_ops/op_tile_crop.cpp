#include <executorch/extension/llm/custom_ops/op_tile_crop.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <cinttypes>
#include <cstring>

namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;

Tensor& tile_crop_out_impl(KernelRuntimeContext& ctx, const Tensor& input, const int64_t tile_size,
                           Tensor& out) {
  constexpr const char* kOp = "tile_crop.out";
  ET_REQUIRE(ctx,
             input.dim() == 3 && is_contiguous(input) && tile_size > 0 &&
                 input.size(1) % tile_size == 0 && input.size(2) % tile_size == 0,
             InvalidArgument, out,
             "%s: a contiguous image [channels, height, width] was expected whose height and width "
             "are multiples of the tile size %" PRId64 "; found %s",
             kOp, tile_size, ShapeText(input).c_str());
  ET_REQUIRE(ctx, out.scalar_type() == input.scalar_type(), InvalidArgument, out,
             "%s: an out of %s was expected; found %s", kOp,
             executorch::runtime::toString(input.scalar_type()),
             executorch::runtime::toString(out.scalar_type()));
  const int64_t channels = input.size(0), down = input.size(1) / tile_size,
                across = input.size(2) / tile_size;
  Shape shape;
  shape.push(Size(down) * across);
  shape.push(channels);
  shape.push(tile_size);
  shape.push(tile_size);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  ET_REQUIRE(ctx, is_contiguous(out), InvalidArgument, out, "%s: a contiguous out was expected",
             kOp);
  if (out.numel() == 0) return out;
  const size_t row = static_cast<size_t>(tile_size * input.element_size());
  const char* const from = static_cast<const char*>(input.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  for (int64_t tile = 0; tile < down * across; ++tile) {
    const int64_t top = tile / across * tile_size, left = tile % across;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < tile_size; ++y, to += row) {
        const int64_t line = c * input.size(1) + top + y;
        std::memmove(to, from + static_cast<size_t>(line * across + left) * row, row);
      }
    }
  }
  return out;
}

namespace {

constexpr Kernel kTileCropOps[] = {
    ET_OP("preprocess::tile_crop.out", tile_crop_out_impl),
};

}  // namespace

Span<const Kernel> tile_crop_ops() {
  return kTileCropOps;
}

}  // namespace torch::executor::native
