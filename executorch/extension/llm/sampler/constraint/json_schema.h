/// JSON schemas (draft 2020-12) as automata over the bytes of JSON texts.
#pragma once

#include <executorch/extension/llm/sampler/constraint/nfa.h>

namespace executorch::extension::llm::constraint {

/// Space stands where writers of JSON put it: nothing, a blank, or, at brackets and behind commas,
/// a new line and at most so many blanks and tabs. A model could go on with more for ever.
inline constexpr uint32_t kMaxIndentation = 24;

/// Texts that are valid under `schema`:
///   true, {}, false; $ref within the document, also to itself; anyOf; oneOf of branches that
///   exclude each other visibly; allOf; enum, const; type
///   objects: properties in the order of the schema, required, additionalProperties after them;
///     minProperties and maxProperties where no property is declared
///   arrays: prefixItems, items, minItems, maxItems
///   strings: minLength, maxLength, or pattern, or format (date, time, date-time, uuid, ipv4,
///     email)
///   numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum; integers have at most 18 digits
/// Throws Unusable for everything else that is not an annotation, with the place as a JSON pointer.
Nfa json_schema_automaton(const std::string& schema);

}  // namespace executorch::extension::llm::constraint
