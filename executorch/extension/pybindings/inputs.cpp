#include <executorch/extension/pybindings/inputs.h>

#include <executorch/extension/pybindings/dtype.h>
#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/strided_copy.h>
#include <executorch/extension/pybindings/text.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
using runtime::EValue;
using runtime::Method;
using runtime::MethodMeta;
using runtime::Tag;

namespace {

/// Names the value that is wrong in messages. A function, since names are looked up in the program.
using Where = std::function<std::string()>;

std::string place(const Method& method, size_t i) {
  const runtime::ArgumentText input("input", i, method.input_name(i));
  return printable(method.method_meta().name()) + ": " + printable(input.text);
}

std::string python_type(nb::handle item) {
  return nb::cast<std::string>(nb::str(item.type().attr("__name__")));
}

/// Throws the error that Python has set, an OverflowError with the place of the number.
[[noreturn]] void throw_too_large(const std::string& where, const char* room) {
  if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_Format(PyExc_OverflowError, "%s is an int too large for %s", where.c_str(), room);
  }
  throw nb::python_error();
}

bool is_array(nb::handle item) {
  return nb::hasattr(item, "__dlpack__") || PyObject_CheckBuffer(item.ptr()) != 0;
}

/// Whether `items` is a sequence of values: a tuple, a list, or another sequence that is neither an
/// array nor a str.
bool is_sequence(nb::handle items) {
  return PyTuple_Check(items.ptr()) || PyList_Check(items.ptr()) ||
         (PySequence_Check(items.ptr()) && !is_array(items) && !PyUnicode_Check(items.ptr()));
}

/// The array of `item`, writable if possible; `writable` tells whether it is.
nb::ndarray<nb::ro> array_of(nb::handle item, const Where& where, bool& writable) {
  nb::object held = nb::borrow(item);
  if (nb::hasattr(item, "detach")) {
    if (nb::cast<bool>(nb::getattr(item, "requires_grad", nb::bool_(false)))) {
      held = item.attr("detach")();  // DLPack refuses tensors that record gradients
    }
    // DLPack refuses conjugate views, and loses the negation of negative views.
    for (const auto& [is_lazy, resolve] :
         {std::pair("is_conj", "resolve_conj"), std::pair("is_neg", "resolve_neg")}) {
      const nb::object asked = nb::getattr(held, is_lazy, nb::none());
      if (!asked.is_none() && nb::cast<bool>(asked())) held = held.attr(resolve)();
    }
  }
  nb::ndarray<> mutable_array;
  writable = nb::try_cast(held, mutable_array, false);
  if (writable) return nb::ndarray<nb::ro>(mutable_array);
  nb::ndarray<nb::ro> array;
  if (nb::try_cast(held, array, false)) return array;
  if (nb::hasattr(held, "__dlpack__")) {
    try {
      held.attr("__dlpack__")();  // raises the producer's own reason
    } catch (nb::python_error& reason) {
      if (!reason.matches(PyExc_BufferError)) throw;
      const auto said = nb::cast<std::string>(nb::str(reason.value()));
      throw std::runtime_error(where() + ": cannot read the memory of a " + python_type(item) +
                               ": " + said);
    }
  }
  throw nb::type_error((where() + ": cannot read the memory of a " + python_type(item)).c_str());
}

std::vector<uint8_t> identity_order(size_t rank) {
  std::vector<uint8_t> order(rank);
  std::iota(order.begin(), order.end(), uint8_t{0});
  return order;
}

/// Whether `item` is a number, a str or None.
bool is_scalar(nb::handle item) {
  return item.is_none() || PyBool_Check(item.ptr()) || PyFloat_Check(item.ptr()) ||
         PyLong_Check(item.ptr()) || PyUnicode_Check(item.ptr());
}

/// The layout that an array claims to have, checked as far as possible, since its producer may be
/// wrong.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  size_t n_bytes = 0;            // of all elements
};

/// Throws ValueError for a layout that no tensor can have.
Layout layout_of(const nb::ndarray<nb::ro>& array, const Where& where) {
  const size_t rank = array.ndim();
  if (rank > runtime::kTensorDimensionLimit) {
    throw nb::value_error((where() + " has " + std::to_string(rank) + " dimensions, at most " +
                           std::to_string(runtime::kTensorDimensionLimit) + " are supported")
                              .c_str());
  }
  Layout layout;
  layout.sizes.assign(array.shape_ptr(), array.shape_ptr() + rank);
  layout.strides.assign(array.stride_ptr(), array.stride_ptr() + rank);
  // In bytes: `count`, the size of all elements; `reach`, the distance from the first to the last
  // one in memory.
  int64_t count = static_cast<int64_t>(array.itemsize());
  int64_t reach = 0;
  bool fits = true;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = layout.sizes[d];
    if (size < 0 || size > std::numeric_limits<aten::SizesType>::max()) {
      throw nb::value_error((where() + " has a dimension of " + std::to_string(size)).c_str());
    }
    if (size <= 1) {
      layout.strides[d] = 0;  // what it was leads nowhere
    }
    int64_t step = 0;
    fits =
        fits && !__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) &&
        !__builtin_mul_overflow(layout.strides[d], static_cast<int64_t>(array.itemsize()), &step) &&
        !__builtin_mul_overflow(step, size - 1, &step) &&
        !__builtin_add_overflow(reach, step < 0 ? -(step + 1) : step, &reach);
  }
  if (!fits) throw nb::value_error((where() + " is larger than any memory").c_str());
  layout.n_bytes = array.size() == 0 ? 0 : static_cast<size_t>(count);
  if (layout.n_bytes > 0 && array.data() == nullptr) {
    throw nb::value_error((where() + " has elements, but no memory").c_str());
  }
  return layout;
}

