/// Shapes: text for messages, resizing outputs, normalizing dims, broadcasting.
/// On an error, functions that take a context fail it with a message that starts with `op`, and
/// return false.
#pragma once

#include <executorch/kernels/portable/internal/check.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

namespace torch::executor::native::internal {

using executorch::aten::ArrayRef;
using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::cpu::Size;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::kTensorDimensionLimit;

constexpr int64_t kMaxDims = static_cast<int64_t>(kTensorDimensionLimit);

/// The extents of a tensor that is to be made. Any number may be passed. A number that cannot be an
/// extent (an invalid Size, or one outside [0, 2^31)), or too many dims, makes the shape invalid.
/// resize_out() refuses an invalid shape. Reading an invalid shape gives that of a tensor without
/// elements.
///
///   Shape shape{n, Size(input.size(2)) + 2 * Size(padding) - kernel + 1};
///   if (!resize_out(ctx, kOp, out, shape)) return out;   // names the operator, dim and value
class Shape {
 public:
  Shape() = default;
  explicit Shape(ArrayRef<SizesType> from) {
    for (SizesType size : from) push(size);
  }
  explicit Shape(const Tensor& t) : Shape(t.sizes()) {}
  Shape(std::initializer_list<Size> extents) {
    for (const Size extent : extents) push(extent);
  }

  int64_t ndim() const { return ndim_; }
  SizesType operator[](int64_t dim) const { return sizes_[dim]; }
  ArrayRef<SizesType> ref() const {
    return ArrayRef<SizesType>(sizes_, static_cast<size_t>(ndim_));
  }
  operator ArrayRef<SizesType>() const { return ref(); }
  /// Whether the shape is valid and has these extents.
  bool equals(ArrayRef<SizesType> extents) const { return ok() && ref().equals(extents); }
  /// The true product of the extents; invalid beyond int64.
  Size numel() const;

  void push(Size extent) {
    if (ndim_ < kMaxDims) {
      set(ndim_++, extent);
    } else {
      refuse(kMaxDims, extent);
      sizes_[0] = 0;
    }
  }
  /// For 0 <= dim < ndim(). A shape that is invalid stays so.
  void set(int64_t dim, Size extent) {
    const bool fits = extent.within(std::numeric_limits<SizesType>::max());
    if (!fits) refuse(dim, extent);
    sizes_[dim] = fits ? static_cast<SizesType>(extent.value()) : 0;
  }
  void erase(int64_t dim) {
    for (--ndim_; dim < ndim_; ++dim) sizes_[dim] = sizes_[dim + 1];
  }
  void swap(int64_t a, int64_t b) { std::swap(sizes_[a], sizes_[b]); }

  /// Whether every number given so far was an extent; otherwise the first that was not, and its
  /// dim.
  bool ok() const { return bad_dim_ < 0; }
  int64_t bad_dim() const { return bad_dim_; }
  Size bad_extent() const { return bad_extent_; }

 private:
  void refuse(int64_t dim, Size extent) {
    if (!ok()) return;
    bad_dim_ = dim;
    bad_extent_ = extent;
  }

  SizesType sizes_[kTensorDimensionLimit] = {};
  int64_t ndim_ = 0;
  int64_t bad_dim_ = -1;
  Size bad_extent_;
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

/// Resizes `out` to these extents. Fails the context if they exceed the bounds that it was planned
/// for.
[[nodiscard]] bool resize_out(KernelRuntimeContext& ctx, const char* op, Tensor& out,
                              ArrayRef<SizesType> sizes);
/// The same; an invalid shape is an error.
[[nodiscard]] bool resize_out(KernelRuntimeContext& ctx, const char* op, Tensor& out,
                              const Shape& shape);

/// Maps dim from [-rank, rank) to [0, rank), in place. A 0-d tensor counts as one with a single
/// dim.
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
