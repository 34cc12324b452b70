#include <executorch/kernels/portable/internal/wide.h>
#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

// Integers to floats.
namespace torch::executor::native {

using namespace internal;

namespace {

constexpr int64_t kChunk = AffineLoop::kChunk;

template <class C>
[[gnu::always_inline]] inline void scale_body(C* x, const C* scale, const C* zero, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - zero[i]) * scale[i];
}
template <class C>
void scale_plain(C* x, const C* scale, const C* zero, int64_t n) {
  scale_body(x, scale, zero, n);
}
template <class C>
ET_WIDE void scale_wide(C* x, const C* scale, const C* zero, int64_t n) {
  scale_body(x, scale, zero, n);
}

bool require_types(KernelRuntimeContext& ctx, const char* op, const Tensor& input, ScalarType dtype,
                   std::optional<ScalarType> out_dtype, const Tensor& out) {
  ET_REQUIRE(ctx, input.scalar_type() == dtype && is_integer(integer_of(dtype)), InvalidArgument,
             false, "%s: dtype is %s and the input is %s; one integer type was expected", op,
             toString(dtype), toString(input.scalar_type()));
  const ScalarType result = out_dtype.value_or(out.scalar_type());
  ET_REQUIRE(ctx, is_float(result) && result == out.scalar_type(), InvalidArgument, false,
             "%s: a result of %s in an out of %s; one floating dtype was expected", op,
             toString(result), toString(out.scalar_type()));
  return true;
}

/// Out has its shape; the loop is made.
void dequantize(const AffineLoop& loop, const AffineParameters& parameters, const Tensor& input,
                Tensor& out) {
  const bool wide = parameters.wide() || out.scalar_type() == ScalarType::Double;
  const ScalarType type = integer_of(input.scalar_type());
  const auto dequantize_in = [&](auto tag) {
    using C = decltype(tag);
    const auto run = has_wide_vectors() ? scale_wide<C> : scale_plain<C>;
    const bool in_place =  // results are computed where they belong
        loop.loop.inner_stride(0) == 1 && out.scalar_type() == scalar_type_of(kComputeOf<C>);
    loop.for_each_chunk([&](const int64_t* at, int64_t n) {
      alignas(64) C chunk[kChunk], scale[kChunk], zero[kChunk];
      C* x = in_place ? static_cast<C*>(out.mutable_data_ptr()) + at[0] : chunk;
      parameters.read(at[2], loop.loop.inner_stride(2), n, scale, zero);
      load(static_cast<const char*>(input.const_data_ptr()) + at[1] * input.element_size(), type,
           loop.loop.inner_stride(1), n, x);
      run(x, scale, zero, n);
      if (in_place) return;
      store(x, n, static_cast<char*>(out.mutable_data_ptr()) + at[0] * out.element_size(),
            out.scalar_type(), loop.loop.inner_stride(0));
    });
  };
  wide ? dequantize_in(double{}) : dequantize_in(float{});
}

Tensor& dequantize_per_tensor(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                              double scale, double zero_point, ScalarType dtype,
                              std::optional<ScalarType> out_dtype, Tensor& out) {
  AffineLoop loop;
  if (require_types(ctx, op, input, dtype, out_dtype, out) &&
      loop.per_tensor(ctx, op, input, out)) {
    dequantize(loop, {.scale = scale, .zero_point = zero_point}, input, out);
  }
  return out;
}

}  // namespace

Tensor& dequantize_per_tensor_out(KernelRuntimeContext& ctx, const Tensor& input, double scale,
                                  int64_t zero_point, int64_t, int64_t, ScalarType dtype,
                                  std::optional<ScalarType> out_dtype, Tensor& out) {
  return dequantize_per_tensor(ctx, "dequantize_per_tensor.out", input, scale,
                               static_cast<double>(zero_point), dtype, out_dtype, out);
}

Tensor& dequantize_per_tensor_tensor_args_out(KernelRuntimeContext& ctx, const Tensor& input,
                                              const Tensor& scale, const Tensor& zero_point,
                                              int64_t, int64_t, ScalarType dtype,
                                              std::optional<ScalarType> out_dtype, Tensor& out) {
  constexpr const char* kOp = "dequantize_per_tensor.Tensor_out";
  double s, z;
  if (!read_number(ctx, kOp, "scale", scale, s) ||
      !read_number(ctx, kOp, "zero_point", zero_point, z)) {
    return out;
  }
  return dequantize_per_tensor(ctx, kOp, input, s, z, dtype, out_dtype, out);
}

