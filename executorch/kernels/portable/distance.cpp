#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

// Distances between rows: the p-norm of their difference. For p = 0, the number of elements that
// differ.
namespace torch::executor::native {

using namespace internal;

namespace {

/// `n` elements of type T, `step` apart.
template <class T>
struct Row {
  const T* data;
  int64_t step;
};

/// Calls each(result, |a_i - b_i|) for the elements in order, computed in C. For contiguous rows it
/// keeps as many partial results as vectors have lanes, which `each` also joins.
template <class C, class T, class Each>
C folded(Row<T> a, Row<T> b, int64_t n, const Each& each) {
  constexpr int64_t kChains = 8;
  const auto difference = [&](int64_t i) {
    return std::abs(static_cast<C>(a.data[i * a.step]) - static_cast<C>(b.data[i * b.step]));
  };
  C all = 0;
  int64_t i = 0;
  if (a.step == 1 && b.step == 1 && n >= 2 * kChains) {
    C chains[kChains] = {};
    for (; i + kChains <= n; i += kChains) {
      for (int64_t k = 0; k < kChains; ++k) {
        chains[k] = each(chains[k],
                         std::abs(static_cast<C>(a.data[i + k]) - static_cast<C>(b.data[i + k])));
      }
    }
    for (const C chain : chains) all = each.join(all, chain);
  }
  for (; i < n; ++i) all = each(all, difference(i));
  return all;
}

/// Sums of f(d).
template <class F>
struct SumOf {
  F f;
  template <class C>
  C operator()(C sum, C d) const {
    return sum + f(d);
  }
  template <class C>
  C join(C a, C b) const {
    return a + b;
  }
};
template <class F>
SumOf(F) -> SumOf<F>;

/// The largest d; NaN if one is NaN.
struct Largest {
  template <class C>
  C operator()(C most, C d) const {
    return d > most || d != d ? d : most;
  }
  template <class C>
  C join(C a, C b) const {
    return (*this)(a, b);
  }
};

/// d to a small power.
template <class C>
C power(C d, int exponent) {
  C result = 1;
  for (; exponent != 0; exponent >>= 1, d *= d) {
    if ((exponent & 1) != 0) result *= d;
  }
  return result;
}

template <class C, class T>
C distance(Row<T> a, Row<T> b, int64_t n, C p) {
  if (p == 0) return folded<C>(a, b, n, SumOf{[](C d) { return C(d != 0); }});
  if (p == 1) return folded<C>(a, b, n, SumOf{[](C d) { return d; }});
  if (p == 2) return std::sqrt(folded<C>(a, b, n, SumOf{[](C d) { return d * d; }}));
  if (std::isinf(p)) return folded<C>(a, b, n, Largest{});
  const C sum =
      p <= 16 && p == std::floor(p)
          ? folded<C>(a, b, n, SumOf{[e = static_cast<int>(p)](C d) { return power(d, e); }})
          : folded<C>(a, b, n, SumOf{[p](C d) { return std::pow(d, p); }});
  return std::pow(sum, 1 / p);
}

bool require_floats(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const Tensor& b,
                    double p, const Tensor& out) {
  ET_REQUIRE(ctx,
             is_float(a.scalar_type()) && a.scalar_type() == b.scalar_type() &&
                 a.scalar_type() == out.scalar_type(),
             InvalidArgument, false, "%s: one floating dtype was expected; found %s, %s and %s", op,
             toString(a.scalar_type()), toString(b.scalar_type()), toString(out.scalar_type()));
  ET_REQUIRE(ctx, p >= 0, InvalidArgument, false, "%s: p is %g; a norm with p >= 0 was expected",
             op, p);
  return true;
}

/// Calls f(T{}, C{}) with the stored and the computed C++ type of a floating dtype.
template <class F>
void with_float_dtype(ScalarType type, F&& f) {
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_integral_v<T>) {
      f(tag, std::conditional_t<std::is_same_v<T, double>, double, float>{});
    }
  });
}

/// The elements of a tensor as contiguous rows: where they lie, or copied. Copying pays off because
/// each row is read once for every other row, and strided elements touch many cache lines.
/// `granted` is false if the memory for the copy is refused.
struct Rows {
  Layout layout;
  const void* data;
  bool granted = true;

  Rows(const Tensor& t, executorch::cpu::Scratch& scratch)
      : layout(t), data(t.const_data_ptr<uint8_t>()) {
    const int64_t last = t.dim() - 1;
    if (t.numel() == 0 || t.size(last) == 1 || layout.strides[last] == 1) return;
    Layout rows = layout;
    int64_t step = 1;
    for (int64_t d = last; d >= 0; step *= t.size(d--)) rows.strides[d] = step;
    void* const copy = scratch.array<uint8_t>(Size(static_cast<int64_t>(t.nbytes())));
    granted = copy != nullptr;
    if (granted) copy_layout(data, t.scalar_type(), layout, copy, t.scalar_type(), rows);
    layout = rows;
    data = copy;
  }
};

/// The number of distances, between rows of n elements, that make a task.
int64_t grain_of(int64_t n) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n));
}

}  // namespace

