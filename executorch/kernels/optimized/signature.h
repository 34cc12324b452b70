/// Checks the number and types of an instruction's arguments, so that patterns may read them
/// unchecked.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <string_view>

namespace executorch::optimized {

enum class Signature : uint8_t { Unknown, Fits, Differs };

/// Whether `args` are those of `op` ("add.out"); Unknown: an operator that no pattern reads.
/// Programs are verified as files, but what an operator takes is only known here and to its kernel.
Signature check_signature(std::string_view op, runtime::Span<runtime::EValue*> args);

}  // namespace executorch::optimized