/// Like array_of(), for arrays that the runtime can take: in CPU memory, with a known element type.
nb::ndarray<nb::ro> usable_array(nb::handle item, const Where& where, bool& writable,
                                 aten::ScalarType& type) {
  nb::ndarray<nb::ro> array = array_of(item, where, writable);
  if (array.device_type() != nb::device::cpu::value) {
    throw nb::value_error((where() + " is not in CPU memory").c_str());
  }
  const auto known = from_dlpack(array.dtype());
  if (!known) {
    const std::string bits = std::to_string(array.dtype().bits);
    throw nb::type_error((where() + " has an unsupported " + bits + "-bit dtype").c_str());
  }
  type = *known;
  return array;
}

/// What a method expects of an input. `fits`: the tensor has the expected type, rank and size, else
/// it need not be copied, since the runtime refuses it.
struct Wanted {
  bool fits = false;
  bool is_copied = false;  // by the method
};

Wanted wanted(const MethodMeta& meta, size_t i, aten::ScalarType type, size_t rank, size_t n_bytes,
              std::vector<uint8_t>& order) {
  if (i >= meta.num_inputs()) return {};
  const auto info = meta.input_tensor_meta(i);
  if (!info.ok()) return {};
  if (info->dim_order().size() == rank) {
    order.assign(info->dim_order().begin(), info->dim_order().end());
  }
  return {
      info->scalar_type() == type && info->dim_order().size() == rank && n_bytes <= info->nbytes(),
      info->is_memory_planned()};
}

/// A tensor over memory that holds its elements packed in `order`. Throws ValueError where a stride
/// is too large for a tensor, as can be that of a view that repeats a few elements.
TensorPtr tensor_over(void* data, const std::vector<int64_t>& sizes, std::vector<uint8_t> order,
                      aten::ScalarType type, const Where& where) {
  const LogCapture quiet(LogCapture::kDropped);
  auto tensor = internal::try_make_tensor_ptr(nullptr, data, {sizes.begin(), sizes.end()},
                                              std::move(order), type);
  if (!tensor.ok()) {
    throw nb::value_error((where() + " has a stride beyond 2147483647 elements").c_str());
  }
  return std::move(*tensor);
}

/// The UTF-8 of a str. Throws UnicodeEncodeError for one with lone surrogates, which has none.
std::string utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return std::string(bytes, static_cast<size_t>(size));
}

/// Whether all bytes of a dense Bool tensor are 0 or 1, as programs assume.
bool are_booleans(const std::byte* data, size_t count) {
  uint64_t bits = 0;  // those that any eight bytes have
  uint64_t words[4];
  for (; count >= sizeof(words); count -= sizeof(words), data += sizeof(words)) {
    memcpy(words, data, sizeof(words));
    bits |= words[0] | words[1] | words[2] | words[3];
  }
  for (size_t i = 0; i < count; ++i) bits |= std::to_integer<uint64_t>(data[i]);
  return (bits & ~uint64_t{0x0101010101010101}) == 0;
}

/// Whether elements are packed without gaps, `order` naming dimensions from the outermost.
bool is_dense(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
              const std::vector<uint8_t>& order) {
  int64_t expected = 1;
  for (size_t d = order.size(); d-- > 0;) {
    const size_t dim = order[d];
    if (sizes[dim] != 1 && strides[dim] != expected) return false;
    expected *= sizes[dim];
  }
  return true;
}

}  // namespace

Inputs::Inputs(const Method& method, nb::handle items) {
  nb::object row = is_sequence(items) ? nb::borrow(items) : nb::object(nb::make_tuple(items));
  const size_t count = nb::len(row);
  const MethodMeta meta = method.method_meta();
  if (count != meta.num_inputs()) {
    LogCapture().fail(std::string(meta.name()) + " takes " + std::to_string(meta.num_inputs()) +
                          " inputs, got " + std::to_string(count),
                      runtime::Error::InvalidArgument);
  }
  values_.reserve(count);
  for (size_t i = 0; i < count; ++i) values_.push_back(convert(method, i, nb::object(row[i])));
}

