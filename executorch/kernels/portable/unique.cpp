#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/sorted_order.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <numeric>

// Distinct elements or slices, and counts of integers. Every NaN is distinct from all others.
namespace torch::executor::native {

using namespace internal;

namespace {

/// The items that are compared: the elements of a tensor, or its slices along a dim.
struct Items {
  Loop which;
  Loop inside;

  Items(const Tensor& t, std::optional<int64_t> dim) {
    if (!dim.has_value()) {
      which = Loop(t.sizes());
      which.add(t).collapse();
      return;
    }
    const SizesType n = static_cast<SizesType>(t.size(*dim));
    const int64_t step = t.strides()[static_cast<size_t>(*dim)];
    which = Loop(ArrayRef<SizesType>(&n, 1));
    which.add(&step);
    inside = Loop(t.sizes());
    inside.add(t).take_out(static_cast<int>(*dim));
    inside.collapse();
  }

  int64_t offset(int64_t item, int64_t k) const {
    return offset_in(which, item) + offset_in(inside, k);
  }

  static int64_t offset_in(const Loop& loop, int64_t i) {
    return loop.ndim <= 1 ? i * loop.inner_stride(0) : loop.offset(0, i);
  }
};

template <class T>
struct Comparison {
  const Items& items;
  const T* data;

  T at(int64_t item, int64_t k) const { return data[items.offset(item, k)]; }
  /// A total order, so that any sort is stable; NaN comes last.
  bool operator()(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < items.inside.numel; ++k) {
      const uint64_t x = order_key(at(a, k)), y = order_key(at(b, k));
      if (x != y) return x < y;
    }
    return a < b;
  }
  bool equal(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < items.inside.numel; ++k) {
      if (!(at(a, k) == at(b, k))) return false;
    }
    return true;
  }
};

/// Sorts items that are equal in all elements before the k-th: by their k-th element, and then
/// recursively those with the same k-th element.
template <class T>
void sort_items(const Comparison<T>& comparison, int64_t n, int64_t* order, int64_t k = 0) {
  constexpr int64_t kFew = 128, kMostElements = 64;
  if (n < 2 || k == comparison.items.inside.numel) return;
  if (n <= kFew || k == kMostElements || !are_positions(comparison.items.which.numel)) {
    return std::sort(order, order + n, comparison);
  }
  sort_by_key([&](int64_t item) { return order_key(comparison.at(item, k)); }, n, order);
  if (k + 1 == comparison.items.inside.numel) return;
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    const uint64_t key = order_key(comparison.at(order[begin], k));
    while (end < n && order_key(comparison.at(order[end], k)) == key) ++end;
    sort_items(comparison, end - begin, order + begin, k + 1);
  }
}

struct Unique {
  const char* op;
  bool sorted;  // equal items are put together first
  bool inverse;
  bool counts;
};

/// `order` has room for the items of self.
template <class T>
void find(KernelRuntimeContext& ctx, const Unique& how, const Tensor& self,
          std::optional<int64_t> dim, int64_t* order, const TensorTriple& out) {
  auto [values, inverse, counts] = out;
  const Items items(self, dim);
  const int64_t n = items.which.numel;
  const Comparison<T> comparison{items, static_cast<const T*>(self.const_data_ptr())};
  std::iota(order, order + n, int64_t{0});
  if (how.sorted) {
    tell_comparisons(ctx, self.numel());
    sort_items(comparison, n, order);
  }
  const auto starts = [&](int64_t i) {
    return i == 0 || !comparison.equal(order[i - 1], order[i]);
  };
  int64_t n_found = 0;
  for (int64_t i = 0; i < n; ++i) n_found += starts(i);
  Shape shape, list{n_found}, none{0};
  if (dim.has_value()) {
    shape = Shape(self);
    shape.set(*dim, n_found);
  } else {
    shape = list;
  }
  Shape of_items{n};
  const Shape inverse_shape = dim.has_value() ? of_items : Shape(self);
  if (!resize_out(ctx, how.op, values, shape) ||
      !resize_out(ctx, how.op, inverse, how.inverse ? inverse_shape : none) ||
      !resize_out(ctx, how.op, counts, how.counts ? list : none)) {
    return;
  }
  for (const Tensor* result : {&values, &inverse, &counts}) {  // items are compared once more
    if (!require_apart(ctx, how.op, self, *result)) return;
  }
  const Items found(values, dim);
  T* to = static_cast<T*>(values.mutable_data_ptr());
  Loop places(inverse.sizes());
  places.add(inverse);
  places.collapse();
  int64_t group = -1, begin = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (starts(i)) {
      if (how.counts && group >= 0) counts.mutable_data_ptr<int64_t>()[group] = i - begin;
      ++group;
      begin = i;
      for (int64_t k = 0; k < items.inside.numel; ++k) {
        to[found.offset(group, k)] = comparison.at(order[i], k);
      }
    }
    if (how.inverse) {
      inverse.mutable_data_ptr<int64_t>()[Items::offset_in(places, order[i])] = group;
    }
  }
  if (how.counts && group >= 0) counts.mutable_data_ptr<int64_t>()[group] = n - begin;
}

