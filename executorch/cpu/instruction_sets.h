/// The engine's kernels by instruction set, for comparisons on one machine.
#pragma once

namespace executorch::cpu {

/// From now on the engine runs the kernels of that set, of Highway's name ("AVX3" for AVX-512, "AVX2",
/// "SSE4"), or of less able ones where it has none; "" is the best that this machine has. Integers
/// likewise. False, and nothing changes, unless the build contains the set and this machine has it.
/// Not to be called while a program runs.
[[nodiscard]] bool use_instruction_set(const char* name);

/// The same for the argument `name` of `program`: where it is false, stderr has a line that names both
/// and the sets that can be used.
[[nodiscard]] bool use_instruction_set_argument(const char* program, const char* name);

}  // namespace executorch::cpu
