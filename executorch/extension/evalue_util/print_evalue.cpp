#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <type_traits>

namespace executorch {
namespace runtime {
namespace {

constexpr long kDefaultEdgeItems = 3;
constexpr size_t kItemsPerLine = 10;
/// Lists of tensors are shown whole up to this length.
constexpr size_t kMostTensors = 100;

int edge_items_slot() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}

size_t edge_items(std::ostream& os) {
  const long items = os.iword(edge_items_slot());
  return static_cast<size_t>(items > 0 ? items : kDefaultEdgeItems);
}

void print(std::ostream& os, double value) {
  // A point tells a floating-point number from an integer.
  const bool whole = std::isfinite(value) && std::trunc(value) == value && std::fabs(value) < 1e6;
  os << value << (whole ? "." : "");
}

template <typename T>
void print_number(std::ostream& os, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    os << (value ? "True" : "False");
  } else if constexpr (is_floating_point<T>::value) {
    print(os, static_cast<double>(value));
  } else if constexpr (sizeof(T) == 1) {
    os << static_cast<int>(value);
  } else {
    os << value;
  }
}

/// Lines of kItemsPerLine items; one that is shorter is the first or the last.
template <typename PrintItem>
void print_lines(std::ostream& os, size_t begin, size_t end, bool short_first,
                 PrintItem print_item) {
  const size_t left_over = (end - begin) % kItemsPerLine;
  size_t line = short_first && left_over > 0 ? left_over : kItemsPerLine;
  while (begin < end) {
    os << "  ";
    for (const size_t stop = std::min(end, begin + line); begin < stop; ++begin) {
      print_item(begin);
      os << ", ";
    }
    os << "\n";
    line = kItemsPerLine;
  }
}

/// "[" item(0), item(1) ... "]": on one line up to kItemsPerLine items, wrapped after that;
/// what is neither among the first nor the last `edge` items is left out.
template <typename PrintItem>
void print_items(std::ostream& os, size_t count, size_t edge, PrintItem print_item) {
  const bool elide = count > 2 * edge;
  if ((elide ? 2 * edge : count) > kItemsPerLine) {
    os << "[\n";
    print_lines(os, 0, elide ? edge : count, false, print_item);
    if (elide) {
      os << "  ...,\n";
      print_lines(os, count - edge, count, true, print_item);
    }
    os << "]";
    return;
  }
  os << "[";
  for (size_t i = 0; i < count; ++i) {
    if (elide && i == edge) {
      os << ", ...";
      i = count - edge;
    }
    os << (i > 0 ? ", " : "");
    print_item(i);
  }
  os << "]";
}

/// data[i]. A byte of type bool may be anything, as it came: what is not 0 is true.
template <typename T>
T element(const T* data, size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return reinterpret_cast<const uint8_t*>(data)[i] != 0;
  } else {
    return data[i];
  }
}

template <typename List>
void print_list(std::ostream& os, const Result<List>& list) {
  if (!list.ok()) {
    os << "<list with a missing element>";
    return;
  }
  os << "(len=" << list->size() << ")";
  print_items(os, list->size(), edge_items(os),
              [&](size_t i) { print_number(os, element(list->data(), i)); });
}

/// Where the element with this index, counted in the order of the indices, lies in memory.
size_t memory_offset(const aten::Tensor& tensor, aten::ArrayRef<aten::StridesType> strides,
                     size_t index) {
  size_t offset = 0;
  for (size_t d = strides.size(); d-- > 0;) {
    const auto size = static_cast<size_t>(tensor.sizes()[d]);
    offset += index % size * static_cast<size_t>(strides[d]);
    index /= size;
  }
  return offset;
}

template <typename T>
void print_elements(std::ostream& os, const aten::Tensor& tensor,
                    aten::ArrayRef<aten::StridesType> strides) {
  const T* const data = tensor.const_data_ptr<T>();
  print_items(os, static_cast<size_t>(tensor.numel()), edge_items(os), [&](size_t i) {
    print_number(os, element(data, memory_offset(tensor, strides, i)));
  });
}

