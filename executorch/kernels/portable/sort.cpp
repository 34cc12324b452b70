#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/reduce.h>
#include <executorch/kernels/portable/internal/sorted_order.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numeric>
#include <optional>

// Sorting, the first k, and the element at one place, along one dim. NaN counts as the largest
// value; equal values keep their order.
namespace torch::executor::native {

using namespace internal;

namespace {

// The number of lines of n elements that a thread takes at once, and of threads for `lines` such
// lines.
int64_t grain_of(int64_t n) {
  constexpr int64_t kElements = 2048;
  return kElements / n + 1;
}
size_t threads_for(int64_t lines, int64_t n) {
  return lines <= grain_of(n) ? 1 : executorch::cpu::loop_threads();
}

template <class T>
bool less(T a, T b) {
  return (a < b) || (is_nan(b) && !is_nan(a));
}

// The lines of `data` along one dim, n elements `step` apart.
template <class T>
struct Line {
  const T* data;
  int64_t step;
  bool largest;

  // A key that increases in the wanted order.
  uint64_t key(int64_t i) const {
    const uint64_t rising = order_key(data[i * step]);
    return largest ? ~rising : rising;
  }
  // Whether element a comes before element b: a total order, so that any sort is stable.
  bool operator()(int64_t a, int64_t b) const {
    const T x = data[a * step], y = data[b * step];
    if (largest ? less(y, x) : less(x, y)) return true;
    if (largest ? less(x, y) : less(y, x)) return false;
    return a < b;
  }
};

// Whether a line is sorted as a whole although only k of its n elements are wanted.
bool sorts_all(int64_t n, int64_t k) {
  return k == n || (k > 64 && k > n / 16);
}

// Writes the first k positions of the line, in order. Until then, words are keys and positions.
template <class T>
void first_by_words(const Line<T>& line, int64_t n, int64_t k, uint64_t* words) {
  using C = std::conditional_t<kIsFloat<T>, float, T>;
  constexpr uint64_t kPosition = std::numeric_limits<uint32_t>::max();
  const uint64_t reversed = line.largest ? ~kPosition : 0;
  const auto word = [&](int64_t i) {
    return (short_key(line.data[i * line.step]) ^ reversed) | static_cast<uint64_t>(i);
  };
  const auto has_less = [&](int64_t begin, int64_t end, uint64_t worst) {
    if (line.step != 1) return true;
    const auto bound = static_cast<C>(line.data[worst & kPosition]);
    int any = 0;  // NaN is neither above nor below
    if (line.largest) {
      for (int64_t i = begin; i < end; ++i) any |= !(static_cast<C>(line.data[i]) <= bound);
    } else {
      for (int64_t i = begin; i < end; ++i) any |= !(static_cast<C>(line.data[i]) >= bound);
    }
    return any != 0;
  };
  smallest_words(word, has_less, n, k, words);
  for (int64_t j = 0; j < k; ++j) words[j] &= kPosition;
}

// Writes the first k positions of the line, in order, to order[0..k), which has room for n
// positions if the line is sorted as a whole. Otherwise the k best positions so far form a heap
// with the worst on top.
template <class T>
void first_in_order(const Line<T>& line, int64_t n, int64_t k, int64_t* order) {
  if (sorts_all(n, k)) {
    std::iota(order, order + n, int64_t{0});
    sort_by_key([&](int64_t i) { return line.key(i); }, n, order);
    return;
  }
  if constexpr (kHasShortKey<T>) {
    if (are_positions(n)) return first_by_words(line, n, k, reinterpret_cast<uint64_t*>(order));
  }
  std::iota(order, order + k, int64_t{0});
  if (k < n) {
    std::make_heap(order, order + k, line);
    for (int64_t i = k; i < n; ++i) {
      if (!line(i, order[0])) continue;
      std::pop_heap(order, order + k, line);
      order[k - 1] = i;
      std::push_heap(order, order + k, line);
    }
  }
  std::sort(order, order + k, line);
}

// Fills values and indices, already of their shapes, with the first k of every line. `room` has
// space for a line's positions, for each thread; without it, the indices, dense along the dim, are
// their own work space.
template <class T>
void order_lines(const Tensor& self, int64_t dim, int64_t k, bool largest, Tensor& values,
                 Tensor& indices, const executorch::cpu::ThreadScratch<int64_t>* room) {
  Layout in(self), v(values), x(indices);
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  const int64_t in_step = in.strides[dim], v_step = v.strides[dim], x_step = x.strides[dim];
  if (self.dim() > 0) {
    in.erase(dim);
    v.erase(dim);
    x.erase(dim);
  }
  Loop loop(in.shape);
  loop.add(in.strides).add(v.strides).add(x.strides);
  const T* src = static_cast<const T*>(self.const_data_ptr());
  T* best = static_cast<T*>(values.mutable_data_ptr());
  int64_t* positions = indices.mutable_data_ptr<int64_t>();
  const auto lines = [&](int64_t i, int64_t end, int64_t* scratch) {
    for (; i < end; ++i) {
      const Line<T> line{src + loop.offset(0, i), in_step, largest};
      T* const found = best + loop.offset(1, i);
      int64_t* const at = positions + loop.offset(2, i);
      int64_t* const order = scratch != nullptr ? scratch : at;
      first_in_order(line, n, k, order);
      for (int64_t j = 0; j < k; ++j) {
        const int64_t position = order[j];
        found[j * v_step] = line.data[position * in_step];
        at[j * x_step] = position;
      }
    }
  };
  if (room != nullptr) return room->parallel_for(loop.numel, grain_of(n), lines);
  executorch::cpu::parallel_for(loop.numel, grain_of(n),
                                [&](int64_t i, int64_t end) { lines(i, end, nullptr); });
}

bool require_order_dtypes(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                          const Tensor& values, const Tensor& indices) {
  ET_REQUIRE(
      ctx, values.scalar_type() == self.scalar_type() && indices.scalar_type() == ScalarType::Long,
      InvalidArgument, false, "%s: outputs of dtypes %s and Long were expected; found %s and %s",
      op, toString(self.scalar_type()), toString(values.scalar_type()),
      toString(indices.scalar_type()));
  return true;
}

void order_along(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                 int64_t k, bool largest, Tensor& values, Tensor& indices) {
  if (!require_order_dtypes(ctx, op, self, values, indices)) return;
  Shape shape(self);
  if (self.dim() > 0) shape.set(dim, k);
  if (!resize_out(ctx, op, values, shape) || !resize_out(ctx, op, indices, shape)) return;
  if (values.numel() == 0) return;
  // Positions are sorted where the indices lie, by the elements of `self`; then they are read.
  // A line's values may take the place of its elements, but not of others, which a thread sorts.
  const bool in_place =
      self.const_data_ptr() == values.const_data_ptr() && same_layout(self, values);
  if (!in_place && !require_apart(ctx, op, self, values)) return;
  if (!require_apart(ctx, op, self, indices) || !require_apart(ctx, op, values, indices)) return;
  tell_comparisons(ctx, self.numel());
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  const int64_t count = sorts_all(n, k) ? n : k;
  EngineScratch scratch(ctx);
  std::optional<executorch::cpu::ThreadScratch<int64_t>> room;
  if (count > k || (k > 1 && Layout(indices).strides[dim] != 1)) {
    room.emplace(scratch, count, threads_for(self.numel() / n, n));
    ET_REQUIRE(ctx, static_cast<bool>(*room), MemoryAllocationFailed, ,
               "%s: no temporary memory for %" PRId64 " positions", op, count);
  }
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    order_lines<StoredAs<decltype(tag)>>(self, dim, k, largest, values, indices,
                                         room.has_value() ? &*room : nullptr);
  });
  ET_REQUIRE(ctx, known, InvalidArgument, , "%s: not implemented for dtype %s", op,
             toString(self.scalar_type()));
}

