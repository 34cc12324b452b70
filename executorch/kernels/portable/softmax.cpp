/// Softmax and its logarithm along one dim.
#include <executorch/cpu/nn/softmax.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/moments.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

namespace torch::executor::native {

using namespace internal;

namespace {

namespace cpu = executorch::cpu;

constexpr int64_t kLanes = 8;  // partial results, so that the loops have vectors

/// The larger of `max` and the largest of n numbers. NaN may be ignored: it makes the sum NaN.
template <class C>
C largest(const C* x, int64_t n, C max) {
  C lanes[kLanes];
  for (C& lane : lanes) lane = max;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
  }
  for (; i < n; ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  for (const C lane : lanes) max = lane > max ? lane : max;
  return max;
}

/// x[i] = e^(x[i] - max)
template <class C>
void exponentials(C* x, int64_t n, C max) {
  for (int64_t i = 0; i < n; ++i) x[i] -= max;
  if constexpr (std::is_same_v<C, double>) {
    cpu::apply(cpu::Function::Exp, x, x, n);
  } else {
    cpu::apply(cpu::Function::Exp, cpu::Type::F32, x, x, n);
  }
}

template <class C>
double sum_of(const C* x, int64_t n) {
  double lanes[kLanes] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(x[i + k]);
  }
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// Any layout and any pair of floating types: line by line, in chunks of C that are read three
/// times. A single chunk keeps its exponentials.
template <class C>
void softmax_lines(const Loop& lines, const Tensor& self, int64_t n, int64_t in_step,
                   int64_t out_step, bool log, Tensor& out) {
  constexpr int64_t kChunk = 1024;
  const char* from = static_cast<const char*>(self.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  C chunk[kChunk];
  const bool is_kept = !log && n <= kChunk;
  for (int64_t line = 0; line < lines.numel; ++line) {
    const int64_t in_at = lines.offset(1, line), out_at = lines.offset(0, line);
    const auto for_chunks = [&](bool loads, const auto& f) {
      for (int64_t i = 0; i < n; i += kChunk) {
        const int64_t m = n - i < kChunk ? n - i : kChunk;
        const char* const part = from + (in_at + i * in_step) * self.element_size();
        if (loads) load(part, self.scalar_type(), in_step, m, chunk);
        f(i, m);
      }
    };
    C max = static_cast<C>(-INFINITY);
    double sum = 0;
    for_chunks(true, [&](int64_t, int64_t m) { max = largest(chunk, m, max); });
    for_chunks(true, [&](int64_t, int64_t m) {
      exponentials(chunk, m, max);
      sum += sum_of(chunk, m);
    });
    const C last = static_cast<C>(log ? std::log(sum) : 1 / sum);
    for_chunks(!is_kept, [&](int64_t i, int64_t m) {
      if (log) {
        for (int64_t j = 0; j < m; ++j) chunk[j] = (chunk[j] - max) - last;
      } else {
        if (!is_kept) exponentials(chunk, m, max);
        for (int64_t j = 0; j < m; ++j) chunk[j] *= last;
      }
      store(chunk, m, to + (out_at + i * out_step) * out.element_size(), out.scalar_type(),
            out_step);
    });
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
  int64_t n = 1, in_step = 1, out_step = 1;
  if (self.dim() > 0 && self.size(dim) > 1) {
    n = self.size(dim);
    in_step = self.strides()[static_cast<size_t>(dim)];
    out_step = out.strides()[static_cast<size_t>(dim)];
  }
  const auto type = engine_type(self.scalar_type());
  if (type.has_value() && self.scalar_type() == out.scalar_type() && same_layout(self, out)) {
    // Dense in some dim order: the dims inside of `dim` have in_step elements together.
    const executorch::cpu::Softmax lines = {*type,
                                            log,
                                            out.numel() / (n * in_step),
                                            n,
                                            in_step,
                                            self.const_data_ptr(),
                                            out.mutable_data_ptr()};
    EngineScratch scratch(ctx);
    (void)require_scratch(ctx, op, lines.run(scratch));
    return out;
  }
  Loop lines(out.sizes());  // visits the first element of each line
  lines.add(out).add(self);
  if (self.dim() > 0) lines.take_out(static_cast<int>(dim));
  with_float_compute(compute_of(self.scalar_type()), [&](auto tag) {
    softmax_lines<decltype(tag)>(lines, self, n, in_step, out_step, log, out);
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

Span<const Kernel> softmax_ops() {
  return kSoftmaxOps;
}

}  // namespace torch::executor::native
