#pragma once

#include <executorch/extension/llm/jinja/value.h>
#include <executorch/extension/llm/tokenizers/json.h>

namespace executorch::extension::llm::jinja {

/// The value that JSON stands for, members in their order; integers of 2^63 and more are floats.
/// Throws Failure where it is nested too deeply.
Value value_of(const ::tokenizers::Json& json);

}  // namespace executorch::extension::llm::jinja
