/// Index tensors: reading int32 and int64 elements alike and refusing values outside a dim.
#pragma once

#include <executorch/kernels/portable/internal/strided_copy.h>

#include <atomic>
#include <cinttypes>
#include <optional>

namespace torch::executor::native::internal {

/// The elements of an index tensor by offset. Borrows the tensor's data.
class IndexValues {
 public:
  explicit IndexValues(const Tensor& index)
      : data_(index.const_data_ptr()), wide_(index.scalar_type() == ScalarType::Long) {}
  int64_t operator[](int64_t offset) const {
    return wide_ ? static_cast<const int64_t*>(data_)[offset]
                 : static_cast<const int32_t*>(data_)[offset];
  }

 private:
  const void* data_;
  bool wide_;
};

/// Calls f with the elements of an index tensor, as const int64_t* or const int32_t*.
template <class F>
void with_index_values(const Tensor& index, F&& f) {
  index.scalar_type() == ScalarType::Long ? f(index.const_data_ptr<int64_t>())
                                          : f(index.const_data_ptr<int32_t>());
}

/// The first position of a bad index; positions are those of the index in row-major order.
class FirstBad {
 public:
  void see(int64_t position) {
    int64_t known = first_.load(std::memory_order_relaxed);
    while (position < known && !first_.compare_exchange_weak(known, position)) {
    }
  }
  std::optional<int64_t> position() const {
    const int64_t first = first_.load();
    return first == INT64_MAX ? std::nullopt : std::optional(first);
  }

 private:
  std::atomic<int64_t> first_{INT64_MAX};
};

[[nodiscard]] inline bool require_index_dtype(KernelRuntimeContext& ctx, const char* op,
                                              const Tensor& index) {
  ET_REQUIRE(ctx, index.scalar_type() == ScalarType::Long || index.scalar_type() == ScalarType::Int,
             InvalidArgument, false, "%s: the index has dtype %s; Long or Int was expected", op,
             toString(index.scalar_type()));
  return true;
}

/// Fails the kernel if the memory of `out`, at its largest size, and that of `index` overlap. A
/// file may plan them so, and indices could then change between their check and their use.
[[nodiscard]] inline bool require_apart(KernelRuntimeContext& ctx, const char* op,
                                        const Tensor& index, const Tensor& out) {
  const auto begin = reinterpret_cast<uintptr_t>(index.const_data_ptr());
  const auto out_begin = reinterpret_cast<uintptr_t>(out.const_data_ptr());
  const size_t out_bytes =
      out.unsafeGetTensorImpl()->capacity() * static_cast<size_t>(out.element_size());
  const bool apart = index.numel() == 0 || out_bytes == 0 || begin + index.nbytes() <= out_begin ||
                     out_begin + out_bytes <= begin;
  ET_REQUIRE(ctx, apart, InvalidArgument, false,
             "%s: the result, of %zu bytes, lies over the index tensor of shape %s", op, out_bytes,
             ShapeText(index).c_str());
  return true;
}

/// Checks the dtype of an index tensor that is read while `out` is written, and that both do not
/// overlap.
[[nodiscard]] inline bool require_index(KernelRuntimeContext& ctx, const char* op,
                                        const Tensor& index, const Tensor& out) {
  return require_index_dtype(ctx, op, index) && require_apart(ctx, op, index, out);
}

/// Fails the kernel for `value`, found at `position` (row-major) of the index tensor, that is
/// outside [lowest, extent). Kept apart from the loops that do the test.
inline void fail_index(KernelRuntimeContext& ctx, const char* op, int64_t value, int64_t position,
                       int64_t lowest, int64_t extent, int64_t dim) {
  ET_LOG(Error,
         "%s: index %" PRId64 " at position %" PRId64 " is out of range for dim %" PRId64
         "; expected %" PRId64 " to %" PRId64,
         op, value, position, dim, lowest, extent - 1);
  ctx.fail(Error::InvalidArgument);
}

/// A layout in which a 0-d tensor is one of shape [1].
inline Layout at_least_1d(const Tensor& t) {
  Layout layout(t);
  if (t.dim() == 0) layout.push(1, 1);
  return layout;
}

}  // namespace torch::executor::native::internal
