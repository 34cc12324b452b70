#include <executorch/extension/pybindings/text.h>

#include <stdexcept>
#include <typeinfo>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
namespace {

nb::object printable_str(const char* text, size_t size) {
  PyObject* const str =
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "backslashreplace");
  if (str == nullptr) throw nb::python_error();
  return nb::steal(str);
}

}  // namespace

std::string printable(const std::string& text) {
  return nb::cast<std::string>(printable_str(text.data(), text.size()));
}

void translate_errors_of_any_text() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::runtime_error& error) {
      // Errors derived from it are nanobind's to translate.
      if (typeid(error) != typeid(std::runtime_error)) throw;
      const std::string text = error.what();
      PyErr_SetObject(PyExc_RuntimeError, printable_str(text.data(), text.size()).ptr());
    }
  });
}

}  // namespace executorch::extension::pybindings
