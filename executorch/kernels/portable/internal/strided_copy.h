/// Copies between strided layouts, for all operators that move elements without computing on them
/// (permute, slice, cat, expand, pad, changes of dtype and dim order).
#pragma once

#include <executorch/cpu/nn/copy.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <cstddef>
#include <cstdint>

namespace torch::executor::native::internal {

/// The layout of an n-dimensional array: element (i0, i1, ...) lies `offset` plus the sum
/// of i_d * strides[d] elements from the start of the data. Strides may be zero or negative. An
/// operator that is a view edits the layout of its input and hands it to `copy_view`.
struct Layout {
  Shape shape;
  int64_t strides[kTensorDimensionLimit] = {};
  int64_t offset = 0;

  Layout() = default;
  /// If t has no elements, all strides are 0, because its extents may be so large that offsets
  /// overflow.
  explicit Layout(const Tensor& t);
  void push(int64_t size, int64_t stride) {
    if (shape.ndim() < kMaxDims) strides[shape.ndim()] = stride;
    shape.push(size);
  }
  void erase(int64_t dim);
};

/// Resizes `out` to the view's shape and fills it with the view's elements of `self`; the dtypes
/// must be equal. False, the context failed with a message, where that cannot be.
bool copy_view(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Layout& view,
               Tensor& out);

/// Narrows `view` to `index` along `dim` and removes the dim. Both may count from the end.
[[nodiscard]] bool select_in(KernelRuntimeContext& ctx, const char* op, int64_t dim, int64_t index,
                             Layout& view);

/// Narrows `view` to [start, end) along `dim` in steps; start and end may count from the end and
/// are clamped to the extent, as in Python.
[[nodiscard]] bool slice_in(KernelRuntimeContext& ctx, const char* op, int64_t dim,
                            std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
                            Layout& view);

/// An operator's `size` argument as a shape; false with a message for a negative extent or too
/// many.
[[nodiscard]] bool shape_of(KernelRuntimeContext& ctx, const char* op, ArrayRef<int64_t> size,
                            Shape& shape);

/// Copies elements between two layouts of equal shape, converting dtypes.
void copy_layout(const void* src, ScalarType src_type, const Layout& from, void* dst,
                 ScalarType dst_type, const Layout& to);

/// Copies `count` elements in row-major order of both layouts, of any shapes, from row-major
/// position `src_begin` to `dst_begin`. Equal dtypes of `element_size` bytes.
void copy_in_order(const void* src, const Layout& from, int64_t src_begin, void* dst,
                   const Layout& to, int64_t dst_begin, int64_t count, size_t element_size);

/// The types whose elements can be filled, copied and converted.
static constexpr bool is_number(ScalarType t) {
  return is_real(t) || is_complex(t);
}

/// A number as an element of a tensor; `type` is real or complex.
struct Element {
  Element(const Scalar& value, ScalarType type);
  alignas(16) char bytes[16] = {};
};

/// Writes `value`, converted to the dtype of `out`, to every element.
void fill(const Scalar& value, Tensor& out);

/// True when a value of dtype `from` may be stored as `to`: they are equal, or both are real or
/// complex.
bool convertible(ScalarType from, ScalarType to);

/// The nest of loops of one copy. Dimensions may be added in any order; `copy` reorders and merges
/// them so that the innermost loop is as long and as sequential as the result's layout allows.
/// Cost: linear in the number of elements.
class StridedLoop {
 public:
  /// More than a tensor has: repeat, unfold and pixel_shuffle split dimensions.
  static constexpr size_t kMaxLoops = 2 * kTensorDimensionLimit + 2;

  /// One dimension of `size` >= 0 positions; strides in elements, of any sign.
  void add(int64_t size, int64_t src_stride, int64_t dst_stride) {
    dims_[n_dims_++] = {size, src_stride, dst_stride};
  }

  /// Source and destination must not overlap, unless they are the same elements.
  void copy(const void* src, ScalarType src_type, void* dst, ScalarType dst_type) const;

 private:
  using Dim = executorch::cpu::Copy::Dim;
  size_t simplify(Dim (&dims)[kMaxLoops]) const;
  static void convert_rows(const Dim* dims, size_t n, const void* src, ScalarType src_type,
                           void* dst, ScalarType dst_type);

  Dim dims_[kMaxLoops];
  size_t n_dims_ = 0;
};

}  // namespace torch::executor::native::internal