// The position, in a line of n elements, of the one at place k of their order; of the first NaN, if
// there is one and `nan_first`. `words` has room for n.
template <class T>
int64_t position_at(const Line<T>& line, int64_t n, int64_t k, bool nan_first, uint64_t* words) {
  for (int64_t i = 0; i < n; ++i) {
    words[i] = line.key(i);
    if constexpr (kIsFloat<T>) {
      if (nan_first && words[i] == order_key(T(NAN))) return i;
    }
  }
  Selected found = radix_select(words, n, k);
  int64_t i = 0;
  while (i + 1 < n && (line.key(i) != found.word || found.equal_before-- > 0)) ++i;
  return i;
}

// The element at place k of every line's order, and its position; of medians, the first NaN.
void select_along(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                  int64_t k, bool keepdim, bool median, Tensor& values, Tensor& indices) {
  Reduction r;
  if (!require_order_dtypes(ctx, op, self, values, indices) ||
      !prepare(ctx, op, self, uint32_t{1} << dim, keepdim, true, {&values, &indices}, r) ||
      values.numel() == 0 || !require_apart(ctx, op, self, values) ||
      !require_apart(ctx, op, self, indices)) {
    return;
  }
  const int64_t n = r.reduced.numel, step = r.reduced.inner_stride(0);
  EngineScratch scratch(ctx);
  const executorch::cpu::ThreadScratch<uint64_t> room(scratch, n, threads_for(r.kept.numel, n));
  if (!require_scratch(ctx, op, static_cast<bool>(room))) return;
  with_dtype(self.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
    room.parallel_for(r.kept.numel, grain_of(n), [&](int64_t i, int64_t end, uint64_t* words) {
      for (; i < end; ++i) {
        const T* const first = static_cast<const T*>(self.const_data_ptr()) + r.kept.offset(2, i);
        const int64_t position = position_at(Line<T>{first, step, false}, n, k, median, words);
        static_cast<T*>(values.mutable_data_ptr())[r.kept.offset(0, i)] = first[position * step];
        indices.mutable_data_ptr<int64_t>()[r.kept.offset(1, i)] = position;
      }
    });
  });
}

}  // namespace

