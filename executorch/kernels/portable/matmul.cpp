#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/number.h>
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

namespace {

bool require_gemm_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const Tensor& b,
                        const Tensor& out) {
  const ScalarType type = a.scalar_type();
  ET_REQUIRE(ctx, type == b.scalar_type() && type == out.scalar_type(), InvalidArgument, false,
             "%s: operands and out must have one dtype; they have %s, %s and %s", op,
             toString(type), toString(b.scalar_type()), toString(out.scalar_type()));
  const bool known = is_complex(type) || with_gemm_dtype(type, [](auto) {});
  ET_REQUIRE(ctx, known, InvalidArgument, false, "%s: not implemented for dtype %s", op,
             toString(type));
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
  return static_cast<EngineType<T>*>(t.mutable_data_ptr());
}

// The distance, in real numbers, from one element to the next: 2 for complex tensors. Complex
// operands are described by their real parts; see run_products().
int64_t step_of(const Tensor& t) {
  return is_complex(t.scalar_type()) ? 2 : 1;
}

// The last two dims of a tensor as a matrix.
template <class T>
cpu::Matrix<EngineType<T>> matrix(const Tensor& t) {
  const Layout layout(t);
  const int64_t rank = t.dim(), step = step_of(t);
  return {elements<T>(t), layout.strides[rank - 2] * step, layout.strides[rank - 1] * step};
}

template <class T>
cpu::Matrix<const EngineType<T>> operand(const Tensor& t) {
  const auto m = matrix<T>(t);
  return {m.data, m.row_stride, m.col_stride};
}

// Computes a complex product by four real products. The matrices of `g` are those of the real
// parts.
template <class T>
bool run_complex(const cpu::Gemm<T>& g, cpu::Scratch& scratch) {
  const auto part = [](auto m, int at) {
    if (m.data != nullptr) m.data += at;
    return m;
  };
  for (int at : {0, 1}) {
    cpu::Gemm<T> by_real = g, by_imaginary = g;
    by_real.b = part(g.b, at);
    by_real.c = by_imaginary.c = part(g.c, at);
    by_real.addend = part(g.addend, at);
    by_imaginary.a = part(g.a, 1);
    by_imaginary.b = part(g.b, 1 - at);
    by_imaginary.addend = {};
    by_imaginary.alpha = at == 0 ? -g.alpha : g.alpha;
    by_imaginary.residual = {by_real.c.data, g.c.row_stride, g.c.col_stride};
    by_imaginary.residual_batch = g.c_batch;
    if (!by_real.run(scratch) || !by_imaginary.run(scratch)) return false;
  }
  return true;
}

// Runs the product that make(T{}) returns for the element type of `out`, which is T, or a complex
// number of two T.
template <class F>
bool run_products(const Tensor& out, cpu::Scratch& scratch, const F& make) {
  if (out.scalar_type() == ScalarType::ComplexHalf) {
    return run_complex(make(executorch::aten::Half{}), scratch);
  }
  if (out.scalar_type() == ScalarType::ComplexFloat) return run_complex(make(float{}), scratch);
  if (out.scalar_type() == ScalarType::ComplexDouble) return run_complex(make(double{}), scratch);
  bool granted = true;
  with_gemm_dtype(out.scalar_type(), [&](auto tag) { granted = make(tag).run(scratch); });
  return granted;
}

// Whether `addend` is of type `type` and expands to `shape`.
bool require_addend(KernelRuntimeContext& ctx, const char* op, const Tensor& addend,
                    const Shape& shape, ScalarType type) {
  ET_REQUIRE(ctx, addend.scalar_type() == type, InvalidArgument, false,
             "%s: the added tensor has dtype %s; the dtype of the product is %s", op,
             toString(addend.scalar_type()), toString(type));
  bool expands = addend.dim() <= shape.ndim();
  for (int64_t d = 0; expands && d < addend.dim(); ++d) {
    const int64_t extent = addend.size(d), wanted = shape[shape.ndim() - addend.dim() + d];
    expands = extent == wanted || extent == 1;
  }
  ET_REQUIRE(ctx, expands, InvalidArgument, false, "%s: cannot expand %s to the product's shape %s",
             op, ShapeText(addend).c_str(), ShapeText(shape.ref()).c_str());
  return true;
}

// The layout of `addend` expanded to `shape`, in numbers (see step_of).
Layout expanded(const Tensor& addend, const Shape& shape) {
  const Layout own(addend);
  Layout result;
  for (int64_t d = 0; d < shape.ndim(); ++d) {
    const int64_t from = d - (shape.ndim() - addend.dim());
    const bool repeats = from < 0 || own.shape[from] == 1;
    result.push(shape[d], repeats ? 0 : own.strides[from] * step_of(addend));
  }
  return result;
}

