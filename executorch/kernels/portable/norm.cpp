/// Layer, group and batch normalization: y = (x - mean) * rstd * weight + bias with
/// rstd = 1 / sqrt(variance + eps), where mean and variance are over a row (layer, group) or over
/// all but the channel dim (batch).
#include <executorch/cpu/nn/norm.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/moments.h>
#include <executorch/kernels/portable/internal/norm_operands.h>
#include <executorch/kernels/portable/internal/reduce.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>

namespace torch::executor::native {

using namespace internal;

namespace {

constexpr int64_t kChunk = 1024;

/// Parameters as the engine takes them, converted to float if they are stored otherwise, and memory
/// for statistics: four arrays of `n` elements.
class Parameters {
 public:
  Parameters(executorch::cpu::Scratch& scratch, int64_t n)
      : n_(n), room_(scratch.array<float>(executorch::cpu::Size(n) * 4)) {}
  /// False if the memory was refused.
  explicit operator bool() const { return room_ != nullptr; }
  float* room(int place) { return room_ + place * n_; }
  const float* read(const Tensor& t, int place) {
    if (t.scalar_type() == ScalarType::Float) return t.const_data_ptr<float>();
    load(t.const_data_ptr(), t.scalar_type(), 1, t.numel(), room(place));
    return room(place);
  }
  const float* read(const std::optional<Tensor>& t, int place) {
    return t.has_value() ? read(*t, place) : nullptr;
  }

 private:
  int64_t n_;
  float* room_;
};

/// Normalizes rows of `n` elements by the engine. Returns false for Double, and for layouts other
/// than row-major.
bool normalize_rows(KernelRuntimeContext& ctx, const Tensor& in, int64_t rows, int64_t n,
                    int64_t inner, int64_t period, const std::optional<Tensor>& weight,
                    const std::optional<Tensor>& bias, double eps, Tensor& out, Tensor& mean,
                    Tensor& rstd) {
  const auto type = engine_type(in.scalar_type());
  if (!type.has_value() || in.scalar_type() != out.scalar_type() || !is_contiguous(in) ||
      !is_contiguous(out)) {
    return false;
  }
  EngineScratch scratch(ctx);
  Parameters parameters(scratch, std::max(rows, period * (n / inner)));
  if (!parameters) return false;
  executorch::cpu::NormalizeRows a;
  a.type = *type;
  a.rows = rows, a.n = n, a.inner = inner, a.weight_period = period;
  a.eps = eps;
  a.x = in.const_data_ptr();
  a.y = out.mutable_data_ptr();
  a.weight = parameters.read(weight, 0);
  a.bias = parameters.read(bias, 1);
  a.mean = parameters.room(2);
  a.rstd = parameters.room(3);
  a.run();
  store(a.mean, mean.numel(), mean.mutable_data_ptr(), mean.scalar_type(), 1);
  store(a.rstd, rstd.numel(), rstd.mutable_data_ptr(), rstd.scalar_type(), 1);
  return true;
}

template <class C>
Moments<C> moments_of(const Rows<C>& rows, int64_t pos, int64_t n) {
  C chunk[kChunk];
  Moments<C> moments;
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    moments.fold(rows.read(pos + i, m, chunk), m, i);
  }
  return moments;
}

template <class C>
C rstd_of(const Moments<C>& moments, double eps) {
  return static_cast<C>(1 / std::sqrt(moments.squares / static_cast<double>(moments.n) + eps));
}

/// y = x * scale + shift over n elements from `pos`, with one scale and one shift.
template <class C>
void affine(const Rows<C>& rows, int64_t pos, int64_t n, C scale, C shift) {
  C in_chunk[kChunk], out_chunk[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    const C* x = rows.read(pos + i, m, in_chunk);
    C* y = rows.room(pos + i, out_chunk);
#pragma GCC ivdep
    for (int64_t j = 0; j < m; ++j) y[j] = x[j] * scale + shift;
    rows.write(pos + i, m, y);
  }
}

template <class C>
void layer_norm(const Rows<C>& rows, int64_t n_rows, int64_t n, const Vector<C>& weight,
                const Vector<C>& bias, double eps, Tensor& mean_out, Tensor& rstd_out) {
  C in_chunk[kChunk], out_chunk[kChunk], w_chunk[kChunk], b_chunk[kChunk];
  for (int64_t row = 0; row < n_rows; ++row) {
    const Moments<C> moments = moments_of(rows, row * n, n);
    const C mean = static_cast<C>(moments.mean);
    const C rstd = rstd_of(moments, eps);
    store_at(mean, mean_out, row);
    store_at(rstd, rstd_out, row);
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = std::min(kChunk, n - i);
      const C* x = rows.read(row * n + i, m, in_chunk);
      const C* w = weight.read(i, m, w_chunk);
      const C* b = bias.read(i, m, b_chunk);
      C* y = rows.room(row * n + i, out_chunk);
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) y[j] = (x[j] - mean) * rstd * w[j] + b[j];
      rows.write(row * n + i, m, y);
    }
  }
}