TensorPair topk_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t k, int64_t dim,
                       bool largest, bool sorted, Tensor& values, Tensor& indices) {
  constexpr const char* kOp = "topk.values";
  (void)sorted;  // sorted is one of the orders allowed without it
  TensorPair result(values, indices);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return result;
  const int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  if (self.dim() == 0 && k == 0) k = 1;  // a 0-d result has an element
  ET_REQUIRE(ctx, k >= 0 && k <= extent, InvalidArgument, result,
             "%s: k is %" PRId64 "; dim %" PRId64 " of shape %s has %" PRId64 " elements", kOp, k,
             dim, ShapeText(self).c_str(), extent);
  order_along(ctx, kOp, self, dim, k, largest, values, indices);
  return result;
}

TensorPair sort_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool descending,
                       Tensor& values, Tensor& indices) {
  constexpr const char* kOp = "sort.values";
  TensorPair result(values, indices);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return result;
  const int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  order_along(ctx, kOp, self, dim, extent, descending, values, indices);
  return result;
}

TensorPair kthvalue_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t k, int64_t dim,
                           bool keepdim, Tensor& values, Tensor& indices) {
  constexpr const char* kOp = "kthvalue.values";
  TensorPair result(values, indices);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return result;
  const int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  ET_REQUIRE(ctx, k >= 1 && k <= extent, InvalidArgument, result,
             "%s: k is %" PRId64 "; dim %" PRId64 " of shape %s has %" PRId64 " elements", kOp, k,
             dim, ShapeText(self).c_str(), extent);
  select_along(ctx, kOp, self, dim, k - 1, keepdim, false, values, indices);
  return result;
}

TensorPair median_dim_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                             bool keepdim, Tensor& values, Tensor& indices) {
  constexpr const char* kOp = "median.dim_values";
  TensorPair result(values, indices);
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return result;
  const int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  ET_REQUIRE(ctx, extent > 0, InvalidArgument, result,
             "%s: dim %" PRId64 " of shape %s has no elements", kOp, dim, ShapeText(self).c_str());
  select_along(ctx, kOp, self, dim, (extent - 1) / 2, keepdim, true, values, indices);
  return result;
}

namespace {
constexpr Kernel kSortOps[] = {
    ET_OP("aten::kthvalue.values", kthvalue_values),
    ET_OP("aten::median.dim_values", median_dim_values),
    ET_OP("aten::sort.values", sort_values),
    ET_OP("aten::topk.values", topk_values),
};
}  // namespace

Span<const Kernel> sort_ops() {
  return kSortOps;
}

}  // namespace torch::executor::native
