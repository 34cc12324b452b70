#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cmath>

// out = quantize(dequantize(a) + dequantize(b)), with broadcasting.
namespace torch::executor::native {

using namespace internal;

Tensor& quantized_add_out(KernelRuntimeContext& ctx, const Tensor& a, double a_scale,
                          int64_t a_zero_point, int64_t, int64_t, const Tensor& b, double b_scale,
                          int64_t b_zero_point, int64_t, int64_t, double out_scale,
                          int64_t out_zero_point, int64_t out_quant_min, int64_t out_quant_max,
                          Tensor& out) {
  constexpr const char* kOp = "quantized_decomposed::add.out";
  ET_REQUIRE(ctx,
             is_integer(a.scalar_type()) && a.scalar_type() == b.scalar_type() &&
                 a.scalar_type() == out.scalar_type() && elementSize(a.scalar_type()) <= 2,
             InvalidArgument, out, "%s: integers of one type of 8 or 16 bits; found %s, %s and %s",
             kOp, toString(a.scalar_type()), toString(b.scalar_type()),
             toString(out.scalar_type()));
  ET_REQUIRE(ctx, out_scale != 0, InvalidArgument, out, "%s: the scale of the result is zero", kOp);
  double least = 0, most = 0;
  Shape shape;
  if (!require_range_of_dtype(ctx, kOp, static_cast<double>(out_quant_min),
                              static_cast<double>(out_quant_max), out.scalar_type(), least, most) ||
      !broadcast_with(ctx, kOp, a, shape) || !broadcast_with(ctx, kOp, b, shape) ||
      !resize_out(ctx, kOp, out, shape)) {
    return out;
  }
  AffineLoop whole;
  whole.loop = Loop(shape);
  whole.loop.add(out).add(a).add(b).order_by(0);
  whole.loop.collapse();
  const Loop& loop = whole.loop;
  const float scale_a = static_cast<float>(a_scale), scale_b = static_cast<float>(b_scale);
  const float zero_a = static_cast<float>(a_zero_point), zero_b = static_cast<float>(b_zero_point);
  const float inverse = static_cast<float>(1.0 / out_scale);
  const float zero = static_cast<float>(out_zero_point);
  const float low = static_cast<float>(least), high = static_cast<float>(most);
  whole.for_each_chunk([&](const int64_t* at, int64_t n) {
    float x[AffineLoop::kChunk], y[AffineLoop::kChunk];
    int64_t result[AffineLoop::kChunk];
    const auto read = [&](const Tensor& t, int k, float* to) {
      load(static_cast<const char*>(t.const_data_ptr()) + at[k] * t.element_size(), t.scalar_type(),
           loop.inner_stride(k), n, to);
    };
    read(a, 1, x);
    read(b, 2, y);
    for (int64_t i = 0; i < n; ++i) {
      const float sum = (x[i] - zero_a) * scale_a + (y[i] - zero_b) * scale_b;
      const float q = std::nearbyint(sum * inverse) + zero;
      result[i] = static_cast<int64_t>(q >= low ? std::min(q, high) : low);
    }
    store(result, n, static_cast<char*>(out.mutable_data_ptr()) + at[0] * out.element_size(),
          out.scalar_type(), loop.inner_stride(0));
  });
  return out;
}

namespace {

constexpr Kernel kQuantizedAddOps[] = {
    ET_OP("quantized_decomposed::add.out", quantized_add_out,
          "(Tensor a, float a_scale, int a_zero_point, int a_quant_min, int a_quant_max, Tensor "
          "b, float b_scale, int b_zero_point, int b_quant_min, int b_quant_max, float "
          "out_scale, int out_zero_point, int out_quant_min, int out_quant_max, *, Tensor(a!) "
          "out) -> Tensor(a!)"),
};

}  // namespace

Span<const Kernel> quantized_add_ops() {
  return kQuantizedAddOps;
}

}  // namespace torch::executor::native
