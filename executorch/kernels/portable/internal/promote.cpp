#include <executorch/kernels/portable/internal/promote.h>

namespace torch::executor::native::internal {
namespace {

ScalarType join(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  if (b == ScalarType::Undefined) return a;
  return executorch::runtime::promoteTypes(a, b);
}

enum class Category { None, Bool, Integer, Float, Complex };

Category category_of(ScalarType t) {
  if (t == ScalarType::Undefined) return Category::None;
  if (t == ScalarType::Bool) return Category::Bool;
  return is_complex(t) ? Category::Complex : is_float(t) ? Category::Float : Category::Integer;
}

/// `lower` matters only when it is of a higher category than `higher`.
ScalarType join_categories(ScalarType higher, ScalarType lower) {
  return category_of(lower) > category_of(higher) ? join(higher, lower) : higher;
}

}  // namespace

Promotion& Promotion::add(const Tensor& t) {
  ScalarType& slot = t.dim() > 0 ? tensors_ : zero_dim_;
  slot = join(slot, t.scalar_type());
  return *this;
}

Promotion& Promotion::add(const Scalar& s) {
  numbers_ = join(numbers_, s.isBoolean()         ? ScalarType::Bool
                            : s.isIntegral(false) ? ScalarType::Long
                                                  : ScalarType::Float);
  return *this;
}

ScalarType Promotion::result() const {
  return join_categories(tensors_, join_categories(zero_dim_, numbers_));
}

bool can_store(ScalarType from, ScalarType to) {
  if (!is_real(from) || !is_real(to)) return false;
  if (is_float(from) && !is_float(to)) return false;
  return to != ScalarType::Bool || from == ScalarType::Bool;
}

}  // namespace torch::executor::native::internal
