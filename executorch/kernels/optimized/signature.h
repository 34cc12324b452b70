/// Checks the number and types of an instruction's arguments, so that patterns may read them
/// unchecked.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <string_view>

namespace executorch::optimized {

enum class Signature : uint8_t { Unknown, Fits, Differs };

/// Whether `args` have the number and types of the arguments of operator `op`, such as "add.out".
/// Unknown if no pattern reads that operator. Verification of the program does not check this,
/// because only the operator's kernel and this function know its signature.
Signature check_signature(std::string_view op, runtime::Span<runtime::EValue*> args);

}  // namespace executorch::optimized
