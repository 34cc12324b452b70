#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/along_dim.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/number.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <limits>

// Writing, or folding, elements into a copy of `self` at positions along one dim.
namespace torch::executor::native {

using namespace internal;

namespace {

// Checks the arguments of a scatter and copies self to out.
bool begin_scatter(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t& dim,
                   const Tensor& index, const Tensor* src, Tensor& out) {
  if (!normalize_dim(ctx, op, dim, self.dim())) return false;
  if (index.numel() > 0 && !require_index(ctx, op, index, out)) return false;
  if (index.numel() > 0 && !require_index_shape(ctx, op, self, "the input", index, dim, true)) {
    return false;
  }
  if (src != nullptr) {
    if (!require_same_dtype(ctx, op, self, *src, "src")) return false;
    if (index.numel() > 0 && !require_index_shape(ctx, op, *src, "src", index, dim, false)) {
      return false;
    }
  }
  if (self.const_data_ptr() == out.const_data_ptr() && same_layout(self, out)) return true;
  return copy_view(ctx, op, self, Layout(self), out);
}

enum class Fold { Sum, Product, Mean, Largest, Smallest };

template <class T>
T folded(Fold fold, T a, T b) {
  if (fold == Fold::Largest) return a > b || a != a ? a : b;
  if (fold == Fold::Smallest) return a < b || a != a ? a : b;
  if constexpr (std::is_same_v<T, BoolByte>) {
    return BoolByte(fold == Fold::Product ? a && b : a || b);
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(fold == Fold::Product ? x * y : x + y);
  } else {
    return fold == Fold::Product ? a * b : a + b;
  }
}

/// The result of folding no elements.
template <class T>
T identity_of(Fold fold) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return BoolByte(fold == Fold::Smallest || fold == Fold::Product);
  } else {
    using Limits = std::numeric_limits<T>;
    if (fold == Fold::Largest) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    if (fold == Fold::Smallest) return Limits::has_infinity ? Limits::infinity() : Limits::max();
    return static_cast<T>(fold == Fold::Product);
  }
}

template <class T>
T divided(T sum, int64_t count) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return sum;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t a = static_cast<int64_t>(sum), quotient = a / count;
    return static_cast<T>(quotient - (a % count != 0 && a < 0));
  } else {
    return sum / static_cast<T>(count);
  }
}

/// Folds src into `to`, which is laid out like `out`; A is float for the 16-bit floating types.
template <class T, class A>
void scatter_fold(KernelRuntimeContext& ctx, const char* op, const AlongDim& along,
                  const Tensor& index, const Tensor& src, Fold fold, bool include_self,
                  int64_t numel, A* to) {
  if (!include_self &&
      !along.visit(ctx, op, index, [=](int64_t at, int64_t) { to[at] = identity_of<A>(fold); })) {
    return;
  }
  const T* from = static_cast<const T*>(src.const_data_ptr());
  if (!along.visit(ctx, op, index, [=](int64_t at, int64_t source) {
        to[at] = folded(fold, to[at], static_cast<A>(from[source]));
      })) {
    return;
  }
  if (fold != Fold::Mean) return;
  EngineScratch memory(ctx);
  executorch::cpu::Scratch& scratch = memory;
  int64_t* counts = scratch.array<int64_t>(numel);
  if (!require_scratch(ctx, op, counts != nullptr)) return;
  std::fill_n(counts, numel, int64_t{include_self});
  (void)along.visit(ctx, op, index, [=](int64_t at, int64_t) { ++counts[at]; });
  for (int64_t i = 0; i < numel; ++i) {
    if (counts[i] > 1) to[i] = divided(to[i], counts[i]);
  }
}

Tensor& fold_into(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                  const Tensor& index, const Tensor& src, Fold fold, bool include_self,
                  Tensor& out) {
  if (!begin_scatter(ctx, op, self, dim, index, &src, out) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(out), at_least_1d(src));
  const int64_t numel = out.numel();
  const bool known = with_dtype(out.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
    T* data = static_cast<T*>(out.mutable_data_ptr());
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      EngineScratch memory(ctx);
      executorch::cpu::Scratch& scratch = memory;
      float* sums = scratch.array<float>(numel);
      if (!require_scratch(ctx, op, sums != nullptr)) return;
      load(data, out.scalar_type(), 1, numel, sums);
      scatter_fold<T>(ctx, op, along, index, src, fold, include_self, numel, sums);
      store(sums, numel, data, out.scalar_type(), 1);
    } else {
      scatter_fold<T>(ctx, op, along, index, src, fold, include_self, numel, data);
    }
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", op,
             toString(out.scalar_type()));
  return out;
}

}  // namespace

Tensor& scatter_src_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                        const Tensor& index, const Tensor& src, Tensor& out) {
  constexpr const char* kOp = "scatter.src_out";
  if (!begin_scatter(ctx, kOp, self, dim, index, &src, out) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(out), at_least_1d(src));
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(src.const_data_ptr());
    T* to = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index, [=](int64_t at, int64_t source) { to[at] = from[source]; });
  });
  return out;
}

Tensor& scatter_value_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                          const Tensor& index, const Scalar& value, Tensor& out) {
  constexpr const char* kOp = "scatter.value_out";
  if (!begin_scatter(ctx, kOp, self, dim, index, nullptr, out) || index.numel() == 0) return out;
  if (!require_fits(ctx, kOp, "value", value, out.scalar_type())) return out;
  const AlongDim along(index, dim, at_least_1d(out), Layout());
  const bool known = with_dtype(out.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
    T written;
    if (value.isFloatingPoint()) {
      store_one(scalar_as<double>(value), &written, out.scalar_type());
    } else {
      store_one(scalar_as<int64_t>(value), &written, out.scalar_type());
    }
    T* to = static_cast<T*>(out.mutable_data_ptr());
    along.visit(ctx, kOp, index, [=](int64_t at, int64_t) { to[at] = written; });
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(out.scalar_type()));
  return out;
}

Tensor& scatter_add_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                        const Tensor& index, const Tensor& src, Tensor& out) {
  return fold_into(ctx, "scatter_add.out", self, dim, index, src, Fold::Sum, true, out);
}

Tensor& scatter_reduce_two_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self, Tensor& out) {
  constexpr const char* kOp = "scatter_reduce.two_out";
  static constexpr struct {
    std::string_view name;
    Fold fold;
  } kFolds[] = {{"sum", Fold::Sum},
                {"prod", Fold::Product},
                {"mean", Fold::Mean},
                {"amax", Fold::Largest},
                {"amin", Fold::Smallest}};
  for (const auto& [name, fold] : kFolds) {
    if (name == reduce) return fold_into(ctx, kOp, self, dim, index, src, fold, include_self, out);
  }
  ET_REQUIRE(ctx, false, InvalidArgument, out,
             "%s: reduce is '%.*s', expected 'sum', 'prod', 'mean', 'amax' or 'amin'", kOp,
             static_cast<int>(reduce.size()), reduce.data());
}

namespace {
constexpr Kernel kScatterOps[] = {
    ET_OP("aten::scatter.src_out", scatter_src_out),
    ET_OP("aten::scatter.value_out", scatter_value_out),
    ET_OP("aten::scatter_add.out", scatter_add_out),
    ET_OP("aten::scatter_reduce.two_out", scatter_reduce_two_out, other),
};
}  // namespace

Span<const Kernel> scatter_ops() {
  return kScatterOps;
}

}  // namespace torch::executor::native