Tensor& _cdist_forward_out(KernelRuntimeContext& ctx, const Tensor& x1, const Tensor& x2, double p,
                           std::optional<int64_t> compute_mode, Tensor& out) {
  constexpr const char* kOp = "_cdist_forward.out";
  (void)compute_mode;  // whether to go through a matrix product, which is less exact
  if (!require_floats(ctx, kOp, x1, x2, p, out)) return out;
  const int64_t d1 = x1.dim(), d2 = x2.dim();
  ET_REQUIRE(ctx, d1 >= 2 && d2 >= 2 && x1.size(d1 - 1) == x2.size(d2 - 1), InvalidArgument, out,
             "%s: matrices with rows of one length were expected; the shapes are %s and %s", kOp,
             ShapeText(x1).c_str(), ShapeText(x2).c_str());
  // The batch dims of both broadcast.
  EngineScratch scratch(ctx);
  const Rows first(x1, scratch), second(x2, scratch);
  if (!require_scratch(ctx, kOp, first.granted && second.granted)) return out;
  const Layout &a = first.layout, &b = second.layout;
  const int64_t rank = std::max(d1, d2);
  Shape shape;
  int64_t step1[kTensorDimensionLimit] = {}, step2[kTensorDimensionLimit] = {};
  for (int64_t d = 0; d < rank - 2; ++d) {
    const int64_t i = d - (rank - d1), j = d - (rank - d2);
    const int64_t m = i < 0 ? 1 : x1.size(i), n = j < 0 ? 1 : x2.size(j);
    ET_REQUIRE(ctx, m == n || m == 1 || n == 1, InvalidArgument, out,
               "%s: cannot broadcast the batch dims of %s with those of %s", kOp,
               ShapeText(x1).c_str(), ShapeText(x2).c_str());
    if (m != 1) step1[d] = a.strides[i];
    if (n != 1) step2[d] = b.strides[j];
    shape.push(m == 1 ? n : m);
  }
  const int64_t rows = x1.size(d1 - 2), columns = x2.size(d2 - 2), n = x1.size(d1 - 1);
  shape.push(rows);
  shape.push(columns);
  if (!resize_out(ctx, kOp, out, shape)) return out;
  ctx.add_steps(steps_of(Size(out.numel()) * n));
  const Layout to(out);
  with_float_dtype(x1.scalar_type(), [&](auto tag, auto compute) {
    using T = decltype(tag);
    using C = decltype(compute);
    const auto one = [&](int64_t i) {
      const int64_t column = i % columns, row = i / columns % rows;
      int64_t batch = i / columns / rows;
      int64_t from1 = row * a.strides[d1 - 2], from2 = column * b.strides[d2 - 2];
      int64_t at = row * to.strides[rank - 2] + column * to.strides[rank - 1];
      for (int64_t d = rank - 3; d >= 0; --d) {
        const int64_t k = batch % shape[d];
        batch /= shape[d];
        from1 += k * step1[d];
        from2 += k * step2[d];
        at += k * to.strides[d];
      }
      out.mutable_data_ptr<T>()[at] = static_cast<T>(
          distance<C>(Row<T>{static_cast<const T*>(first.data) + from1, a.strides[d1 - 1]},
                      Row<T>{static_cast<const T*>(second.data) + from2, b.strides[d2 - 1]}, n,
                      static_cast<C>(p)));
    };
    executorch::cpu::parallel_for(out.numel(), grain_of(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
  });
  return out;
}

Tensor& _pdist_forward_out(KernelRuntimeContext& ctx, const Tensor& self, double p, Tensor& out) {
  constexpr const char* kOp = "_pdist_forward.out";
  if (!require_floats(ctx, kOp, self, self, p, out)) return out;
  ET_REQUIRE(ctx, self.dim() == 2, InvalidArgument, out,
             "%s: a matrix was expected; the shape is %s", kOp, ShapeText(self).c_str());
  const int64_t rows = self.size(0), n = self.size(1);
  if (!resize_out(ctx, kOp, out, Shape{rows < 2 ? Size(0) : Size(rows) * (rows - 1) / 2})) {
    return out;
  }
  ctx.add_steps(steps_of(Size(out.numel()) * n));
  EngineScratch scratch(ctx);
  const Rows all(self, scratch);
  if (!require_scratch(ctx, kOp, all.granted)) return out;
  const Layout& a = all.layout;
  with_float_dtype(self.scalar_type(), [&](auto tag, auto compute) {
    using T = decltype(tag);
    const auto row = [&](int64_t i) {
      return Row<T>{static_cast<const T*>(all.data) + i * a.strides[0], a.strides[1]};
    };
    executorch::cpu::parallel_for(
        rows, std::max<int64_t>(1, grain_of(n * rows)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            // Row i's distances to later rows begin after those of the rows before it.
            T* to = out.mutable_data_ptr<T>() + i * (2 * rows - i - 1) / 2;
            for (int64_t j = i + 1; j < rows; ++j) {
              *to++ = static_cast<T>(distance<decltype(compute)>(
                  row(i), row(j), n, static_cast<decltype(compute)>(p)));
            }
          }
        });
  });
  return out;
}

namespace {
constexpr Kernel kDistanceOps[] = {
    ET_OP("aten::_cdist_forward.out", _cdist_forward_out),
    ET_OP("aten::_pdist_forward.out", _pdist_forward_out),
};
}  // namespace

Span<const Kernel> distance_ops() {
  return kDistanceOps;
}

}  // namespace torch::executor::native
