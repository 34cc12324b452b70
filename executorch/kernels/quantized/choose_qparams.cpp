#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/quantized/affine.h>
#include <executorch/kernels/quantized/functions.h>
#include <executorch/kernels/quantized/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <atomic>
#include <cmath>
#include <limits>

// Scales and zero points from the smallest and the largest value.
namespace torch::executor::native {

using namespace internal;

namespace {

constexpr int64_t kLanes = 16;

struct Extremes {
  float low = 0, high = 0;  // zero always belongs to the range
  bool has_nan = false;

  void fold(const float* x, int64_t n) {
    float lows[kLanes] = {}, highs[kLanes] = {};
    uint32_t nans[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) {
        lows[j] = x[i + j] < lows[j] ? x[i + j] : lows[j];
        highs[j] = x[i + j] > highs[j] ? x[i + j] : highs[j];
        nans[j] |= x[i + j] != x[i + j];
      }
    }
    for (int64_t j = 0; j < kLanes; ++j) merge({lows[j], highs[j], nans[j] != 0});
    for (; i < n; ++i) merge({x[i], x[i], x[i] != x[i]});
  }
  void merge(const Extremes& other) {
    low = other.low < low ? other.low : low;
    high = other.high > high ? other.high : high;
    has_nan |= other.has_nan;
  }
};

struct Parameters {
  double scale, zero_point;
};

bool require_floats(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                    const Tensor& scale, const Tensor& zero_point) {
  ET_REQUIRE(ctx,
             is_float(input.scalar_type()) && is_float(scale.scalar_type()) &&
                 is_real(zero_point.scalar_type()),
             InvalidArgument, false,
             "%s: an input of %s with a scale of %s and a zero point of %s; the first two must be "
             "floating",
             op, toString(input.scalar_type()), toString(scale.scalar_type()),
             toString(zero_point.scalar_type()));
  return true;
}

constexpr int64_t kChunk = 1024;

/// The input's elements in logical order, in runs of float.
struct Elements {
  const Tensor& input;
  Loop loop;
  bool direct;

  explicit Elements(const Tensor& t) : input(t), loop(t.sizes()) {
    loop.add(t).collapse();
    direct = loop.is_dense(0) && t.scalar_type() == ScalarType::Float;
  }
  Extremes extremes(int64_t begin, int64_t end) const {
    Extremes result;
    float chunk[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      if (direct) {
        result.fold(input.const_data_ptr<float>() + i, n);
        continue;
      }
      gather(loop, 0, input.const_data_ptr(), input.scalar_type(), i, n, chunk);
      result.fold(chunk, n);
    }
    return result;
  }
};

void put(const Parameters& p, int64_t i, Tensor& scale, Tensor& zero_point) {
  store_at(p.scale, scale, i);
  store_at(p.zero_point, zero_point, i);
}

/// For each of `n_rows` runs of the input, in logical order, choose(extremes) -> Parameters. A
/// single run is shared by the threads.
template <class Choose>
void choose_rows(KernelRuntimeContext& ctx, const char* op, const Tensor& input, int64_t n_rows,
                 Tensor& scale, Tensor& zero_point, const Choose& choose) {
  constexpr int64_t kMaxParts = 64, kPart = 32768;
  const Elements elements(input);
  const int64_t n = n_rows == 0 ? 0 : input.numel() / n_rows;
  std::atomic<bool> has_nan = false;
  if (n_rows == 1) {
    Extremes parts[kMaxParts], whole;
    const int64_t n_parts = std::clamp<int64_t>(n / kPart, 1, kMaxParts);
    const int64_t part = (n + n_parts - 1) / n_parts;
    executorch::cpu::parallel_for(n_parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        parts[i] = elements.extremes(i * part, std::min(n, (i + 1) * part));
      }
    });
    for (const Extremes& e : parts) whole.merge(e);
    has_nan = whole.has_nan;
    put(choose(whole), 0, scale, zero_point);
  } else {
    executorch::cpu::parallel_for(n_rows, std::max<int64_t>(1, kPart / std::max<int64_t>(n, 1)),
                                  [&](int64_t begin, int64_t end) {
                                    for (int64_t row = begin; row < end; ++row) {
                                      const Extremes e = elements.extremes(row * n, (row + 1) * n);
                                      if (e.has_nan) has_nan = true;
                                      put(choose(e), row, scale, zero_point);
                                    }
                                  });
  }
  ET_REQUIRE(ctx, !has_nan, InvalidArgument, , "%s: the input contains NaN", op);
}

TensorPair choose_for_tensor(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                             int64_t quant_min, int64_t quant_max, double eps, bool symmetric,
                             ScalarType dtype, Tensor& scale_out, Tensor& zero_point_out) {
  const TensorPair result(scale_out, zero_point_out);
  const SizesType one = 1;
  ET_REQUIRE(ctx, quant_min < quant_max && input.numel() > 0, InvalidArgument, result,
             "%s: the range [%lld, %lld] or the input of shape %s is empty", op,
             static_cast<long long>(quant_min), static_cast<long long>(quant_max),
             ShapeText(input).c_str());
  if (!require_floats(ctx, op, input, scale_out, zero_point_out) ||
      !resize_out(ctx, op, scale_out, {&one, 1}) ||
      !resize_out(ctx, op, zero_point_out, {&one, 1})) {
    return result;
  }
  const float low = static_cast<float>(quant_min), high = static_cast<float>(quant_max);
  choose_rows(ctx, op, input, 1, scale_out, zero_point_out, [&](const Extremes& e) -> Parameters {
    const float least = static_cast<float>(eps);
    if (symmetric) {
      const float scale = std::max(std::max(-e.low, e.high) / ((high - low) / 2), least);
      return {scale, dtype == ScalarType::Byte ? 128.0 : 0.0};
    }
    const float scale = std::max((e.high - e.low) / (high - low), least);
    const float zero = low - std::nearbyint(e.low / scale);
    return {scale, zero >= low ? std::min(zero, high) : low};
  });
  return result;
}

