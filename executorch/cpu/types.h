/// Element types of the engine and their conversion to the float it computes in.
#pragma once

#include <cstdint>

namespace executorch::cpu {

/// The bits of an IEEE binary16 and of a bfloat16 number in memory. Operators cast pointers to
/// their own half types to pointers to these.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

/// Tables of the types that operands are stored in; each row is ROW(type, name). Kernels, their
/// dispatch by instruction set, instantiations, tests and benchmarks expand these tables. A new
/// floating type needs a struct and a row here, and LoadFloats() and StoreFloats() in
/// storage-inl.h.
#define ET_NARROW_FLOATS(ROW) ROW(F16, F16) ROW(BF16, BF16)
/// The types whose elements are computed in float.
#define ET_STORED_FLOATS(ROW) ROW(float, F32) ET_NARROW_FLOATS(ROW)
/// The element types of the operands of matrix products and convolutions.
#define ET_OPERANDS(ROW) \
  ET_STORED_FLOATS(ROW)  \
  ROW(double, F64)       \
  ROW(uint8_t, U8) ROW(int8_t, I8) ROW(int16_t, I16) ROW(int32_t, I32) ROW(int64_t, I64)

/// The storage type of a floating operand. Sums and functions are computed in float.
#define ET_ROW(T, name) name,
enum class Type : uint8_t { ET_STORED_FLOATS(ET_ROW) };
#undef ET_ROW

/// Returns f(T{}), where T is the C++ type of the storage type `type`.
template <class F>
constexpr decltype(auto) with_type(Type type, const F& f) {
  switch (type) {
#define ET_ROW(T, name) \
  case Type::name:      \
    return f(T{});
    ET_NARROW_FLOATS(ET_ROW)
#undef ET_ROW
    default:
      return f(float{});
  }
}

constexpr int64_t size_of(Type type) {
  return with_type(type, [](auto t) { return static_cast<int64_t>(sizeof(t)); });
}

}  // namespace executorch::cpu
