#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Gradients of pooling, embedding and normalization. Those of convolution and max pooling stand
// beside their operators.
namespace torch::executor::native {

using namespace internal;

namespace {

bool require_one_float(KernelRuntimeContext& ctx, const char* op,
                       std::initializer_list<const Tensor*> tensors) {
  const ScalarType type = (*tensors.begin())->scalar_type();
  for (const Tensor* t : tensors) {
    ET_REQUIRE(ctx, is_float(type) && t->scalar_type() == type, InvalidArgument, false,
               "%s: one floating dtype was expected; found %s and %s", op, toString(type),
               toString(t->scalar_type()));
  }
  return true;
}

/// The windows of an average pooling along one spatial dim of the input.
struct Windows {
  int64_t in, out;
  int64_t size = 0, stride = 1, padding = 0;  // size 0: adaptive
  bool count_padding = false;

  int64_t first(int64_t i) const {  // the first window that may cover position i
    if (size == 0) return i * out / in;
    return std::max<int64_t>(0, (i + padding - size + stride) / stride);
  }
  int64_t last(int64_t i) const {  // one after the last
    if (size == 0) return std::min(out, ((i + 1) * out + in - 1) / in);
    return std::min(out, (i + padding) / stride + 1);
  }
  int64_t length(int64_t o) const {  // what an average divides by
    if (size == 0) return ((o + 1) * in + out - 1) / out - o * in / out;
    const int64_t begin = o * stride - padding;
    const int64_t end = std::min(begin + size, in + padding);
    return count_padding ? end - begin : std::min(end, in) - std::max<int64_t>(begin, 0);
  }
};

/// The number of pairs of a position and a window that covers it.
Size times_covered(const Windows& w) {
  Size times = 0;
  for (int64_t i = 0; i < w.in; ++i) times += std::max<int64_t>(w.last(i) - w.first(i), 0);
  return times;
}

/// to[i * to_step + j * to_each] = the sum over the windows o that cover position i of
/// from[o * from_step + j * from_each] / length(o), j < n; `by` instead of lengths unless it is 0.
template <class From, class To, class C>
void spread(const Windows& axis, int64_t n, const From* from, int64_t from_step, int64_t from_each,
            To* to, int64_t to_step, int64_t to_each, C by) {
  for (int64_t i = 0; i < axis.in; ++i) {
    const int64_t first = axis.first(i), last = axis.last(i);
    for (int64_t j = 0; j < n; ++j) {
      C sum = 0;
      for (int64_t o = first; o < last; ++o) {
        const C length = by != 0 ? by : static_cast<C>(axis.length(o));
        sum += static_cast<C>(from[o * from_step + j * from_each]) / length;
      }
      to[i * to_step + j * to_each] = static_cast<To>(sum);
    }
  }
}

/// grad_input[i, j] = sum over the windows (y, x) that cover it of grad[y, x] / divisor: along one
/// axis after the other, first the one that leaves less.
void spread_average(KernelRuntimeContext& ctx, const char* op, const Tensor& grad,
                    const Windows& rows, const Windows& columns, std::optional<int64_t> divisor,
                    Tensor& grad_input) {
  if (grad.numel() == 0) return fill(Scalar(0), grad_input);  // its rows may be many
  const int64_t lead = grad_input.dim() - 2;
  const Layout a(grad), b(grad_input);
  const int64_t batch = lead == 2 ? grad_input.size(0) : 1, channels = grad_input.size(lead - 1);
  const Size rows_first = Size(rows.in) * columns.out, columns_first = Size(rows.out) * columns.in;
  const bool by_rows = rows_first.within(columns_first.value_or(INT64_MAX));
  // Each divides thrice.
  const Size steps = by_rows ? times_covered(rows) * columns.out + times_covered(columns) * rows.in
                             : times_covered(columns) * rows.out + times_covered(rows) * columns.in;
  if (!require_affordable(ctx, op, 4 * steps * batch * channels, elements_of(grad, grad_input))) {
    return;
  }
  with_dtype(grad.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_integral_v<T>) {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      EngineScratch scratch(ctx);
      const executorch::cpu::ThreadScratch<C> buffers(scratch,
                                                      by_rows ? rows_first : columns_first);
      if (!require_scratch(ctx, op, static_cast<bool>(buffers))) return;
      const C by = divisor ? static_cast<C>(*divisor) : C(0);
      const int64_t from_row = a.strides[lead], from_column = a.strides[lead + 1];
      const int64_t to_row = b.strides[lead], to_column = b.strides[lead + 1];
      buffers.parallel_for(batch * channels, 1, [&](int64_t p, int64_t end, C* between) {
        for (; p < end; ++p) {
          const int64_t n = p / channels, c = p % channels;
          const T* const from = grad.const_data_ptr<T>() + c * a.strides[lead - 1] +
                                (lead == 2 ? n * a.strides[0] : 0);
          T* const to = grad_input.mutable_data_ptr<T>() + c * b.strides[lead - 1] +
                        (lead == 2 ? n * b.strides[0] : 0);
          // A divisor of all windows divides once.
          const C once = by != 0 ? C(1) : C(0);
          if (by_rows) {
            spread(rows, columns.out, from, from_row, from_column, between, columns.out, 1, by);
            spread(columns, rows.in, between, 1, columns.out, to, to_column, to_row, once);
          } else {
            spread(columns, rows.out, from, from_column, from_row, between, 1, columns.in, by);
            spread(rows, columns.in, between, columns.in, 1, to, to_row, to_column, once);
          }
        }
      });
    }
  });
}