// Converts a factor from a Scalar. Its fraction is dropped if the sums are integers.
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
  if (!resize_out(ctx, kOp, out, Shape{self.size(0), mat2.size(1)}) || out.numel() == 0) return out;
  EngineScratch scratch(ctx);
  const bool granted = run_products(out, scratch, [&](auto tag) {
    using T = decltype(tag);
    return cpu::Gemm<EngineType<T>>{.m = self.size(0),
                                    .n = mat2.size(1),
                                    .k = self.size(1),
                                    .a = operand<T>(self),
                                    .b = operand<T>(mat2),
                                    .c = matrix<T>(out)};
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
  if (!resize_out(ctx, kOp, out, Shape{self.size(0), self.size(1), mat2.size(2)}) ||
      out.numel() == 0) {
    return out;
  }
  const Layout a(self), b(mat2), c(out);
  EngineScratch scratch(ctx);
  const int64_t step = step_of(out);
  const bool granted = run_products(out, scratch, [&](auto tag) {
    using T = decltype(tag);
    return cpu::Gemm<EngineType<T>>{.m = self.size(1),
                                    .n = mat2.size(2),
                                    .k = self.size(2),
                                    .a = operand<T>(self),
                                    .b = operand<T>(mat2),
                                    .c = matrix<T>(out),
                                    .batch = self.size(0),
                                    .a_batch = a.strides[0] * step,
                                    .b_batch = b.strides[0] * step,
                                    .c_batch = c.strides[0] * step};
  });
  (void)require_scratch(ctx, kOp, granted);
  return out;
}

Tensor& addmm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat1,
                  const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  constexpr const char* kOp = "addmm.out";
  if (!require_matrices(ctx, kOp, mat1, mat2, 2)) return out;
  if (!require_gemm_dtype(ctx, kOp, mat1, mat2, out)) return out;
  if (!require_fits(ctx, kOp, "beta", beta, out.scalar_type()) ||
      !require_fits(ctx, kOp, "alpha", alpha, out.scalar_type())) {
    return out;
  }
  Shape shape{mat1.size(0), mat2.size(1)};
  if (!require_addend(ctx, kOp, self, shape, out.scalar_type())) return out;
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout addend = expanded(self, shape);
  EngineScratch scratch(ctx);
  const bool granted = run_products(out, scratch, [&](auto tag) {
    using T = decltype(tag);
    using E = EngineType<T>;
    using Acc = cpu::Accumulator<E>;
    return cpu::Gemm<E>{.m = mat1.size(0),
                        .n = mat2.size(1),
                        .k = mat1.size(1),
                        .a = operand<T>(mat1),
                        .b = operand<T>(mat2),
                        .c = matrix<T>(out),
                        .addend = {elements<T>(self), addend.strides[0], addend.strides[1]},
                        .alpha = factor<Acc>(alpha),
                        .beta = factor<Acc>(beta)};
  });
  (void)require_scratch(ctx, kOp, granted);
  return out;
}

namespace {

// The rows of linear's input [..., k], result [..., n] and the bias expanded to it: groups of
// `count` rows a fixed distance apart in all of them, one group where all are contiguous.
struct Rows {
  static constexpr int kTensors = 3;
  const Layout* layouts[kTensors];
  int n_outer;  // leading dims that number the groups
  int64_t count = 1;
  int64_t strides[kTensors] = {};

  Rows(const Layout& input, const Layout& result, const Layout& bias)
      : layouts{&input, &result, &bias}, n_outer(static_cast<int>(input.shape.ndim()) - 1) {
    for (; n_outer > 0; --n_outer) {
      const int d = n_outer - 1;
      const int64_t size = input.shape[d];
      if (size == 1) continue;
      bool joins = true;
      for (int t = 0; t < kTensors && count > 1; ++t) {
        joins = joins && layouts[t]->strides[d] == strides[t] * count;
      }
      if (!joins) break;
      for (int t = 0; t < kTensors && count == 1; ++t) strides[t] = layouts[t]->strides[d];
      count *= size;
    }
  }

  // Calls f with the offsets of each group's first row.
  template <class F>
  void for_each_group(const F& f) const {
    const Shape& shape = layouts[0]->shape;
    int64_t n_groups = 1;
    for (int d = 0; d < n_outer; ++d) n_groups *= shape[d];
    for (int64_t group = 0; group < n_groups; ++group) {
      int64_t at[kTensors] = {}, rest = group;
      for (int d = n_outer - 1; d >= 0; --d) {
        for (int t = 0; t < kTensors; ++t) at[t] += rest % shape[d] * layouts[t]->strides[d];
        rest /= shape[d];
      }
      f(at[0], at[1], at[2]);
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
  Shape shape(input);
  shape.set(rank - 1, n);
  if (bias.has_value() && !require_addend(ctx, kOp, *bias, shape, out.scalar_type())) return out;
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  Layout in(input), result(out), added;
  if (bias.has_value()) {
    added = expanded(*bias, shape);
  } else {
    for (int64_t d = 0; d < rank; ++d) added.push(shape[d], 0);
  }
  for (int64_t d = 0; d < rank; ++d) {
    in.strides[d] *= step_of(input);
    result.strides[d] *= step_of(out);
  }
  const Rows rows(in, result, added);
  EngineScratch scratch(ctx);
  bool granted = true;
  rows.for_each_group([&](int64_t from, int64_t to, int64_t addend) {
    granted = granted && run_products(out, scratch, [&](auto tag) {
                using T = decltype(tag);
                using E = EngineType<T>;
                const auto w = operand<T>(weight);
                const E* const b = bias.has_value() ? elements<T>(*bias) + addend : nullptr;
                return cpu::Gemm<E>{
                    .m = rows.count,
                    .n = n,
                    .k = k,
                    .a = {elements<T>(input) + from, rows.strides[0], in.strides[rank - 1]},
                    .b = {w.data, w.col_stride, w.row_stride},
                    .c = {elements<T>(out) + to, rows.strides[1], result.strides[rank - 1]},
                    .addend = {b, rows.strides[2], added.strides[rank - 1]}};
              });
  });
  (void)require_scratch(ctx, kOp, granted);
  return out;
}

namespace {
constexpr Kernel kMatmulOps[] = {
    ET_OP("aten::addmm.out", addmm_out, addmm),
    ET_OP("aten::bmm.out", bmm_out),
    ET_OP("aten::linear.out", linear_out),
    ET_OP("aten::mm.out", mm_out),
};
}  // namespace

Span<const Kernel> matmul_ops() {
  return kMatmulOps;
}

}  // namespace torch::executor::native
