#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

// Running sums, products and extremes along one dim. Halves and floats are summed in double, so
// that the error does not grow with the length.
namespace torch::executor::native {

using namespace internal;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

/// The lines of tensors of one shape along a dim: out is operand 0, the input 1, indices 2.
struct Lines {
  Loop loop;
  int64_t n = 1;
  int64_t step[3] = {1, 1, 1};

  Lines(std::initializer_list<const Tensor*> tensors, int64_t dim)
      : loop((*tensors.begin())->sizes()) {
    int k = 0;
    for (const Tensor* t : tensors) {
      loop.add(*t);
      if (t->dim() > 0) step[k++] = t->strides()[static_cast<size_t>(dim)];
    }
    if (loop.ndim > 0) {
      n = loop.sizes[dim];
      loop.take_out(static_cast<int>(dim));
    }
  }
};

bool prepare_scan(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t& dim,
                  Tensor& out) {
  ET_REQUIRE(ctx, is_real(self.scalar_type()) && is_real(out.scalar_type()), InvalidArgument, false,
             "%s: not implemented for dtype %s into %s", op, toString(self.scalar_type()),
             toString(out.scalar_type()));
  return normalize_dim(ctx, op, dim, self.dim()) && resize_out(ctx, op, out, self.sizes());
}

/// out_i = fold(out_{i-1}, x_i), begun with `start`.
template <class Fold>
Tensor& scan(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
             std::optional<ScalarType> dtype, int start, const Fold& fold, Tensor& out) {
  ET_REQUIRE(ctx, !dtype.has_value() || *dtype == out.scalar_type(), InvalidArgument, out,
             "%s: dtype is %s, but out is %s", op, toString(*dtype), toString(out.scalar_type()));
  if (!prepare_scan(ctx, op, self, dim, out) || out.numel() == 0) return out;
  const Lines lines({&out, &self}, dim);
  const int64_t in_size = static_cast<int64_t>(elementSize(self.scalar_type()));
  const int64_t out_size = static_cast<int64_t>(elementSize(out.scalar_type()));
  with_compute(compute_of(out.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    using Total = std::conditional_t<kIsInt<C>, int64_t, double>;
    C chunk[256];
    for (int64_t line = 0; line < lines.loop.numel; ++line) {
      const char* from =
          static_cast<const char*>(self.const_data_ptr()) + lines.loop.offset(1, line) * in_size;
      char* to = static_cast<char*>(out.mutable_data_ptr()) + lines.loop.offset(0, line) * out_size;
      Total total = static_cast<Total>(start);
      for (int64_t i = 0; i < lines.n; i += 256) {
        const int64_t m = lines.n - i < 256 ? lines.n - i : 256;
        load(from + i * lines.step[1] * in_size, self.scalar_type(), lines.step[1], m, chunk);
        for (int64_t j = 0; j < m; ++j) {
          total = fold(total, static_cast<Total>(chunk[j]));
          chunk[j] = static_cast<C>(total);
        }
        store(chunk, m, to + i * lines.step[0] * out_size, out.scalar_type(), lines.step[0]);
      }
    }
  });
  return out;
}

using Pair = std::tuple<Tensor&, Tensor&>;

/// The extreme so far and where it was last: NaN, once met, stays.
template <class Better>
Pair running_extreme(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                     const Better& better, Tensor& values, Tensor& indices) {
  const Pair result(values, indices);
  ET_REQUIRE(
      ctx, values.scalar_type() == self.scalar_type() && indices.scalar_type() == ScalarType::Long,
      InvalidArgument, result, "%s: outputs of dtypes %s and Long were expected; found %s and %s",
      op, toString(self.scalar_type()), toString(values.scalar_type()),
      toString(indices.scalar_type()));
  if (!prepare_scan(ctx, op, self, dim, values) || !resize_out(ctx, op, indices, self.sizes()) ||
      values.numel() == 0) {
    return result;
  }
  const Lines lines({&values, &self, &indices}, dim);
  with_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t line = 0; line < lines.loop.numel; ++line) {
      const T* from = self.const_data_ptr<T>() + lines.loop.offset(1, line);
      T* to = values.mutable_data_ptr<T>() + lines.loop.offset(0, line);
      int64_t* where = indices.mutable_data_ptr<int64_t>() + lines.loop.offset(2, line);
      int64_t best = 0;
      for (int64_t i = 0; i < lines.n; ++i) {
        const T x = from[i * lines.step[1]], b = from[best * lines.step[1]];
        if (x != x || (b == b && better(x, b))) best = i;
        to[i * lines.step[0]] = from[best * lines.step[1]];
        where[i * lines.step[2]] = best;
      }
    }
  });
  return result;
}

}  // namespace

Tensor& cumsum_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                   std::optional<ScalarType> dtype, Tensor& out) {
  return scan(
      ctx, "cumsum.out", self, dim, dtype, 0, [](auto a, auto b) { return wrapping_add(a, b); },
      out);
}

Tensor& cumprod_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                    std::optional<ScalarType> dtype, Tensor& out) {
  return scan(
      ctx, "cumprod.out", self, dim, dtype, 1, [](auto a, auto b) { return wrapping_mul(a, b); },
      out);
}

Pair cummax_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& values,
                Tensor& indices) {
  return running_extreme(
      ctx, "cummax.out", self, dim, [](auto x, auto best) { return x >= best; }, values, indices);
}

Pair cummin_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& values,
                Tensor& indices) {
  return running_extreme(
      ctx, "cummin.out", self, dim, [](auto x, auto best) { return x <= best; }, values, indices);
}

namespace {
constexpr Kernel kScanOps[] = {
    ET_OP("aten::cummax.out", cummax_out),
    ET_OP("aten::cummin.out", cummin_out),
    ET_OP("aten::cumprod.out", cumprod_out),
    ET_OP("aten::cumsum.out", cumsum_out),
};
}  // namespace

Span<const Kernel> scan_ops() {
  return kScanOps;
}

}  // namespace torch::executor::native
