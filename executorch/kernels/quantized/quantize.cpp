#include <executorch/kernels/portable/internal/wide.h>
#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cmath>

// Floats to integers, and to integers and back.
namespace torch::executor::native {

using namespace internal;

namespace {

enum class Rounding { BeforeZeroPoint, AfterZeroPoint };

struct Range {
  double low, high;
  Rounding rounding = Rounding::BeforeZeroPoint;
};

constexpr int64_t kChunk = AffineLoop::kChunk;

/// y = the nearest integer, ties to even. |x| < limit: by adding a number that leaves no fraction
/// bits, which vectorizes on every processor.
template <class D>
constexpr D kRounder = sizeof(D) == 4 ? D(12582912.0) : D(6755399441055744.0);  // 1.5 * 2^23, 2^52

template <class C, class D>
[[gnu::always_inline]] inline void quantize_body(const C* x, const C* inverse, const C* zero,
                                                 int64_t n, Range range, D* y) {
  const D low = static_cast<D>(range.low), high = static_cast<D>(range.high);
  const bool before = range.rounding == Rounding::BeforeZeroPoint;
  for (int64_t i = 0; i < n; ++i) {
    const D z = static_cast<D>(zero[i]);
    D t = static_cast<D>(before ? x[i] * inverse[i] : x[i] * inverse[i] + zero[i]);
    const D least = before ? low - z : low, most = before ? high - z : high;
    t = t >= least ? t : least;  // NaN too
    t = t <= most ? t : most;
    t = (t + kRounder<D>)-kRounder<D>;
    // Where the zero point is no integer that D holds exactly, or NaN, sums leave the range.
    t = before ? t + z : t;
    t = t >= low ? t : low;
    y[i] = t <= high ? t : high;
  }
}

template <class C, class D>
void quantize_plain(const C* x, const C* inverse, const C* zero, int64_t n, Range range, D* y) {
  quantize_body(x, inverse, zero, n, range, y);
}
template <class C, class D>
ET_WIDE void quantize_wide(const C* x, const C* inverse, const C* zero, int64_t n, Range range,
                           D* y) {
  quantize_body(x, inverse, zero, n, range, y);
}

/// The integers of n elements, as values of D.
template <class C, class D>
void quantize_run(const C* x, const C* inverse, const C* zero, int64_t n, const Range& range,
                  D* y) {
  (has_wide_vectors() ? quantize_wide<C, D> : quantize_plain<C, D>)(x, inverse, zero, n, range, y);
}

/// Integers that float holds exactly, with their zero points.
bool is_narrow(ScalarType type) {
  return elementSize(type) <= 2;
}

template <class D, class Q>
void store_run(const D* values, int64_t n, Q* to) {
  using Wide = std::conditional_t<(sizeof(Q) > 2), int64_t, int32_t>;
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Q>(static_cast<Wide>(values[i]));
}

/// C: product and sum; D: rounding.
template <class C, class D, class Finish>
void for_each_quantized(const AffineLoop& loop, const AffineParameters& parameters,
                        const Tensor& input, const Range& range, const Finish& finish) {
  loop.for_each_chunk([&](const int64_t* at, int64_t n) {
    alignas(64) C x[kChunk], inverse[kChunk], zero[kChunk];
    alignas(64) D y[kChunk];
    parameters.read(at[2], loop.loop.inner_stride(2), n, inverse, zero);
    if (parameters.scales == nullptr) {  // eager inverts a number as a double
      std::fill_n(inverse, n, static_cast<C>(1.0 / parameters.scale));
    } else {
      for (int64_t i = 0; i < n; ++i) inverse[i] = C(1) / inverse[i];
    }
    load(static_cast<const char*>(input.const_data_ptr()) + at[1] * input.element_size(),
         input.scalar_type(), loop.loop.inner_stride(1), n, x);
    quantize_run(x, inverse, zero, n, range, y);
    finish(at, n, y);
  });
}

bool require_range(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                   const AffineParameters& parameters, double quant_min, double quant_max,
                   ScalarType type, Range& range) {
  if (!require_range_of_dtype(ctx, op, quant_min, quant_max, type, range.low, range.high)) {
    return false;
  }
  ET_REQUIRE(ctx, is_float(input.scalar_type()), InvalidArgument, false,
             "%s: the input is %s; a floating dtype was expected", op,
             toString(input.scalar_type()));
  ET_REQUIRE(ctx, parameters.scales != nullptr || parameters.scale != 0, InvalidArgument, false,
             "%s: the scale is zero", op);
  return true;
}

/// Out has its shape; the loop is made.
void quantize(const AffineLoop& loop, const AffineParameters& parameters, const Tensor& input,
              const Range& range, Tensor& out) {
  const auto finish = [&](const int64_t* at, int64_t n, const auto* y) {
    with_dtype(integer_of(out.scalar_type()), [&](auto tag) {
      using Q = decltype(tag);
      if constexpr (std::is_integral_v<Q>) {
        Q* to = static_cast<Q*>(out.mutable_data_ptr()) + at[0];
        const int64_t step = loop.loop.inner_stride(0);
        if (step == 1 || n == 1) {
          store_run(y, n, to);
        } else {
          for (int64_t i = 0; i < n; ++i) store_run(y + i, 1, to + i * step);
        }
      }
    });
  };
  const bool wide = parameters.wide() || input.scalar_type() == ScalarType::Double;
  if (wide) {
    for_each_quantized<double, double>(loop, parameters, input, range, finish);
  } else if (is_narrow(out.scalar_type()) && std::fabs(parameters.zero_point) < 0x1p21) {
    for_each_quantized<float, float>(loop, parameters, input, range, finish);
  } else {
    for_each_quantized<float, double>(loop, parameters, input, range, finish);
  }
}

bool require_dtype(KernelRuntimeContext& ctx, const char* op, ScalarType dtype, const Tensor& out) {
  ET_REQUIRE(ctx, out.scalar_type() == dtype, InvalidArgument, false,
             "%s: dtype is %s, but out is %s", op, toString(dtype), toString(out.scalar_type()));
  return true;
}

/// Parameters lie beside the input as `arrange(loop)` makes the loop; false if they do not fit.
template <class Arrange>
Tensor& quantize_as(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                    const AffineParameters& parameters, Range range, ScalarType dtype, Tensor& out,
                    const Arrange& arrange) {
  AffineLoop loop;
  if (require_dtype(ctx, op, dtype, out) &&
      require_range(ctx, op, input, parameters, range.low, range.high, dtype, range) &&
      arrange(loop)) {
    quantize(loop, parameters, input, range, out);
  }
  return out;
}

Tensor& quantize_per_tensor(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                            double scale, double zero_point, double quant_min, double quant_max,
                            ScalarType dtype, Tensor& out) {
  const AffineParameters parameters{.scale = scale, .zero_point = zero_point};
  return quantize_as(ctx, op, input, parameters, {quant_min, quant_max}, dtype, out,
                     [&](AffineLoop& loop) { return loop.per_tensor(ctx, op, input, out); });
}

}  // namespace

Tensor& quantize_per_tensor_out(KernelRuntimeContext& ctx, const Tensor& input, double scale,
                                int64_t zero_point, int64_t quant_min, int64_t quant_max,
                                ScalarType dtype, Tensor& out) {
  return quantize_per_tensor(ctx, "quantize_per_tensor.out", input, scale,
                             static_cast<double>(zero_point), static_cast<double>(quant_min),
                             static_cast<double>(quant_max), dtype, out);
}

Tensor& quantize_per_tensor_tensor_args_out(KernelRuntimeContext& ctx, const Tensor& input,
                                            const Tensor& scale, const Tensor& zero_point,
                                            int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                            Tensor& out) {
  constexpr const char* kOp = "quantize_per_tensor.Tensor_out";
  double s, z;
  if (!read_number(ctx, kOp, "scale", scale, s) ||
      !read_number(ctx, kOp, "zero_point", zero_point, z)) {
    return out;
  }
  return quantize_per_tensor(ctx, kOp, input, s, z, static_cast<double>(quant_min),
                             static_cast<double>(quant_max), dtype, out);
}

Tensor& quantize_per_tensor_tensor2_out(KernelRuntimeContext& ctx, const Tensor& input,
                                        const Tensor& scale, const Tensor& zero_point,
                                        const Tensor& quant_min, const Tensor& quant_max,
                                        ScalarType dtype, Tensor& out) {
  constexpr const char* kOp = "quantize_per_tensor.tensor2_out";
  double s, z, low, high;
  if (!read_number(ctx, kOp, "scale", scale, s) ||
      !read_number(ctx, kOp, "zero_point", zero_point, z) ||
      !read_number(ctx, kOp, "quant_min", quant_min, low) ||
      !read_number(ctx, kOp, "quant_max", quant_max, high)) {
    return out;
  }
  return quantize_per_tensor(ctx, kOp, input, s, z, low, high, dtype, out);
}

Tensor& quantize_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                 const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                 int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                 Tensor& out) {
  constexpr const char* kOp = "quantize_per_channel.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = &zero_points};
  const Range range = {static_cast<double>(quant_min), static_cast<double>(quant_max)};
  return quantize_as(ctx, kOp, input, parameters, range, dtype, out, [&](AffineLoop& loop) {
    return loop.per_channel(ctx, kOp, input, axis, parameters, out);
  });
}

