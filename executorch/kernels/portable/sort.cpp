#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/sorted_order.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <numeric>

// topk and sort along one dim. NaN counts as the largest value; equal values keep their order.
namespace torch::executor::native {

using namespace internal;

namespace {

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

// Fills values and indices, already of their shapes, with the first k of every line. Where there is
// no `scratch`, the indices, dense along the dim, are their own work space.
template <class T>
void order_lines(const Tensor& self, int64_t dim, int64_t k, bool largest, Tensor& values,
                 Tensor& indices, int64_t* scratch) {
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
  const int inner = loop.ndim - 1;
  for_each_run(loop, [&](const int64_t* offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto at = [&](int o) {
        return offsets[o] + (inner < 0 ? 0 : i * loop.strides[o][inner]);
      };
      const Line<T> line{src + at(0), in_step, largest};
      int64_t* const order = scratch != nullptr ? scratch : positions + at(2);
      first_in_order(line, n, k, order);
      for (int64_t j = 0; j < k; ++j) {
        const int64_t position = order[j];
        best[at(1) + j * v_step] = line.data[position * in_step];
        positions[at(2) + j * x_step] = position;
      }
    }
  });
}

void order_along(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int64_t dim,
                 int64_t k, bool largest, Tensor& values, Tensor& indices) {
  ET_REQUIRE(
      ctx, values.scalar_type() == self.scalar_type() && indices.scalar_type() == ScalarType::Long,
      InvalidArgument, , "%s: outputs of dtypes %s and Long were expected; found %s and %s", op,
      toString(self.scalar_type()), toString(values.scalar_type()),
      toString(indices.scalar_type()));
  Shape shape(self);
  if (self.dim() > 0) shape.set(dim, k);
  if (!resize_out(ctx, op, values, shape) || !resize_out(ctx, op, indices, shape)) return;
  if (values.numel() == 0) return;
  // Positions are sorted where the indices lie, by the elements of `self`; then they are read.
  if (!require_apart(ctx, op, self, indices) || !require_apart(ctx, op, values, indices)) return;
  tell_comparisons(ctx, self.numel());
  int64_t* scratch = nullptr;
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  const int64_t room = sorts_all(n, k) ? n : k;
  if (room > k || (k > 1 && Layout(indices).strides[dim] != 1)) {
    auto memory = ctx.allocate_temp(static_cast<size_t>(room) * sizeof(int64_t), alignof(int64_t));
    ET_REQUIRE(ctx, memory.ok(), MemoryAllocationFailed, ,
               "%s: no temporary memory for %" PRId64 " positions", op, room);
    scratch = static_cast<int64_t*>(memory.get());
  }
  const bool known = with_dtype(self.scalar_type(), [&](auto tag) {
    order_lines<StoredAs<decltype(tag)>>(self, dim, k, largest, values, indices, scratch);
  });
  ET_REQUIRE(ctx, known, InvalidArgument, , "%s: not implemented for dtype %s", op,
             toString(self.scalar_type()));
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

namespace {
constexpr Kernel kSortOps[] = {
    ET_OP("aten::sort.values", sort_values),
    ET_OP("aten::topk.values", topk_values),
};
}  // namespace

Span<const Kernel> sort_ops() {
  return kSortOps;
}

}  // namespace torch::executor::native
