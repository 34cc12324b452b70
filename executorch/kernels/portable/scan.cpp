#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>

// Running sums, products and extremes along one dim. Halves and floats are summed in double, so
// that the error does not grow with the length.
namespace torch::executor::native {

using namespace internal;

namespace {

constexpr int64_t kScanGrain = 16384;  // elements

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

/// Scans lines in the type in which C is summed. Threads share the lines.
template <class C, class Fold>
struct Scan {
  using Total = std::conditional_t<kIsInt<C>, int64_t, double>;
  static constexpr int64_t kChunk = 256;

  const Lines& lines;
  const Tensor& self;
  Tensor& out;
  double start;
  const Fold& fold;

  const char* input(int64_t offset) const {
    return static_cast<const char*>(self.const_data_ptr()) + offset * self.element_size();
  }
  char* output(int64_t offset) const {
    return static_cast<char*>(out.mutable_data_ptr()) + offset * out.element_size();
  }

  /// Whether neighbouring lines are contiguous in memory, element by element.
  bool across() const {
    return lines.n > 1 && lines.step[1] > 1 && lines.loop.ndim > 0 &&
           lines.loop.inner_stride(0) == 1 && lines.loop.inner_stride(1) == 1;
  }

  /// Whether elements are contiguous and stored in the type in which they are summed, so that
  /// nothing is copied.
  bool is_direct(int64_t from_step, int64_t to_step) const {
    constexpr ScalarType kType = scalar_type_of(kComputeOf<C>);
    return self.scalar_type() == kType && out.scalar_type() == kType && from_step == 1 &&
           to_step == 1;
  }

  void run_along() const {
    const bool direct = is_direct(lines.step[1], lines.step[0]);
    const auto some = [&](int64_t line, int64_t end) {
      C chunk[kChunk];
      for (; line < end; ++line) {
        const int64_t from = lines.loop.offset(1, line), to = lines.loop.offset(0, line);
        Total total = static_cast<Total>(start);
        for (int64_t i = 0; i < lines.n; i += kChunk) {
          const int64_t m = lines.n - i < kChunk ? lines.n - i : kChunk;
          const char* const source = input(from + i * lines.step[1]);
          char* const target = output(to + i * lines.step[0]);
          const C* const x = direct ? reinterpret_cast<const C*>(source) : chunk;
          C* const y = direct ? reinterpret_cast<C*>(target) : chunk;
          if (!direct) load(source, self.scalar_type(), lines.step[1], m, chunk);
          for (int64_t j = 0; j < m; ++j) {
            total = fold(total, static_cast<Total>(x[j]));
            y[j] = static_cast<C>(total);
          }
          if (!direct) store(chunk, m, target, out.scalar_type(), lines.step[0]);
        }
      }
    };
    executorch::cpu::parallel_for(lines.loop.numel, std::max<int64_t>(kScanGrain / lines.n, 1),
                                  some);
  }

