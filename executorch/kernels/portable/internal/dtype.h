/// Element types: which type a kernel computes in, and calling code with a runtime ScalarType.
///
/// Kernels compute in one of three types and convert on load and store (cast.h), so that an
/// operator is compiled three times and not once per combination of element types:
///   int64_t  Byte Char Short Int Long Bool UInt16 UInt32 UInt64 (narrower results wrap on store)
///   float    Float Half BFloat16
///   double   Double
/// Elementwise operators for which it is exact also compute in Bool and narrow integers as they are
/// (with_narrow).
///
/// A selection of operators for a selection of types (DTYPE_SELECTIVE_BUILD, see
/// executorch/codegen/selected_kernels.py) compiles these sources once more, with ET_SELECTED_TYPES
/// as the set of types that there are; operators refuse tensors of others.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace torch::executor::native::internal {

using executorch::aten::BFloat16;
using executorch::aten::Half;
using executorch::aten::Scalar;
using executorch::aten::ScalarType;

/// Whether code is compiled for elements of type `t`. This function and all that depend on it have
/// internal linkage, because sources of one program are compiled for different sets of types.
#ifdef ET_SELECTED_TYPES
static constexpr bool is_compiled(ScalarType t) {
  return (uint64_t{ET_SELECTED_TYPES} >> static_cast<int>(t) & 1) != 0;
}
#else
static constexpr bool is_compiled(ScalarType) {
  return true;
}
#endif

enum class Compute : uint8_t { Int, Float, Double };

template <class C>
constexpr Compute kComputeOf = std::is_same_v<C, double>  ? Compute::Double
                               : std::is_same_v<C, float> ? Compute::Float
                                                          : Compute::Int;

constexpr bool is_float(ScalarType t) {
  return t == ScalarType::Float || t == ScalarType::Double || t == ScalarType::Half ||
         t == ScalarType::BFloat16;
}

constexpr bool is_integer(ScalarType t) {  // Bool is not an integer
  switch (t) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64:
      return true;
    default:
      return false;
  }
}

constexpr bool is_unsigned(ScalarType t) {
  return t == ScalarType::Byte || t == ScalarType::UInt16 || t == ScalarType::UInt32 ||
         t == ScalarType::UInt64;
}

/// The types kernels know: integers, Bool and the four floating types.
static constexpr bool is_real(ScalarType t) {
  return is_compiled(t) && (is_float(t) || is_integer(t) || t == ScalarType::Bool);
}

constexpr bool is_complex(ScalarType t) {
  return t == ScalarType::ComplexHalf || t == ScalarType::ComplexFloat ||
         t == ScalarType::ComplexDouble;
}

/// The type of the two parts of a complex type; Undefined for any other.
constexpr ScalarType part_of(ScalarType t) {
  return t == ScalarType::ComplexDouble  ? ScalarType::Double
         : t == ScalarType::ComplexFloat ? ScalarType::Float
         : t == ScalarType::ComplexHalf  ? ScalarType::Half
                                         : ScalarType::Undefined;
}

constexpr Compute compute_of(ScalarType t) {
  return t == ScalarType::Double ? Compute::Double : is_float(t) ? Compute::Float : Compute::Int;
}

constexpr ScalarType scalar_type_of(Compute c) {
  return c == Compute::Double  ? ScalarType::Double
         : c == Compute::Float ? ScalarType::Float
                               : ScalarType::Long;
}

/// Whether any selected type is computed in C. Float always is, because integers combined with
/// floating numbers become Float.
template <class C>
static constexpr bool computes_in() {
  if (std::is_same_v<C, float>) return true;
  for (int t = 0; t < static_cast<int>(ScalarType::Undefined); ++t) {
    const auto type = static_cast<ScalarType>(t);
    if (is_real(type) && compute_of(type) == kComputeOf<C>) return true;
  }
  return false;
}

