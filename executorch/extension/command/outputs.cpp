#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

namespace executorch::extension::command {
namespace {

constexpr long kEdgeItems = 100;

template <typename T>
nlohmann::ordered_json elements(const aten::Tensor& tensor) {
  auto list = nlohmann::ordered_json::array();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    if constexpr (runtime::is_floating_point<T>::value) {
      list.push_back(static_cast<double>(tensor.const_data_ptr<T>()[i]));
    } else if constexpr (std::is_same_v<T, bool>) {
      // A byte of a bool tensor may be other than 0 and 1.
      list.push_back(static_cast<const uint8_t*>(tensor.const_data_ptr())[i] != 0);
    } else {
      list.push_back(tensor.const_data_ptr<T>()[i]);
    }
  }
  return list;
}

}  // namespace

void finish_standard_output() {
  errno = 0;
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (is_written) return;
  const std::string cause = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  fail("cannot write to the standard output" + cause);
}

nlohmann::ordered_json output_json(const runtime::EValue& value, bool with_elements) {
  if (!value.isTensor()) {
    std::stringstream text;
    text << value;
    return text.str();
  }
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
