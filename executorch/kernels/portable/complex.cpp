#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/complex.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cmath>

// Complex numbers: arithmetic, and to and from pairs of real ones.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

template <class C>
using Complex = executorch::aten::complex<C>;

/// Calls f(C{}) with the real type of a complex dtype's parts; false for any other dtype.
template <class F>
bool with_parts(ScalarType type, F&& f) {
  if (type == ScalarType::ComplexFloat) {
    f(float{});
  } else if (type == ScalarType::ComplexDouble) {
    f(double{});
  } else {
    return false;
  }
  return true;
}

constexpr ScalarType part_of(ScalarType type) {
  return type == ScalarType::ComplexDouble  ? ScalarType::Double
         : type == ScalarType::ComplexFloat ? ScalarType::Float
                                            : ScalarType::Undefined;
}

/// out[i] = f(operands[i]...), operands of types A, out of R; resized and broadcast.
template <class R, class A, class F, class... In>
void for_each_element(KernelRuntimeContext& ctx, const char* op, Tensor& out, const F& f,
                      const In&... in) {
  Shape shape;
  bool fits = true;
  ((fits = fits && broadcast_with(ctx, op, in, shape)), ...);
  if (!fits || !resize_out(ctx, op, out, shape)) return;
  Loop loop(shape);
  loop.add(out);
  (loop.add(in), ...);
  loop.order_by(0);
  loop.collapse();
  R* to = static_cast<R*>(out.mutable_data_ptr());
  const A* from[] = {static_cast<const A*>(in.const_data_ptr())...};
  for_each_run(loop, [&](const int64_t* at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      R& result = to[at[0] + i * loop.inner_stride(0)];
      if constexpr (sizeof...(In) == 1) {
        result = f(from[0][at[1] + i * loop.inner_stride(1)]);
      } else {
        result =
            f(from[0][at[1] + i * loop.inner_stride(1)], from[1][at[2] + i * loop.inner_stride(2)]);
      }
    }
  });
}

bool require_dtypes(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const Tensor& b,
                    const Tensor& out, ScalarType result) {
  ET_REQUIRE(ctx,
             part_of(a.scalar_type()) != ScalarType::Undefined &&
                 a.scalar_type() == b.scalar_type() && out.scalar_type() == result,
             InvalidArgument, false, "%s: not implemented for %s and %s into %s", op,
             toString(a.scalar_type()), toString(b.scalar_type()), toString(out.scalar_type()));
  return true;
}

}  // namespace

namespace internal {

Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Tensor& b, double alpha, Tensor& out) {
  if (!require_dtypes(ctx, op, a, b, out, a.scalar_type())) return out;
  with_parts(a.scalar_type(), [&](auto tag) {
    using C = decltype(tag);
    using Z = Complex<C>;
    const C scale = static_cast<C>(alpha);
    const auto run = [&](const auto& f) { for_each_element<Z, Z>(ctx, op, out, f, a, b); };
    if (operation == ComplexOp::Add) {
      run([scale](Z x, Z y) { return x += Z(scale * y.real(), scale * y.imag()); });
    } else if (operation == ComplexOp::Multiply) {
      run([](Z x, Z y) { return x *= y; });
    } else {
      run([](Z x, Z y) { return x /= y; });
    }
  });
  return out;
}

Tensor& complex_abs(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "abs.out";
  if (!require_dtypes(ctx, kOp, self, self, out, part_of(self.scalar_type()))) return out;
  with_parts(self.scalar_type(), [&](auto tag) {
    using C = decltype(tag);
    for_each_element<C, Complex<C>>(
        ctx, kOp, out, [](Complex<C> x) { return std::hypot(x.real(), x.imag()); }, self);
  });
  return out;
}

Tensor& complex_neg(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "neg.out";
  if (!require_dtypes(ctx, kOp, self, self, out, self.scalar_type())) return out;
  with_parts(self.scalar_type(), [&](auto tag) {
    using Z = Complex<decltype(tag)>;
    for_each_element<Z, Z>(
        ctx, kOp, out, [](Z x) { return Z(-x.real(), -x.imag()); }, self);
  });
  return out;
}

}  // namespace internal

Tensor& _conj_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return _conj_physical_out(ctx, self, out);
}

Tensor& complex_out(KernelRuntimeContext& ctx, const Tensor& real, const Tensor& imag,
                    Tensor& out) {
  constexpr const char* kOp = "complex.out";
  ET_REQUIRE(
      ctx,
      real.scalar_type() == imag.scalar_type() && part_of(out.scalar_type()) == real.scalar_type(),
      InvalidArgument, out, "%s: not implemented for %s and %s into %s", kOp,
      toString(real.scalar_type()), toString(imag.scalar_type()), toString(out.scalar_type()));
  with_parts(out.scalar_type(), [&](auto tag) {
    using C = decltype(tag);
    for_each_element<Complex<C>, C>(
        ctx, kOp, out, [](C re, C im) { return Complex<C>(re, im); }, real, imag);
  });
  return out;
}

Tensor& view_as_complex_copy_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "view_as_complex_copy.out";
  const int64_t last = self.dim() - 1;
  ET_REQUIRE(
      ctx, last >= 0 && self.size(last) == 2 && part_of(out.scalar_type()) == self.scalar_type(),
      InvalidArgument, out, "%s: pairs of floats were expected; found shape %s of %s into %s", kOp,
      ShapeText(self).c_str(), toString(self.scalar_type()), toString(out.scalar_type()));
  Shape shape(self);
  shape.erase(last);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  Layout pairs(out);  // of parts
  for (int64_t d = 0; d < last; ++d) pairs.strides[d] *= 2;
  pairs.push(2, 1);
  copy_layout(self.const_data_ptr(), self.scalar_type(), Layout(self), out.mutable_data_ptr(),
              self.scalar_type(), pairs);
  return out;
}

namespace {
constexpr Kernel kComplexOps[] = {
    ET_OP("aten::_conj_copy.out", _conj_copy_out),
    ET_OP("aten::complex.out", complex_out),
    ET_OP("aten::view_as_complex_copy.out", view_as_complex_copy_out),
};
}  // namespace

Span<const Kernel> complex_ops() {
  return kComplexOps;
}

}  // namespace torch::executor::native
