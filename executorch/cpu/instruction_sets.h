/// Selects the instruction set whose kernels the engine runs, so that sets can be compared on one
/// machine.
#pragma once

namespace executorch::cpu {

/// Makes the engine run the kernels of the instruction set `name`, a name of Highway's ("AVX3" for
/// AVX-512, "AVX2", "SSE4"); "" selects the best set that this machine has. Operations without
/// kernels for that set use the kernels of a lesser one. The choice covers integer kernels as well.
/// Returns false and changes nothing if the build lacks the set or this machine does. Must not be
/// called while a program runs.
[[nodiscard]] bool use_instruction_set(const char* name);

/// Calls use_instruction_set(name) for a command-line program named `program`. On failure it also
/// prints one line to stderr with both names and the sets that can be used.
[[nodiscard]] bool use_instruction_set_argument(const char* program, const char* name);

}  // namespace executorch::cpu
