#pragma once

#include <executorch/backends/example/runtime/steps.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>

#include <string_view>

namespace executorch::backends::example {

/// Reads what example_backend.py writes, a line each:
///   constant KEY SIZE...   elements are the named data KEY
///   NAME OPERAND...        a step: add, sub, mul, mm, relu, sin
///   outputs NUMBER...      the last line
/// DelegateInvalidCompatibility for anything else, NotFound for a constant that is not there.
/// Throws where a container finds no memory, as the other does.
runtime::Result<Steps> read_example(std::string_view text, const runtime::NamedDataMap* data);

/// Reads what executorch/exir/backend/test/backend_with_compiler_demo.py writes.
runtime::Result<Steps> read_compiler_demo(std::string_view text);

}  // namespace executorch::backends::example