/// Checks that `grad` can be the gradient of a pooling of `self` in the last two dims.
bool require_pooled(KernelRuntimeContext& ctx, const char* op, const Tensor& grad,
                    const Tensor& self) {
  bool fits = (self.dim() == 3 || self.dim() == 4) && grad.dim() == self.dim();
  for (int64_t d = 0; fits && d < self.dim() - 2; ++d) fits = grad.size(d) == self.size(d);
  ET_REQUIRE(ctx, fits, InvalidArgument, false,
             "%s: the gradient's shape %s does not belong to an input of shape %s", op,
             ShapeText(grad).c_str(), ShapeText(self).c_str());
  return true;
}

}  // namespace

Tensor& _adaptive_avg_pool2d_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                          const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "_adaptive_avg_pool2d_backward.out";
  if (!require_one_float(ctx, kOp, {&grad_output, &self, &out}) ||
      !require_pooled(ctx, kOp, grad_output, self) || !resize_out(ctx, kOp, out, self.sizes()) ||
      out.numel() == 0) {
    return out;
  }
  const int64_t h = self.dim() - 2, w = self.dim() - 1;
  spread_average(ctx, kOp, grad_output, {self.size(h), grad_output.size(h)},
                 {self.size(w), grad_output.size(w)}, std::nullopt, out);
  return out;
}

Tensor& avg_pool2d_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                                std::optional<int64_t> divisor_override, Tensor& grad_input) {
  constexpr const char* kOp = "avg_pool2d_backward.grad_input";
  (void)ceil_mode;  // the gradient's shape tells how many windows there are
  int64_t sizes[2], strides[2], paddings[2];
  if (!require_one_float(ctx, kOp, {&grad_output, &self, &grad_input}) ||
      !require_pooled(ctx, kOp, grad_output, self) ||
      !read_spatial_list(ctx, kOp, "kernel_size", kernel_size, 2, 1, nullptr, sizes) ||
      !read_spatial_list(ctx, kOp, "stride", stride, 2, 1, sizes, strides) ||
      !read_spatial_list(ctx, kOp, "padding", padding, 2, 0, nullptr, paddings) ||
      !resize_out(ctx, kOp, grad_input, self.sizes()) || grad_input.numel() == 0) {
    return grad_input;
  }
  ET_REQUIRE(ctx, divisor_override.value_or(1) != 0, InvalidArgument, grad_input,
             "%s: divisor_override must not be zero", kOp);
  const auto windows = [&](int64_t d) {
    const int64_t dim = self.dim() - 2 + d;
    return Windows{self.size(dim), grad_output.size(dim), sizes[d],
                   strides[d],     paddings[d],           count_include_pad};
  };
  for (int64_t d = 0; d < 2; ++d) {  // no window lies beside the input
    const Windows w = windows(d);
    ET_REQUIRE(ctx, (w.out - 1) * w.stride < w.in + w.padding && 2 * w.padding <= w.size,
               InvalidArgument, grad_input, "%s: a gradient of shape %s has too many windows", kOp,
               ShapeText(grad_output).c_str());
  }
  spread_average(ctx, kOp, grad_output, windows(0), windows(1), divisor_override, grad_input);
  return grad_input;
}

