#include <executorch/devtools/native/bundled_program.h>
#include <executorch/devtools/native/etdump.h>

namespace nb = nanobind;
namespace devtools = executorch::devtools;
using namespace nb::literals;

NB_MODULE(_native, m) {
  m.def("read_etdump", &devtools::read_etdump, "data"_a, "size_prefixed"_a = true);
  m.def("write_etdump", &devtools::write_etdump, "etdump"_a, "size_prefixed"_a = false);
  m.def("read_bundled_program", &devtools::read_bundled_program, "data"_a);
  m.def("write_bundled_program", &devtools::write_bundled_program, "bundle"_a);
}
