#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/gemm.h>
#include <executorch/kernels/portable/internal/pool.h>
#include <executorch/kernels/portable/internal/pool_windows.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <limits>

namespace torch::executor::native {

using namespace internal;

namespace {

// Values and the positions they came from, row-major in the input plane.
template <class T>
void max_plane(const Pooling& p, const T* in, T* out, const int64_t* index_steps,
               int64_t* indices) {
  const Axis &x = p.axis[0], &y = p.axis[1], &z = p.axis[2];
  p.for_each_output([&](const int64_t* o, int64_t at) {
    int64_t begin[kSpatial], count[kSpatial];
    for (int d = 0; d < kSpatial; ++d) clip(o[d], p.axis[d], begin[d], count[d]);
    T best = std::is_integral_v<T> ? std::numeric_limits<T>::lowest()
                                   : static_cast<T>(-std::numeric_limits<float>::infinity());
    int64_t best_at = -1;
    for (int64_t i = 0, a = begin[0]; i < count[0]; ++i, a += x.dilation) {
      for (int64_t j = 0, b = begin[1]; j < count[1]; ++j, b += y.dilation) {
        for (int64_t k = 0, c = begin[2]; k < count[2]; ++k, c += z.dilation) {
          const T value = in[a * x.in_step + b * y.in_step + c * z.in_step];
          if (value > best || value != value || best_at < 0) {
            best = value;
            best_at = (a * y.in + b) * z.in + c;
          }
        }
      }
    }
    out[at] = best;
    indices[o[0] * index_steps[0] + o[1] * index_steps[1] + o[2] * index_steps[2]] = best_at;
  });
}

float no_divisor(int, const Axis&, int64_t, int64_t) {
  return 1.0f;
}

TensorPair max_pool(KernelRuntimeContext& ctx, const char* op, int n_spatial, const Tensor& self,
                    IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                    IntArrayRef dilation, bool ceil_mode, Tensor& out, Tensor& indices) {
  TensorPair result(out, indices);
  Pooling p{.op = op, .n_spatial = n_spatial};
  Shape shape;
  ET_REQUIRE(
      ctx, out.scalar_type() == self.scalar_type() && indices.scalar_type() == ScalarType::Long,
      InvalidArgument, result, "%s: outputs of dtypes %s and Long were expected; found %s and %s",
      op, toString(self.scalar_type()), toString(out.scalar_type()),
      toString(indices.scalar_type()));
  if (!read_windows(ctx, p, self, kernel_size, stride, padding, dilation, ceil_mode, shape) ||
      !resize_out(ctx, op, out, shape) || !resize_out(ctx, op, indices, shape) ||
      out.numel() == 0) {
    return result;
  }
  Pooling q = p;
  p.bind(self, out);
  q.bind(self, indices);
  if (!require_affordable_windows(ctx, p, self, out, kEngineLanes, most_inside)) return result;
  const int64_t index_steps[kSpatial] = {q.axis[0].out_step, q.axis[1].out_step,
                                         q.axis[2].out_step};
  if (pool_by_engine(ctx, p, self, out, true, &q, indices.mutable_data_ptr<int64_t>(), true, clip,
                     no_divisor) ||
      !require_affordable_windows(ctx, p, self, out, 1, most_inside)) {
    return result;
  }
  const bool known = with_gemm_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    p.for_each_plane([&](int64_t n, int64_t c) {
      max_plane(p, self.const_data_ptr<T>() + n * p.in_batch + c * p.in_channel,
                out.mutable_data_ptr<T>() + n * p.out_batch + c * p.out_channel, index_steps,
                indices.mutable_data_ptr<int64_t>() + n * q.out_batch + c * q.out_channel);
    });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, result, "%s: not implemented for dtype %s", op,
             toString(self.scalar_type()));
  return result;
}

// Adds the gradient of each output to the position of its maximum. If a position lies outside of
// the plane, sets `bad` to it.
template <class T>
void max_plane_backward(const Pooling& p, const T* grad, const int64_t* indices,
                        const int64_t* index_steps, T* grad_input, std::optional<int64_t>& bad) {
  const Axis &y = p.axis[1], &z = p.axis[2];
  p.for_each_output([&](const int64_t* o, int64_t at) {
    const int64_t from =
        indices[o[0] * index_steps[0] + o[1] * index_steps[1] + o[2] * index_steps[2]];
    if (from < 0 || from >= y.in * z.in) {
      bad = from;
      return;
    }
    T& to = grad_input[from / z.in * y.in_step + from % z.in * z.in_step];
    if constexpr (kIsFloat<T>) {
      to = static_cast<T>(to + grad[at]);
    } else {
      to = static_cast<T>(wrapping_add<int64_t>(to, grad[at]));
    }
  });
}

// The sum of the box [begin, end) of a plane, in float or double, or int64 for Long.
template <class Acc, class T>
Acc box_sum(const Pooling& p, const T* in, const int64_t* begin, const int64_t* end) {
  Acc sum = 0;
  for (int64_t a = begin[0]; a < end[0]; ++a) {
    for (int64_t b = begin[1]; b < end[1]; ++b) {
      const T* row = in + a * p.axis[0].in_step + b * p.axis[1].in_step;
      for (int64_t c = begin[2]; c < end[2]; ++c) {
        sum = wrapping_add(sum, static_cast<Acc>(row[c * p.axis[2].in_step]));
      }
    }
  }
  return sum;
}

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t,
                               std::conditional_t<std::is_same_v<T, double>, double, float>>;

// out = box_sum / divisor; window(o, axis, begin, end) clips, divisor(o, begin, end) counts and is
// not 0.
template <class Window, class Divisor>
void average(const Pooling& p, const Tensor& self, Tensor& out, Window&& window,
             Divisor&& divisor) {
  with_gemm_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    p.for_each_plane([&](int64_t n, int64_t c) {
      const T* in = self.const_data_ptr<T>() + n * p.in_batch + c * p.in_channel;
      T* result = out.mutable_data_ptr<T>() + n * p.out_batch + c * p.out_channel;
      p.for_each_output([&](const int64_t* o, int64_t at) {
        int64_t begin[kSpatial], end[kSpatial];
        for (int d = 0; d < kSpatial; ++d) window(o[d], p.axis[d], begin[d], end[d]);
        const auto sum = box_sum<Sum<T>>(p, in, begin, end);
        const auto count = static_cast<Sum<T>>(divisor(o, begin, end));
        if constexpr (kIsFloat<T>) {
          result[at] = static_cast<T>(sum / count);
        } else {
          bool by_zero = false;  // it never is
          result[at] = static_cast<T>(trunc_div(sum, count, &by_zero));
        }
      });
    });
  });
}

