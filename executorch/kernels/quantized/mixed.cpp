#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Products of floats with 8-bit weights, which are dequantized panel by panel inside the product.
namespace torch::executor::native {

using namespace internal;
namespace cpu = executorch::cpu;

namespace {

/// B[p, j] = (weight - zero_point) * scale, where row r, column c of the weight belongs to the
/// parameter r * groups + c / group_size; the last group of a row may be shorter.
struct Weight {
  const Tensor& weight;
  const Tensor& scales;
  const Tensor* zero_points;
  bool transposed;  // B[p, j] is weight[j, p]
  int64_t groups = 1, group_size = 1;

  int64_t columns() const { return weight.size(1); }

  /// f(i, values, n) for pieces of row `row`: of its columns [column, column + count), those from
  /// column + i on.
  template <class F>
  void for_each_piece(int64_t row, int64_t column, int64_t count, const F& f) const {
    constexpr int64_t kPiece = 256;
    float values[kPiece];
    const char* const data = static_cast<const char*>(weight.const_data_ptr());
    for (int64_t i = 0, n; i < count; i += n) {
      const int64_t at = column + i, in_group = at % group_size;
      n = std::min({count - i, group_size - in_group, kPiece});
      const int64_t parameter = row * groups + at / group_size;
      const float zero = zero_points == nullptr ? 0.0f : load_at<float>(*zero_points, parameter);
      const float scale = load_at<float>(scales, parameter);
      load(data + (row * columns() + at) * weight.element_size(), weight.scalar_type(), 1, n,
           values);
      for (int64_t j = 0; j < n; ++j) values[j] = (values[j] - zero) * scale;
      f(i, values, n);
    }
  }

  static void produce(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                      float* to, int64_t ld) {
    const Weight& w = *static_cast<const Weight*>(matrix);
    for (int64_t j = 0; w.transposed && j < nj; ++j) {
      w.for_each_piece(j0 + j, p0, np, [&](int64_t p, const float* values, int64_t n) {
        for (int64_t i = 0; i < n; ++i) to[(p + i) * ld + j] = values[i];
      });
    }
    for (int64_t p = 0; p < np; ++p) {
      float* const row = to + p * ld;
      if (!w.transposed) {
        w.for_each_piece(p0 + p, j0, nj, [&](int64_t j, const float* values, int64_t n) {
          std::copy_n(values, n, row + j);
        });
      }
      std::fill(row + nj, row + ld, 0.0f);
    }
  }
};

template <class T>
bool multiply(const Tensor& input, const Weight& weight, int64_t m, int64_t n, int64_t k,
              Tensor& out, cpu::Scratch& scratch) {
  cpu::Gemm<T> gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.a = {static_cast<const T*>(input.const_data_ptr()), k, 1};
  gemm.b_source = {Weight::produce, &weight, false};
  gemm.c = {static_cast<T*>(out.mutable_data_ptr()), n, 1};
  return gemm.run(scratch);
}

Tensor& mixed_product(KernelRuntimeContext& ctx, const char* op, const Tensor& input, Weight weight,
                      Tensor& out) {
  const Tensor& w = weight.weight;
  ET_REQUIRE(ctx, w.dim() == 2 && input.dim() >= 1 && is_contiguous(w) && is_contiguous(input),
             InvalidArgument, out,
             "%s: a contiguous input and matrix were expected; found %s and %s", op,
             ShapeText(input).c_str(), ShapeText(w).c_str());
  const int64_t k = w.size(weight.transposed ? 1 : 0), n = w.size(weight.transposed ? 0 : 1);
  const int64_t rank = input.dim();
  ET_REQUIRE(ctx, input.size(rank - 1) == k && is_integer(w.scalar_type()), InvalidArgument, out,
             "%s: cannot multiply %s by %s of %s", op, ShapeText(input).c_str(),
             ShapeText(w).c_str(), toString(w.scalar_type()));
  weight.groups = weight.scales.dim() == 2 ? weight.scales.size(1) : 1;
  ET_REQUIRE(ctx, weight.groups > 0, InvalidArgument, out, "%s: scales of shape %s have no groups",
             op, ShapeText(weight.scales).c_str());
  weight.group_size = std::max<int64_t>((weight.columns() + weight.groups - 1) / weight.groups, 1);
  ET_REQUIRE(ctx,
             weight.columns() == 0 || (weight.groups - 1) * weight.group_size < weight.columns(),
             InvalidArgument, out, "%s: rows of %" PRId64 " do not divide into %" PRId64 " groups",
             op, weight.columns(), weight.groups);
  for (const Tensor* t : {&weight.scales, weight.zero_points}) {
    ET_REQUIRE(ctx,
               t == nullptr || (t->numel() == w.size(0) * weight.groups && is_contiguous(*t) &&
                                is_real(t->scalar_type())),
               InvalidArgument, out,
               "%s: scales and zero points for %d rows were expected; found shape %s", op,
               static_cast<int>(w.size(0)), ShapeText(*t).c_str());
  }
  ET_REQUIRE(ctx, input.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: the input is %s and out %s; one dtype was expected", op,
             toString(input.scalar_type()), toString(out.scalar_type()));
  Shape shape(input);
  shape.set(rank - 1, n);
  if (!resize_out(ctx, op, out, shape)) return out;
  ET_REQUIRE(ctx, is_contiguous(out), InvalidArgument, out, "%s: out must be contiguous", op);
  const int64_t m = n == 0 ? 0 : out.numel() / n;
  EngineScratch scratch(ctx);
  bool granted = false;
  switch (input.scalar_type()) {
    case ScalarType::Float:
      granted = multiply<float>(input, weight, m, n, k, out, scratch);
      break;
    case ScalarType::Half:
      granted = multiply<cpu::F16>(input, weight, m, n, k, out, scratch);
      break;
    case ScalarType::BFloat16:
      granted = multiply<cpu::BF16>(input, weight, m, n, k, out, scratch);
      break;
    default:
      ET_REQUIRE(ctx, false, InvalidArgument, out, "%s: not implemented for dtype %s", op,
                 toString(input.scalar_type()));
  }
  (void)require_scratch(ctx, op, granted);
  return out;
}

}  // namespace

Tensor& quantized_mixed_mm_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                               const Tensor& weight_scales,
                               const std::optional<Tensor>& weight_zero_points, Tensor& out) {
  return mixed_product(ctx, "mixed_mm.out", input,
                       {weight, weight_scales, get(weight_zero_points), false}, out);
}

Tensor& quantized_mixed_linear_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& weight, const Tensor& weight_scales,
                                   const std::optional<Tensor>& weight_zero_points,
                                   std::optional<ScalarType> dtype, Tensor& out) {
  ET_REQUIRE(ctx, dtype.value_or(out.scalar_type()) == out.scalar_type(), InvalidArgument, out,
             "mixed_linear.out: dtype is %s, but out is %s", toString(*dtype),
             toString(out.scalar_type()));
  return mixed_product(ctx, "mixed_linear.out", input,
                       {weight, weight_scales, get(weight_zero_points), true}, out);
}

namespace {

constexpr Kernel kMixedOps[] = {
    ET_OP("quantized_decomposed::mixed_linear.out", quantized_mixed_linear_out,
          "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
          "ScalarType? dtype=None, *, Tensor(a!) out) -> Tensor(a!)"),
    ET_OP("quantized_decomposed::mixed_mm.out", quantized_mixed_mm_out,
          "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, *, "
          "Tensor(a!) out) -> Tensor(a!)"),
};

}  // namespace

Span<const Kernel> mixed_ops() {
  return kMixedOps;
}

}  // namespace torch::executor::native
