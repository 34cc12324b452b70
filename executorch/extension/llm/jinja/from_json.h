#pragma once

#include <executorch/extension/llm/jinja/value.h>
#include <executorch/extension/llm/tokenizers/json.h>

namespace executorch::extension::llm::jinja {

/// The value that JSON stands for, members in their order. Throws Failure where it is nested too
/// deeply.
Value value_of(const ::tokenizers::Json& json);

}  // namespace executorch::extension::llm::jinja
