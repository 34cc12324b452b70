/// Softmax and its logarithm along one dim:
///   softmax(x)_i = exp(x_i - m) / s,  log_softmax(x)_i = x_i - m - log(s)
/// with m = max(x), s = sum_i exp(x_i - m).
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/moments.h>
#include <executorch/kernels/portable/internal/vector_math.h>
#include <executorch/kernels/portable/internal/wide.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

namespace torch::executor::native {

using namespace internal;

namespace {

constexpr int64_t kChunk = 1024;

/// One line of the input and of the output, read and written in runs of C.
template <class C>
struct Line {
  const char* from;
  char* to;
  ScalarType in_type, out_type;
  int64_t in_step, out_step;  // elements
  int64_t n;

  bool in_direct() const { return in_step == 1 && in_type == scalar_type_of(kComputeOf<C>); }
  bool out_direct() const { return out_step == 1 && out_type == scalar_type_of(kComputeOf<C>); }

  const C* read(int64_t i, int64_t m, C* chunk) const {
    if (in_direct()) return reinterpret_cast<const C*>(from) + i;
    load(from + i * in_step * static_cast<int64_t>(elementSize(in_type)), in_type, in_step, m,
         chunk);
    return chunk;
  }
  /// Where to put results i...; write() them afterwards.
  C* room(int64_t i, C* chunk) const { return out_direct() ? reinterpret_cast<C*>(to) + i : chunk; }
  void write(int64_t i, int64_t m, const C* chunk) const {
    if (out_direct()) return;
    store(chunk, m, to + i * out_step * static_cast<int64_t>(elementSize(out_type)), out_type,
          out_step);
  }
};

template <class C>
C max_of(const C* x, int64_t n, C start) {
  C lanes[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lanes[j] = start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = max_or_nan(lanes[j], x[i + j]);
  }
  for (int64_t j = 0; i < n; ++i, ++j) lanes[j] = max_or_nan(lanes[j], x[i]);
  for (int64_t j = 1; j < kLanes; ++j) lanes[0] = max_or_nan(lanes[0], lanes[j]);
  return lanes[0];
}

template <class C>
[[gnu::always_inline]] inline void exp_body(const C* x, int64_t n, C max, C* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - max);
}

template <class C>
ET_WIDE void wide_exp_run(const C* x, int64_t n, C max, C* y) {
  exp_body(x, n, max, y);
}

/// y[i] = exp(x[i] - max)
template <class C>
void exp_run(const C* x, int64_t n, C max, C* y) {
  if (has_wide_vectors()) {
    wide_exp_run(x, n, max, y);
  } else {
    exp_body(x, n, max, y);
  }
}

template <class C>
void softmax_line(const Line<C>& line, bool log) {
  C in_chunk[kChunk], out_chunk[kChunk];
  const auto length = [&](int64_t i) { return line.n - i < kChunk ? line.n - i : kChunk; };

  C max = static_cast<C>(-INFINITY);
  for (int64_t i = 0; i < line.n; i += kChunk) {
    max = max_of(line.read(i, length(i), in_chunk), length(i), max);
  }
  // Where results lie as C, the exponentials are kept in the output; elsewhere they would be
  // rounded, and are computed again.
  const bool keep = !log && line.out_direct();
  double sum = 0;
  for (int64_t i = 0; i < line.n; i += kChunk) {
    const int64_t m = length(i);
    C* y = keep ? line.room(i, out_chunk) : out_chunk;
    exp_run(line.read(i, m, in_chunk), m, max, y);
    sum += static_cast<double>(sum_run(y, m, [](C v) { return v; }));
  }
  const C log_sum = static_cast<C>(std::log(sum));
  const C scale = static_cast<C>(1 / sum);
  for (int64_t i = 0; i < line.n; i += kChunk) {
    const int64_t m = length(i);
    C* y = line.room(i, out_chunk);
    if (log) {
      const C* x = line.read(i, m, in_chunk);
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) y[j] = (x[j] - max) - log_sum;
    } else {
      if (!keep) exp_run(line.read(i, m, in_chunk), m, max, y);
      for (int64_t j = 0; j < m; ++j) y[j] *= scale;
    }
    line.write(i, m, y);
  }
}

constexpr int64_t kColumns = 64;

