/// Facts about element types, the type promotion of PyTorch, and the ET_SWITCH_* dispatch macros.
///
///   ET_SWITCH_REAL_TYPES(t.scalar_type(), ctx, "add.out", CTYPE, [&]() { add<CTYPE>(...); });
///
/// calls the lambda with CTYPE as the C++ type of the given element type. A type outside the set is
/// logged and becomes `ctx.fail(Error::InvalidArgument)`. The sets: INT = Byte Char Short Int Long,
/// FLOAT = Float Double, REAL = both; H adds Half, B adds Bool, BF16 adds BFloat16.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <c10/macros/Macros.h>

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime {

template <typename T>
struct is_reduced_floating_point
    : std::integral_constant<bool, std::is_same_v<T, torch::executor::Half> ||
                                       std::is_same_v<T, torch::executor::BFloat16>> {};
template <typename T>
constexpr bool is_reduced_floating_point_v = is_reduced_floating_point<T>::value;

template <typename T>
struct is_floating_point : std::integral_constant<bool, std::is_floating_point<T>::value ||
                                                            is_reduced_floating_point_v<T>> {};

/// The C++ type of an element type, and back.
template <aten::ScalarType N>
struct ScalarTypeToCppType;
template <typename T>
struct CppTypeToScalarType;

#define SPECIALIZE_ScalarTypeToCppType(ctype, name)    \
  template <>                                          \
  struct ScalarTypeToCppType<aten::ScalarType::name> { \
    using type = ctype;                                \
  };
ET_FORALL_SCALAR_TYPES(SPECIALIZE_ScalarTypeToCppType)
#undef SPECIALIZE_ScalarTypeToCppType

#define SPECIALIZE_CppTypeToScalarType(ctype, name) \
  template <>                                       \
  struct CppTypeToScalarType<ctype>                 \
      : std::integral_constant<aten::ScalarType, aten::ScalarType::name> {};
ET_FORALL_SCALAR_TYPES(SPECIALIZE_CppTypeToScalarType)
#undef SPECIALIZE_CppTypeToScalarType

/// Whether `type` names an element type: not Undefined, and a known number.
inline bool isValid(aten::ScalarType type) {
  return static_cast<int8_t>(type) >= 0 && type < aten::ScalarType::Undefined;
}

/// The enumerator's name; "Undefined" for Undefined, "UNKNOWN_SCALAR" for any other number.
const char* toString(aten::ScalarType t);

/// Bytes of one element. Aborts when `t` is not valid.
size_t elementSize(aten::ScalarType t);

constexpr bool isIntegralType(aten::ScalarType t, bool includeBool) {
  return (includeBool && t == aten::ScalarType::Bool) ||
         (t >= aten::ScalarType::Byte && t <= aten::ScalarType::Long) ||
         (t >= aten::ScalarType::UInt16 && t <= aten::ScalarType::UInt64);
}
template <typename T, bool includeBool>
struct is_integral_type
    : public std::integral_constant<bool,
                                    isIntegralType(CppTypeToScalarType<T>::value, includeBool)> {};

constexpr bool isFloatingType(aten::ScalarType t) {
  return (t >= aten::ScalarType::Half && t <= aten::ScalarType::Double) ||
         t == aten::ScalarType::BFloat16;
}

/// Byte, Char, Short, Int, Long, Float, Double.
inline bool isRealType(aten::ScalarType t) {
  return t >= aten::ScalarType::Byte && t <= aten::ScalarType::Double &&
         t != aten::ScalarType::Half;
}
inline bool isRealHType(aten::ScalarType t) {
  return isRealType(t) || t == aten::ScalarType::Half;
}
inline bool isRealHBType(aten::ScalarType t) {
  return isRealHType(t) || t == aten::ScalarType::Bool;
}
inline bool isRealHBF16Type(aten::ScalarType t) {
  return isRealHType(t) || t == aten::ScalarType::BFloat16;
}
inline bool isRealHBBF16Type(aten::ScalarType t) {
  return isRealHBType(t) || t == aten::ScalarType::BFloat16;
}

constexpr bool isComplexType(aten::ScalarType t) {
  return t >= aten::ScalarType::ComplexHalf && t <= aten::ScalarType::ComplexDouble;
}
template <typename T>
struct is_complex_type
    : std::integral_constant<bool, isComplexType(CppTypeToScalarType<T>::value)> {};

constexpr bool isBitsType(aten::ScalarType t) {
  return t >= aten::ScalarType::Bits1x8 && t <= aten::ScalarType::Bits16;
}
template <typename T>
struct is_bits_type : std::integral_constant<bool, isBitsType(CppTypeToScalarType<T>::value)> {};

constexpr bool isQIntType(aten::ScalarType t) {
  return (t >= aten::ScalarType::QInt8 && t <= aten::ScalarType::QInt32) ||
         t == aten::ScalarType::QUInt4x2 || t == aten::ScalarType::QUInt2x4;
}
template <typename T>
struct is_qint_type : std::integral_constant<bool, isQIntType(CppTypeToScalarType<T>::value)> {};

constexpr bool isFloat8Type(aten::ScalarType t) {
  return t >= aten::ScalarType::Float8_e5m2 && t <= aten::ScalarType::Float8_e4m3fnuz;
}
template <typename T>
struct is_float8_type : std::integral_constant<bool, isFloat8Type(CppTypeToScalarType<T>::value)> {
};

/// The unsigned types that PyTorch gives few operators to.
constexpr bool isBarebonesUnsignedType(aten::ScalarType t) {
  return t >= aten::ScalarType::UInt16 && t <= aten::ScalarType::UInt64;
}
template <typename T>
struct is_barebones_unsigned_type
    : std::integral_constant<bool, isBarebonesUnsignedType(CppTypeToScalarType<T>::value)> {};

/// The quantized type over an integer type; other types stay.
inline aten::ScalarType toQIntType(aten::ScalarType t) {
  switch (t) {
    case aten::ScalarType::Byte:
      return aten::ScalarType::QUInt8;
    case aten::ScalarType::Char:
      return aten::ScalarType::QInt8;
    case aten::ScalarType::Int:
      return aten::ScalarType::QInt32;
    default:
      return t;
  }
}

/// The integer type under a quantized type; other types stay.
inline aten::ScalarType toUnderlying(aten::ScalarType t) {
  switch (t) {
    case aten::ScalarType::QUInt8:
    case aten::ScalarType::QUInt4x2:
    case aten::ScalarType::QUInt2x4:
      return aten::ScalarType::Byte;
    case aten::ScalarType::QInt8:
      return aten::ScalarType::Char;
    case aten::ScalarType::QInt32:
      return aten::ScalarType::Int;
    default:
      return t;
  }
}

/// Whether `type` is the integer type under the quantized type `qtype`.
inline bool isUnderlying(aten::ScalarType type, aten::ScalarType qtype) {
  return type == toUnderlying(qtype);
}

/// Whether values may be below 0. Aborts for quantized types.
inline bool isSignedType(aten::ScalarType t) {
  ET_CHECK_MSG(!isQIntType(t), "isSignedType is not defined for quantized types");
  return isFloatingType(t) || isComplexType(t) || isFloat8Type(t) ||
         (t >= aten::ScalarType::Char && t <= aten::ScalarType::Long);
}

/// The type of the parts of a complex type; other types stay.
constexpr aten::ScalarType toRealValueType(aten::ScalarType t) {
  switch (t) {
    case aten::ScalarType::ComplexHalf:
      return aten::ScalarType::Half;
    case aten::ScalarType::ComplexFloat:
      return aten::ScalarType::Float;
    case aten::ScalarType::ComplexDouble:
      return aten::ScalarType::Double;
    default:
      return t;
  }
}

/// The complex type that holds a floating type; Undefined for other types.
constexpr aten::ScalarType toComplexType(aten::ScalarType t) {
  switch (t) {
    case aten::ScalarType::Half:
    case aten::ScalarType::ComplexHalf:
      return aten::ScalarType::ComplexHalf;
    case aten::ScalarType::BFloat16:
    case aten::ScalarType::Float:
    case aten::ScalarType::ComplexFloat:
      return aten::ScalarType::ComplexFloat;
    case aten::ScalarType::Double:
    case aten::ScalarType::ComplexDouble:
      return aten::ScalarType::ComplexDouble;
    default:
      return aten::ScalarType::Undefined;
  }
}

/// Whether a result of type `from` may be stored in type `to`: never complex to real, floating to
/// integral, or anything to Bool but Bool.
constexpr bool canCast(const aten::ScalarType from, const aten::ScalarType to) {
  return !(isComplexType(from) && !isComplexType(to)) &&
         !(isFloatingType(from) && isIntegralType(to, /*includeBool=*/false)) &&
         !(from != aten::ScalarType::Bool && to == aten::ScalarType::Bool);
}
template <typename T1, typename T2>
struct can_cast : std::integral_constant<bool, canCast(CppTypeToScalarType<T1>::value,
                                                       CppTypeToScalarType<T2>::value)> {};

/// A value as another element type. Floating to integral goes over int64_t, so that a negative
/// number wraps around in an unsigned type as it does in PyTorch.
template <
    typename To, typename From,
    std::enable_if_t<(std::is_floating_point<From>::value && std::is_integral<To>::value), int> = 0>
To convert(From val) {
  return static_cast<To>(static_cast<int64_t>(val));
}
template <typename To, typename From,
          std::enable_if_t<!(std::is_floating_point<From>::value && std::is_integral<To>::value),
                           int> = 0>
To convert(From val) {
  return static_cast<To>(val);
}

/// The type in which PyTorch computes with operands of types `a` and `b`; Undefined where it
/// refuses (quantized, bits or float8 types, or UInt16 to UInt64 with another integer). With
/// `half_to_float` a result of Half or BFloat16 becomes Float.
constexpr aten::ScalarType promoteTypes(aten::ScalarType a, aten::ScalarType b,
                                        bool half_to_float = false);

namespace internal {

constexpr bool has_promotion(aten::ScalarType t) {
  return isIntegralType(t, /*includeBool=*/true) || isFloatingType(t) || isComplexType(t);
}

constexpr aten::ScalarType promote_floating(aten::ScalarType a, aten::ScalarType b) {
  if (a == aten::ScalarType::Double || b == aten::ScalarType::Double) {
    return aten::ScalarType::Double;
  }
  return a == b ? a : aten::ScalarType::Float;
}

constexpr aten::ScalarType promote_integral(aten::ScalarType a, aten::ScalarType b) {
  if (a == aten::ScalarType::Bool) return b;
  if (b == aten::ScalarType::Bool) return a;
  if (isBarebonesUnsignedType(a) || isBarebonesUnsignedType(b)) return aten::ScalarType::Undefined;
  // In the order of the enumerators, except that Byte and Char have only Short above them both.
  const aten::ScalarType wider = a > b ? a : b;
  return wider == aten::ScalarType::Char ? aten::ScalarType::Short : wider;
}

/// For a != b.
constexpr aten::ScalarType promote(aten::ScalarType a, aten::ScalarType b) {
  if (!has_promotion(a) || !has_promotion(b)) return aten::ScalarType::Undefined;
  const bool complex_result = isComplexType(a) || isComplexType(b);
  const aten::ScalarType a_part = toRealValueType(a);
  const aten::ScalarType b_part = toRealValueType(b);
  if (!isFloatingType(a_part) && !isFloatingType(b_part)) return promote_integral(a, b);
  const aten::ScalarType part = !isFloatingType(a_part)   ? b_part
                                : !isFloatingType(b_part) ? a_part
                                                          : promote_floating(a_part, b_part);
  return complex_result ? toComplexType(part) : part;
}

}  // namespace internal

constexpr aten::ScalarType promoteTypes(aten::ScalarType a, aten::ScalarType b,
                                        bool half_to_float) {
  const aten::ScalarType result = a == b ? a : internal::promote(a, b);
  const bool reduced = result == aten::ScalarType::Half || result == aten::ScalarType::BFloat16;
  return half_to_float && reduced ? aten::ScalarType::Float : result;
}

/// promoteTypes on C++ types.
template <typename T1, typename T2, bool half_to_float = false>
struct promote_types {
  using type = typename ScalarTypeToCppType<promoteTypes(
      CppTypeToScalarType<T1>::value, CppTypeToScalarType<T2>::value, half_to_float)>::type;
};

}  // namespace executorch::runtime