Tensor& dequantize_per_tensor_tensor2_out(KernelRuntimeContext& ctx, const Tensor& input,
                                          const Tensor& scale, const Tensor& zero_point,
                                          const Tensor&, const Tensor&, ScalarType dtype,
                                          std::optional<ScalarType> out_dtype, Tensor& out) {
  return dequantize_per_tensor_tensor_args_out(ctx, input, scale, zero_point, 0, 0, dtype,
                                               out_dtype, out);
}

Tensor& dequantize_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& scales, const std::optional<Tensor>& zero_points,
                                   int64_t axis, int64_t quant_min, int64_t quant_max,
                                   ScalarType dtype, std::optional<ScalarType> out_dtype,
                                   Tensor& out) {
  constexpr const char* kOp = "dequantize_per_channel.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = get(zero_points)};
  AffineLoop loop;
  double low, high;
  if (require_types(ctx, kOp, input, dtype, out_dtype, out) &&
      require_range_of_dtype(ctx, kOp, static_cast<double>(quant_min),
                             static_cast<double>(quant_max), dtype, low, high) &&
      loop.per_channel(ctx, kOp, input, axis, parameters, out)) {
    dequantize(loop, parameters, input, out);
  }
  return out;
}

Tensor& dequantize_per_token_out(KernelRuntimeContext& ctx, const Tensor& input,
                                 const Tensor& scales, const Tensor& zero_points, int64_t, int64_t,
                                 ScalarType dtype, ScalarType output_dtype, Tensor& out) {
  constexpr const char* kOp = "dequantize_per_token.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = &zero_points};
  AffineLoop loop;
  if (require_types(ctx, kOp, input, dtype, output_dtype, out) &&
      loop.per_token(ctx, kOp, input, parameters, out)) {
    dequantize(loop, parameters, input, out);
  }
  return out;
}

Tensor& dequantize_per_channel_group_out(KernelRuntimeContext& ctx, const Tensor& input,
                                         const Tensor& scales,
                                         const std::optional<Tensor>& zero_points, int64_t, int64_t,
                                         ScalarType dtype, int64_t group_size,
                                         ScalarType output_dtype, Tensor& out) {
  constexpr const char* kOp = "dequantize_per_channel_group.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = get(zero_points)};
  AffineLoop loop;
  if (require_types(ctx, kOp, input, dtype, output_dtype, out) &&
      loop.per_group(ctx, kOp, input, group_size, parameters, out)) {
    dequantize(loop, parameters, input, out);
  }
  return out;
}

Tensor& convert_element_type_no_fuse_out(KernelRuntimeContext& ctx, const Tensor& input,
                                         ScalarType dtype, Tensor& out) {
  constexpr const char* kOp = "convert_element_type.no_fuse_out";
  ET_REQUIRE(ctx, out.scalar_type() == dtype && convertible(input.scalar_type(), dtype),
             InvalidArgument, out, "%s: cannot convert %s to %s into an out of %s", kOp,
             toString(input.scalar_type()), toString(dtype), toString(out.scalar_type()));
  if (!resize_out(ctx, kOp, out, input.sizes())) return out;
  copy_layout(input.const_data_ptr(), input.scalar_type(), Layout(input), out.mutable_data_ptr(),
              dtype, Layout(out));
  return out;
}

namespace {

constexpr Kernel kDequantizeOps[] = {
    ET_OP("quantized_decomposed::convert_element_type.no_fuse_out",
          convert_element_type_no_fuse_out,
          "(Tensor input, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_channel.out", dequantize_per_channel_out,
          "(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int "
          "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> "
          "Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_channel_group.out",
          dequantize_per_channel_group_out,
          "(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, "
          "ScalarType dtype, int group_size, ScalarType output_dtype, *, Tensor(a!) out) -> "
          "Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_tensor.out", dequantize_per_tensor_out,
          "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType "
          "dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_tensor.Tensor_out",
          dequantize_per_tensor_tensor_args_out,
          "(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
          "ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_tensor.tensor2_out",
          dequantize_per_tensor_tensor2_out,
          "(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
          "ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::dequantize_per_token.out", dequantize_per_token_out,
          "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
          "ScalarType dtype, ScalarType output_dtype, *, Tensor(a!) out) -> Tensor(a!)"),
};

}  // namespace

Span<const Kernel> dequantize_ops() {
  return kDequantizeOps;
}

}  // namespace torch::executor::native