/// Checks that a parameter, if present, is a contiguous floating tensor of `n` elements.
bool check_parameter(KernelRuntimeContext& ctx, const char* op, const char* name, const Tensor* t,
                     int64_t n) {
  ET_REQUIRE(ctx,
             t == nullptr || (is_float(t->scalar_type()) && t->numel() == n && is_contiguous(*t)),
             InvalidArgument, false, "%s: %s has shape %s and type %s, expected %lld floats", op,
             name, ShapeText(*t).c_str(), toString(t->scalar_type()), static_cast<long long>(n));
  return true;
}

const Tensor* get(const std::optional<Tensor>& t) {
  return t.has_value() ? &*t : nullptr;
}

bool check_floats(KernelRuntimeContext& ctx, const char* op,
                  std::initializer_list<const Tensor*> ts) {
  for (const Tensor* t : ts) {
    ET_REQUIRE(ctx, is_float(t->scalar_type()), InvalidArgument, false,
               "%s: a tensor is %s, expected a floating type", op, toString(t->scalar_type()));
  }
  return true;
}

/// Checks the operands of a norm of rows, of `n` weights, and gives its results their shapes.
bool prepare_rows(KernelRuntimeContext& ctx, const char* op, const Tensor& in,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, int64_t n,
                  const Shape& stats, const TensorTriple& results) {
  const auto& [out, mean, rstd] = results;
  return check_floats(ctx, op, {&in, &out, &mean, &rstd}) &&
         check_parameter(ctx, op, "weight", get(weight), n) &&
         check_parameter(ctx, op, "bias", get(bias), n) && resize_out(ctx, op, out, in.sizes()) &&
         resize_out(ctx, op, mean, stats) && resize_out(ctx, op, rstd, stats);
}

/// The same of a batch norm; its saved statistics are left.
bool prepare_channels(KernelRuntimeContext& ctx, const char* op, const Tensor& in,
                      std::initializer_list<const Tensor*> parameters, Tensor& out) {
  if (!check_floats(ctx, op, {&in, &out})) return false;
  ET_REQUIRE(ctx, in.dim() >= 2, InvalidArgument, false,
             "%s: the input has shape %s, expected at least 2 dims", op, ShapeText(in).c_str());
  for (const Tensor* t : parameters) {
    if (!check_parameter(ctx, op, "a parameter", t, in.size(1))) return false;
  }
  return resize_out(ctx, op, out, in.sizes());
}

/// A channel's normalization as x * scale + shift. `spread` holds variances, or values of rstd if
/// `is_rstd`.
template <class C>
struct Channels {
  Vector<C> mean, spread;
  bool is_rstd;
  double eps;
  Vector<C> weight, bias;

  void coefficients(int64_t first, int64_t n, C* scale, C* shift) const {
    for (int64_t i = 0; i < n; ++i) {
      const C s = spread.at(first + i);
      scale[i] = (is_rstd ? s : 1 / std::sqrt(s + static_cast<C>(eps))) * weight.at(first + i);
      shift[i] = bias.at(first + i) - mean.at(first + i) * scale[i];
    }
  }
};