namespace {

/// The rows of weights that an embedding's indices name, and where their gradients lie.
struct EmbeddedRows {
  KernelRuntimeContext& ctx;
  const char* op;
  const Tensor &grad, &indices;
  int64_t n_rows, padding_idx;

  /// f(row, offset of its gradient) for all but the padding, up to an index that names no row.
  template <class F>
  void each(const F& f) const {
    const IndexValues values(indices);
    Loop loop(indices.sizes());
    loop.add(Layout(indices).strides).add(Layout(grad).strides);
    int64_t position = 0;
    for_each_run(loop, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i, ++position) {
        const int64_t row = values[at[0] + i * loop.inner_stride(0)];
        if (row == padding_idx) continue;
        if (row < 0 || row >= n_rows) {
          if (ctx.failure_state() == Error::Ok) fail_index(ctx, op, row, position, 0, n_rows, 0);
          return;
        }
        f(row, at[1] + i * loop.inner_stride(1));
      }
    });
  }

  /// The number of times each row is named, in scratch memory; null if that is refused.
  int64_t* count() const {
    const Size bytes = Size(n_rows) * sizeof(int64_t);
    auto memory = ctx.allocate_temp(static_cast<size_t>(bytes.value()), alignof(int64_t));
    ET_REQUIRE(ctx, memory.ok(), MemoryAllocationFailed, nullptr,
               "%s: no scratch memory for %" PRId64 " counts", op, n_rows);
    auto* const counts = static_cast<int64_t*>(memory.get());
    std::fill_n(counts, n_rows, int64_t{0});
    each([&](int64_t row, int64_t) { ++counts[row]; });
    return counts;
  }

  /// to[row] += its gradients, divided by the row's count if there are counts.
  template <class T>
  void add_to(const Tensor& out, const int64_t* counts) const {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Layout from(grad), to(out);
    const int64_t width = out.size(1), step = from.strides[grad.dim() - 1];
    const T* src = grad.const_data_ptr<T>();
    T* dst = out.mutable_data_ptr<T>();
    each([&](int64_t row, int64_t offset) {
      const C scale = counts == nullptr ? C(1) : C(1) / static_cast<C>(counts[row]);
      for (int64_t i = 0; i < width; ++i) {
        T& sum = dst[row * to.strides[0] + i * to.strides[1]];
        sum = static_cast<T>(static_cast<C>(sum) + scale * static_cast<C>(src[offset + i * step]));
      }
    });
  }
};

}  // namespace

