#include <executorch/devtools/native/bundled_program.h>
#include <executorch/devtools/native/etdump.h>
#include <executorch/exir/native/borrowed_bytes.h>
#include <executorch/schema/output_file.h>

#include <nanobind/stl/filesystem.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace nb = nanobind;
namespace devtools = executorch::devtools;
using namespace nb::literals;

namespace {

/// A schema::OutputFile as a binary file object to write to, from front to back.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path) : path_(path.string()) {
    check(file_.open(path_));
  }

  uint64_t write(nb::handle data) {
    const executorch::exir::BorrowedBytes bytes(data);
    if (is_kept_) throw nb::value_error((path_ + ": it is closed").c_str());
    int failed = 0;
    {
      nb::gil_scoped_release unlocked;
      failed = file_.write(bytes.data(), bytes.size());
    }
    check(failed);
    return bytes.size();
  }

  void keep() {
    if (!is_kept_) check(file_.keep());
    is_kept_ = true;
  }

 private:
  void check(int error) const {
    if (error == 0) return;
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path_.c_str());
    throw nb::python_error();
  }

  const std::string path_;
  executorch::schema::OutputFile file_;
  bool is_kept_ = false;
};

}  // namespace

NB_MODULE(_native, m) {
  m.def("read_etdump", &devtools::read_etdump, "data"_a, "size_prefixed"_a = true);
  m.def("write_etdump", &devtools::write_etdump, "etdump"_a, "size_prefixed"_a = false);
  m.def("read_bundled_program", &devtools::read_bundled_program, "data"_a);
  m.def("write_bundled_program", &devtools::write_bundled_program, "bundle"_a);
  nb::class_<OutputFile>(m, "OutputFile")
      .def(nb::init<const std::filesystem::path&>(), "path"_a)
      .def("write", &OutputFile::write, "data"_a)
      .def("flush", [](OutputFile&) {})
      .def("keep", &OutputFile::keep);
}