TensorTriple unique(KernelRuntimeContext& ctx, const Unique& how, const Tensor& self,
                    std::optional<int64_t> dim, const TensorTriple& out) {
  auto [values, inverse, counts] = out;
  ET_REQUIRE(ctx,
             values.scalar_type() == self.scalar_type() &&
                 inverse.scalar_type() == ScalarType::Long &&
                 counts.scalar_type() == ScalarType::Long,
             InvalidArgument, out, "%s: outputs of dtypes %s, Long and Long were expected", how.op,
             toString(self.scalar_type()));
  if (dim.has_value() && !normalize_dim(ctx, how.op, *dim, self.dim())) return out;
  if (self.dim() == 0) dim.reset();
  const int64_t n = dim.has_value() ? self.size(*dim) : self.numel();
  ET_REQUIRE(ctx, n == 0 || self.numel() > 0, InvalidArgument, out,
             "%s: the slices along dim %" PRId64 " of shape %s are empty", how.op, *dim,
             ShapeText(self).c_str());
  auto memory = ctx.allocate_temp(static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(int64_t),
                                  alignof(int64_t));
  ET_REQUIRE(ctx, memory.ok(), MemoryAllocationFailed, out,
             "%s: no temporary memory for the order of %" PRId64 " items", how.op, n);
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    find<StoredAs<decltype(tag)>>(ctx, how, self, dim, static_cast<int64_t*>(memory.get()), out);
  });
  ET_REQUIRE(ctx, known, InvalidArgument, out, "%s: not implemented for dtype %s", how.op,
             toString(self.scalar_type()));
  return out;
}

}  // namespace

TensorTriple _unique2_out(KernelRuntimeContext& ctx, const Tensor& self, bool sorted,
                          bool return_inverse, bool return_counts, Tensor& out0, Tensor& out1,
                          Tensor& out2) {
  (void)sorted;  // sorted is one of the orders allowed without it
  const Unique how{"_unique2.out", true, return_inverse, return_counts};
  return unique(ctx, how, self, std::nullopt, TensorTriple(out0, out1, out2));
}

TensorTriple unique_consecutive_out(KernelRuntimeContext& ctx, const Tensor& self,
                                    bool return_inverse, bool return_counts,
                                    std::optional<int64_t> dim, Tensor& out0, Tensor& out1,
                                    Tensor& out2) {
  const bool all = dim.has_value();  // as export declares
  const Unique how{"unique_consecutive.out", false, return_inverse || all, return_counts || all};
  return unique(ctx, how, self, dim, TensorTriple(out0, out1, out2));
}

TensorTriple unique_dim_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool sorted,
                            bool return_inverse, bool return_counts, Tensor& out0, Tensor& out1,
                            Tensor& out2) {
  (void)sorted, (void)return_inverse, (void)return_counts;  // eager always returns both
  return unique(ctx, {"unique_dim.out", true, true, true}, self, dim,
                TensorTriple(out0, out1, out2));
}

Tensor& bincount_out(KernelRuntimeContext& ctx, const Tensor& self,
                     const std::optional<Tensor>& weights, int64_t minlength, Tensor& out) {
  constexpr const char* kOp = "bincount.out";
  ET_REQUIRE(ctx, self.dim() == 1 && is_integer(self.scalar_type()) && minlength >= 0,
             InvalidArgument, out,
             "%s: a list of integers and minlength >= 0 were expected; found %s of shape %s and "
             "%" PRId64,
             kOp, toString(self.scalar_type()), ShapeText(self).c_str(), minlength);
  ET_REQUIRE(ctx,
             !weights.has_value() ||
                 (weights->sizes().equals(self.sizes()) && is_real(weights->scalar_type())),
             InvalidArgument, out, "%s: real weights of shape %s were expected", kOp,
             ShapeText(self).c_str());
  const auto element = [](const Tensor& t, int64_t i, auto tag) {
    return load_at<decltype(tag)>(t, i * t.strides()[0]);
  };
  const int64_t n = self.numel();
  int64_t length = minlength;  // no more than an extent: the shape is checked
  for (int64_t i = 0; i < n; ++i) {
    const int64_t value = element(self, i, int64_t{});
    ET_REQUIRE(ctx, value >= 0 && value < INT32_MAX, InvalidArgument, out,
               "%s: element %" PRId64 " is %" PRId64 ", expected a value in [0, %d)", kOp, i, value,
               INT32_MAX);
    length = std::max(length, value + 1);
  }
  const ScalarType type = out.scalar_type();
  const bool fits = weights.has_value() ? is_float(type) : type == ScalarType::Long;
  ET_REQUIRE(ctx, fits, InvalidArgument, out, "%s: out is %s, expected %s", kOp, toString(type),
             weights.has_value() ? "a float" : "Long");
  if (!require_apart(ctx, kOp, self, out)) return out;
  if (!resize_out(ctx, kOp, out, Shape{length})) return out;
  fill(Scalar(int64_t{0}), out);
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    T* bins = out.mutable_data_ptr<T>();
    for (int64_t i = 0; i < n; ++i) {
      T& bin = bins[element(self, i, int64_t{})];
      bin = static_cast<T>(weights.has_value()
                               ? static_cast<double>(bin) + element(*weights, i, double{})
                               : static_cast<double>(bin) + 1);
    }
  });
  return out;
}

namespace {
constexpr Kernel kUniqueOps[] = {
    ET_OP("aten::_unique2.out", _unique2_out),
    ET_OP("aten::bincount.out", bincount_out),
    ET_OP("aten::unique_consecutive.out", unique_consecutive_out),
    ET_OP("aten::unique_dim.out", unique_dim_out),
};
}  // namespace

Span<const Kernel> unique_ops() {
  return kUniqueOps;
}

}  // namespace torch::executor::native
