#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace executorch::runtime {
namespace testing {
namespace {

using aten::ScalarType;
using aten::Tensor;

double default_atol(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return internal::kDefaultHalfAtol;
    case ScalarType::BFloat16:
      return internal::kDefaultBFloat16Atol;
    default:
      return internal::kDefaultAtol;
  }
}

bool is_close(double a, double b, double rtol, double atol) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  // Also for infinities, whose difference is not a number.
  return a == b ||
         (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= atol + rtol * std::abs(b));
}

template <typename T>
bool elements_are_close(const Tensor& a, const Tensor& b, double rtol, double atol) {
  const T* x = a.const_data_ptr<T>();
  const T* y = b.const_data_ptr<T>();
  for (ssize_t i = 0; i < a.numel(); ++i) {
    if (!is_close(static_cast<double>(x[i]), static_cast<double>(y[i]), rtol, atol)) return false;
  }
  return true;
}

/// Whether elements of the same indices lie at the same places. Several orders of dimensions may say
/// so, where sizes are 1 or 0.
bool have_equal_layout(const Tensor& a, const Tensor& b) {
  if (!a.sizes().equals(b.sizes())) return false;
  const auto order_a = runtime::internal::dim_order_of(a);
  const auto order_b = runtime::internal::dim_order_of(b);
  if (order_a.ok() && order_b.ok() && order_a->equals(*order_b)) return true;
  aten::StridesType room_a[kTensorDimensionLimit], room_b[kTensorDimensionLimit];
  const auto strides_a = runtime::internal::strides_of(a, room_a);
  const auto strides_b = runtime::internal::strides_of(b, room_b);
  return strides_a.ok() && strides_b.ok() && strides_a->equals(*strides_b);
}

template <typename T>
void print_elements(std::ostream& os, const Tensor& t) {
  constexpr ssize_t kMost = 100;
  for (ssize_t i = 0; i < t.numel() && i < kMost; ++i) {
    os << (i > 0 ? ", " : "");
    // As a number also where the type is a character.
    if constexpr (std::is_integral_v<T>) {
      os << static_cast<int64_t>(t.const_data_ptr<T>()[i]);
    } else {
      os << static_cast<double>(t.const_data_ptr<T>()[i]);
    }
  }
  os << (t.numel() > kMost ? ", ..." : "");
}

struct Refusal {
  bool refused = false;
  void fail(Error) { refused = true; }
};

}  // namespace

bool tensor_data_is_close(const Tensor& a, const Tensor& b, double rtol,
                          std::optional<double> opt_atol) {
  if (a.scalar_type() != b.scalar_type() || a.numel() != b.numel()) return false;
  if (a.numel() == 0) return true;
  const double atol = opt_atol.value_or(default_atol(a.scalar_type()));
  switch (a.scalar_type()) {
    case ScalarType::Float:
      return elements_are_close<float>(a, b, rtol, atol);
    case ScalarType::Double:
      return elements_are_close<double>(a, b, rtol, atol);
    case ScalarType::Half:
      return elements_are_close<aten::Half>(a, b, rtol, atol);
    case ScalarType::BFloat16:
      return elements_are_close<aten::BFloat16>(a, b, rtol, atol);
    default:
      return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
  }
}

bool tensors_are_close(const Tensor& a, const Tensor& b, double rtol,
                       std::optional<double> opt_atol) {
  return have_equal_layout(a, b) && tensor_data_is_close(a, b, rtol, opt_atol);
}

bool tensor_lists_are_close(const Tensor* tensors_a, size_t num_tensors_a, const Tensor* tensors_b,
                            size_t num_tensors_b, double rtol, std::optional<double> opt_atol) {
  if (num_tensors_a != num_tensors_b) return false;
  for (size_t i = 0; i < num_tensors_a; ++i) {
    if (!tensors_are_close(tensors_a[i], tensors_b[i], rtol, opt_atol)) return false;
  }
  return true;
}

}  // namespace testing

namespace etensor {

bool operator==(const Tensor& a, const Tensor& b) {
  return testing::tensors_are_close(a, b, /*rtol=*/0, /*opt_atol=*/0);
}

std::ostream& operator<<(std::ostream& os, const Tensor& t) {
  os << "ETensor(sizes={";
  for (ssize_t i = 0; i < t.dim(); ++i) os << (i > 0 ? ", " : "") << t.size(i);
  os << "}, dtype=" << t.scalar_type() << ", data={";
  testing::Refusal ctx;
  ET_SWITCH_REALHBBF16_AND_UINT_TYPES(t.scalar_type(), ctx, "operator<<", CTYPE,
                                      [&]() { testing::print_elements<CTYPE>(os, t); });
  return os << (ctx.refused ? "?" : "") << "})";
}

std::ostream& operator<<(std::ostream& os, ScalarType type) {
  if (isValid(type)) return os << toString(type);
  return os << "Unknown(" << static_cast<int>(type) << ")";
}

}  // namespace etensor
}  // namespace executorch::runtime