void print_tensor(std::ostream& os, const aten::Tensor& tensor) {
  if (tensor.unsafeGetTensorImpl() == nullptr) {
    os << "tensor(<undefined>)";
    return;
  }
  os << "tensor(sizes=";
  print_items(os, static_cast<size_t>(tensor.dim()), SIZE_MAX / 4,
              [&](size_t i) { os << tensor.size(static_cast<ssize_t>(i)); });
  os << ", ";
  if (tensor.const_data_ptr() == nullptr && tensor.numel() != 0) {
    os << "<no data>)";
    return;
  }
  aten::StridesType room[kTensorDimensionLimit];
  const auto strides = internal::strides_of(tensor, room);
  if (!strides.ok()) {
    os << "<no strides>)";
    return;
  }
  switch (tensor.scalar_type()) {
#define PRINT_ELEMENTS(ctype, name)              \
  case aten::ScalarType::name:                   \
    print_elements<ctype>(os, tensor, *strides); \
    break;
    ET_FORALL_REALHBBF16_TYPES(PRINT_ELEMENTS)
#undef PRINT_ELEMENTS
    case aten::ScalarType::UInt16:
      print_elements<uint16_t>(os, tensor, *strides);
      break;
    case aten::ScalarType::UInt32:
      print_elements<uint32_t>(os, tensor, *strides);
      break;
    case aten::ScalarType::UInt64:
      print_elements<uint64_t>(os, tensor, *strides);
      break;
    default:
      os << "<" << toString(tensor.scalar_type()) << ">";
  }
  os << ")";
}

void print_or_none(std::ostream& os, const aten::Tensor& tensor) {
  print_tensor(os, tensor);
}

void print_or_none(std::ostream& os, const std::optional<aten::Tensor>& tensor) {
  if (tensor.has_value()) {
    print_tensor(os, *tensor);
  } else {
    os << "None";
  }
}

template <typename List>
void print_tensor_list(std::ostream& os, const Result<List>& list) {
  if (!list.ok()) {
    os << "<list with a missing tensor>";
    return;
  }
  const size_t count = list->size();
  const size_t edge = edge_items(os);
  os << "(len=" << count << ")[";
  if (count == 1) {
    print_or_none(os, (*list)[0]);
    os << "]";
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (count > std::max(2 * edge, kMostTensors) && i == edge) {
      os << "\n  ...,";
      i = count - edge;
    }
    os << "\n  [" << i << "]: ";
    print_or_none(os, (*list)[i]);
    os << ",";
  }
  os << (list->empty() ? "]" : "\n]");
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const EValue& value) {
  switch (value.tag) {
    case Tag::None:
      os << "None";
      break;
    case Tag::Bool:
      print_number(os, value.toBool());
      break;
    case Tag::Int:
      print_number(os, value.toInt());
      break;
    case Tag::Double:
      print_number(os, value.toDouble());
      break;
    case Tag::String:
      if (const auto text = value.tryToString(); text.ok()) {
        os << std::quoted(*text);
      } else {
        os << "<no text>";
      }
      break;
    case Tag::Tensor:
      print_tensor(os, value.toTensor());
      break;
    case Tag::ListBool:
      print_list(os, value.tryToBoolList());
      break;
    case Tag::ListDouble:
      print_list(os, value.tryToDoubleList());
      break;
    case Tag::ListInt:
      print_list(os, value.tryToIntList());
      break;
    case Tag::ListTensor:
      print_tensor_list(os, value.tryToTensorList());
      break;
    case Tag::ListOptionalTensor:
      print_tensor_list(os, value.tryToListOptionalTensor());
      break;
    default:
      os << "<Unknown EValue tag " << static_cast<uint32_t>(value.tag) << ">";
  }
  return os;
}

}  // namespace runtime

namespace extension {

void evalue_edge_items::set_on(std::ostream& os) const {
  os.iword(runtime::edge_items_slot()) = edge_items_;
}

}  // namespace extension
}  // namespace executorch