bool require_average_dtype(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                           const Tensor& out, bool allow_long) {
  ET_REQUIRE(
      ctx,
      self.scalar_type() == out.scalar_type() &&
          (is_float(self.scalar_type()) || (allow_long && self.scalar_type() == ScalarType::Long)),
      InvalidArgument, false, "%s: not implemented for dtype %s into %s", op,
      toString(self.scalar_type()), toString(out.scalar_type()));
  return true;
}

Tensor& avg_pool(KernelRuntimeContext& ctx, const char* op, int n_spatial, const Tensor& self,
                 IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                 bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  Pooling p{.op = op, .n_spatial = n_spatial};
  Shape shape;
  const int64_t one = 1;
  if (!require_average_dtype(ctx, op, self, out, true) ||
      !read_windows(ctx, p, self, kernel_size, stride, padding, {&one, 1}, ceil_mode, shape) ||
      !resize_out(ctx, op, out, shape) || out.numel() == 0) {
    return out;
  }
  ET_REQUIRE(ctx, divisor_override.value_or(1) != 0, InvalidArgument, out,
             "%s: divisor_override must not be zero", op);
  p.bind(self, out);
  if (!require_affordable_windows(ctx, p, self, out, kEngineLanes, most_inside)) return out;
  const auto window = [](int64_t o, const Axis& a, int64_t& begin, int64_t& end) {
    begin = std::max<int64_t>(a.begin(o), 0);
    end = std::min(a.begin(o) + a.size, a.in);
  };
  const auto extent = [&](const Axis& a, int64_t o, int64_t count) {
    return count_include_pad ? std::min(a.begin(o) + a.size, a.in + a.padding) - a.begin(o)
                             : std::max<int64_t>(count, 1);
  };
  const auto clip = [&](int64_t o, const Axis& a, int64_t& begin, int64_t& count) {
    window(o, a, begin, count);
    count -= begin;
  };
  if (pool_by_engine(ctx, p, self, out, false, nullptr, nullptr, true, clip,
                     [&](int d, const Axis& a, int64_t o, int64_t count) {
                       if (!divisor_override.has_value()) {
                         return static_cast<float>(extent(a, o, count));
                       }
                       return d == 0 ? static_cast<float>(*divisor_override) : 1.0f;
                     }) ||
      !require_affordable_windows(ctx, p, self, out, 1, most_inside)) {
    return out;
  }
  average(p, self, out, window, [&](const int64_t* o, const int64_t* begin, const int64_t* end) {
    if (divisor_override.has_value()) return *divisor_override;
    Size count = 1;
    for (int d = 0; d < kSpatial; ++d) count *= extent(p.axis[d], o[d], end[d] - begin[d]);
    return count.value_or(std::numeric_limits<int64_t>::max());
  });
  return out;
}

