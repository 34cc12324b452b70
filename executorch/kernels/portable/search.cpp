#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Positions of values in sorted sequences, found by bisection. NaN belongs at the end.
namespace torch::executor::native {

using namespace internal;

namespace {

/// n sorted values of type C; at(i) reads the i-th in order. Without branches, which would be
/// mispredicted half of the time.
template <class C, class At>
int64_t place_of(C value, int64_t n, bool right, const At& at) {
  int64_t begin = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const C x = at(begin + half);
    const bool before = right ? !(x > value) & !((x != x) & (value == value))
                              : (x < value) | ((value != value) & (x == x));
    begin = before ? begin + half + 1 : begin;
    n = before ? n - half - 1 : half;
  }
  return begin;
}

struct Search {
  const char* op;
  bool right;
  bool int32;            // of out, which is Long otherwise
  const Tensor* sorter;  // the order of each sequence, or nullptr
};

/// The places of all `values`, which are operand 1 of the loop, in sequences of elements T that are
/// `step` apart, and whose sorters' are `order_step` apart. Compares as type C. False if a sorter
/// has a bad value.
template <class C, class T>
bool search_as(const Search& how, const Loop& loop, const Tensor& sorted, int64_t n, int64_t step,
               int64_t order_step, const Tensor& values, Tensor& out) {
  constexpr int64_t kChunk = 256;
  const T* const data = static_cast<const T*>(sorted.const_data_ptr());
  const int64_t* const order =
      how.sorter == nullptr ? nullptr : how.sorter->const_data_ptr<int64_t>();
  FirstBad bad;
  executorch::cpu::parallel_for(loop.numel, kChunk, [&](int64_t i, int64_t end) {
    C chunk[kChunk];
    int64_t places[kChunk];
    for (int64_t m; i < end; i += m) {
      m = std::min(kChunk, end - i);
      gather(loop, 1, values.const_data_ptr(), values.scalar_type(), i, m, chunk);
      for (int64_t j = 0; j < m; ++j) {
        const T* const sequence = data + loop.offset(2, i + j);
        if (order == nullptr) {
          places[j] = place_of(chunk[j], n, how.right,
                               [&](int64_t k) { return static_cast<C>(sequence[k * step]); });
          continue;
        }
        const int64_t* const sorter = order + loop.offset(3, i + j);
        places[j] = place_of(chunk[j], n, how.right, [&](int64_t k) {
          k = sorter[k * order_step];
          const bool good = k >= 0 && k < n;
          if (!good) bad.see(i + j);
          return static_cast<C>(sequence[good ? k * step : 0]);
        });
      }
      scatter(loop, 0, out.mutable_data_ptr(), out.scalar_type(), i, m, places);
    }
  });
  return !bad.position();
}

/// `sorted` is a single sequence, or has the shape of `values` in all dims but the last.
Tensor& search(KernelRuntimeContext& ctx, const Search& how, const Tensor& sorted,
               const Tensor& values, Tensor& out) {
  const int64_t rank = sorted.dim(), n = rank == 0 ? 0 : sorted.size(rank - 1);
  bool fits = rank == 1 || (rank > 1 && rank == values.dim());
  for (int64_t d = 0; fits && d < rank - 1; ++d) fits = sorted.size(d) == values.size(d);
  ET_REQUIRE(ctx, fits && is_real(sorted.scalar_type()) && is_real(values.scalar_type()),
             InvalidArgument, out, "%s: sequences %s of %s do not belong to values %s of %s",
             how.op, ShapeText(sorted).c_str(), toString(sorted.scalar_type()),
             ShapeText(values).c_str(), toString(values.scalar_type()));
  const ScalarType expected = how.int32 ? ScalarType::Int : ScalarType::Long;
  ET_REQUIRE(ctx, out.scalar_type() == expected, InvalidArgument, out,
             "%s: out is %s; %s was expected", how.op, toString(out.scalar_type()),
             toString(expected));
  ET_REQUIRE(ctx,
             how.sorter == nullptr || (how.sorter->sizes().equals(sorted.sizes()) &&
                                       how.sorter->scalar_type() == ScalarType::Long),
             InvalidArgument, out, "%s: a sorter of dtype Long and shape %s was expected", how.op,
             ShapeText(sorted).c_str());
  if (!resize_out(ctx, how.op, out, values.sizes()) || out.numel() == 0) return out;
  const Layout from(sorted), order(how.sorter == nullptr ? sorted : *how.sorter), to(out);
  const int64_t step = from.strides[rank - 1], order_step = order.strides[rank - 1];
  // The strides, in the loop over values, of the beginning of a value's sequence.
  int64_t begin[kTensorDimensionLimit] = {}, order_begin[kTensorDimensionLimit] = {};
  for (int64_t d = 0; rank > 1 && d < rank - 1; ++d) {
    begin[d] = from.strides[d];
    order_begin[d] = order.strides[d];
  }
  Loop loop(values.sizes());
  loop.add(to.strides).add(Layout(values).strides).add(begin).add(order_begin);
  loop.collapse();
  const bool floats = is_float(sorted.scalar_type()) || is_float(values.scalar_type());
  bool valid = true;
  with_dtype(sorted.scalar_type(), [&](auto tag) {
    using T = StoredAs<decltype(tag)>;
    const auto search_by = [&](auto compared) {
      return search_as<decltype(compared), T>(how, loop, sorted, n, step, order_step, values, out);
    };
    if constexpr (!kIsFloat<T>) {
      valid = floats ? search_by(double{}) : search_by(int64_t{});
    } else {
      valid = search_by(double{});
    }
  });
  ET_REQUIRE(ctx, valid, InvalidArgument, out, "%s: the sorter has values outside [0, %" PRId64 ")",
             how.op, n);
  return out;
}

}  // namespace

Tensor& bucketize_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                             const Tensor& boundaries, bool out_int32, bool right, Tensor& out) {
  ET_REQUIRE(ctx, boundaries.dim() == 1, InvalidArgument, out,
             "bucketize.Tensor_out: 1-d boundaries were expected; their shape is %s",
             ShapeText(boundaries).c_str());
  return search(ctx, {"bucketize.Tensor_out", right, out_int32, nullptr}, boundaries, self, out);
}

Tensor& searchsorted_Tensor_out(KernelRuntimeContext& ctx, const Tensor& sorted_sequence,
                                const Tensor& self, bool out_int32, bool right,
                                std::optional<std::string_view> side,
                                const std::optional<Tensor>& sorter, Tensor& out) {
  constexpr const char* kOp = "searchsorted.Tensor_out";
  ET_REQUIRE(ctx, !side.has_value() || *side == "right" || (*side == "left" && !right),
             InvalidArgument, out,
             "%s: side is '%.*s', expected 'left' or 'right', and not left with right=True", kOp,
             static_cast<int>(side->size()), side->data());
  const bool from_right = side.has_value() ? *side == "right" : right;
  return search(ctx, {kOp, from_right, out_int32, sorter.has_value() ? &*sorter : nullptr},
                sorted_sequence, self, out);
}

namespace {
constexpr Kernel kSearchOps[] = {
    ET_OP("aten::bucketize.Tensor_out", bucketize_Tensor_out),
    ET_OP("aten::searchsorted.Tensor_out", searchsorted_Tensor_out),
};
}  // namespace

Span<const Kernel> search_ops() {
  return kSearchOps;
}

}  // namespace torch::executor::native
