#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>

#include <cstdio>
#include <cstring>

namespace executorch::runtime {
namespace {

template <typename SizesType>
std::array<char, kTensorShapeStringSizeLimit> shape_text(Span<SizesType> shape) {
  std::array<char, kTensorShapeStringSizeLimit> text;
  if (shape.size() > kTensorDimensionLimit) {
    std::strcpy(text.data(), "(ERR: tensor ndim exceeds limit)");
    return text;
  }
  char* cursor = text.data();
  *cursor++ = '(';
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t size = shape[i];
    const size_t room = static_cast<size_t>(text.data() + text.size() - cursor);
    if (size < 0 || static_cast<uint64_t>(size) > internal::kMaximumPrintableTensorShapeElement) {
      cursor += std::snprintf(cursor, room, "ERR");
    } else {
      cursor += std::snprintf(cursor, room, "%d", static_cast<int>(size));
    }
    if (i + 1 < shape.size()) {
      *cursor++ = ',';
      *cursor++ = ' ';
    }
  }
  *cursor++ = ')';
  *cursor = '\0';
  return text;
}

}  // namespace

std::array<char, kTensorShapeStringSizeLimit> tensor_shape_to_c_string(
    Span<const std::int32_t> shape) {
  return shape_text(shape);
}

std::array<char, kTensorShapeStringSizeLimit> tensor_shape_to_c_string(
    Span<const std::int64_t> shape) {
  return shape_text(shape);
}

}  // namespace executorch::runtime