/// Scales channels by the engine. Returns false if types or layouts differ, or if memory is
/// refused.
bool scale_channels(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& out,
                    const Channels<float>& channels) {
  const auto type = engine_type(in.scalar_type());
  if (!type.has_value() || in.scalar_type() != out.scalar_type() || !same_layout(in, out)) {
    return false;
  }
  const int64_t n = in.size(1), inner = n == 1 ? in.numel() : in.strides()[1];
  EngineScratch scratch(ctx);
  Parameters parameters(scratch, n);
  if (!parameters) return false;
  float *const scale = parameters.room(0), *const shift = parameters.room(1);
  channels.coefficients(0, n, scale, shift);
  const int64_t batch = in.numel() / std::max<int64_t>(n * inner, 1);
  executorch::cpu::ScaleChannels{
      *type, batch, n, inner, in.const_data_ptr(), out.mutable_data_ptr(), scale, shift}
      .run();
  return true;
}

/// Normalizes each channel (dim 1).
template <class C>
void normalize_channels(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& out,
                        const Channels<C>& channels) {
  if constexpr (std::is_same_v<C, float>) {
    if (scale_channels(ctx, in, out, channels)) return;
  }
  Loop loop(out.sizes());
  int64_t channel[kTensorDimensionLimit] = {};
  channel[1] = 1;
  loop.add(out).add(in).add(channel).order_by(0);
  loop.collapse();
  const int inner = loop.ndim - 1;
  const int64_t step = inner < 0 ? 0 : loop.strides[1][inner];
  const bool per_element = inner >= 0 && loop.strides[2][inner] != 0;
  const char* from = static_cast<const char*>(in.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  C x[kChunk], scale[kChunk], shift[kChunk];
  const auto run = [&](const int64_t* at, int64_t first, int64_t n) {
    load(from + (at[1] + first * step) * in.element_size(), in.scalar_type(), step, n, x);
    if (per_element) {
      for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale[i] + shift[i];
    } else {
      const C a = scale[0], b = shift[0];
      for (int64_t i = 0; i < n; ++i) x[i] = x[i] * a + b;
    }
    store(x, n, to + (at[0] + first) * out.element_size(), out.scalar_type(), 1);
  };
  if (per_element) {  // the channel dim is innermost: the same coefficients for every run
    const int64_t n_channels = loop.sizes[inner];
    for (int64_t c = 0; c < n_channels; c += kChunk) {
      const int64_t n = std::min(kChunk, n_channels - c);
      channels.coefficients(c, n, scale, shift);
      for_each_run(loop, [&](const int64_t* at, int64_t) { run(at, c, n); });
    }
    return;
  }
  for_each_run(loop, [&](const int64_t* at, int64_t length) {
    channels.coefficients(at[2], 1, scale, shift);
    for (int64_t i = 0; i < length; i += kChunk) run(at, i, std::min(kChunk, length - i));
  });
}

/// Batch norm with the statistics of `mean` and `variance`; the saved statistics are empty.
void batch_norm_inference(KernelRuntimeContext& ctx, const char* op, const Tensor& in,
                          const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                          const Tensor& mean, const Tensor& variance, double eps, Tensor& out,
                          Tensor& saved_mean, Tensor& saved_rstd) {
  if (!prepare_channels(ctx, op, in, {get(weight), get(bias), &mean, &variance}, out) ||
      !resize_out(ctx, op, saved_mean, Shape{0}) || !resize_out(ctx, op, saved_rstd, Shape{0}) ||
      out.numel() == 0) {
    return;
  }
  with_float_compute(compute_of(in.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    normalize_channels<C>(
        ctx, in, out, {Vector<C>(mean), Vector<C>(variance), false, eps, {weight, 1}, {bias, 0}});
  });
}

/// Batch norm with the batch's own statistics, which are saved; the running statistics, unless
/// null, move towards them by `momentum`.
void batch_norm_training(KernelRuntimeContext& ctx, const char* op, const Tensor& in,
                         const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                         Tensor* running_mean, Tensor* running_var, double momentum, double eps,
                         Tensor& out, Tensor& saved_mean, Tensor& saved_rstd) {
  Reduction r;
  if (!prepare_channels(ctx, op, in, {get(weight), get(bias), running_mean, running_var}, out) ||
      !check_floats(ctx, op, {&saved_mean, &saved_rstd}) ||
      !prepare(ctx, op, in, ((uint32_t{1} << in.dim()) - 1) & ~uint32_t{2}, false, false,
               {&saved_mean, &saved_rstd}, r)) {
    return;
  }
  ET_REQUIRE(ctx, r.reduced.numel > 0, InvalidArgument, ,
             "%s: an input of shape %s has no values per channel", op, ShapeText(in).c_str());
  const auto blend = [&](Tensor* running, int64_t c, double value) {
    if (running == nullptr) return;
    store_at((1 - momentum) * load_at<double>(*running, c) + momentum * value, *running, c);
  };
  with_float_compute(compute_of(in.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    // Those that are saved may have 16 bits.
    EngineScratch scratch(ctx);
    executorch::cpu::Scratch& memory = scratch;
    const int64_t channels = saved_mean.numel();
    C* const means = memory.array<C>(executorch::cpu::Size(channels) * 2);
    if (!require_scratch(ctx, op, means != nullptr)) return;
    C* const rstds = means + channels;
    reduce<C>(r, Moments<C>(), [&](const Moments<C>& moments, const int64_t* at) {
      means[at[0]] = static_cast<C>(moments.mean);
      rstds[at[0]] = rstd_of(moments, eps);
      store_at(means[at[0]], saved_mean, at[0]);
      store_at(rstds[at[0]], saved_rstd, at[1]);
      blend(running_mean, at[0], moments.mean);
      blend(running_var, at[0], moments.squares / static_cast<double>(moments.n - 1));
    });
    normalize_channels<C>(ctx, in, out,
                          {Vector<C>(means), Vector<C>(rstds), true, eps, {weight, 1}, {bias, 0}});
  });
}

}  // namespace