/// Calls to(o, j, mean of from(i, j) over the window of o) for j < n.
template <class Acc, class Window, class From, class To>
void average_along(const Axis& axis, int64_t n, const Window& window, const From& from,
                   const To& to) {
  for (int64_t o = 0; o < axis.out; ++o) {
    int64_t begin, end;
    window(o, axis, begin, end);
    for (int64_t j = 0; j < n; ++j) {
      Acc sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += from(i, j);
      to(o, j, sum / static_cast<Acc>(end - begin));
    }
  }
}

/// Averages adaptive windows, which it sums along one axis after the other, so that overlapping or
/// equal windows share sums. Returns false, with nothing written, if the intermediate sums need
/// much more memory than the planes, or if memory is refused.
template <class Window>
bool average_by_axes(KernelRuntimeContext& ctx, const Pooling& p, const Tensor& self, Tensor& out,
                     const Window& window) {
  const Axis* const a = p.axis;
  const Size lines = Size(a[0].in) * a[1].in * a[2].out,
             planes = Size(a[0].in) * a[1].out * a[2].out;
  constexpr int64_t kMostGrowth = 4;
  const Size operands = Size(a[0].in) * a[1].in * a[2].in + Size(a[0].out) * a[1].out * a[2].out;
  if (!(lines + planes).within((operands * kMostGrowth).value_or(0))) return false;
  bool done = false;
  with_gemm_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kIsFloat<T>) {
      using Acc = Sum<T>;
      EngineScratch scratch(ctx);
      const executorch::cpu::ThreadScratch<Acc> buffers(scratch, lines + planes);
      if (!buffers) return;
      buffers.parallel_for(p.n_batch * p.n_channels, 1, [&](int64_t i, int64_t last, Acc* line) {
        Acc* const plane = line + lines.value();
        for (; i < last; ++i) {
          const int64_t n = i / p.n_channels, c = i % p.n_channels;
          const T* const in = self.const_data_ptr<T>() + n * p.in_batch + c * p.in_channel;
          T* const result = out.mutable_data_ptr<T>() + n * p.out_batch + c * p.out_channel;
          const int64_t rows = a[0].in * a[1].in, columns = a[2].out, all = a[1].out * columns;
          average_along<Acc>(
              a[2], rows, window,
              [&](int64_t x, int64_t r) {
                return static_cast<Acc>(
                    in[r / a[1].in * a[0].in_step + r % a[1].in * a[1].in_step + x * a[2].in_step]);
              },
              [&](int64_t x, int64_t r, Acc mean) { line[r * columns + x] = mean; });
          for (int64_t z = 0; z < a[0].in; ++z) {
            average_along<Acc>(
                a[1], columns, window,
                [&](int64_t y, int64_t x) { return line[(z * a[1].in + y) * columns + x]; },
                [&](int64_t y, int64_t x, Acc mean) { plane[z * all + y * columns + x] = mean; });
          }
          average_along<Acc>(
              a[0], all, window, [&](int64_t z, int64_t j) { return plane[z * all + j]; },
              [&](int64_t z, int64_t j, Acc mean) {
                result[z * a[0].out_step + j / columns * a[1].out_step +
                       j % columns * a[2].out_step] = static_cast<T>(mean);
              });
        }
      });
      done = true;
    }
  });
  return done;
}

