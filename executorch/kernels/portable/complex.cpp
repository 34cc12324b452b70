#include <executorch/cpu/nn/magnitude.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/complex.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/promote.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/internal/wide.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cmath>

// Complex numbers: arithmetic, and conversion to and from pairs of real numbers.
namespace torch::executor::native {

using namespace internal;

namespace {

template <class C>
using Complex = executorch::aten::complex<C>;

constexpr int64_t kChunk = 256;  // elements that are brought into the type computed in at once

template <class R>
constexpr ScalarType kResultOf = std::is_same_v<R, float>             ? ScalarType::Float
                                 : std::is_same_v<R, double>          ? ScalarType::Double
                                 : std::is_same_v<R, Complex<double>> ? ScalarType::ComplexDouble
                                                                      : ScalarType::ComplexFloat;

/// Calls f(C{}) with the compute type of the parts of the complex type `common`.
template <class F>
void with_part(ScalarType common, F&& f) {
  common == ScalarType::ComplexDouble || common == ScalarType::Double ? f(double{}) : f(float{});
}

/// The location of an operand's elements. A number is stored in `number`.
struct Source {
  ScalarType type;
  const char* data;
  double number[2] = {};

  explicit Source(const Tensor& t)
      : type(t.scalar_type()), data(static_cast<const char*>(t.const_data_ptr())) {}
  explicit Source(const Scalar& s)
      : type(ScalarType::ComplexDouble),
        data(reinterpret_cast<const char*>(number)),
        number{scalar_as<double>(s), 0} {}
  Source(const Source&) = delete;

  template <class Z>
  void load(int64_t at, int64_t stride, int64_t n, Z* to) const {
    convert(data + at * static_cast<int64_t>(elementSize(type)), type, stride, to, kResultOf<Z>, 1,
            n);
  }
};

/// y[i] = f(x[i], more[i]...), compiled twice (wide.h).
template <class Z, class R, class F, class... In>
[[gnu::always_inline]] inline void each(const F& f, R* y, int64_t n, const Z* x,
                                        const In*... more) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i], more[i]...);
}
template <class... Args>
[[gnu::flatten]] void each_plain(const Args&... args) {
  each(args...);
}
template <class... Args>
ET_WIDE [[gnu::flatten]] void each_wide(const Args&... args) {
  each(args...);
}

/// out[i] = f(operands[i]...), where f takes complex numbers of parts C and returns an R. The first
/// operand of `loop` is out. What has the type computed in and is contiguous is used in place.
template <class C, class R, class F, class... In>
void run(const Loop& loop, Tensor& out, const F& f, const In&... in) {
  using Z = Complex<C>;
  const int64_t out_size = static_cast<int64_t>(out.element_size());
  const int64_t out_stride = loop.inner_stride(0);
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  const Source* const from[] = {&in...};
  const bool in_place = out.scalar_type() == kResultOf<R> && out_stride == 1;
  for_each_run(loop, [&](const int64_t* at, int64_t n) {
    Z buffer[2][kChunk];
    R results[kChunk];
    for (int64_t i = 0, m; i < n; i += m) {
      m = std::min(n - i, kChunk);
      const Z* x[2] = {buffer[0], buffer[1]};
      for (int k = 0; k < static_cast<int>(sizeof...(In)); ++k) {
        const int64_t stride = loop.inner_stride(k + 1), begin = at[k + 1] + i * stride;
        if (from[k]->type == kResultOf<Z> && stride == 1) {
          x[k] = reinterpret_cast<const Z*>(from[k]->data) + begin;
        } else if (stride != 0 || i == 0) {
          from[k]->load(begin, stride, m, buffer[k]);
        }
      }
      char* const target = to + (at[0] + i * out_stride) * out_size;
      R* const y = in_place ? reinterpret_cast<R*>(target) : results;
      if constexpr (sizeof...(In) == 1) {
        has_wide_vectors() ? each_wide(f, y, m, x[0]) : each_plain(f, y, m, x[0]);
      } else {
        has_wide_vectors() ? each_wide(f, y, m, x[0], x[1]) : each_plain(f, y, m, x[0], x[1]);
      }
      if (!in_place) convert(y, kResultOf<R>, 1, target, out.scalar_type(), out_stride, m);
    }
  });
}

/// The loop over `out`, resized to the broadcast shape of the operands, and them.
template <class... In>
bool plan(KernelRuntimeContext& ctx, const char* op, Tensor& out, Loop& loop, const In&... in) {
  Shape shape;
  const auto broadcast = [&](const auto& operand) {
    if constexpr (std::is_same_v<std::decay_t<decltype(operand)>, Tensor>) {
      return broadcast_with(ctx, op, operand, shape);
    }
    return true;
  };
  if (!(broadcast(in) && ...) || !resize_out(ctx, op, out, shape)) return false;
  loop = Loop(shape);
  loop.add(out);
  const auto add = [&](const auto& operand) {
    const int64_t strides[kTensorDimensionLimit] = {};
    if constexpr (std::is_same_v<std::decay_t<decltype(operand)>, Tensor>) {
      loop.add(operand);
    } else {
      loop.add(strides);
    }
  };
  (add(in), ...);
  loop.order_by(0);
  loop.collapse();
  return true;
}

