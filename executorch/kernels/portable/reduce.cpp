/// Reductions over dims: sum, mean, prod, any.
#include <executorch/cpu/nn/norm.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/complex.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/moments.h>
#include <executorch/kernels/portable/internal/reduce.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>

namespace torch::executor::native {

using namespace internal;

namespace {

template <class C>
struct Product {
  using Total = std::conditional_t<kIsInt<C>, int64_t, double>;
  Total value = 1;
  void fold(const C* x, int64_t n, int64_t) {
    constexpr int64_t kLanes = 16;  // products that do not wait for one another
    int64_t i = 0;
    if (n >= kLanes) {
      Total lanes[kLanes];
      std::fill_n(lanes, kLanes, Total{1});
      for (; i + kLanes <= n; i += kLanes) {
        for (int64_t j = 0; j < kLanes; ++j) {
          lanes[j] = wrapping_mul(lanes[j], static_cast<Total>(x[i + j]));
        }
      }
      for (const Total lane : lanes) value = wrapping_mul(value, lane);
    }
    for (; i < n; ++i) value = wrapping_mul(value, static_cast<Total>(x[i]));
  }
  static void fold_columns(Product* states, const C* x, int64_t pitch, int64_t rows, int64_t width,
                           int64_t) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t w = 0; w < width; ++w) {
        states[w].value = wrapping_mul(states[w].value, static_cast<Total>(x[i * pitch + w]));
      }
    }
  }
};

template <class C>
struct Any {
  bool value = false;
  void fold(const C* x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n && !value; ++i) value = x[i] != 0;
  }
  static void fold_columns(Any* states, const C* x, int64_t pitch, int64_t rows, int64_t width,
                           int64_t) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t w = 0; w < width; ++w) states[w].value |= x[i * pitch + w] != 0;
    }
  }
};

/// The type elements are cast to before they are reduced: `dtype` if given, else the output's.
bool check_dtype(KernelRuntimeContext& ctx, const char* op, std::optional<ScalarType> dtype,
                 const Tensor& out) {
  const ScalarType type = dtype.value_or(out.scalar_type());
  ET_REQUIRE(ctx, is_real(out.scalar_type()) && type == out.scalar_type(), InvalidArgument, false,
             "%s: dtype is %s but out is %s", op, toString(type), toString(out.scalar_type()));
  return true;
}

/// out = finish(state), with a state folded over the dims of `mask`, in the output's compute type.
template <template <class> class State, class Finish>
void reduce_into(const Reduction& r, Tensor& out, const Finish& finish) {
  with_compute(compute_of(out.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    reduce<C>(r, State<C>(), [&](const State<C>& state, const int64_t* at) {
      store_at(static_cast<C>(finish(state)), out, at[0]);
    });
  });
}

Tensor& sum(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
            const std::optional<IntArrayRef>& dims, bool keepdim, std::optional<ScalarType> dtype,
            bool mean, Tensor& out) {
  uint32_t mask;
  Reduction r;
  if (!dim_mask(ctx, op, dims, self.dim(), true, mask)) return out;
  if (is_complex(self.scalar_type()) || is_complex(out.scalar_type())) {
    const ScalarType type = dtype.value_or(out.scalar_type());
    ET_REQUIRE(ctx, type == out.scalar_type() && (is_complex(type) || dtype.has_value()),
               InvalidArgument, out, "%s: a sum of %s is no %s", op, toString(self.scalar_type()),
               toString(out.scalar_type()));
    if (prepare(ctx, op, self, mask, keepdim, false, {&out}, r, true)) {
      complex_sum(r, mean ? static_cast<double>(r.reduced.numel) : 1, out);
    }
    return out;
  }
  if (!check_dtype(ctx, op, dtype, out)) return out;
  ET_REQUIRE(
      ctx,
      !mean || (is_float(out.scalar_type()) && (dtype.has_value() || is_float(self.scalar_type()))),
      InvalidArgument, out, "%s: a mean of %s into %s is not defined without a floating dtype", op,
      toString(self.scalar_type()), toString(out.scalar_type()));
  if (!prepare(ctx, op, self, mask, keepdim, false, {&out}, r)) return out;
  const double n = static_cast<double>(r.reduced.numel);
  if (reduce_by_engine(ctx, r, &out, executorch::cpu::Reduce::Op::Sum, mean ? n : 1)) return out;
  if (mean) {
    reduce_into<Sum>(r, out, [n](const auto& s) { return static_cast<double>(s.value) / n; });
  } else {
    reduce_into<Sum>(r, out, [](const auto& s) { return s.value; });
  }
  return out;
}

