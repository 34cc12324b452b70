/// Strided views: what a chain of permutes, slices and reshapes reads, without copying.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>

namespace executorch::optimized {

using aten::Tensor;
using runtime::EValue;
using runtime::Span;

/// A tensor's elements by strides. A dimension is a product of factors, outermost first, so that
/// dimensions that do not lie one after the other can still be merged: [4,5] by strides (1,4) is
/// one dimension of 20 with the factors (4,1) (5,4). A dimension of size 1 has no factors.
/// Members that say bool leave the view unusable when they say false: the view cannot be expressed,
/// or the arguments do not fit the sizes.
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
  /// Elements from the tensor's first one.
  int64_t offset() const { return offset_; }
  int64_t size(int dim) const;
  int n_factors(int dim) const { return end_[dim] - begin(dim); }
  const Factor& factor(int dim, int i) const { return factors_[begin(dim) + i]; }
  /// The one stride of a dimension, 0 for size 1; false if it has several.
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
  /// Split, SplitSizes, Unbind: which of the outputs.
  uint32_t part;
  /// The instruction's. ReshapeAs: source, tensor of the new shape.
  Span<EValue*> args;

  bool apply(View& view) const;
  /// Whether the elements keep their order in memory.
  bool keeps_order() const;
  /// Whether undo() is possible.
  bool moves_all() const;
  /// `after` has the sizes behind this step: gives it those of `before`, so that it shows where
  /// the elements come from.
  bool undo(View& after, const View& before) const;
};

/// A tensor behind a chain of steps.
struct Operand {
  EValue* base;
  Span<const Step> steps;

  const Tensor& tensor() const { return base->toTensor(); }
  /// Invalid if the steps do not apply.
  View view() const;
  const void* data(const View& view) const;
};

}  // namespace executorch::optimized
