/// Shapes: text for messages, resizing outputs, normalising dims, broadcasting.
/// The functions that take a context fail it with a message that starts with `op` and say false.
#pragma once

#include <executorch/kernels/portable/internal/check.h>

#include <cstdint>
#include <initializer_list>

namespace torch::executor::native::internal {

using executorch::aten::ArrayRef;
using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::kTensorDimensionLimit;

constexpr int64_t kMaxDims = static_cast<int64_t>(kTensorDimensionLimit);

/// A list of extents with its own storage.
struct Shape {
  int64_t ndim = 0;
  SizesType sizes[kTensorDimensionLimit] = {};

  Shape() = default;
  explicit Shape(ArrayRef<SizesType> from) {
    for (SizesType size : from) push(size);
  }
  explicit Shape(const Tensor& t) : Shape(t.sizes()) {}

  void push(int64_t size) {
    if (ndim < kMaxDims) sizes[ndim++] = static_cast<SizesType>(size);
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }
  ArrayRef<SizesType> ref() const { return ArrayRef<SizesType>(sizes, static_cast<size_t>(ndim)); }
  operator ArrayRef<SizesType>() const { return ref(); }
};

/// "[2,3]"; lives as long as the expression it is made in: ET_LOG(..., ShapeText(t).c_str()).
class ShapeText {
 public:
  explicit ShapeText(const Tensor& t);
  explicit ShapeText(ArrayRef<SizesType> sizes);
  explicit ShapeText(ArrayRef<int64_t> sizes);
  const char* c_str() const { return text_; }

 private:
  template <class T>
  void format(const T* sizes, size_t n);
  char text_[128];
};

/// Gives `out` these extents, within the bounds it was planned for.
[[nodiscard]] bool resize_out(KernelRuntimeContext& ctx, const char* op, Tensor& out,
                              ArrayRef<SizesType> sizes);

/// dim in [-rank, rank) to [0, rank), in place; a 0-d tensor has the dim 0.
[[nodiscard]] bool normalize_dim(KernelRuntimeContext& ctx, const char* op, int64_t& dim,
                                 int64_t rank);

/// The set of dims as a bit mask; a repeated dim is an error. No dims (or an empty list, where
/// `empty_is_all`) means all.
[[nodiscard]] bool dim_mask(KernelRuntimeContext& ctx, const char* op,
                            const std::optional<ArrayRef<int64_t>>& dims, int64_t rank,
                            bool empty_is_all, uint32_t& mask);

/// `shape` = shape broadcast with the sizes of `t`.
[[nodiscard]] bool broadcast_with(KernelRuntimeContext& ctx, const char* op, const Tensor& t,
                                  Shape& shape);

inline bool is_contiguous(const Tensor& t) {
  if (t.numel() == 0) return true;
  int64_t expected = 1;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    if (t.size(d) != 1 && t.strides()[d] != expected) return false;
    expected *= t.size(d);
  }
  return true;
}

/// Equal extents and equal strides wherever they matter: element i in memory is the same element.
bool same_layout(const Tensor& a, const Tensor& b);

}  // namespace torch::executor::native::internal
