/// The result type of an operation on mixed operands, by PyTorch's rules: a tensor with dims beats
/// a 0-d tensor of the same category (bool < integer < float < complex), which beats a number.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

namespace torch::executor::native::internal {

using executorch::aten::Tensor;

class Promotion {
 public:
  Promotion& add(const Tensor& t);
  Promotion& add(const Scalar& s);
  ScalarType result() const;

 private:
  ScalarType tensors_ = ScalarType::Undefined;
  ScalarType zero_dim_ = ScalarType::Undefined;
  ScalarType numbers_ = ScalarType::Undefined;
};

/// Whether a result computed as `from` may be written to an output of type `to`: not from float to
/// integer, and to Bool only from Bool.
bool can_store(ScalarType from, ScalarType to);

}  // namespace torch::executor::native::internal
