#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/along_dim.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>

// Reading and writing along one dim at positions given by an index tensor.
namespace torch::executor::native {

using namespace internal;

namespace {

// Copies the part `from` of src to the part `to` of dst, by one memcpy if both are contiguous.
void copy_part(const Tensor& src, const Layout& from, Tensor& dst, const Layout& to) {
  copy_layout(src.const_data_ptr(), src.scalar_type(), from, dst.mutable_data_ptr(),
              dst.scalar_type(), to);
}

/// Whether every value of `index`, in row-major order, is in [0, extent).
bool check_all(KernelRuntimeContext& ctx, const char* op, const Tensor& index, int64_t extent,
               int64_t dim) {
  Loop loop(index.sizes());
  loop.add(index);
  bool all = true;
  with_index_values(index, [&](const auto* values) {
    const int64_t step = loop.inner_stride(0);
    for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t value = values[offsets[0] + i * step];
        all &= value >= 0 && value < extent;
      }
    });
  });
  const IndexValues values(index);
  for (int64_t i = 0; !all; ++i) {
    const int64_t value = values[loop.offset(0, i)];
    if (value >= 0 && value < extent) continue;
    fail_index(ctx, op, value, i, 0, extent, dim);
    return false;
  }
  return true;
}

/// out[o, i, :] = src[o, index[i], :], all dense; `piece` elements in a last dim.
struct Taking {
  int64_t outer = 1, n = 0, extent = 0, piece = 1;
};

/// Single elements, of one `outer` at a time.
template <class T>
void take_elements(const Taking& t, const T* src, const IndexValues& index, int64_t step, T* dst) {
  constexpr int64_t kGrain = 16384;
  executorch::cpu::parallel_for(t.outer, std::max<int64_t>(kGrain / t.n, 1),
                                [&](int64_t o, int64_t end) {
                                  for (; o < end; ++o) {
                                    for (int64_t i = 0; i < t.n; ++i) {
                                      dst[o * t.n + i] = src[o * t.extent + index[i * step]];
                                    }
                                  }
                                });
}

/// Takes the elements that `index` names. The index values, `step` apart, must have been checked.
void take(const Taking& t, const Tensor& src, const Tensor& index, int64_t step, Tensor& out) {
  if (out.numel() == 0) return;
  const IndexValues values(index);
  if (t.piece == 1 && t.outer > 1) {
    with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
      using T = decltype(tag);
      take_elements(t, static_cast<const T*>(src.const_data_ptr()), values, step,
                    static_cast<T*>(out.mutable_data_ptr()));
    });
    return;
  }
  const int64_t bytes = t.piece * static_cast<int64_t>(out.element_size());
  const char* const from = static_cast<const char*>(src.const_data_ptr());
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t pieces = t.outer * t.n;
  constexpr int64_t kGrainBytes = 65536, kShort = 512;
  const bool past = bytes >= kShort && executorch::cpu::overflows_caches(2 * pieces * bytes);
  executorch::cpu::parallel_for(
      pieces, std::max<int64_t>(kGrainBytes / bytes, 1), [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          const int64_t row = i / t.n * t.extent + values[i % t.n * step];
          const char* const piece = from + row * bytes;
          past ? executorch::cpu::stream(piece, to + i * bytes, static_cast<size_t>(bytes))
               : static_cast<void>(std::memmove(to + i * bytes, piece, static_cast<size_t>(bytes)));
        }
        if (past) executorch::cpu::end_stream();
      });
}

}  // namespace

Tensor& embedding_out(KernelRuntimeContext& ctx, const Tensor& weight, const Tensor& indices,
                      int64_t padding_idx, bool scale_grad_by_freq, bool sparse, Tensor& out) {
  constexpr const char* kOp = "embedding.out";
  (void)padding_idx, (void)scale_grad_by_freq, (void)sparse;  // matter to gradients only
  ET_REQUIRE(ctx, weight.dim() == 2 && indices.dim() < kMaxDims, InvalidArgument, out,
             "%s: weight [n, d] was expected; its shape is %s", kOp, ShapeText(weight).c_str());
  if (!require_index(ctx, kOp, indices, out)) return out;
  if (!require_same_dtype(ctx, kOp, weight, out, "out")) return out;
  Shape shape(indices);
  shape.push(weight.size(1));
  if (!resize_out(ctx, kOp, out, shape) || !check_all(ctx, kOp, indices, weight.size(0), 0)) {
    return out;
  }
  const int64_t d = weight.size(1);
  if (is_contiguous(weight) && is_contiguous(indices) && is_contiguous(out)) {
    take({.n = indices.numel(), .extent = weight.size(0), .piece = d}, weight, indices, 1, out);
    return out;
  }
  const Layout table(weight), target(out);
  Layout from, to;
  from.push(d, table.strides[1]);
  to.push(d, target.strides[out.dim() - 1]);
  const IndexValues values(indices);
  Loop loop(indices.sizes());
  loop.add(Layout(indices).strides).add(target.strides);
  for_each_run(loop, [&](const int64_t* offsets, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      from.offset = values[offsets[0] + i * loop.inner_stride(0)] * table.strides[0];
      to.offset = offsets[1] + i * loop.inner_stride(1);
      copy_part(weight, from, out, to);
    }
  });
  return out;
}

