#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace executorch::runtime {
namespace {

struct TypeRow {
  uint8_t bytes;
  const char* name;
};

constexpr TypeRow kTypes[] = {
    {1, "Byte"},
    {1, "Char"},
    {2, "Short"},
    {4, "Int"},
    {8, "Long"},
    {2, "Half"},
    {4, "Float"},
    {8, "Double"},
    {4, "ComplexHalf"},
    {8, "ComplexFloat"},
    {16, "ComplexDouble"},
    {1, "Bool"},
    {1, "QInt8"},
    {1, "QUInt8"},
    {4, "QInt32"},
    {2, "BFloat16"},
    {1, "QUInt4x2"},
    {1, "QUInt2x4"},
    {1, "Bits1x8"},
    {1, "Bits2x4"},
    {1, "Bits4x2"},
    {1, "Bits8"},
    {2, "Bits16"},
    {1, "Float8_e5m2"},
    {1, "Float8_e4m3fn"},
    {1, "Float8_e5m2fnuz"},
    {1, "Float8_e4m3fnuz"},
    {2, "UInt16"},
    {4, "UInt32"},
    {8, "UInt64"},
};
static_assert(sizeof(kTypes) / sizeof(kTypes[0]) ==
                  static_cast<size_t>(aten::ScalarType::Undefined),
              "one row for each element type");

}  // namespace

const char* toString(aten::ScalarType t) {
  if (isValid(t)) return kTypes[static_cast<size_t>(t)].name;
  return t == aten::ScalarType::Undefined ? "Undefined" : "UNKNOWN_SCALAR";
}

size_t elementSize(aten::ScalarType t) {
  ET_CHECK_MSG(isValid(t), "%d is not an element type", static_cast<int>(t));
  return kTypes[static_cast<size_t>(t)].bytes;
}

}  // namespace executorch::runtime