  /// Scans several neighbouring lines at a time, so that memory is read in order.
  void run_across() const {
    const int64_t row = lines.loop.sizes[lines.loop.ndim - 1];
    const int64_t per_row = (row + kChunk - 1) / kChunk;
    const auto some = [&](int64_t block, int64_t end) {
      C chunk[kChunk];
      Total totals[kChunk];
      for (; block < end; ++block) {
        const int64_t column = block % per_row * kChunk;
        const int64_t m = std::min(kChunk, row - column);
        const int64_t first = block / per_row * row + column;
        const int64_t from = lines.loop.offset(1, first), to = lines.loop.offset(0, first);
        std::fill_n(totals, m, static_cast<Total>(start));
        for (int64_t i = 0; i < lines.n; ++i) {
          load(input(from + i * lines.step[1]), self.scalar_type(), 1, m, chunk);
          for (int64_t j = 0; j < m; ++j) {
            totals[j] = fold(totals[j], static_cast<Total>(chunk[j]));
            chunk[j] = static_cast<C>(totals[j]);
          }
          store(chunk, m, output(to + i * lines.step[0]), out.scalar_type(), 1);
        }
      }
    };
    executorch::cpu::parallel_for(lines.loop.numel / row * per_row,
                                  std::max<int64_t>(kScanGrain / kChunk / lines.n, 1), some);
  }
};

/// out_i = fold(out_{i-1}, x_i), begun with `start` (a whole number, unless only floats are
/// scanned).
template <class Fold>
Tensor& scan(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
             std::optional<ScalarType> dtype, double start, const Fold& fold, Tensor& out) {
  ET_REQUIRE(ctx, !dtype.has_value() || *dtype == out.scalar_type(), InvalidArgument, out,
             "%s: dtype is %s, but out is %s", op, toString(*dtype), toString(out.scalar_type()));
  if (!prepare_scan(ctx, op, self, dim, out) || out.numel() == 0) return out;
  const Lines lines({&out, &self}, dim);
  with_compute(compute_of(out.scalar_type()), [&](auto tag) {
    const Scan<decltype(tag), Fold> scan{lines, self, out, start, fold};
    scan.across() ? scan.run_across() : scan.run_along();
  });
  return out;
}

/// The extreme so far, and its last position. Once it is NaN, it stays NaN.
template <class Better>
TensorPair running_extreme(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                           int64_t dim, const Better& better, Tensor& values, Tensor& indices) {
  const TensorPair result(values, indices);
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
    using T = StoredAs<decltype(tag)>;
    const auto scan_line = [&](int64_t line) {
      const T* from = static_cast<const T*>(self.const_data_ptr()) + lines.loop.offset(1, line);
      T* to = static_cast<T*>(values.mutable_data_ptr()) + lines.loop.offset(0, line);
      int64_t* where = indices.mutable_data_ptr<int64_t>() + lines.loop.offset(2, line);
      int64_t best = 0;
      for (int64_t i = 0; i < lines.n; ++i) {
        const T x = from[i * lines.step[1]], b = from[best * lines.step[1]];
        if (x != x || (b == b && better(x, b))) best = i;
        to[i * lines.step[0]] = from[best * lines.step[1]];
        where[i * lines.step[2]] = best;
      }
    };
    executorch::cpu::parallel_for(lines.loop.numel, std::max<int64_t>(kScanGrain / lines.n, 1),
                                  [&](int64_t line, int64_t end) {
                                    for (; line < end; ++line) scan_line(line);
                                  });
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

TensorPair cummax_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& values,
                      Tensor& indices) {
  return running_extreme(
      ctx, "cummax.out", self, dim, [](auto x, auto best) { return x >= best; }, values, indices);
}

TensorPair cummin_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& values,
                      Tensor& indices) {
  return running_extreme(
      ctx, "cummin.out", self, dim, [](auto x, auto best) { return x <= best; }, values, indices);
}

Tensor& logcumsumexp_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& out) {
  constexpr const char* kOp = "logcumsumexp.out";
  ET_REQUIRE(ctx, is_float(self.scalar_type()) && out.scalar_type() == self.scalar_type(),
             InvalidArgument, out, "%s: one floating type was expected; found %s into %s", kOp,
             toString(self.scalar_type()), toString(out.scalar_type()));
  const auto add_logarithms = [](auto a, auto b) {
    const auto high = static_cast<double>(a > b ? a : b), low = static_cast<double>(a > b ? b : a);
    if (a != a || b != b) return static_cast<decltype(a)>(NAN);
    if (high == low && std::isinf(high)) return a;
    return static_cast<decltype(a)>(high + std::log1p(std::exp(low - high)));
  };
  return scan(ctx, kOp, self, dim, std::nullopt, -INFINITY, add_logarithms, out);
}

namespace {
constexpr Kernel kScanOps[] = {
    ET_OP("aten::cummax.out", cummax_out),
    ET_OP("aten::cummin.out", cummin_out),
    ET_OP("aten::cumprod.out", cumprod_out),
    ET_OP("aten::cumsum.out", cumsum_out),
    ET_OP("aten::logcumsumexp.out", logcumsumexp_out, other),
};
}  // namespace

Span<const Kernel> scan_ops() {
  return kScanOps;
}

}  // namespace torch::executor::native