Tensor& embedding_dense_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                     const Tensor& indices, int64_t num_weights,
                                     int64_t padding_idx, bool scale_grad_by_freq, Tensor& out) {
  constexpr const char* kOp = "embedding_dense_backward.out";
  const int64_t rank = grad_output.dim();
  bool fits = rank == indices.dim() + 1 && num_weights >= 0 && num_weights <= INT32_MAX;
  for (int64_t d = 0; fits && d < indices.dim(); ++d) fits = grad_output.size(d) == indices.size(d);
  ET_REQUIRE(ctx, fits, InvalidArgument, out,
             "%s: a gradient of shape %s does not belong to indices of shape %s", kOp,
             ShapeText(grad_output).c_str(), ShapeText(indices).c_str());
  if (!require_one_float(ctx, kOp, {&grad_output, &out}) ||
      !require_index(ctx, kOp, indices, out)) {
    return out;
  }
  if (!resize_out(ctx, kOp, out, Shape{num_weights, grad_output.size(rank - 1)})) return out;
  fill(Scalar(0), out);
  const EmbeddedRows rows{ctx, kOp, grad_output, indices, num_weights, padding_idx};
  const int64_t* const counts = scale_grad_by_freq ? rows.count() : nullptr;
  if (scale_grad_by_freq && counts == nullptr) return out;
  with_dtype(out.scalar_type(), [&](auto tag) {
    if constexpr (!std::is_integral_v<decltype(tag)>) rows.add_to<decltype(tag)>(out, counts);
  });
  return out;
}

namespace {

constexpr int64_t kChunk = 512;

/// A tensor's elements in logical order, in runs of C.
template <class C>
struct Elements {
  Loop loop;
  const Tensor& tensor;
  explicit Elements(const Tensor& t) : loop(t.sizes()), tensor(t) { loop.add(t).collapse(); }
  void read(int64_t pos, int64_t n, C* to) const {
    gather(loop, 0, tensor.const_data_ptr(), tensor.scalar_type(), pos, n, to);
  }
  void write(int64_t pos, int64_t n, const C* from) const {
    scatter(loop, 0, tensor.mutable_data_ptr(), tensor.scalar_type(), pos, n, from);
  }
};

/// The normalization of n_groups runs of `n` elements: element i of run g has the weight
/// (g % n_kinds) * n_weights + i / n_per_weight.
struct Groups {
  int64_t n_groups, n;
  int64_t n_kinds = 1, n_weights, n_per_weight;
};

/// With x' = (x - mean) rstd and g' = g w:
///   grad_input = rstd (g' - mean(g') - x' mean(g' x')),  grad_weight = sum g x',  grad_bias = sum
///   g
template <class C>
class NormGradient {
 public:
  NormGradient(const Groups& groups, const Tensor& grad, const Tensor& input, const Tensor& mean,
               const Tensor& rstd, const std::optional<Tensor>& weight)
      : groups_(groups), grad_(grad), input_(input), mean_(mean), rstd_(rstd), weight_(weight) {}

  void input_gradient(Tensor& out) const {
    const Elements<C> to(out);
    for (int64_t g = 0; g < groups_.n_groups; ++g) {
      double sum = 0, product = 0;
      chunks(g, [&](int64_t, int64_t n, const C* x, const C* gw, C*) {
        for (int64_t i = 0; i < n; ++i) {
          sum += static_cast<double>(gw[i]);
          product += static_cast<double>(gw[i]) * static_cast<double>(x[i]);
        }
      });
      const C a = static_cast<C>(sum / static_cast<double>(groups_.n));
      const C b = static_cast<C>(product / static_cast<double>(groups_.n));
      const C rstd = load_at<C>(rstd_, g);
      chunks(g, [&](int64_t pos, int64_t n, const C* x, const C* gw, C* y) {
        for (int64_t i = 0; i < n; ++i) y[i] = rstd * (gw[i] - a - x[i] * b);
        to.write(pos, n, y);
      });
    }
  }

