#pragma once

#include <executorch/extension/llm/sampler/constraint/schema.h>

namespace executorch::extension::llm::constraint {

/// Adds numbers within `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` of `schema`.
/// Numbers with bounds have no exponent, and at most about 15 digits, so that no reader rounds them
/// to a bound that they exclude.
void add_integers(NfaBuilder& builder, State from, State to, const Json& schema,
                  const std::string& pointer);
void add_numbers(NfaBuilder& builder, State from, State to, const Json& schema,
                 const std::string& pointer);

}  // namespace executorch::extension::llm::constraint