EValue Inputs::convert(const Method& method, size_t i, nb::handle item) {
  const MethodMeta meta = method.method_meta();
  const auto tag = meta.num_inputs() > i ? meta.input_tag(i) : runtime::Result<Tag>(Tag::Tensor);
  const Tag wanted = tag.ok() ? *tag : Tag::Tensor;
  if (item.is_none()) return EValue();
  if (PyBool_Check(item.ptr())) return EValue(nb::cast<bool>(item));
  if (PyFloat_Check(item.ptr()) || (PyLong_Check(item.ptr()) && wanted == Tag::Double)) {
    const double value = PyFloat_AsDouble(item.ptr());
    if (value == -1.0 && PyErr_Occurred()) throw_too_large(place(method, i), "a float");
    return EValue(value);
  }
  if (PyLong_Check(item.ptr())) {
    const long long value = PyLong_AsLongLong(item.ptr());
    if (value == -1 && PyErr_Occurred()) throw_too_large(place(method, i), "64 bits");
    return EValue(static_cast<int64_t>(value));
  }
  if (PyUnicode_Check(item.ptr())) return convert_string(item);
  if (wanted != Tag::Tensor && nb::hasattr(item, "item")) {
    nb::object scalar = item.attr("item")();  // of a NumPy scalar or a one-element tensor
    if (is_scalar(scalar)) return convert(method, i, scalar);
  }
  if (is_array(item)) return convert_tensor(method, i, item);
  throw nb::type_error((place(method, i) + " is a " + python_type(item) +
                        "; expected one flat sequence of tensors, numbers, strings or None")
                           .c_str());
}

EValue Inputs::convert_string(nb::handle item) {
  auto& entry = strings_.emplace_back(utf8_of(item), aten::ArrayRef<char>());
  entry.second = aten::ArrayRef<char>(entry.first.data(), entry.first.size());
  return EValue(&entry.second);
}

EValue Inputs::convert_tensor(const Method& method, size_t i, nb::handle item) {
  const Where where = [&] { return place(method, i); };
  bool writable = false;
  aten::ScalarType type{};
  nb::ndarray<nb::ro> array = usable_array(item, where, writable, type);
  Layout layout = layout_of(array, where);
  const auto& [sizes, strides, n_bytes] = layout;
  const size_t rank = sizes.size();
  std::vector<uint8_t> order = identity_order(rank);
  const Wanted wanted_tensor = wanted(method.method_meta(), i, type, rank, n_bytes, order);

  const size_t item_bytes = array.itemsize();
  auto* data = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(array.data()));
  const bool aligned = reinterpret_cast<uintptr_t>(data) % item_bytes == 0;
  // A method may write to an input that it does not copy, so read-only arrays are copied here.
  const bool usable = aligned && (writable || wanted_tensor.is_copied) &&
                      (n_bytes == 0 || is_dense(sizes, strides, order));
  const bool is_bool = type == aten::ScalarType::Bool;
  // A tensor that does not fit is passed as it is: the runtime refuses it without reading its
  // elements.
  if (!wanted_tensor.fits || (usable && !(is_bool && !are_booleans(data, n_bytes)))) {
    borrowed_.push_back(std::move(array));
  } else {
    auto& copy = copies_.emplace_back(new std::byte[n_bytes]);
    strided_copy(copy.get(), data, sizes, strides, order, item_bytes);
    data = copy.get();
    for (size_t at = 0; is_bool && at < n_bytes; ++at) {
      data[at] = std::byte{data[at] != std::byte{0}};
    }
  }
  tensors_.push_back(tensor_over(data, sizes, std::move(order), type, where));
  return EValue(*tensors_.back());
}

NamedArrays::NamedArrays(const char* what, nb::dict arrays, bool written) {
  // Of its own: asking an item for its memory runs code that may change the caller's.
  const auto items = nb::steal<nb::dict>(PyDict_Copy(arrays.ptr()));
  for (const auto& [key, item] : items) {
    if (!PyUnicode_Check(key.ptr())) {
      throw nb::type_error((std::string(what) + ": a key is no str").c_str());
    }
    const std::string& name = names_.emplace_back(utf8_of(key));
    const Where where = [&] { return std::string(what) + " '" + name + "'"; };
    bool writable = false;
    aten::ScalarType type{};
    nb::ndarray<nb::ro> array = usable_array(item, where, writable, type);
    const auto [sizes, strides, n_bytes] = layout_of(array, where);
    std::vector<uint8_t> order = identity_order(sizes.size());
    std::stable_sort(order.begin(), order.end(),
                     [&](uint8_t a, uint8_t b) { return strides[a] > strides[b]; });
    const auto* const data = static_cast<const std::byte*>(array.data());
    if (n_bytes > 0 && (!is_dense(sizes, strides, order) ||
                        reinterpret_cast<uintptr_t>(data) % array.itemsize() != 0)) {
      throw nb::value_error(
          (where() + " has gaps, or is not aligned; expected dense memory").c_str());
    }
    if (written && !writable) {
      throw nb::value_error((where() + " may only be read; expected memory to write to").c_str());
    }
    owned_.push_back(
        tensor_over(const_cast<std::byte*>(data), sizes, std::move(order), type, where));
    borrowed_.push_back(std::move(array));
    tensors_.emplace(name, *owned_.back());
  }
}

}  // namespace executorch::extension::pybindings
