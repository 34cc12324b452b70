/// Text between C++ and Python. Names in programs, and paths, may be any bytes: those that are not
/// UTF-8 become lone surrogates of a str and come back from them, as with os.fsdecode() and
/// os.fsencode(). To be included in the place of nanobind/stl/string.h.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace executorch::extension::pybindings {

/// `text` with \xNN in the place of bytes that are not UTF-8: for messages, and what is printed.
/// Needs the GIL.
std::string printable(const std::string& text);

/// Makes RuntimeErrors of exceptions whose text is not UTF-8, too; once per process.
void translate_errors_of_any_text();

}  // namespace executorch::extension::pybindings

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    const object bytes = steal(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) {
      PyErr_Clear();
      return false;
    }
    value.assign(PyBytes_AS_STRING(bytes.ptr()),
                 static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
    return true;
  }

  static handle from_cpp(const std::string& value, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()),
                                "surrogateescape");
  }
};

}  // namespace nanobind::detail