template <class B>
Tensor& arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation, const Tensor& a,
                   const B& b, double alpha, Tensor& out) {
  const auto known = [](const auto& operand) {
    if constexpr (std::is_same_v<std::decay_t<decltype(operand)>, Tensor>) {
      return is_real(operand.scalar_type()) || is_complex(operand.scalar_type());
    }
    return true;
  };
  ET_REQUIRE(ctx, known(a) && known(b), InvalidArgument, out,
             "%s: an operand is neither real nor complex", op);
  const ScalarType common = Promotion().add(a).add(b).result();
  ET_REQUIRE(ctx, is_complex(out.scalar_type()), InvalidArgument, out,
             "%s: a result of type %s cannot be stored in out, which is %s", op, toString(common),
             toString(out.scalar_type()));
  Loop loop;
  if (!plan(ctx, op, out, loop, a, b)) return out;
  with_part(common, [&](auto tag) {
    using C = decltype(tag);
    using Z = Complex<C>;
    const C scale = static_cast<C>(alpha);
    const auto apply = [&](const auto& f) { run<C, Z>(loop, out, f, Source(a), Source(b)); };
    if (operation == ComplexOp::Add) {
      apply([scale](Z x, Z y) { return x += Z(scale * y.real(), scale * y.imag()); });
    } else if (operation == ComplexOp::Multiply) {
      apply([](Z x, Z y) { return x *= y; });
    } else {
      apply([](Z x, Z y) { return x /= y; });
    }
  });
  return out;
}

/// Whether a function of one complex tensor may have a result of type `result` in out.
bool require_out(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Tensor& out,
                 ScalarType result) {
  ET_REQUIRE(ctx, is_complex(self.scalar_type()) && out.scalar_type() == result, InvalidArgument,
             false, "%s: not implemented for %s into %s", op, toString(self.scalar_type()),
             toString(out.scalar_type()));
  return true;
}

}  // namespace

namespace internal {

Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Tensor& b, double alpha, Tensor& out) {
  return arithmetic(ctx, op, operation, a, b, alpha, out);
}

Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Scalar& b, double alpha, Tensor& out) {
  return arithmetic(ctx, op, operation, a, b, alpha, out);
}

Tensor& complex_abs(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "abs.out";
  Loop loop;
  if (!require_out(ctx, kOp, self, out, part_of(self.scalar_type())) ||
      !plan(ctx, kOp, out, loop, self)) {
    return out;
  }
  const bool dense = loop.is_dense(0) && loop.is_dense(1);
  if (dense && self.scalar_type() == ScalarType::ComplexFloat) {
    executorch::cpu::magnitudes(static_cast<const float*>(self.const_data_ptr()),
                                out.mutable_data_ptr<float>(), loop.numel);
    return out;
  }
  with_part(self.scalar_type(), [&](auto tag) {
    using C = decltype(tag);
    const auto f = [](Complex<C> x) { return std::hypot(x.real(), x.imag()); };
    run<C, C>(loop, out, f, Source(self));
  });
  return out;
}

Tensor& complex_neg(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "neg.out";
  Loop loop;
  if (!require_out(ctx, kOp, self, out, self.scalar_type()) || !plan(ctx, kOp, out, loop, self)) {
    return out;
  }
  with_part(self.scalar_type(), [&](auto tag) {
    using Z = Complex<decltype(tag)>;
    const auto f = [](Z x) { return Z(-x.real(), -x.imag()); };
    run<decltype(tag), Z>(loop, out, f, Source(self));
  });
  return out;
}

void complex_sum(const Reduction& r, double divisor, Tensor& out) {
  const int64_t in_size = static_cast<int64_t>(elementSize(r.in_type));
  const int64_t out_size = static_cast<int64_t>(out.element_size());
  for_each_run(r.kept, [&](const int64_t* kept, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const char* const in =
          static_cast<const char*>(r.in) + (kept[1] + k * r.kept.inner_stride(1)) * in_size;
      double sum[2] = {};
      for_each_run(r.reduced, [&](const int64_t* at, int64_t length) {
        double x[2 * kChunk];
        const int64_t stride = r.reduced.inner_stride(0);
        for (int64_t i = 0, m; i < length; i += m) {
          m = length - i < kChunk ? length - i : kChunk;
          convert(in + (at[0] + i * stride) * in_size, r.in_type, stride, x,
                  ScalarType::ComplexDouble, 1, m);
          for (int64_t j = 0; j < 2 * m; ++j) sum[j & 1] += x[j];
        }
      });
      sum[0] /= divisor;
      sum[1] /= divisor;
      convert(sum, ScalarType::ComplexDouble, 1,
              static_cast<char*>(out.mutable_data_ptr()) +
                  (kept[0] + k * r.kept.inner_stride(0)) * out_size,
              out.scalar_type(), 1, 1);
    }
  });
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
  Loop loop;
  if (!plan(ctx, kOp, out, loop, real, imag)) return out;
  with_part(real.scalar_type(), [&](auto tag) {
    using Z = Complex<decltype(tag)>;
    const auto f = [](Z re, Z im) { return Z(re.real(), im.real()); };
    run<decltype(tag), Z>(loop, out, f, Source(real), Source(imag));
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
    ET_OP("aten::complex.out", complex_out, copy),
    ET_OP("aten::view_as_complex_copy.out", view_as_complex_copy_out),
};
}  // namespace

Span<const Kernel> complex_ops() {
  return kComplexOps;
}

}  // namespace torch::executor::native
