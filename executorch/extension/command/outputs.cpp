#include <executorch/devtools/inspect/describe.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

namespace executorch::extension::command {
namespace {

constexpr long kEdgeItems = 100;

/// A value that is no tensor; lists are their text.
nlohmann::ordered_json plain_value(const runtime::EValue& value) {
  if (value.isNone()) return nullptr;
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return devtools::json_number(value.toDouble());
  if (value.isBool()) return value.toBool();
  if (value.isString()) return std::string(value.toString());
  std::stringstream text;
  text << value;
  return text.str();
}

template <typename T>
nlohmann::ordered_json elements(const aten::Tensor& tensor) {
  auto list = nlohmann::ordered_json::array();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    if constexpr (runtime::is_floating_point<T>::value) {
      list.push_back(devtools::json_number(static_cast<double>(tensor.const_data_ptr<T>()[i])));
    } else if constexpr (std::is_same_v<T, bool>) {
      // A byte of a bool tensor may be other than 0 and 1.
      list.push_back(static_cast<const uint8_t*>(tensor.const_data_ptr())[i] != 0);
    } else {
      list.push_back(tensor.const_data_ptr<T>()[i]);
    }
  }
  return list;
}

/// Whether both are names of one file, which need not exist. Devices and pipes can be shared.
bool is_one_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_there = fs::exists(a, error) && fs::exists(b, error);
  if (is_there) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  return fs::path(a).lexically_normal() == fs::path(b).lexically_normal();
}

}  // namespace

void check_output_paths(const std::vector<std::string>& outputs,
                        const std::vector<std::string>& inputs) {
  std::vector<std::string> taken = inputs;
  for (const std::string& output : outputs) {
    for (size_t i = 0; i < taken.size() && !output.empty(); ++i) {
      if (!is_one_file(output, taken[i])) continue;
      reject(output + (i < inputs.size() ? " is read, and a result is to be written to it"
                                         : ": two results are to be written to it"));
    }
    taken.push_back(output);
  }
}

void finish_standard_output() {
  errno = 0;
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (is_written) return;
  const std::string cause = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  fail("cannot write to the standard output" + cause);
}

nlohmann::ordered_json output_json(const runtime::EValue& value, bool with_elements) {
  if (!value.isTensor()) return plain_value(value);
  const aten::Tensor& tensor = value.toTensor();
  nlohmann::ordered_json out = {
      {"dtype", runtime::toString(tensor.scalar_type())},
      {"sizes", std::vector<int>(tensor.sizes().begin(), tensor.sizes().end())},
      {"dim_order", std::vector<int>(tensor.dim_order().begin(), tensor.dim_order().end())}};
  if (tensor.const_data_ptr() == nullptr && tensor.numel() > 0) {
    out["data"] = nullptr;  // freed by the program
  } else if (with_elements) {
    switch (tensor.scalar_type()) {
#define ELEMENTS(ctype, name)              \
  case aten::ScalarType::name:             \
    out["data"] = elements<ctype>(tensor); \
    break;
      ET_FORALL_REALHBBF16_TYPES(ELEMENTS)
      ELEMENTS(uint16_t, UInt16)
      ELEMENTS(uint32_t, UInt32)
      ELEMENTS(uint64_t, UInt64)
#undef ELEMENTS
      default:
        break;
    }
  }
  return out;
}

std::string_view bytes_of(const aten::Tensor& tensor, const std::string& what) {
  if (tensor.const_data_ptr() == nullptr && tensor.nbytes() > 0) {
    fail(what + " has no memory: the program freed it");
  }
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

void print_outputs(std::ostream& out, const runtime::Method& method, bool all) {
  out << evalue_edge_items(all ? std::numeric_limits<long>::max() / 2 : kEdgeItems);
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    out << "OutputX " << i << ": " << method.get_output(i) << "\n";
  }
}

}  // namespace executorch::extension::command