/// Resizes both to the input's shape with a last dim of one; the number of rows, or -1.
int64_t prepare_tokens(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                       Tensor& scale, Tensor& zero_point) {
  ET_REQUIRE(ctx, input.dim() >= 1 && input.size(input.dim() - 1) > 0, InvalidArgument, -1,
             "%s: the shape is %s; rows were expected", op, ShapeText(input).c_str());
  Shape shape(input);
  shape.set(shape.ndim() - 1, 1);
  if (!require_floats(ctx, op, input, scale, zero_point) || !resize_out(ctx, op, scale, shape) ||
      !resize_out(ctx, op, zero_point, shape)) {
    return -1;
  }
  return scale.numel();
}

}  // namespace

TensorPair choose_qparams_tensor_out(KernelRuntimeContext& ctx, const Tensor& input,
                                     int64_t quant_min, int64_t quant_max, double eps,
                                     ScalarType dtype, Tensor& scale_out, Tensor& zero_point_out) {
  return choose_for_tensor(ctx, "choose_qparams.Tensor_out", input, quant_min, quant_max, eps,
                           false, dtype, scale_out, zero_point_out);
}

TensorPair choose_qparams_symmetric_tensor_out(KernelRuntimeContext& ctx, const Tensor& input,
                                               int64_t quant_min, int64_t quant_max, double eps,
                                               ScalarType dtype, Tensor& scale_out,
                                               Tensor& zero_point_out) {
  return choose_for_tensor(ctx, "choose_qparams_symmetric.Tensor_out", input, quant_min, quant_max,
                           eps, true, dtype, scale_out, zero_point_out);
}

TensorPair choose_qparams_per_token_out(KernelRuntimeContext& ctx, const Tensor& input,
                                        ScalarType dtype, Tensor& scale_out,
                                        Tensor& zero_point_out) {
  constexpr const char* kOp = "choose_qparams_per_token.out";
  const TensorPair result(scale_out, zero_point_out);
  ET_REQUIRE(ctx, dtype == ScalarType::Char, InvalidArgument, result,
             "%s: dtype is %s; Char was expected", kOp, toString(dtype));
  const int64_t n_rows = prepare_tokens(ctx, kOp, input, scale_out, zero_point_out);
  if (n_rows < 0) return result;
  choose_rows(ctx, kOp, input, n_rows, scale_out, zero_point_out,
              [](const Extremes& e) -> Parameters {
                return {std::max(std::max(-e.low, e.high), 1e-5f) / 127.0f, 0};
              });
  return result;
}

TensorPair choose_qparams_per_token_asymmetric_out(KernelRuntimeContext& ctx, const Tensor& input,
                                                   ScalarType dtype, Tensor& scale_out,
                                                   Tensor& zero_point_out) {
  constexpr const char* kOp = "choose_qparams_per_token_asymmetric.out";
  (void)dtype;  // eager computes for Char whatever it is
  const TensorPair result(scale_out, zero_point_out);
  const int64_t n_rows = prepare_tokens(ctx, kOp, input, scale_out, zero_point_out);
  if (n_rows < 0) return result;
  choose_rows(
      ctx, kOp, input, n_rows, scale_out, zero_point_out, [](const Extremes& e) -> Parameters {
        constexpr float kLow = -128, kHigh = 127;
        const float scale =
            std::max((e.high - e.low) / (kHigh - kLow), std::numeric_limits<float>::epsilon());
        const float low = e.low / scale, high = e.high / scale;
        // The end whose error is smaller decides where zero lies.
        const float zero = (kLow + low) + (kHigh + high) > 0 ? kLow - low : kHigh - high;
        return {scale, std::nearbyint(zero >= kLow ? std::min(zero, kHigh) : kLow)};
      });
  return result;
}

namespace {

constexpr Kernel kChooseQparamsOps[] = {
    ET_OP("quantized_decomposed::choose_qparams.Tensor_out", choose_qparams_tensor_out,
          "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, "
          "Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))"),
    ET_OP("quantized_decomposed::choose_qparams_per_token.out", choose_qparams_per_token_out,
          "(Tensor input, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out) "
          "-> (Tensor(a!), Tensor(b!))"),
    ET_OP("quantized_decomposed::choose_qparams_per_token_asymmetric.out",
          choose_qparams_per_token_asymmetric_out,
          "(Tensor input, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out) "
          "-> (Tensor(a!), Tensor(b!))"),
    ET_OP("quantized_decomposed::choose_qparams_symmetric.Tensor_out",
          choose_qparams_symmetric_tensor_out,
          "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, "
          "Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))"),
};

}  // namespace

Span<const Kernel> choose_qparams_ops() {
  return kChooseQparamsOps;
}

}  // namespace torch::executor::native