Tensor& index_select_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                         const Tensor& index, Tensor& out) {
  constexpr const char* kOp = "index_select.out";
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  ET_REQUIRE(ctx, index.dim() <= 1 && (self.dim() > 0 || index.numel() == 1), InvalidArgument, out,
             "%s: a 1-d index was expected (of one element for a 0-d tensor); found shapes %s and "
             "%s",
             kOp, ShapeText(index).c_str(), ShapeText(self).c_str());
  if (!require_index(ctx, kOp, index, out)) return out;
  if (!require_same_dtype(ctx, kOp, self, out, "out")) return out;
  Shape shape(self);
  if (self.dim() > 0) shape.set(dim, index.numel());
  if (!resize_out(ctx, kOp, out, shape)) return out;
  Layout from = at_least_1d(self), to = at_least_1d(out);
  const int64_t extent = from.shape[dim];
  if (!check_all(ctx, kOp, index, extent, dim)) return out;
  const int64_t index_step = at_least_1d(index).strides[0];
  if (is_contiguous(self) && is_contiguous(out)) {
    const int64_t piece = from.strides[dim];
    take({.outer = self.numel() / std::max<int64_t>(extent * piece, 1),
          .n = index.numel(),
          .extent = extent,
          .piece = piece},
         self, index, index_step, out);
    return out;
  }
  const int64_t from_step = from.strides[dim], to_step = to.strides[dim];
  from.erase(dim);
  to.erase(dim);
  const IndexValues values(index);
  for (int64_t i = 0; i < index.numel(); ++i) {
    from.offset = values[i * index_step] * from_step;
    to.offset = i * to_step;
    copy_part(self, from, out, to);
  }
  return out;
}

namespace {

/// to[i] = from[at[i]]. A bad index reads the first element instead; returns false if there is one.
template <class T, class Index>
bool gather_dense(const Index* at, const T* from, uint64_t extent, T* to, int64_t n) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<uint64_t>(static_cast<int64_t>(at[i]));
    const bool good = value < extent;
    all &= good;
    to[i] = from[good ? value : 0];
  }
  return all;
}

/// The lines of a loop's innermost dim, with the offsets of their beginnings.
class Lines {
 public:
  Lines(const Loop& loop, int64_t line) : loop_(loop) {
    for (int d = loop.ndim - 2; d >= 0; --d) {
      index_[d] = line % loop.sizes[d];
      line /= loop.sizes[d];
      for (int k = 0; k < kOperands; ++k) at[k] += index_[d] * loop.strides[k][d];
    }
  }
  void next() {
    for (int d = loop_.ndim - 2; d >= 0; --d) {
      const bool wraps = ++index_[d] == loop_.sizes[d];
      const int64_t steps = wraps ? 1 - loop_.sizes[d] : 1;
      for (int k = 0; k < kOperands; ++k) at[k] += steps * loop_.strides[k][d];
      if (!wraps) return;
      index_[d] = 0;
    }
  }
  static constexpr int kOperands = 3;
  int64_t at[kOperands] = {};

 private:
  const Loop& loop_;
  int64_t index_[kTensorDimensionLimit] = {};
};

/// dst[other offset] = src[data offset], by lines of the loop's innermost dim, which threads share.
/// Nothing outside of `src` is read for a bad index.
template <class T, class Index>
void gather_lines(const AlongDim& along, const T* src, const Index* index, T* dst, FirstBad& bad) {
  const Loop& loop = along.loop;
  const int inner = loop.ndim - 1;
  const int64_t n = loop.sizes[inner], step = along.step;
  const auto extent = static_cast<uint64_t>(along.extent);
  const int64_t step0 = loop.strides[0][inner], step1 = loop.strides[1][inner];
  const int64_t step2 = loop.strides[2][inner];
  const bool dense = step0 == 1 && step1 == 0 && step2 == 1 && step == 1;
  const auto lines = [&](int64_t line, int64_t end) {
    for (Lines walk(loop, line); line < end; ++line, walk.next()) {
      const Index* at = index + walk.at[0];
      const T* from = src + walk.at[1];
      T* to = dst + walk.at[2];
      bool all = !dense || gather_dense(at, from, extent, to, n);
      for (int64_t i = 0; !dense && i < n; ++i) {
        const int64_t value = at[i * step0];
        const bool good = static_cast<uint64_t>(value) < extent;
        all &= good;
        to[i * step2] = from[i * step1 + (good ? value : 0) * step];
      }
      for (int64_t i = 0; !all && i < n; ++i) {
        if (static_cast<uint64_t>(at[i * step0]) < extent) continue;
        bad.see(line * n + i);
        break;
      }
    }
  };
  constexpr int64_t kGrain = 16384;  // elements
  executorch::cpu::parallel_for(loop.numel / n, std::max<int64_t>(kGrain / n, 1), lines);
}

}  // namespace