Tensor& product(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                const std::optional<IntArrayRef>& dims, bool keepdim,
                std::optional<ScalarType> dtype, Tensor& out) {
  uint32_t mask;
  Reduction r;
  if (check_dtype(ctx, op, dtype, out) && dim_mask(ctx, op, dims, self.dim(), true, mask) &&
      prepare(ctx, op, self, mask, keepdim, false, {&out}, r) &&
      !reduce_by_engine(ctx, r, &out, executorch::cpu::Reduce::Op::Product, 1)) {
    reduce_into<Product>(r, out, [](const auto& s) { return s.value; });
  }
  return out;
}

/// any() over runs of Bool, which are read where they lie.
void any_of_bytes(const Reduction& r, Tensor& out) {
  constexpr int64_t kBlock = 4096;
  const int64_t n = r.reduced.numel, grain = 65536 / (n > 0 ? n : 1);
  executorch::cpu::parallel_for(r.kept.numel, grain > 1 ? grain : 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const uint8_t* x = static_cast<const uint8_t*>(r.in) + r.kept.offset(1, i);
      uint8_t seen = 0;
      for (int64_t at = 0; at < n && seen == 0; at += kBlock) {
        const int64_t m = n - at < kBlock ? n - at : kBlock;
        for (int64_t j = 0; j < m; ++j) seen |= x[at + j];
      }
      store_at(seen != 0, out, r.kept.offset(0, i));
    }
  });
}

Tensor& any(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
            const std::optional<IntArrayRef>& dims, bool keepdim, Tensor& out) {
  uint32_t mask;
  Reduction r;
  ET_REQUIRE(ctx, is_real(out.scalar_type()), InvalidArgument, out, "%s: out is %s, expected Bool",
             op, toString(out.scalar_type()));
  if (!dim_mask(ctx, op, dims, self.dim(), false, mask) ||
      !prepare(ctx, op, self, mask, keepdim, false, {&out}, r)) {
    return out;
  }
  if (self.scalar_type() == ScalarType::Bool && r.reduced.is_dense(0)) {
    any_of_bytes(r, out);
    return out;
  }
  const auto run = [&](auto tag) {
    using C = decltype(tag);
    reduce<C>(r, Any<C>(),
              [&](const Any<C>& state, const int64_t* at) { store_at(state.value, out, at[0]); });
  };
  self.scalar_type() == ScalarType::Bool ? run(false)
                                         : with_compute(compute_of(self.scalar_type()), run);
  return out;
}

/// Writes the variance to `out`, and the mean to `mean` unless it is null.
void variance(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
              const std::optional<IntArrayRef>& dims, double correction, bool keepdim, Tensor& out,
              Tensor* mean) {
  uint32_t mask;
  Reduction r;
  ET_REQUIRE(ctx, is_float(self.scalar_type()) && is_float(out.scalar_type()), InvalidArgument, ,
             "%s: self is %s and out is %s, expected floating types", op,
             toString(self.scalar_type()), toString(out.scalar_type()));
  if (!dim_mask(ctx, op, dims, self.dim(), true, mask)) return;
  const bool planned = mean == nullptr
                           ? prepare(ctx, op, self, mask, keepdim, false, {&out}, r)
                           : prepare(ctx, op, self, mask, keepdim, false, {&out, mean}, r);
  if (!planned) return;
  const double n = static_cast<double>(r.reduced.numel);
  const double freedom = n - correction > 0 ? n - correction : 0;
  with_float_compute(compute_of(self.scalar_type()), [&](auto tag) {
    using C = decltype(tag);
    const auto finish = [&](const auto& state, const int64_t* at) {
      const double value = n == 0 ? NAN : state.squares / freedom;
      store_at(static_cast<C>(value), out, at[0]);
      if (mean != nullptr) store_at(static_cast<C>(n == 0 ? NAN : state.mean), *mean, at[1]);
    };
    if (rows_for_engine(r)) {
      for_rows(r, [&](const void* row, const int64_t* at) {
        finish(executorch::cpu::moments(*engine_type(r.in_type), row, r.reduced.numel), at);
      });
    } else {
      reduce<C>(r, Moments<C>(), finish);
    }
  });
}

}  // namespace