Tensor& quantize_per_token_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t quant_min, int64_t quant_max,
                               ScalarType dtype, Tensor& out) {
  constexpr const char* kOp = "quantize_per_token.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = &zero_points};
  const Range range = {static_cast<double>(quant_min), static_cast<double>(quant_max),
                       Rounding::AfterZeroPoint};
  return quantize_as(ctx, kOp, input, parameters, range, dtype, out, [&](AffineLoop& loop) {
    return loop.per_token(ctx, kOp, input, parameters, out);
  });
}

Tensor& quantize_per_channel_group_out(KernelRuntimeContext& ctx, const Tensor& input,
                                       const Tensor& scales, const Tensor& zero_points,
                                       int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                       int64_t group_size, Tensor& out) {
  constexpr const char* kOp = "quantize_per_channel_group.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = &zero_points};
  const Range range = {static_cast<double>(quant_min), static_cast<double>(quant_max),
                       Rounding::AfterZeroPoint};
  return quantize_as(ctx, kOp, input, parameters, range, dtype, out, [&](AffineLoop& loop) {
    return loop.per_group(ctx, kOp, input, group_size, parameters, out);
  });
}

Tensor& fake_quant_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                   int64_t quant_min, int64_t quant_max, Tensor& out) {
  constexpr const char* kOp = "fake_quant_per_channel.out";
  const AffineParameters parameters{.scales = &scales, .zero_points = &zero_points};
  AffineLoop loop;
  Range range;
  ET_REQUIRE(ctx, is_float(out.scalar_type()), InvalidArgument, out,
             "%s: out is %s; a floating dtype was expected", kOp, toString(out.scalar_type()));
  if (!require_range(ctx, kOp, input, parameters, static_cast<double>(quant_min),
                     static_cast<double>(quant_max), ScalarType::Int, range) ||
      !loop.per_channel(ctx, kOp, input, axis, parameters, out)) {
    return out;
  }
  const auto run = [&](auto tag) {
    using C = decltype(tag);
    for_each_quantized<C, double>(
        loop, parameters, input, range, [&](const int64_t* at, int64_t n, double* y) {
          C scale[kChunk], zero[kChunk];
          parameters.read(at[2], loop.loop.inner_stride(2), n, scale, zero);
          for (int64_t i = 0; i < n; ++i) {
            y[i] = static_cast<C>(y[i] - static_cast<double>(zero[i])) * scale[i];
          }
          store(y, n, static_cast<char*>(out.mutable_data_ptr()) + at[0] * out.element_size(),
                out.scalar_type(), loop.loop.inner_stride(0));
        });
  };
  parameters.wide() || input.scalar_type() == ScalarType::Double ? run(double{}) : run(float{});
  return out;
}

namespace {

constexpr Kernel kQuantizeOps[] = {
    ET_OP("quantized_decomposed::fake_quant_per_channel.out", fake_quant_per_channel_out,
          "(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int "
          "quant_max, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_channel.out", quantize_per_channel_out,
          "(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int "
          "quant_max, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_channel_group.out", quantize_per_channel_group_out,
          "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
          "ScalarType dtype, int group_size, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_tensor.out", quantize_per_tensor_out,
          "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType "
          "dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_tensor.Tensor_out",
          quantize_per_tensor_tensor_args_out,
          "(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
          "ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_tensor.tensor2_out", quantize_per_tensor_tensor2_out,
          "(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
          "ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::quantize_per_token.out", quantize_per_token_out,
          "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
          "ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
};

}  // namespace

Span<const Kernel> quantize_ops() {
  return kQuantizeOps;
}

}  // namespace torch::executor::native
