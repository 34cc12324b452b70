/// What quantizing and dequantizing share: which scale and zero point belongs to which element, and
/// loops over elements in chunks that stay in the first-level cache, on all threads.
#pragma once

#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>

#include <algorithm>
#include <limits>

namespace torch::executor::native::internal {

/// The integers that elements of type `t` are: Bits16 is what older programs have for UInt16.
constexpr ScalarType integer_of(ScalarType t) {
  return t == ScalarType::Bits16 ? ScalarType::UInt16 : t;
}

/// The range of a dtype, or false where it holds no quantized values.
inline bool range_of(ScalarType type, double& low, double& high) {
  bool known = false;
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      known = true;
      low = static_cast<double>(std::numeric_limits<T>::min());
      high = static_cast<double>(std::numeric_limits<T>::max());
      if constexpr (sizeof(T) == 8) high = 0x1p63 - 1024;
    }
  });
  return known;
}

/// Whether [quant_min, quant_max] is a range of integers of `type`; low and high are its ends, as
/// numbers that convert to `type`.
[[nodiscard]] inline bool require_range_of_dtype(KernelRuntimeContext& ctx, const char* op,
                                                 double quant_min, double quant_max,
                                                 ScalarType type, double& low, double& high) {
  double least = 0, most = 0;
  ET_REQUIRE(ctx, range_of(integer_of(type), least, most), InvalidArgument, false,
             "%s: quantized values of dtype %s are not supported", op, toString(type));
  // The double next to the largest int64 is one more than that.
  const double slack = elementSize(type) == 8 ? 1024 : 0;
  ET_REQUIRE(ctx, quant_min <= quant_max && quant_min >= least && quant_max <= most + slack,
             InvalidArgument, false,
             "%s: [%g, %g] is not a range of dtype %s, expected in [%g, %g]", op, quant_min,
             quant_max, toString(type), least, most);
  low = std::max(quant_min, least);
  high = std::min(quant_max, most);
  return true;
}

/// Scales and zero points: numbers, or tensors of as many elements (zero points may be absent: 0).
struct AffineParameters {
  double scale = 1, zero_point = 0;
  const Tensor* scales = nullptr;
  const Tensor* zero_points = nullptr;

  /// The parameters of n elements that begin with number `i` and are `step` apart (0: all alike).
  template <class C>
  void read(int64_t i, int64_t step, int64_t n, C* scale_to, C* zero_to) const {
    read_one(scales, scale, i, step, n, scale_to);
    read_one(zero_points, zero_point, i, step, n, zero_to);
  }
  /// Scales of Double compute in double, and so do double inputs.
  bool wide() const { return scales != nullptr && scales->scalar_type() == ScalarType::Double; }

 private:
  template <class C>
  static void read_one(const Tensor* t, double otherwise, int64_t i, int64_t step, int64_t n,
                       C* to) {
    if (t == nullptr) {
      std::fill_n(to, n, static_cast<C>(otherwise));
    } else {
      load(static_cast<const char*>(t->const_data_ptr()) + i * t->element_size(), t->scalar_type(),
           step, n, to);
    }
  }
};

/// The elements of an operator: operand 0 of the loop is the output, 1 the input, and 2 gives the
/// index of an element's scale and zero point. The member functions make the loop: they check
/// shapes and resize `out`, and return false if the context failed.
struct AffineLoop {
  Loop loop;