TensorTriple native_layer_norm_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   IntArrayRef normalized_shape,
                                   const std::optional<Tensor>& weight,
                                   const std::optional<Tensor>& bias, double eps, Tensor& out0,
                                   Tensor& out1, Tensor& out2) {
  constexpr const char* kOp = "native_layer_norm.out";
  const TensorTriple result(out0, out1, out2);
  const int64_t rank = input.dim(), n_dims = static_cast<int64_t>(normalized_shape.size());
  Shape stats, outside, inside;
  bool matches = n_dims >= 1 && n_dims <= rank;
  for (int64_t d = 0; matches && d < rank; ++d) {
    const bool inner = d >= rank - n_dims;
    matches = !inner || input.size(d) == normalized_shape[static_cast<size_t>(d - (rank - n_dims))];
    (inner ? inside : outside).push(input.size(d));
    stats.push(inner ? 1 : input.size(d));
  }
  ET_REQUIRE(ctx, matches, InvalidArgument, result,
             "%s: normalized_shape %s is not the end of the input's shape %s", kOp,
             ShapeText(normalized_shape).c_str(), ShapeText(input).c_str());
  // One of them may be beyond int64 where the other is 0, and then nothing is done.
  const int64_t n_rows = outside.numel().value_or(0), n = inside.numel().value_or(0);
  if (!prepare_rows(ctx, kOp, input, weight, bias, n, stats, result)) return result;
  if (n_rows > 0 && n > 0 &&
      normalize_rows(ctx, input, n_rows, n, 1, 1, weight, bias, eps, out0, out1, out2)) {
    return result;
  }
  with_float_compute(compute_of(input.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    layer_norm<C>(Rows<C>(input, out0), n_rows, n, Vector<C>(weight, 1), Vector<C>(bias, 0), eps,
                  out1, out2);
  });
  return result;
}

