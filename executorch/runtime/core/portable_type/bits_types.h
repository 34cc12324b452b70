/// Elements without arithmetic: `bitsAxB` is B values of A bits in a byte.
#pragma once

#include <executorch/runtime/core/portable_type/opaque_number.h>

#include <cstdint>

namespace executorch::runtime::etensor {

struct bits1x8 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct bits2x4 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct bits4x2 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct bits8 : OpaqueNumber<uint8_t> {
  using OpaqueNumber::OpaqueNumber;
};
struct bits16 : OpaqueNumber<uint16_t> {
  using OpaqueNumber::OpaqueNumber;
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::bits16;
using ::executorch::runtime::etensor::bits1x8;
using ::executorch::runtime::etensor::bits2x4;
using ::executorch::runtime::etensor::bits4x2;
using ::executorch::runtime::etensor::bits8;
}  // namespace torch::executor
