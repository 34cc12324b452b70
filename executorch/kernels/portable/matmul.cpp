#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/shape.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>

// mm, bmm, addmm, linear: argument checks around internal::Gemm. Operands are used where they lie,
// in any dim order.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

bool require_gemm_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const Tensor& b,
                        const Tensor& out) {
  const ScalarType type = a.scalar_type();
  ET_REQUIRE(ctx, type == b.scalar_type() && type == out.scalar_type(), InvalidArgument, false,
             "%s: operands and out must have one dtype; they have %s, %s and %s", op,
             toString(type), toString(b.scalar_type()), toString(out.scalar_type()));
  ET_REQUIRE(ctx, with_gemm_dtype(type, [](auto) {}), InvalidArgument, false,
             "%s: not implemented for dtype %s", op, toString(type));
  return true;
}

// a [m,k], b [k,n]
bool require_matrices(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const Tensor& b,
                      int64_t rank) {
  ET_REQUIRE(ctx, a.dim() == rank && b.dim() == rank, InvalidArgument, false,
             "%s: operands of rank %" PRId64 " were expected; their shapes are %s and %s", op, rank,
             ShapeText(a).c_str(), ShapeText(b).c_str());
  ET_REQUIRE(ctx, a.size(rank - 1) == b.size(rank - 2), InvalidArgument, false,
             "%s: cannot multiply %s by %s; inner extents %d and %d differ", op,
             ShapeText(a).c_str(), ShapeText(b).c_str(), static_cast<int>(a.size(rank - 1)),
             static_cast<int>(b.size(rank - 2)));
  return true;
}

// The last two dims of a tensor as a matrix, `offset` elements into its data.
template <class T>
MatrixView<T> matrix(const Tensor& t, int64_t offset = 0) {
  const Layout layout(t);
  const int64_t rank = t.dim();
  return {static_cast<T*>(t.mutable_data_ptr()) + offset, layout.strides[rank - 2],
          layout.strides[rank - 1]};
}

// A factor given as a Scalar; integers wrap like the sums do.
template <class Acc>
Acc factor(const Scalar& s) {
  if constexpr (std::is_integral_v<Acc>) {
    return static_cast<Acc>(scalar_as<int64_t>(s));
  } else {
    return scalar_as<Acc>(s);
  }
}

template <class T>
MatrixView<const T> as_const(const MatrixView<T>& m) {
  return {m.data, m.row_stride, m.col_stride};
}

}  // namespace

Tensor& mm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat2, Tensor& out) {
  constexpr const char* kOp = "mm.out";
  if (!require_matrices(ctx, kOp, self, mat2, 2)) return out;
  if (!require_gemm_dtype(ctx, kOp, self, mat2, out)) return out;
  Shape shape;
  shape.push(self.size(0));
  shape.push(mat2.size(1));
  if (!resize_out(ctx, kOp, out, shape)) return out;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    Gemm<T>{.m = self.size(0),
            .n = mat2.size(1),
            .k = self.size(1),
            .a = as_const(matrix<T>(self)),
            .b = as_const(matrix<T>(mat2)),
            .c = matrix<T>(out)}
        .run();
  });
  return out;
}

Tensor& bmm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat2, Tensor& out) {
  constexpr const char* kOp = "bmm.out";
  if (!require_matrices(ctx, kOp, self, mat2, 3)) return out;
  ET_REQUIRE(ctx, self.size(0) == mat2.size(0), InvalidArgument, out,
             "%s: batch extents differ: %s and %s", kOp, ShapeText(self).c_str(),
             ShapeText(mat2).c_str());
  if (!require_gemm_dtype(ctx, kOp, self, mat2, out)) return out;
  Shape shape;
  shape.push(self.size(0));
  shape.push(self.size(1));
  shape.push(mat2.size(2));
  if (!resize_out(ctx, kOp, out, shape)) return out;
  const Layout a(self), b(mat2), c(out);
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < self.size(0); ++i) {
      Gemm<T>{.m = self.size(1),
              .n = mat2.size(2),
              .k = self.size(2),
              .a = as_const(matrix<T>(self, i * a.strides[0])),
              .b = as_const(matrix<T>(mat2, i * b.strides[0])),
              .c = matrix<T>(out, i * c.strides[0])}
          .run();
    }
  });
  return out;
}

