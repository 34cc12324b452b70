/// Elements of quantized tensors: an integer in a type of its own. Scale and zero point are
/// arguments of the operators. `underlying` is the integer, `val_` its value.
#pragma once

#include <executorch/runtime/core/portable_type/opaque_number.h>

#include <cstdint>

namespace executorch::runtime::etensor {

struct qint8 : OpaqueNumber<int8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct quint8 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct qint32 : OpaqueNumber<int32_t> {
  using OpaqueNumber::OpaqueNumber;
};
/// Two 4-bit values in a byte.
struct quint4x2 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
/// Four 2-bit values in a byte.
struct quint2x4 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::qint32;
using ::executorch::runtime::etensor::qint8;
using ::executorch::runtime::etensor::quint2x4;
using ::executorch::runtime::etensor::quint4x2;
using ::executorch::runtime::etensor::quint8;
}  // namespace torch::executor
