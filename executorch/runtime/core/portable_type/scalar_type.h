#pragma once

#include <cstdint>

#include <executorch/runtime/core/portable_type/bfloat16.h>
#include <executorch/runtime/core/portable_type/bits_types.h>
#include <executorch/runtime/core/portable_type/complex.h>
#include <executorch/runtime/core/portable_type/half.h>
#include <executorch/runtime/core/portable_type/qint_types.h>

namespace executorch::runtime::etensor {

/// Element types. The numbers are PyTorch's and stand in programs.
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Bits1x8 = 18,
  Bits2x4 = 19,
  Bits4x2 = 20,
  Bits8 = 21,
  Bits16 = 22,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Float8_e5m2fnuz = 25,
  Float8_e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = 30,
  NumOptions = 31,
};

}  // namespace executorch::runtime::etensor

/// Calls _(C++ type, enumerator) for every element type that has a C++ type here.
#define ET_FORALL_SCALAR_TYPES(_)                                                               \
  _(uint8_t, Byte)                                                                              \
  _(int8_t, Char)                                                                               \
  _(int16_t, Short)                                                                             \
  _(int32_t, Int)                                                                               \
  _(int64_t, Long)                                                                              \
  _(::executorch::runtime::etensor::Half, Half)                                                 \
  _(float, Float)                                                                               \
  _(double, Double)                                                                             \
  _(::executorch::runtime::etensor::complex<::executorch::runtime::etensor::Half>, ComplexHalf) \
  _(::executorch::runtime::etensor::complex<float>, ComplexFloat)                               \
  _(::executorch::runtime::etensor::complex<double>, ComplexDouble)                             \
  _(bool, Bool)                                                                                 \
  _(::executorch::runtime::etensor::qint8, QInt8)                                               \
  _(::executorch::runtime::etensor::quint8, QUInt8)                                             \
  _(::executorch::runtime::etensor::qint32, QInt32)                                             \
  _(::executorch::runtime::etensor::BFloat16, BFloat16)                                         \
  _(::executorch::runtime::etensor::quint4x2, QUInt4x2)                                         \
  _(::executorch::runtime::etensor::quint2x4, QUInt2x4)                                         \
  _(::executorch::runtime::etensor::bits1x8, Bits1x8)                                           \
  _(::executorch::runtime::etensor::bits2x4, Bits2x4)                                           \
  _(::executorch::runtime::etensor::bits4x2, Bits4x2)                                           \
  _(::executorch::runtime::etensor::bits8, Bits8)                                               \
  _(::executorch::runtime::etensor::bits16, Bits16)                                             \
  _(uint16_t, UInt16)                                                                           \
  _(uint32_t, UInt32)                                                                           \
  _(uint64_t, UInt64)

namespace torch::executor {
using ::executorch::runtime::etensor::ScalarType;
}  // namespace torch::executor