  /// Sums over the runs, for each weight; either tensor may be absent.
  void parameter_gradients(Tensor* weight, Tensor* bias) const {
    const int64_t total = groups_.n_kinds * groups_.n_weights;
    for (int64_t w = 0; w < total; ++w) {
      double gx = 0, gs = 0;
      const int64_t end = groups_.n == 0 ? 0 : groups_.n_groups;
      for (int64_t g = w / groups_.n_weights; g < end; g += groups_.n_kinds) {
        const int64_t first = w % groups_.n_weights * groups_.n_per_weight;
        const C mean = load_at<C>(mean_, g), rstd = load_at<C>(rstd_, g);
        C x[kChunk], dy[kChunk];
        for (int64_t i = 0; i < groups_.n_per_weight; i += kChunk) {
          const int64_t n = std::min(kChunk, groups_.n_per_weight - i);
          const int64_t pos = g * groups_.n + first + i;
          input_.read(pos, n, x);
          grad_.read(pos, n, dy);
          for (int64_t j = 0; j < n; ++j) {
            gs += static_cast<double>(dy[j]);
            gx += static_cast<double>(dy[j]) * static_cast<double>((x[j] - mean) * rstd);
          }
        }
      }
      if (weight != nullptr) store_at(gx, *weight, w);
      if (bias != nullptr) store_at(gs, *bias, w);
    }
  }

 private:
  /// f(position, n, x', g w, room for n) for the chunks of run g.
  template <class F>
  void chunks(int64_t g, F&& f) const {
    const C mean = load_at<C>(mean_, g), rstd = load_at<C>(rstd_, g);
    C x[kChunk], dy[kChunk], room[kChunk];
    for (int64_t i = 0; i < groups_.n; i += kChunk) {
      const int64_t n = std::min(kChunk, groups_.n - i), pos = g * groups_.n + i;
      input_.read(pos, n, x);
      grad_.read(pos, n, dy);
      for (int64_t j = 0; j < n; ++j) x[j] = (x[j] - mean) * rstd;
      if (weight_.has_value()) {
        for (int64_t j = 0; j < n; ++j) {
          dy[j] *= load_at<C>(
              *weight_, g % groups_.n_kinds * groups_.n_weights + (i + j) / groups_.n_per_weight);
        }
      }
      f(pos, n, x, dy, room);
    }
  }

  Groups groups_;
  Elements<C> grad_, input_;
  const Tensor &mean_, &rstd_;
  const std::optional<Tensor>& weight_;
};

/// The gradients that `mask` asks for; the others become empty.
TensorTriple norm_gradient(KernelRuntimeContext& ctx, const char* op, const Groups& groups,
                           const Tensor& grad, const Tensor& input, const Tensor& mean,
                           const Tensor& rstd, const std::optional<Tensor>& weight,
                           ArrayRef<SizesType> parameter_shape, ArrayRef<bool> mask, Tensor& out0,
                           Tensor& out1, Tensor& out2) {
  const TensorTriple result(out0, out1, out2);
  ET_REQUIRE(ctx,
             grad.sizes().equals(input.sizes()) && mean.numel() == groups.n_groups &&
                 rstd.numel() == groups.n_groups && mask.size() == 3 && is_contiguous(mean) &&
                 is_contiguous(rstd) &&
                 (!weight.has_value() ||
                  (weight->numel() == groups.n_kinds * groups.n_weights && is_contiguous(*weight))),
             InvalidArgument, result,
             "%s: gradient %s, mean %s and rstd %s do not belong to an input of shape %s", op,
             ShapeText(grad).c_str(), ShapeText(mean).c_str(), ShapeText(rstd).c_str(),
             ShapeText(input).c_str());
  for (const Tensor* t : {&grad, &input, &mean, &rstd, weight.has_value() ? &*weight : &grad}) {
    ET_REQUIRE(ctx, is_float(t->scalar_type()), InvalidArgument, result,
               "%s: a tensor is %s, expected a floating type", op, toString(t->scalar_type()));
  }
  const Shape empty{0};
  if (!resize_out(ctx, op, out0, mask[0] ? input.sizes() : empty) ||
      !resize_out(ctx, op, out1, mask[1] ? parameter_shape : empty) ||
      !resize_out(ctx, op, out2, mask[2] ? parameter_shape : empty)) {
    return result;
  }
  with_float_compute(compute_of(input.scalar_type()), [&](auto tag) {
    const NormGradient<decltype(tag)> gradient(groups, grad, input, mean, rstd, weight);
    if (mask[0]) gradient.input_gradient(out0);
    if (mask[1] || mask[2]) {
      gradient.parameter_gradients(mask[1] ? &out1 : nullptr, mask[2] ? &out2 : nullptr);
    }
  });
  return result;
}

}  // namespace

