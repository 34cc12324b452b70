#pragma once

#include <cstdint>
#include <type_traits>

#include <executorch/runtime/core/portable_type/bfloat16.h>
#include <executorch/runtime/core/portable_type/half.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime::etensor {

/// A number together with its kind: integer, floating point or boolean.
class Scalar {
 public:
  /// Integer 0.
  Scalar() : Scalar(int64_t{0}) {}
  template <typename T, typename std::enable_if<std::is_integral<T>::value, bool>::type = true>
  Scalar(T val) : kind_(Kind::Int) {
    value_.as_int = static_cast<int64_t>(val);
  }
  Scalar(bool val) : kind_(Kind::Bool) { value_.as_bool = val; }
  Scalar(double val) : kind_(Kind::Double) { value_.as_double = val; }
  Scalar(BFloat16 val) : Scalar(static_cast<double>(static_cast<float>(val))) {}
  Scalar(Half val) : Scalar(static_cast<double>(static_cast<float>(val))) {}

  /// T is double, int64_t or bool. An integer or boolean is also a number of the wider kinds
  /// (bool, int64_t, double); the reverse aborts.
  template <typename T>
  T to() const;

  bool isIntegral(bool includeBool) const {
    return kind_ == Kind::Int || (includeBool && kind_ == Kind::Bool);
  }
  bool isFloatingPoint() const { return kind_ == Kind::Double; }
  bool isBoolean() const { return kind_ == Kind::Bool; }

 private:
  enum class Kind : uint8_t { Double, Int, Bool };

  int64_t toInt() const {
    ET_CHECK_MSG(isIntegral(true), "the Scalar is a floating point number, not an integer");
    return kind_ == Kind::Int ? value_.as_int : static_cast<int64_t>(value_.as_bool);
  }
  double toDouble() const {
    return kind_ == Kind::Double ? value_.as_double : static_cast<double>(toInt());
  }
  bool toBool() const {
    ET_CHECK_MSG(kind_ == Kind::Bool, "the Scalar is a number, not a boolean");
    return value_.as_bool;
  }

  union {
    double as_double;
    int64_t as_int;
    bool as_bool;
  } value_;
  Kind kind_;
};

#define ET_DEFINE_SCALAR_TO_METHOD(T, name) \
  template <>                               \
  inline T Scalar::to<T>() const {          \
    return to##name();                      \
  }
ET_DEFINE_SCALAR_TO_METHOD(double, Double)
ET_DEFINE_SCALAR_TO_METHOD(int64_t, Int)
ET_DEFINE_SCALAR_TO_METHOD(bool, Bool)

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Scalar;
}  // namespace torch::executor