Tensor& adaptive_avg_pool(KernelRuntimeContext& ctx, const char* op, int n_spatial,
                          const Tensor& self, IntArrayRef output_size, Tensor& out) {
  Pooling p{.op = op, .n_spatial = n_spatial};
  int64_t sizes[kSpatial];
  if (!require_average_dtype(ctx, op, self, out, false) ||
      !require_rank(ctx, op, self, n_spatial) ||
      !read_spatial_list(ctx, op, "output_size", output_size, n_spatial, 0, nullptr, sizes)) {
    return out;
  }
  Shape shape(self);
  for (int d = 0; d < n_spatial; ++d) {
    const int64_t dim = self.dim() - n_spatial + d;
    p.axis[kSpatial - n_spatial + d] = {.in = self.size(dim), .out = sizes[d]};
    shape.set(dim, sizes[d]);
  }
  if (!resize_out(ctx, op, out, shape) || out.numel() == 0) return out;
  p.bind(self, out);
  const auto most = [](const Axis& a) { return std::min(a.in / a.out + 2, a.in); };
  if (!require_affordable_windows(ctx, p, self, out, kEngineLanes, most)) return out;
  const auto window = [](int64_t o, const Axis& a, int64_t& begin, int64_t& end) {
    begin = o * a.in / a.out;
    end = ((o + 1) * a.in + a.out - 1) / a.out;
  };
  const auto clip = [&](int64_t o, const Axis& a, int64_t& begin, int64_t& count) {
    window(o, a, begin, count);
    count -= begin;
  };
  if (pool_by_engine(
          ctx, p, self, out, false, nullptr, nullptr, false, clip,
          [](int, const Axis&, int64_t, int64_t count) { return static_cast<float>(count); }) ||
      average_by_axes(ctx, p, self, out, window) ||
      !require_affordable_windows(ctx, p, self, out, 1, most)) {
    return out;
  }
  average(p, self, out, window, [](const int64_t*, const int64_t* begin, const int64_t* end) {
    return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
  });
  return out;
}

}  // namespace

Tensor& _adaptive_avg_pool2d_out(KernelRuntimeContext& ctx, const Tensor& self,
                                 IntArrayRef output_size, Tensor& out) {
  return adaptive_avg_pool(ctx, "_adaptive_avg_pool2d.out", 2, self, output_size, out);
}
Tensor& _adaptive_avg_pool3d_out(KernelRuntimeContext& ctx, const Tensor& self,
                                 IntArrayRef output_size, Tensor& out) {
  return adaptive_avg_pool(ctx, "_adaptive_avg_pool3d.out", 3, self, output_size, out);
}
Tensor& adaptive_avg_pool1d_out(KernelRuntimeContext& ctx, const Tensor& self,
                                IntArrayRef output_size, Tensor& out) {
  return adaptive_avg_pool(ctx, "adaptive_avg_pool1d.out", 1, self, output_size, out);
}

Tensor& avg_pool1d_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad, Tensor& out) {
  return avg_pool(ctx, "avg_pool1d.out", 1, self, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, std::nullopt, out);
}
Tensor& avg_pool2d_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad, std::optional<int64_t> divisor_override,
                       Tensor& out) {
  return avg_pool(ctx, "avg_pool2d.out", 2, self, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, divisor_override, out);
}
Tensor& avg_pool3d_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad, std::optional<int64_t> divisor_override,
                       Tensor& out) {
  return avg_pool(ctx, "avg_pool3d.out", 3, self, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, divisor_override, out);
}

TensorPair max_pool2d_with_indices_out(KernelRuntimeContext& ctx, const Tensor& self,
                                       IntArrayRef kernel_size, IntArrayRef stride,
                                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                       Tensor& out, Tensor& indices) {
  return max_pool(ctx, "max_pool2d_with_indices.out", 2, self, kernel_size, stride, padding,
                  dilation, ceil_mode, out, indices);
}
bool internal::max_pool2d_values(KernelRuntimeContext& ctx, const Tensor& self,
                                 IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                 IntArrayRef dilation, bool ceil_mode, Tensor& out) {
  constexpr const char* kOp = "max_pool2d_with_indices.out";
  Pooling p{.op = kOp, .n_spatial = 2};
  Shape shape;
  if (out.scalar_type() != self.scalar_type() ||
      !read_windows(ctx, p, self, kernel_size, stride, padding, dilation, ceil_mode, shape) ||
      !resize_out(ctx, kOp, out, shape)) {
    return false;
  }
  if (out.numel() == 0) return true;
  p.bind(self, out);
  if (!require_affordable_windows(ctx, p, self, out, kEngineLanes, most_inside)) return false;
  return pool_by_engine(ctx, p, self, out, true, nullptr, nullptr, true, clip, no_divisor);
}
TensorPair max_pool3d_with_indices_out(KernelRuntimeContext& ctx, const Tensor& self,
                                       IntArrayRef kernel_size, IntArrayRef stride,
                                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                       Tensor& out, Tensor& indices) {
  return max_pool(ctx, "max_pool3d_with_indices.out", 3, self, kernel_size, stride, padding,
                  dilation, ceil_mode, out, indices);
}