TensorTriple native_group_norm_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const std::optional<Tensor>& weight,
                                   const std::optional<Tensor>& bias, int64_t N, int64_t C,
                                   int64_t HxW, int64_t group, double eps, Tensor& out0,
                                   Tensor& out1, Tensor& out2) {
  constexpr const char* kOp = "native_group_norm.out";
  const TensorTriple result(out0, out1, out2);
  ET_REQUIRE(ctx,
             input.dim() >= 2 && input.size(0) == N && input.size(1) == C && HxW >= 0 &&
                 (Size(N) * C * HxW).value_or(-1) == input.numel() && group > 0 && C % group == 0,
             InvalidArgument, result,
             "%s: an input of shape %s does not have N=%lld, C=%lld and HxW=%lld in %lld groups",
             kOp, ShapeText(input).c_str(), static_cast<long long>(N), static_cast<long long>(C),
             static_cast<long long>(HxW), static_cast<long long>(group));
  Shape stats{N, group};
  if (!prepare_rows(ctx, kOp, input, weight, bias, C, stats, result)) return result;
  const int64_t per_group = C / group;
  if (input.numel() > 0 && normalize_rows(ctx, input, N * group, per_group * HxW, HxW, group,
                                          weight, bias, eps, out0, out1, out2)) {
    return result;
  }
  with_float_compute(compute_of(input.scalar_type()), [&](auto tag) {
    using T = decltype(tag);
    const Rows<T> rows(input, out0);
    const Vector<T> w(weight, 1), b(bias, 0);
    for (int64_t i = 0; i < N * group; ++i) {
      const int64_t first = i * per_group * HxW;
      const Moments<T> moments = moments_of(rows, first, per_group * HxW);
      const T mean = static_cast<T>(moments.mean);
      const T rstd = rstd_of(moments, eps);
      store_at(mean, out1, i);
      store_at(rstd, out2, i);
      for (int64_t c = 0; c < per_group; ++c) {
        const int64_t channel = i % group * per_group + c;
        const T scale = rstd * w.at(channel);
        affine(rows, first + c * HxW, HxW, scale, b.at(channel) - mean * scale);
      }
    }
  });
  return result;
}

TensorTriple _native_batch_norm_legit_no_training_out(
    KernelRuntimeContext& ctx, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias, const Tensor& running_mean, const Tensor& running_var,
    double, double eps, Tensor& out0, Tensor& out1, Tensor& out2) {
  batch_norm_inference(ctx, "_native_batch_norm_legit_no_training.out", input, weight, bias,
                       running_mean, running_var, eps, out0, out1, out2);
  return {out0, out1, out2};
}

TensorTriple _native_batch_norm_legit_out(KernelRuntimeContext& ctx, const Tensor& input,
                                          const std::optional<Tensor>& weight,
                                          const std::optional<Tensor>& bias, Tensor& running_mean,
                                          Tensor& running_var, bool training, double momentum,
                                          double eps, Tensor& out, Tensor& save_mean,
                                          Tensor& save_invstd) {
  constexpr const char* kOp = "_native_batch_norm_legit.out";
  if (training) {
    batch_norm_training(ctx, kOp, input, weight, bias, &running_mean, &running_var, momentum, eps,
                        out, save_mean, save_invstd);
  } else {
    batch_norm_inference(ctx, kOp, input, weight, bias, running_mean, running_var, eps, out,
                         save_mean, save_invstd);
  }
  return {out, save_mean, save_invstd};
}

TensorTriple _native_batch_norm_legit_no_stats_out(KernelRuntimeContext& ctx, const Tensor& input,
                                                   const std::optional<Tensor>& weight,
                                                   const std::optional<Tensor>& bias, bool training,
                                                   double momentum, double eps, Tensor& out,
                                                   Tensor& save_mean, Tensor& save_invstd) {
  constexpr const char* kOp = "_native_batch_norm_legit.no_stats_out";
  const TensorTriple result(out, save_mean, save_invstd);
  ET_REQUIRE(ctx, training, InvalidArgument, result,
             "%s: without running statistics training must be true", kOp);
  batch_norm_training(ctx, kOp, input, weight, bias, nullptr, nullptr, momentum, eps, out,
                      save_mean, save_invstd);
  return result;
}

namespace {

constexpr Kernel kNormOps[] = {
    ET_OP("aten::native_layer_norm.out", native_layer_norm_out),
    ET_OP("aten::native_group_norm.out", native_group_norm_out),
    ET_OP("aten::_native_batch_norm_legit_no_training.out",
          _native_batch_norm_legit_no_training_out),
    ET_OP("aten::_native_batch_norm_legit.out", _native_batch_norm_legit_out),
    ET_OP("aten::_native_batch_norm_legit.no_stats_out", _native_batch_norm_legit_no_stats_out),
};

}  // namespace

Span<const Kernel> norm_ops() {
  return kNormOps;
}

}  // namespace torch::executor::native