  bool per_tensor(KernelRuntimeContext& ctx, const char* op, const Tensor& input, Tensor& out) {
    const int64_t none[kTensorDimensionLimit] = {};
    return begin(ctx, op, input, out, none);
  }
  bool per_channel(KernelRuntimeContext& ctx, const char* op, const Tensor& input, int64_t axis,
                   const AffineParameters& parameters, Tensor& out) {
    if (!normalize_dim(ctx, op, axis, input.dim())) return false;
    const int64_t n = input.dim() == 0 ? 1 : input.size(axis);
    if (!require_parameters(ctx, op, input, n, parameters)) return false;
    int64_t steps[kTensorDimensionLimit] = {};
    steps[axis] = 1;
    return begin(ctx, op, input, out, steps);
  }
  bool per_token(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                 const AffineParameters& parameters, Tensor& out) {
    int64_t steps[kTensorDimensionLimit] = {};
    Size n = 1;
    for (int64_t d = input.dim() - 2; d >= 0; --d) {
      steps[d] = n.value_or(0);
      n *= input.size(d);
    }
    // Extents beside one of zero may have any product; no tensor has -1 elements.
    return require_parameters(ctx, op, input, n.value_or(-1), parameters) &&
           begin(ctx, op, input, out, steps);
  }
  bool per_group(KernelRuntimeContext& ctx, const char* op, const Tensor& input, int64_t group_size,
                 const AffineParameters& parameters, Tensor& out) {
    const int64_t columns = input.dim() == 2 ? input.size(1) : 0;
    if (group_size > columns &&
        parameters.scales->numel() == input.numel() / std::max<int64_t>(columns, 1)) {
      group_size = columns;
    }
    ET_REQUIRE(ctx, input.dim() == 2 && group_size > 0 && columns % group_size == 0,
               InvalidArgument, false,
               "%s: a matrix with rows of whole groups of %lld was expected; the shape is %s", op,
               static_cast<long long>(group_size), ShapeText(input).c_str());
    const int64_t n_groups = columns / group_size;
    if (!require_parameters(ctx, op, input, input.size(0) * n_groups, parameters) ||
        !resize_out(ctx, op, out, input.sizes())) {
      return false;
    }
    Shape shape;
    for (int64_t size : {static_cast<int64_t>(input.size(0)), n_groups, group_size}) {
      shape.push(size);
    }
    loop = Loop(shape);
    for (const Tensor* t : {const_cast<const Tensor*>(&out), &input}) {
      const Layout l(*t);
      const int64_t strides[] = {l.strides[0], group_size * l.strides[1], l.strides[1]};
      loop.add(strides);
    }
    const int64_t steps[] = {n_groups, 1, 0};
    loop.add(steps);
    loop.collapse();
    return true;
  }

  static constexpr int64_t kChunk = 1024;

  /// f(offsets of the three operands, n) for runs of at most kChunk elements, whose distance is
  /// loop.inner_stride(k).
  template <class F>
  void for_each_chunk(const F& f) const {
    if (loop.numel == 0) return;
    const int64_t row = loop.ndim > 0 ? loop.sizes[loop.ndim - 1] : 1;
    const int64_t per_row = (row + kChunk - 1) / kChunk;
    executorch::cpu::parallel_for(
        loop.numel / row * per_row, std::max<int64_t>(1, 32768 / std::min(row, kChunk)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t from = i % per_row * kChunk, n = std::min(kChunk, row - from);
            int64_t at[3];
            for (int k = 0; k < 3; ++k) {
              at[k] = loop.offset(k, i / per_row * row) + from * loop.inner_stride(k);
            }
            f(at, n);
          }
        });
  }

 private:
  bool begin(KernelRuntimeContext& ctx, const char* op, const Tensor& input, Tensor& out,
             const int64_t* steps) {
    if (!resize_out(ctx, op, out, input.sizes())) return false;
    loop = Loop(input.sizes());
    loop.add(out).add(input).add(steps).order_by(0);
    loop.collapse();
    return true;
  }
  static bool require_parameters(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                                 int64_t n, const AffineParameters& parameters) {
    for (const Tensor* t : {parameters.scales, parameters.zero_points}) {
      ET_REQUIRE(
          ctx, t == nullptr || (t->numel() == n && is_contiguous(*t) && is_real(t->scalar_type())),
          InvalidArgument, false,
          "%s: an input of shape %s has %lld scales and zero points; found a tensor of "
          "shape %s and dtype %s",
          op, ShapeText(input).c_str(), static_cast<long long>(n), ShapeText(*t).c_str(),
          toString(t->scalar_type()));
    }
    return true;
  }
};

inline const Tensor* get(const std::optional<Tensor>& t) {
  return t.has_value() ? &*t : nullptr;
}

/// The one element of `t` as a number.
[[nodiscard]] inline bool read_number(KernelRuntimeContext& ctx, const char* op, const char* what,
                                      const Tensor& t, double& value) {
  ET_REQUIRE(ctx, t.numel() == 1 && is_real(t.scalar_type()), InvalidArgument, false,
             "%s: %s has shape %s; one number was expected", op, what, ShapeText(t).c_str());
  value = load_one<double>(t.const_data_ptr(), t.scalar_type());
  return true;
}

}  // namespace torch::executor::native::internal