Tensor& max_pool2d_with_indices_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                             const Tensor& self, IntArrayRef kernel_size,
                                             IntArrayRef stride, IntArrayRef padding,
                                             IntArrayRef dilation, bool ceil_mode,
                                             const Tensor& indices, Tensor& grad_input) {
  constexpr const char* kOp = "max_pool2d_with_indices_backward.grad_input";
  Pooling p{.op = kOp, .n_spatial = 2};
  Shape shape;
  if (!read_windows(ctx, p, self, kernel_size, stride, padding, dilation, ceil_mode, shape)) {
    return grad_input;
  }
  ET_REQUIRE(ctx,
             shape.equals(grad_output.sizes()) && shape.equals(indices.sizes()) &&
                 indices.scalar_type() == ScalarType::Long &&
                 grad_output.scalar_type() == self.scalar_type() &&
                 grad_input.scalar_type() == self.scalar_type(),
             InvalidArgument, grad_input,
             "%s: a gradient of the input's dtype and Long indices, both of shape %s, were "
             "expected; found shapes %s and %s",
             kOp, ShapeText(shape.ref()).c_str(), ShapeText(grad_output).c_str(),
             ShapeText(indices).c_str());
  if (!resize_out(ctx, kOp, grad_input, self.sizes()) || grad_input.numel() == 0) return grad_input;
  Pooling q = p;
  p.bind(grad_input, grad_output);
  q.bind(grad_input, indices);
  const int64_t steps[kSpatial] = {q.axis[0].out_step, q.axis[1].out_step, q.axis[2].out_step};
  std::optional<int64_t> bad;
  const bool known = with_gemm_dtype(self.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(grad_input.mutable_data_ptr<T>(), grad_input.numel(), T(0));
    for (int64_t n = 0; n < p.n_batch; ++n) {
      for (int64_t c = 0; c < p.n_channels; ++c) {
        max_plane_backward(
            p, grad_output.const_data_ptr<T>() + n * p.out_batch + c * p.out_channel,
            indices.const_data_ptr<int64_t>() + n * q.out_batch + c * q.out_channel, steps,
            grad_input.mutable_data_ptr<T>() + n * p.in_batch + c * p.in_channel, bad);
      }
    }
  });
  ET_REQUIRE(ctx, known, InvalidArgument, grad_input, "%s: not implemented for dtype %s", kOp,
             toString(self.scalar_type()));
  ET_REQUIRE(ctx, !bad.has_value(), InvalidArgument, grad_input,
             "%s: index %" PRId64 " is outside a plane of shape %s", kOp, *bad,
             ShapeText(self).c_str());
  return grad_input;
}

namespace {
constexpr Kernel kPoolOps[] = {
    ET_OP("aten::_adaptive_avg_pool2d.out", _adaptive_avg_pool2d_out, pool),
    ET_OP("aten::_adaptive_avg_pool3d.out", _adaptive_avg_pool3d_out, pool),
    ET_OP("aten::adaptive_avg_pool1d.out", adaptive_avg_pool1d_out, pool),
    ET_OP("aten::avg_pool1d.out", avg_pool1d_out),
    ET_OP("aten::avg_pool2d.out", avg_pool2d_out),
    ET_OP("aten::avg_pool3d.out", avg_pool3d_out),
    ET_OP("aten::max_pool2d_with_indices.out", max_pool2d_with_indices_out),
    ET_OP("aten::max_pool2d_with_indices_backward.grad_input", max_pool2d_with_indices_backward_out,
          other),
    ET_OP("aten::max_pool3d_with_indices.out", max_pool3d_with_indices_out),
};
}  // namespace

Span<const Kernel> pool_ops() {
  return kPoolOps;
}

}  // namespace torch::executor::native