namespace executorch::aten {
using runtime::elementSize;
}  // namespace executorch::aten

namespace torch::executor {
using ::executorch::runtime::can_cast;
using ::executorch::runtime::canCast;
using ::executorch::runtime::convert;
using ::executorch::runtime::CppTypeToScalarType;
using ::executorch::runtime::elementSize;
using ::executorch::runtime::is_barebones_unsigned_type;
using ::executorch::runtime::is_bits_type;
using ::executorch::runtime::is_complex_type;
using ::executorch::runtime::is_float8_type;
using ::executorch::runtime::is_floating_point;
using ::executorch::runtime::is_integral_type;
using ::executorch::runtime::is_qint_type;
using ::executorch::runtime::is_reduced_floating_point;
using ::executorch::runtime::isBitsType;
using ::executorch::runtime::isComplexType;
using ::executorch::runtime::isFloatingType;
using ::executorch::runtime::isIntegralType;
using ::executorch::runtime::isQIntType;
using ::executorch::runtime::isRealHBBF16Type;
using ::executorch::runtime::isRealHBF16Type;
using ::executorch::runtime::isRealHBType;
using ::executorch::runtime::isRealHType;
using ::executorch::runtime::isRealType;
using ::executorch::runtime::isValid;
using ::executorch::runtime::promote_types;
using ::executorch::runtime::promoteTypes;
using ::executorch::runtime::ScalarTypeToCppType;
using ::executorch::runtime::toString;
}  // namespace torch::executor

#include <executorch/runtime/core/exec_aten/util/scalar_type_switch.h>
