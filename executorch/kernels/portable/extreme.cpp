/// Largest and smallest elements, and their positions. NaN counts as both the largest and the
/// smallest. Of equal elements the first one is taken.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/promote.h>
#include <executorch/kernels/portable/internal/reduce.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <limits>

namespace torch::executor::native {

using namespace internal;

namespace {

template <class C, bool largest>
struct Extreme {
  C value = !largest    ? (kIsInt<C> ? std::numeric_limits<C>::max() : static_cast<C>(INFINITY))
            : kIsInt<C> ? std::numeric_limits<C>::min()
                        : static_cast<C>(-INFINITY);
  int64_t index = 0;

  static C pick(C a, C b) { return largest ? max_or_nan(a, b) : min_or_nan(a, b); }

  void fold(const C* x, int64_t n, int64_t at) {
    constexpr int64_t kLanes = 16;
    C lanes[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = value;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] = pick(lanes[j], x[i + j]);
    }
    for (int64_t j = 0; i < n; ++i, ++j) lanes[j] = pick(lanes[j], x[i]);
    C best = lanes[0];
    for (int64_t j = 1; j < kLanes; ++j) best = pick(best, lanes[j]);
    if (best == value || is_nan(value)) return;
    value = best;
    for (i = 0; x[i] != best && !is_nan(x[i]); ++i) {
    }
    index = at + i;
  }

  static void fold_columns(Extreme* states, const C* x, int64_t pitch, int64_t rows, int64_t width,
                           int64_t at) {
    using Place = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;  // as wide as C
    C best[kColumns];
    Place place[kColumns];
    for (int64_t w = 0; w < width; ++w) best[w] = states[w].value, place[w] = -1;
    for (int64_t i = 0; i < rows; ++i) {
      const C* row = x + i * pitch;
#pragma GCC ivdep
      for (int64_t w = 0; w < width; ++w) {
        const C old = best[w], v = row[w];
        const bool better = (largest ? v > old : v < old) | ((v != v) & (old == old));
        const bool taken = better & (old == old);  // the first NaN stays
        best[w] = taken ? v : old;
        place[w] = taken ? static_cast<Place>(i) : place[w];
      }
    }
    for (int64_t w = 0; w < width; ++w) {
      if (place[w] < 0) continue;
      states[w].value = best[w];
      states[w].index = at + place[w];
    }
  }
};

/// Sets `out`, which has one element, to the extreme of no elements: the value of its type that
/// every value beats or equals.
template <bool largest>
void store_bound(Tensor& out) {
  with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      *static_cast<T*>(out.mutable_data_ptr()) = largest ? Limits::lowest() : Limits::max();
    } else {
      store_at(largest ? -INFINITY : INFINITY, out, 0);
    }
  });
}

/// Writes extremes to `values` and their indices to `indices`; either may be null. If `converts`,
/// the type of `values` may differ from that of the elements if it can hold them.
template <bool largest>
void extreme(KernelRuntimeContext& ctx, const char* op, const Tensor& self, uint32_t mask,
             bool keepdim, Tensor* values, Tensor* indices, bool converts = false) {
  const bool stored =
      values == nullptr || (converts ? can_store(self.scalar_type(), values->scalar_type())
                                     : values->scalar_type() == self.scalar_type());
  ET_REQUIRE(ctx, stored, InvalidArgument, , "%s: self is %s but the values' out is %s", op,
             toString(self.scalar_type()), toString(values->scalar_type()));
  ET_REQUIRE(ctx, indices == nullptr || indices->scalar_type() == ScalarType::Long, InvalidArgument,
             , "%s: the indices' out is %s, expected Long", op, toString(indices->scalar_type()));
  Reduction r;
  const bool ordered = indices != nullptr;
  const bool planned =
      values == nullptr    ? prepare(ctx, op, self, mask, keepdim, ordered, {indices}, r)
      : indices == nullptr ? prepare(ctx, op, self, mask, keepdim, ordered, {values}, r)
                           : prepare(ctx, op, self, mask, keepdim, ordered, {values, indices}, r);
  if (!planned) return;
  ET_REQUIRE(ctx, r.reduced.numel > 0, InvalidArgument, ,
             "%s: the reduced dims of a tensor of shape %s have no elements", op,
             ShapeText(self).c_str());
  using Op = executorch::cpu::Reduce::Op;
  if (reduce_by_engine(ctx, r, values, largest ? Op::Max : Op::Min, 1, indices)) return;
  with_compute(compute_of(self.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    const auto finish = [&](const auto& state, const int64_t* at) {
      if (values != nullptr) store_at(static_cast<C>(state.value), *values, at[0]);
      if (indices != nullptr) {
        indices->mutable_data_ptr<int64_t>()[at[values != nullptr ? 1 : 0]] = state.index;
      }
    };
    if (rows_for_engine(r)) {
      for_rows(r, [&](const void* row, const int64_t* at) {
        finish(executorch::cpu::extreme(*engine_type(r.in_type), largest ? Op::Max : Op::Min, row,
                                        r.reduced.numel),
               at);
      });
    } else {
      reduce<C>(r, Extreme<C, largest>(), finish);
    }
  });
}