Tensor& sum_dim_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                    bool keepdim, std::optional<ScalarType> dtype, Tensor& out) {
  return sum(ctx, "sum.IntList_out", self, dim, keepdim, dtype, false, out);
}

Tensor& mean_dim_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                     bool keepdim, std::optional<ScalarType> dtype, Tensor& out) {
  return sum(ctx, "mean.out", self, dim, keepdim, dtype, true, out);
}

Tensor& mean_dtype_out(KernelRuntimeContext& ctx, const Tensor& self,
                       std::optional<ScalarType> dtype, Tensor& out) {
  return sum(ctx, "mean.dtype_out", self, std::nullopt, false, dtype, true, out);
}

Tensor& prod_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<ScalarType> dtype,
                 Tensor& out) {
  return product(ctx, "prod.out", self, std::nullopt, false, dtype, out);
}

Tensor& prod_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                     std::optional<ScalarType> dtype, Tensor& out) {
  return product(ctx, "prod.int_out", self, IntArrayRef(&dim, 1), keepdim, dtype, out);
}

Tensor& any_all_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return any(ctx, "any.all_out", self, std::nullopt, false, out);
}

Tensor& any_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                Tensor& out) {
  return any(ctx, "any.out", self, IntArrayRef(&dim, 1), keepdim, out);
}

Tensor& any_dims_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                     bool keepdim, Tensor& out) {
  return any(ctx, "any.dims_out", self, dim, keepdim, out);
}

Tensor& var_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                bool unbiased, bool keepdim, Tensor& out) {
  variance(ctx, "var.out", self, dim, unbiased ? 1 : 0, keepdim, out, nullptr);
  return out;
}

Tensor& var_correction_out(KernelRuntimeContext& ctx, const Tensor& self,
                           std::optional<IntArrayRef> dim, const std::optional<Scalar>& correction,
                           bool keepdim, Tensor& out) {
  variance(ctx, "var.correction_out", self, dim,
           correction.has_value() ? scalar_as<double>(*correction) : 1, keepdim, out, nullptr);
  return out;
}

TensorPair var_mean_correction_out(KernelRuntimeContext& ctx, const Tensor& self,
                                   std::optional<IntArrayRef> dim,
                                   const std::optional<Scalar>& correction, bool keepdim,
                                   Tensor& out0, Tensor& out1) {
  variance(ctx, "var_mean.correction_out", self, dim,
           correction.has_value() ? scalar_as<double>(*correction) : 1, keepdim, out0, &out1);
  return {out0, out1};
}

namespace {

constexpr Kernel kReduceOps[] = {
    ET_OP("aten::sum.IntList_out", sum_dim_out),
    ET_OP("aten::mean.out", mean_dim_out),
    ET_OP("aten::mean.dtype_out", mean_dtype_out),
    ET_OP("aten::prod.out", prod_out),
    ET_OP("aten::prod.int_out", prod_int_out),
    ET_OP("aten::any.all_out", any_all_out),
    ET_OP("aten::any.out", any_out),
    ET_OP("aten::any.dims_out", any_dims_out),
    ET_OP("aten::var.out", var_out),
    ET_OP("aten::var.correction_out", var_correction_out),
    ET_OP("aten::var_mean.correction_out", var_mean_correction_out),
};

}  // namespace

Span<const Kernel> reduce_ops() {
  return kReduceOps;
}

}  // namespace torch::executor::native