namespace internal {

std::optional<int64_t> gather_along(const AlongDim& along, size_t element_size, const void* data,
                                    ScalarType index_type, const void* index, void* other) {
  if (along.loop.numel == 0) return std::nullopt;
  if (along.extent == 0) return 0;
  FirstBad bad;
  with_element_size(element_size, [&](auto tag) {
    using T = decltype(tag);
    const T* src = static_cast<const T*>(data);
    T* dst = static_cast<T*>(other);
    if (index_type == ScalarType::Long) {
      gather_lines(along, src, static_cast<const int64_t*>(index), dst, bad);
    } else {
      gather_lines(along, src, static_cast<const int32_t*>(index), dst, bad);
    }
  });
  return bad.position();
}

}  // namespace internal

Tensor& gather_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, const Tensor& index,
                   bool sparse_grad, Tensor& out) {
  constexpr const char* kOp = "gather.out";
  (void)sparse_grad;
  if (!normalize_dim(ctx, kOp, dim, self.dim())) return out;
  if (!require_same_dtype(ctx, kOp, self, out, "out")) return out;
  if (index.numel() > 0 && !require_index(ctx, kOp, index, out)) return out;
  if (index.numel() > 0 && !require_index_shape(ctx, kOp, self, "the input", index, dim, true)) {
    return out;
  }
  if (!resize_out(ctx, kOp, out, index.sizes()) || index.numel() == 0) return out;
  const AlongDim along(index, dim, at_least_1d(self), at_least_1d(out));
  const auto bad =
      gather_along(along, static_cast<size_t>(out.element_size()), self.const_data_ptr(),
                   index.scalar_type(), index.const_data_ptr(), out.mutable_data_ptr());
  if (bad.has_value()) {
    const int64_t value = IndexValues(index)[along.loop.offset(0, *bad)];
    fail_index(ctx, kOp, value, *bad, 0, along.extent, dim);
  }
  return out;
}

Tensor& repeat_interleave_Tensor_out(KernelRuntimeContext& ctx, const Tensor& repeats,
                                     std::optional<int64_t> output_size, Tensor& out) {
  constexpr const char* kOp = "repeat_interleave.Tensor_out";
  if (!require_index(ctx, kOp, repeats, out)) return out;
  if (!require_same_dtype(ctx, kOp, repeats, out, "out")) return out;
  ET_REQUIRE(ctx, repeats.dim() == 1, InvalidArgument, out,
             "%s: repeats must have rank 1; its shape is %s", kOp, ShapeText(repeats).c_str());
  const IndexValues values(repeats);
  int64_t total = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    ET_REQUIRE(ctx, values[i] >= 0 && values[i] <= INT32_MAX - total, InvalidArgument, out,
               "%s: %" PRId64 " at position %" PRId64 " is not a number of repeats", kOp, values[i],
               i);
    total += values[i];
  }
  ET_REQUIRE(ctx, output_size.value_or(total) == total, InvalidArgument, out,
             "%s: output_size is %" PRId64 "; the repeats add up to %" PRId64, kOp, *output_size,
             total);
  if (!resize_out(ctx, kOp, out, Shape{total})) return out;
  with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    T* at = static_cast<T*>(out.mutable_data_ptr());
    for (int64_t i = 0; i < repeats.numel(); ++i)
      at = std::fill_n(at, values[i], static_cast<T>(i));
  });
  return out;
}

namespace {
constexpr Kernel kGatherOps[] = {
    ET_OP("aten::embedding.out", embedding_out),
    ET_OP("aten::gather.out", gather_out),
    ET_OP("aten::index_select.out", index_select_out),
    ET_OP("aten::repeat_interleave.Tensor_out", repeat_interleave_Tensor_out, copy),
};
}  // namespace

Span<const Kernel> gather_ops() {
  return kGatherOps;
}

}  // namespace torch::executor::native
