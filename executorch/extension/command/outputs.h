#pragma once

#include <executorch/runtime/executor/method.h>
#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace executorch::extension::command {

/// A value as JSON. A tensor has its type, sizes and dim order, and with `with_elements` its
/// elements, which are null if it has no memory. Numbers, bools, strings and None are JSON's own,
/// lists are text. What JSON has no number for is "nan", "inf" or "-inf".
nlohmann::ordered_json output_json(const runtime::EValue& value, bool with_elements);

/// Throws Failure if the files `outputs` are not all different, or one of them is also read.
/// Empty paths are none.
void check_output_paths(const std::vector<std::string>& outputs,
                        const std::vector<std::string>& inputs);

/// Throws Failure, which begins with `what`, for a tensor that has no memory.
std::string_view bytes_of(const aten::Tensor& tensor, const std::string& what);

/// Throws Failure if what was printed on the standard output could not be written, as on a full
/// disk.
void finish_standard_output();

/// "OutputX i: ..." for each output, with all elements or the first and last hundred.
void print_outputs(std::ostream& out, const runtime::Method& method, bool all);

}  // namespace executorch::extension::command
