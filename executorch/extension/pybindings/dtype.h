#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <nanobind/ndarray.h>

#include <optional>

namespace executorch::extension::pybindings {

/// One row per element type both sides know; where two rows share a DLPack type the first is what
/// an input means, so quantized tensors leave as their raw integers.
struct DtypeRow {
  aten::ScalarType type;
  nanobind::dlpack::dtype_code code;
  uint8_t bits;
};

inline constexpr DtypeRow kDtypes[] = {
    {aten::ScalarType::Float, nanobind::dlpack::dtype_code::Float, 32},
    {aten::ScalarType::Long, nanobind::dlpack::dtype_code::Int, 64},
    {aten::ScalarType::Bool, nanobind::dlpack::dtype_code::Bool, 8},
    {aten::ScalarType::Int, nanobind::dlpack::dtype_code::Int, 32},
    {aten::ScalarType::Short, nanobind::dlpack::dtype_code::Int, 16},
    {aten::ScalarType::Char, nanobind::dlpack::dtype_code::Int, 8},
    {aten::ScalarType::Byte, nanobind::dlpack::dtype_code::UInt, 8},
    {aten::ScalarType::UInt16, nanobind::dlpack::dtype_code::UInt, 16},
    {aten::ScalarType::UInt32, nanobind::dlpack::dtype_code::UInt, 32},
    {aten::ScalarType::UInt64, nanobind::dlpack::dtype_code::UInt, 64},
    {aten::ScalarType::Half, nanobind::dlpack::dtype_code::Float, 16},
    {aten::ScalarType::BFloat16, nanobind::dlpack::dtype_code::Bfloat, 16},
    {aten::ScalarType::Double, nanobind::dlpack::dtype_code::Float, 64},
    {aten::ScalarType::ComplexHalf, nanobind::dlpack::dtype_code::Complex, 32},
    {aten::ScalarType::ComplexFloat, nanobind::dlpack::dtype_code::Complex, 64},
    {aten::ScalarType::ComplexDouble, nanobind::dlpack::dtype_code::Complex, 128},
    {aten::ScalarType::Float8_e5m2, nanobind::dlpack::dtype_code::Float8_E5M2, 8},
    {aten::ScalarType::Float8_e4m3fn, nanobind::dlpack::dtype_code::Float8_E4M3FN, 8},
    {aten::ScalarType::Float8_e5m2fnuz, nanobind::dlpack::dtype_code::Float8_E5M2FNUZ, 8},
    {aten::ScalarType::Float8_e4m3fnuz, nanobind::dlpack::dtype_code::Float8_E4M3FNUZ, 8},
    {aten::ScalarType::QInt8, nanobind::dlpack::dtype_code::Int, 8},
    {aten::ScalarType::QUInt8, nanobind::dlpack::dtype_code::UInt, 8},
    {aten::ScalarType::QInt32, nanobind::dlpack::dtype_code::Int, 32},
};

inline std::optional<aten::ScalarType> from_dlpack(nanobind::dlpack::dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (static_cast<uint8_t>(row.code) == dtype.code && row.bits == dtype.bits &&
        dtype.lanes == 1) {
      return row.type;
    }
  }
  return std::nullopt;
}

inline std::optional<nanobind::dlpack::dtype> to_dlpack(aten::ScalarType type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.type == type) {
      return nanobind::dlpack::dtype{static_cast<uint8_t>(row.code), row.bits, 1};
    }
  }
  return std::nullopt;
}

}  // namespace executorch::extension::pybindings