template <bool largest>
Tensor& over_dims(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                  const std::optional<IntArrayRef>& dims, bool keepdim, bool converts,
                  Tensor& out) {
  uint32_t mask;
  if (dim_mask(ctx, op, dims, self.dim(), true, mask)) {
    extreme<largest>(ctx, op, self, mask, keepdim, &out, nullptr, converts);
  }
  return out;
}

template <bool largest>
Tensor& of_all(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out) {
  if (self.numel() > 0) return over_dims<largest>(ctx, op, self, std::nullopt, false, true, out);
  ET_REQUIRE(ctx, can_store(self.scalar_type(), out.scalar_type()), InvalidArgument, out,
             "%s: self is %s but out is %s", op, toString(self.scalar_type()),
             toString(out.scalar_type()));
  if (resize_out(ctx, op, out, Shape())) store_bound<largest>(out);
  return out;
}

template <bool largest>
Tensor& index_of(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                 std::optional<int64_t> dim, bool keepdim, Tensor& out) {
  ET_REQUIRE(ctx, self.scalar_type() != ScalarType::Bool, InvalidArgument, out,
             "%s: Bool tensors are not supported", op);
  std::optional<IntArrayRef> dims;
  if (dim.has_value()) dims = IntArrayRef(&*dim, 1);
  uint32_t mask;
  if (dim_mask(ctx, op, dims, self.dim(), false, mask)) {
    extreme<largest>(ctx, op, self, mask, keepdim, nullptr, &out);
  }
  return out;
}

}  // namespace

Tensor& amax_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim, bool keepdim,
                 Tensor& out) {
  return over_dims<true>(ctx, "amax.out", self, dim, keepdim, false, out);
}

Tensor& amin_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim, bool keepdim,
                 Tensor& out) {
  return over_dims<false>(ctx, "amin.out", self, dim, keepdim, false, out);
}

Tensor& max_unary_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_all<true>(ctx, "max.unary_out", self, out);
}

Tensor& min_unary_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_all<false>(ctx, "min.unary_out", self, out);
}

TensorPair max_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                   Tensor& max, Tensor& max_values) {
  uint32_t mask;
  if (dim_mask(ctx, "max.dim_max", IntArrayRef(&dim, 1), self.dim(), false, mask)) {
    extreme<true>(ctx, "max.dim_max", self, mask, keepdim, &max, &max_values);
  }
  return {max, max_values};
}

TensorPair min_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                   Tensor& min, Tensor& min_indices) {
  uint32_t mask;
  if (dim_mask(ctx, "min.dim_min", IntArrayRef(&dim, 1), self.dim(), false, mask)) {
    extreme<false>(ctx, "min.dim_min", self, mask, keepdim, &min, &min_indices);
  }
  return {min, min_indices};
}

Tensor& argmax_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<int64_t> dim,
                   bool keepdim, Tensor& out) {
  return index_of<true>(ctx, "argmax.out", self, dim, keepdim, out);
}

Tensor& argmin_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<int64_t> dim,
                   bool keepdim, Tensor& out) {
  return index_of<false>(ctx, "argmin.out", self, dim, keepdim, out);
}

namespace {

constexpr Kernel kExtremeOps[] = {
    ET_OP("aten::amax.out", amax_out),           ET_OP("aten::amin.out", amin_out),
    ET_OP("aten::max.unary_out", max_unary_out), ET_OP("aten::min.unary_out", min_unary_out),
    ET_OP("aten::max.dim_max", max_out),         ET_OP("aten::min.dim_min", min_out),
    ET_OP("aten::argmax.out", argmax_out),       ET_OP("aten::argmin.out", argmin_out),
};

}  // namespace

Span<const Kernel> extreme_ops() {
  return kExtremeOps;
}

}  // namespace torch::executor::native
