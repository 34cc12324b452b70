#pragma once

#include <flatbuffers/flatbuffers.h>
#include <nanobind/nanobind.h>

#include <limits>
#include <string_view>
#include <vector>

/// Reading the attributes of schema dataclasses into flatbuffer fields, with range checks: an
/// integer that its field cannot hold is an OverflowError that names the field, never truncated.
namespace executorch::exir {

template <typename T>
T to_int(nanobind::handle value, const char* field) {
  int overflow = 0;
  const long long wide = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (wide == -1 && PyErr_Occurred()) throw nanobind::python_error();
  bool fits = overflow == 0;
  if constexpr (sizeof(T) < sizeof(wide)) {
    fits = fits && wide >= static_cast<long long>(std::numeric_limits<T>::min()) &&
           wide <= static_cast<long long>(std::numeric_limits<T>::max());
  } else if constexpr (std::is_unsigned_v<T>) {
    fits = fits && wide >= 0;
  }
  if (!fits) {
    PyErr_Format(PyExc_OverflowError, "%s: %S does not fit into %d bits", field, value.ptr(),
                 static_cast<int>(8 * sizeof(T)));
    throw nanobind::python_error();
  }
  return static_cast<T>(wide);
}

inline bool to_bool(nanobind::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nanobind::python_error();
  return truth != 0;
}

inline double to_double(nanobind::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred()) throw nanobind::python_error();
  return number;
}

inline std::string_view to_text(nanobind::handle value) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) throw nanobind::python_error();
  return {text, static_cast<size_t>(size)};
}

/// `convert` of every item.
template <typename F>
auto to_vector(nanobind::handle items, F&& convert) {
  std::vector<decltype(convert(items))> result;
  for (nanobind::handle item : items) result.push_back(convert(item));
  return result;
}

template <typename T>
std::vector<T> to_ints(nanobind::handle items, const char* field) {
  return to_vector(items, [&](nanobind::handle item) { return to_int<T>(item, field); });
}

inline flatbuffers::Offset<flatbuffers::String> add_string(flatbuffers::FlatBufferBuilder& builder,
                                                           nanobind::handle value) {
  const std::string_view text = to_text(value);
  return builder.CreateString(text.data(), text.size());
}

}  // namespace executorch::exir
