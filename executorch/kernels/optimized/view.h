/// Strided views: the result of a chain of permutes, slices and reshapes, described without
/// copying.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>

namespace executorch::optimized {

using aten::Tensor;
using runtime::EValue;
using runtime::Span;

/// A view of a tensor's elements. Each dimension is a product of factors, outermost first, and each
/// factor has a size and a stride. So dimensions can be merged even if no single stride walks both:
/// [4,5] with strides (1,4) becomes one dimension of 20 with the factors (4,1) (5,4). A dimension
/// of size 1 has no factors. Members that change the view return false if the result cannot be
/// expressed or the arguments do not fit the sizes. The view must not be used after that.
class View {
 public:
  static constexpr int kMaxDims = 8;
  static constexpr int kMaxFactors = 24;
  struct Factor {
    int64_t size;
    int64_t stride;
  };

  View() = default;
  /// Needs at least one element and at most kMaxDims dimensions; see valid().
  explicit View(const Tensor& tensor);
  /// A contiguous tensor of these sizes.
  View(const int64_t* sizes, int n);

  bool valid() const { return ndim_ >= 0; }
  int ndim() const { return ndim_; }
  /// The distance in elements from the tensor's first element to that of the view.
  int64_t offset() const { return offset_; }
  int64_t size(int dim) const;
  int n_factors(int dim) const { return end_[dim] - begin(dim); }
  const Factor& factor(int dim, int i) const { return factors_[begin(dim) + i]; }
  /// Sets `stride` to the stride of a dimension, 0 if its size is 1. Returns false if it has
  /// several factors.
  bool stride(int dim, int64_t& stride) const;
  bool same_sizes(const View& other) const;

  /// `sizes` may hold one -1.
  bool reshape(const int64_t* sizes, int n);
  bool permute(const int64_t* dims, int n);
  bool transpose(int64_t dim0, int64_t dim1);
  bool unsqueeze(int64_t dim);
  bool squeeze(int64_t dim);
  /// -1 keeps a size.
  bool expand(const int64_t* sizes, int n);
  bool expand_as(const View& other);
  bool slice(int64_t dim, int64_t start, int64_t end, int64_t step);
  bool select(int64_t dim, int64_t index);

 private:
  int begin(int dim) const { return dim == 0 ? 0 : end_[dim - 1]; }
  bool push(Factor factor);
  bool close_dim();

  int ndim_ = -1;
  int64_t offset_ = 0;
  int end_[kMaxDims] = {};
  Factor factors_[kMaxFactors];
};

/// One operator of a chain, applied at run time with the arguments of that call.
struct Step {
  enum class Kind : uint8_t {
    Same,
    Reshape,
    ReshapeAs,
    Permute,
    Transpose,
    Transpose2d,
    Unsqueeze,
    Squeeze,
    SqueezeDims,
    Expand,
    Slice,
    Select,
    Split,
    SplitSizes,
    Unbind,
  };
  Kind kind;
  /// The index of the output, for Split, SplitSizes and Unbind.
  uint32_t part;
  /// The arguments of the instruction. For ReshapeAs: the source, and a tensor of the new shape.
  Span<EValue*> args;

  bool apply(View& view) const;
  /// Whether the step keeps the order of the elements in memory.
  bool keeps_order() const;
  /// Whether undo() is possible.
  bool moves_all() const;
  /// Undoes the step: `after` has the sizes behind the step; afterwards it has the sizes of
  /// `before`, and each element of `before` is where `after` had it. Returns false if that is
  /// impossible.
  bool undo(View& after, const View& before) const;
};

/// A tensor that is read through a chain of steps.
struct Operand {
  EValue* base;
  Span<const Step> steps;

  const Tensor& tensor() const { return base->toTensor(); }
  /// The view after all steps; invalid if the steps do not apply to the tensor's sizes in this
  /// call.
  View view() const;
  const void* data(const View& view) const;
};

}  // namespace executorch::optimized