/// `width` lines whose elements lie side by side: row i holds the i-th element of each.
template <class C>
void softmax_columns(const Line<C>& first, int64_t width, bool log) {
  const char* from = first.from;
  char* to = first.to;
  const int64_t in_row = first.in_step * static_cast<int64_t>(elementSize(first.in_type));
  const int64_t out_row = first.out_step * static_cast<int64_t>(elementSize(first.out_type));
  C row[kColumns], max[kColumns], y[kColumns];
  double sum[kColumns] = {};
  for (int64_t w = 0; w < width; ++w) max[w] = static_cast<C>(-INFINITY);
  for (int64_t i = 0; i < first.n; ++i) {
    load(from + i * in_row, first.in_type, 1, width, row);
    for (int64_t w = 0; w < width; ++w) max[w] = max_or_nan(max[w], row[w]);
  }
  for (int64_t i = 0; i < first.n; ++i) {
    load(from + i * in_row, first.in_type, 1, width, row);
    for (int64_t w = 0; w < width; ++w) row[w] -= max[w];
    exp_run(row, width, C{0}, y);
    for (int64_t w = 0; w < width; ++w) sum[w] += static_cast<double>(y[w]);
  }
  C last[kColumns];  // log(s) or 1 / s
  for (int64_t w = 0; w < width; ++w) last[w] = static_cast<C>(log ? std::log(sum[w]) : 1 / sum[w]);
  for (int64_t i = 0; i < first.n; ++i) {
    load(from + i * in_row, first.in_type, 1, width, row);
    for (int64_t w = 0; w < width; ++w) row[w] -= max[w];
    if (log) {
      for (int64_t w = 0; w < width; ++w) y[w] = row[w] - last[w];
    } else {
      exp_run(row, width, C{0}, y);
      for (int64_t w = 0; w < width; ++w) y[w] *= last[w];
    }
    store(y, width, to + i * out_row, first.out_type, 1);
  }
}

Tensor& softmax(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                bool log, Tensor& out) {
  ET_REQUIRE(ctx, is_float(self.scalar_type()) && is_float(out.scalar_type()), InvalidArgument, out,
             "%s: self is %s and out is %s, expected floating types", op,
             toString(self.scalar_type()), toString(out.scalar_type()));
  if (!normalize_dim(ctx, op, dim, self.dim()) || !resize_out(ctx, op, out, self.sizes())) {
    return out;
  }
  if (out.numel() == 0) return out;
  Loop lines(out.sizes());  // visits the first element of each line
  lines.add(out).add(self);
  int64_t n = 1, in_step = 1, out_step = 1;
  if (self.dim() > 0) {
    n = self.size(dim);
    in_step = n == 1 ? 1 : self.strides()[static_cast<size_t>(dim)];
    out_step = n == 1 ? 1 : out.strides()[static_cast<size_t>(dim)];
    lines.take_out(static_cast<int>(dim));
  }
  lines.order_by(0);
  lines.collapse();
  const int64_t out_stride = lines.inner_stride(0), in_stride = lines.inner_stride(1);
  const bool side_by_side = in_stride == 1 && out_stride == 1 && in_step != 1;
  with_float_compute(compute_of(self.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    for_each_run(lines, [&](const int64_t* at, int64_t n_lines) {
      const int64_t width = side_by_side ? kColumns : 1;
      for (int64_t i = 0; i < n_lines; i += width) {
        const Line<C> line{static_cast<const char*>(self.const_data_ptr()) +
                               (at[1] + i * in_stride) * self.element_size(),
                           static_cast<char*>(out.mutable_data_ptr()) +
                               (at[0] + i * out_stride) * out.element_size(),
                           self.scalar_type(),
                           out.scalar_type(),
                           in_step,
                           out_step,
                           n};
        if (side_by_side) {
          softmax_columns(line, n_lines - i < width ? n_lines - i : width, log);
        } else {
          softmax_line(line, log);
        }
      }
    });
  });
  return out;
}

}  // namespace

Tensor& softmax_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool, Tensor& out) {
  return softmax(ctx, "_softmax.out", self, dim, false, out);
}

Tensor& log_softmax_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool,
                        Tensor& out) {
  return softmax(ctx, "_log_softmax.out", self, dim, true, out);
}

namespace {

constexpr Kernel kSoftmaxOps[] = {
    ET_OP("aten::_softmax.out", softmax_out),
    ET_OP("aten::_log_softmax.out", log_softmax_out),
};

}  // namespace

executorch::runtime::Span<const Kernel> softmax_ops() {
  return kSoftmaxOps;
}

}  // namespace torch::executor::native
