#include <executorch/devtools/inspect/other_kind.h>

#include <filesystem>
#include <fstream>

namespace executorch::devtools {
namespace {

struct Kind {
  size_t at;
  const char* begins;
  const char* answer;
};
constexpr Kind kKinds[] = {
    {8, "ED00",
     "an ETDump: python -m executorch.devtools.inspector.inspector_cli --etdump_path FILE"},
    {4, "BP", "a bundled program: executor_runner --bundled_program FILE"},
    {4, "FT", "external data of a program: --data FILE"},
    {0, "PK\x03\x04",
     "a zip archive; an ETRecord goes to python -m executorch.devtools.inspector.inspector_cli "
     "--etrecord_path FILE"},
};

}  // namespace

std::string other_kind(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string head(12, '\0');
  std::ifstream(path, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  for (const Kind& kind : kKinds) {
    if (head.compare(kind.at, std::string(kind.begins).size(), kind.begins) == 0) {
      return std::string("; it is ") + kind.answer;
    }
  }
  return "";
}

}  // namespace executorch::devtools