Tensor& addmm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat1,
                  const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  constexpr const char* kOp = "addmm.out";
  if (!require_matrices(ctx, kOp, mat1, mat2, 2)) return out;
  if (!require_gemm_dtype(ctx, kOp, mat1, mat2, out)) return out;
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: the added tensor has dtype %s; the dtype of the product is %s", kOp,
             toString(self.scalar_type()), toString(out.scalar_type()));
  ET_REQUIRE(ctx, is_float(out.scalar_type()) || (beta.isIntegral(true) && alpha.isIntegral(true)),
             InvalidArgument, out, "%s: alpha and beta must be integers for dtype %s", kOp,
             toString(out.scalar_type()));
  Shape shape;
  shape.push(mat1.size(0));
  shape.push(mat2.size(1));
  Shape expanded = shape;
  if (!broadcast_with(ctx, kOp, self, expanded)) return out;
  ET_REQUIRE(ctx,
             expanded.ndim == 2 && expanded.sizes[0] == shape.sizes[0] &&
                 expanded.sizes[1] == shape.sizes[1],
             InvalidArgument, out, "%s: cannot expand %s to the product's shape %s", kOp,
             ShapeText(self).c_str(), ShapeText(shape.ref()).c_str());
  if (!resize_out(ctx, kOp, out, shape)) return out;
  const Layout addend(self);
  const int64_t rank = self.dim();
  const bool has_row = rank > 0 && self.size(rank - 1) != 1;
  const bool has_column = rank > 1 && self.size(0) != 1;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using Acc = Accumulator<T>;
    Gemm<T>{.m = mat1.size(0),
            .n = mat2.size(1),
            .k = mat1.size(1),
            .a = as_const(matrix<T>(mat1)),
            .b = as_const(matrix<T>(mat2)),
            .c = matrix<T>(out),
            .addend = {self.const_data_ptr<T>(), has_column ? addend.strides[0] : 0,
                       has_row ? addend.strides[rank - 1] : 0},
            .alpha = factor<Acc>(alpha),
            .beta = factor<Acc>(beta)}
        .run();
  });
  return out;
}

Tensor& linear_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                   const std::optional<Tensor>& bias, Tensor& out) {
  constexpr const char* kOp = "linear.out";
  const int64_t rank = input.dim();
  ET_REQUIRE(ctx, rank >= 1 && weight.dim() == 2, InvalidArgument, out,
             "%s: input [..., k] and weight [n, k] were expected; their shapes are %s and %s", kOp,
             ShapeText(input).c_str(), ShapeText(weight).c_str());
  const int64_t k = weight.size(1), n = weight.size(0);
  ET_REQUIRE(ctx, input.size(rank - 1) == k, InvalidArgument, out,
             "%s: input %s does not fit weight %s; last extents differ", kOp,
             ShapeText(input).c_str(), ShapeText(weight).c_str());
  if (!require_gemm_dtype(ctx, kOp, input, weight, out)) return out;
  ET_REQUIRE(ctx,
             !bias.has_value() || (bias->dim() == 1 && bias->size(0) == n &&
                                   bias->scalar_type() == out.scalar_type()),
             InvalidArgument, out, "%s: bias must have shape [%" PRId64 "] and the weight's dtype",
             kOp, n);
  Shape shape(input);
  shape.sizes[rank - 1] = static_cast<SizesType>(n);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  ET_REQUIRE(ctx, is_contiguous(input) && is_contiguous(out), InvalidArgument, out,
             "%s: input and out must be contiguous", kOp);
  int64_t m = 1;
  for (int64_t d = 0; d + 1 < rank; ++d) m *= input.size(d);
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    const MatrixView<T> w = matrix<T>(weight);
    Gemm<T>{.m = m,
            .n = n,
            .k = k,
            .a = {input.const_data_ptr<T>(), k, 1},
            .b = {w.data, w.col_stride, w.row_stride},
            .c = {out.mutable_data_ptr<T>(), n, 1},
            .addend = {bias.has_value() ? bias->const_data_ptr<T>() : nullptr, 0, 1}}
        .run();
  });
  return out;
}

namespace {
constexpr Kernel kMatmulOps[] = {
    ET_OP("aten::addmm.out", addmm_out),
    ET_OP("aten::bmm.out", bmm_out),
    ET_OP("aten::linear.out", linear_out),
    ET_OP("aten::mm.out", mm_out),
};
}  // namespace

Span<const Kernel> matmul_ops() {
  return kMatmulOps;
}

}  // namespace torch::executor::native
