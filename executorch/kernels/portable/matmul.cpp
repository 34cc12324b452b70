#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/shape.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>

// mm, bmm, addmm, linear: argument checks around the engine's Gemm. Operands are used where they
// lie, in any dim order.
namespace torch::executor::native {

namespace cpu = ::executorch::cpu;

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

template <class T>
EngineType<T>* elements(const Tensor& t) {
  return reinterpret_cast<EngineType<T>*>(t.mutable_data_ptr<T>());
}

// The last two dims of a tensor as a matrix.
template <class T>
cpu::Matrix<EngineType<T>> matrix(const Tensor& t) {
  const Layout layout(t);
  const int64_t rank = t.dim();
  return {elements<T>(t), layout.strides[rank - 2], layout.strides[rank - 1]};
}

template <class T>
cpu::Matrix<const EngineType<T>> operand(const Tensor& t) {
  const auto m = matrix<T>(t);
  return {m.data, m.row_stride, m.col_stride};
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

}  // namespace

Tensor& mm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat2, Tensor& out) {
  constexpr const char* kOp = "mm.out";
  if (!require_matrices(ctx, kOp, self, mat2, 2)) return out;
  if (!require_gemm_dtype(ctx, kOp, self, mat2, out)) return out;
  Shape shape;
  shape.push(self.size(0));
  shape.push(mat2.size(1));
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  EngineScratch scratch(ctx);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    granted = cpu::Gemm<EngineType<T>>{.m = self.size(0),
                                       .n = mat2.size(1),
                                       .k = self.size(1),
                                       .a = operand<T>(self),
                                       .b = operand<T>(mat2),
                                       .c = matrix<T>(out)}
                  .run(scratch);
  });
  (void)require_scratch(ctx, kOp, granted);
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
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout a(self), b(mat2), c(out);
  EngineScratch scratch(ctx);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    granted = cpu::Gemm<EngineType<T>>{.m = self.size(1),
                                       .n = mat2.size(2),
                                       .k = self.size(2),
                                       .a = operand<T>(self),
                                       .b = operand<T>(mat2),
                                       .c = matrix<T>(out),
                                       .batch = self.size(0),
                                       .a_batch = a.strides[0],
                                       .b_batch = b.strides[0],
                                       .c_batch = c.strides[0]}
                  .run(scratch);
  });
  (void)require_scratch(ctx, kOp, granted);
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
  ET_REQUIRE(ctx, expanded.ndim() == 2 && expanded[0] == shape[0] && expanded[1] == shape[1],
             InvalidArgument, out, "%s: cannot expand %s to the product's shape %s", kOp,
             ShapeText(self).c_str(), ShapeText(shape.ref()).c_str());
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout addend(self);
  const int64_t rank = self.dim();
  const bool has_row = rank > 0 && self.size(rank - 1) != 1;
  const bool has_column = rank > 1 && self.size(0) != 1;
  EngineScratch scratch(ctx);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using E = EngineType<T>;
    using Acc = cpu::Accumulator<E>;
    granted = cpu::Gemm<E>{.m = mat1.size(0),
                           .n = mat2.size(1),
                           .k = mat1.size(1),
                           .a = operand<T>(mat1),
                           .b = operand<T>(mat2),
                           .c = matrix<T>(out),
                           .addend = {elements<T>(self), has_column ? addend.strides[0] : 0,
                                      has_row ? addend.strides[rank - 1] : 0},
                           .alpha = factor<Acc>(alpha),
                           .beta = factor<Acc>(beta)}
                  .run(scratch);
  });
  (void)require_scratch(ctx, kOp, granted);
  return out;
}

namespace {

// The rows of linear's input [..., k] and result [..., n]: groups of `count` rows a fixed distance
// apart in both, one group where both are contiguous.
struct Rows {
  const Layout& in;
  const Layout& out;
  int n_outer;  // leading dims that number the groups
  int64_t count = 1, in_stride = 0, out_stride = 0;

  Rows(const Layout& input, const Layout& result) : in(input), out(result) {
    n_outer = static_cast<int>(in.shape.ndim()) - 1;
    for (; n_outer > 0; --n_outer) {
      const int d = n_outer - 1;
      const int64_t size = in.shape[d];
      if (size == 1) continue;
      if (count == 1) {
        in_stride = in.strides[d];
        out_stride = out.strides[d];
      } else if (in.strides[d] != in_stride * count || out.strides[d] != out_stride * count) {
        break;
      }
      count *= size;
    }
  }

  // Calls f with the offsets of each group's first row.
  template <class F>
  void for_each_group(const F& f) const {
    int64_t n_groups = 1;
    for (int d = 0; d < n_outer; ++d) n_groups *= in.shape[d];
    for (int64_t group = 0; group < n_groups; ++group) {
      int64_t from = 0, to = 0, rest = group;
      for (int d = n_outer - 1; d >= 0; --d) {
        const int64_t at = rest % in.shape[d];
        rest /= in.shape[d];
        from += at * in.strides[d];
        to += at * out.strides[d];
      }
      f(from, to);
    }
  }
};

}  // namespace

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
  shape.set(rank - 1, n);
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout in(input), result(out);
  const Rows rows(in, result);
  EngineScratch scratch(ctx);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using E = EngineType<T>;
    const auto w = operand<T>(weight);
    cpu::Gemm<E> g = {.m = rows.count,
                      .n = n,
                      .k = k,
                      .a = {nullptr, rows.in_stride, in.strides[rank - 1]},
                      .b = {w.data, w.col_stride, w.row_stride},
                      .c = {nullptr, rows.out_stride, result.strides[rank - 1]},
                      .addend = {bias.has_value() ? elements<T>(*bias) : nullptr, 0, 1}};
    rows.for_each_group([&](int64_t from, int64_t to) {
      g.a.data = elements<T>(input) + from;
      g.c.data = elements<T>(out) + to;
      granted = granted && g.run(scratch);
    });
  });
  (void)require_scratch(ctx, kOp, granted);
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