/// Calls f(C{}) with the C++ type of `c`, which is that of an operand's type.
template <class F>
decltype(auto) with_compute(Compute c, F&& f) {
  if constexpr (computes_in<int64_t>()) {
    if (c == Compute::Int) return f(int64_t{});
  }
  if constexpr (computes_in<double>()) {
    if (c == Compute::Double) return f(double{});
  }
  return f(float{});
}

/// The same for the two floating types only; `c` must not be Int.
template <class F>
decltype(auto) with_float_compute(Compute c, F&& f) {
  if constexpr (computes_in<double>()) {
    if (c == Compute::Double) return f(double{});
  }
  return f(float{});
}

/// Calls f(T{}) with the C++ type of `t`. Returns false without calling f if `t` is not real or
/// code is not compiled for it.
template <class F>
bool with_dtype(ScalarType t, F&& f) {
  switch (t) {
#define ET_CASE(name, type)                        \
  case ScalarType::name:                           \
    if constexpr (is_compiled(ScalarType::name)) { \
      f(type{});                                   \
      return true;                                 \
    }                                              \
    return false;
    ET_CASE(Byte, uint8_t)
    ET_CASE(Char, int8_t)
    ET_CASE(Short, int16_t)
    ET_CASE(Int, int32_t)
    ET_CASE(Long, int64_t)
    ET_CASE(Half, Half)
    ET_CASE(Float, float)
    ET_CASE(Double, double)
    ET_CASE(Bool, bool)
    ET_CASE(BFloat16, BFloat16)
    ET_CASE(UInt16, uint16_t)
    ET_CASE(UInt32, uint32_t)
    ET_CASE(UInt64, uint64_t)
#undef ET_CASE
    default:
      return false;
  }
}

/// The same for Bool and for integers narrower than int64_t of which eager PyTorch has every
/// operator.
template <class F>
bool with_narrow(ScalarType t, F&& f) {
  const bool is_narrow = t == ScalarType::Byte || t == ScalarType::Char || t == ScalarType::Short ||
                         t == ScalarType::Int || t == ScalarType::Bool;
  return is_narrow && with_dtype(t, [&](auto tag) {
           using T = decltype(tag);
           if constexpr (std::is_integral_v<T> && (sizeof(T) < 4 || std::is_same_v<T, int32_t>)) {
             f(tag);
           }
         });
}

/// An element of a Bool tensor. It may be any byte; all but 0 mean true.
struct BoolByte {
  uint8_t byte = 0;
  BoolByte() = default;
  explicit BoolByte(bool value) : byte(value) {}
  operator bool() const { return byte != 0; }
};

/// T as it lies in a tensor's memory.
template <class T>
using StoredAs = std::conditional_t<std::is_same_v<T, bool>, BoolByte, T>;

/// Whether T stores a floating type.
template <class T>
constexpr bool kIsFloat = executorch::runtime::is_floating_point<T>::value;

struct alignas(8) Bits128 {
  uint64_t word[2];
};

/// Calls f(T{}) with a trivially copyable T of `size` bytes (1, 2, 4, 8 or 16): enough to move
/// elements about without knowing their type. False when there is no such T.
template <class F>
bool with_element_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      f(uint8_t{});
      return true;
    case 2:
      f(uint16_t{});
      return true;
    case 4:
      f(uint32_t{});
      return true;
    case 8:
      f(uint64_t{});
      return true;
    case 16:
      f(Bits128{});
      return true;
    default:
      return false;
  }
}

/// `value` rounded towards zero; the lowest int64 for NaN and for numbers out of range.
constexpr int64_t to_int64(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value)
                                            : std::numeric_limits<int64_t>::min();
}

/// A Scalar of any kind as a C. Where C is an integer, a double's fraction is dropped, and one that
/// is beyond int64 or NaN gives the lowest int64, as conversions of elements do (cast.h).
template <class C>
C scalar_as(const Scalar& s) {
  if (s.isBoolean()) return static_cast<C>(s.to<bool>());
  if (s.isIntegral(false)) return static_cast<C>(s.to<int64_t>());
  const double d = s.to<double>();
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(to_int64(d));
  } else {
    return static_cast<C>(d);
  }
}

}  // namespace torch::executor::native::internal