TensorTriple native_layer_norm_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_out,
                                            const Tensor& input, IntArrayRef normalized_shape,
                                            const Tensor& mean, const Tensor& rstd,
                                            const std::optional<Tensor>& weight,
                                            const std::optional<Tensor>& bias,
                                            ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                            Tensor& out2) {
  constexpr const char* kOp = "native_layer_norm_backward.out";
  (void)bias;
  const int64_t n_dims = static_cast<int64_t>(normalized_shape.size()), rank = input.dim();
  bool fits = n_dims >= 1 && n_dims <= rank;
  Shape shape;
  for (int64_t d = rank - n_dims; fits && d < rank; ++d) {
    fits = input.size(d) == normalized_shape[static_cast<size_t>(d - (rank - n_dims))];
    shape.push(input.size(d));
  }
  ET_REQUIRE(ctx, fits, InvalidArgument, TensorTriple(out0, out1, out2),
             "%s: normalized_shape %s is not the end of the input's shape %s", kOp,
             ShapeText(normalized_shape).c_str(), ShapeText(input).c_str());
  const int64_t n = shape.numel().value();  // a part of the input's shape
  const Groups groups{
      .n_groups = n == 0 ? 0 : input.numel() / n, .n = n, .n_weights = n, .n_per_weight = 1};
  return norm_gradient(ctx, kOp, groups, grad_out, input, mean, rstd, weight, shape, output_mask,
                       out0, out1, out2);
}

TensorTriple native_group_norm_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_out,
                                            const Tensor& input, const Tensor& mean,
                                            const Tensor& rstd, const std::optional<Tensor>& weight,
                                            int64_t N, int64_t C, int64_t HxW, int64_t group,
                                            ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                            Tensor& out2) {
  constexpr const char* kOp = "native_group_norm_backward.out";
  ET_REQUIRE(ctx,
             input.dim() >= 2 && input.size(0) == N && input.size(1) == C &&
                 (Size(N) * C * HxW).within(INT64_MAX) &&
                 input.numel() == (Size(N) * C * HxW).value() && HxW >= 0 && group > 0 &&
                 C % group == 0 && (Size(N) * group).ok(),
             InvalidArgument, TensorTriple(out0, out1, out2),
             "%s: an input of shape %s does not have N=%" PRId64 ", C=%" PRId64 " and HxW=%" PRId64
             " in %" PRId64 " groups",
             kOp, ShapeText(input).c_str(), N, C, HxW, group);
  const Groups groups{.n_groups = N * group,
                      .n = input.numel() == 0 ? 0 : C / group * HxW,
                      .n_kinds = group,
                      .n_weights = C / group,
                      .n_per_weight = HxW};
  const SizesType channels = static_cast<SizesType>(C);
  return norm_gradient(ctx, kOp, groups, grad_out, input, mean, rstd, weight, {&channels, 1},
                       output_mask, out0, out1, out2);
}

namespace {
constexpr Kernel kGradientOps[] = {
    ET_OP("aten::_adaptive_avg_pool2d_backward.out", _adaptive_avg_pool2d_backward_out),
    ET_OP("aten::avg_pool2d_backward.grad_input", avg_pool2d_backward_out),
    ET_OP("aten::embedding_dense_backward.out", embedding_dense_backward_out),
    ET_OP("aten::native_group_norm_backward.out", native_group_norm_backward_out),
    ET_OP("aten::native_layer_norm_backward.out", native_layer_norm_backward_out),
};
}  // namespace

Span<const Kernel> gradient_ops() {
  return kGradientOps;
}

}  // namespace torch::executor::native
