/// What the machine offers, as far as the engine's choices depend on it.
#pragma once

#include <cstdint>

namespace executorch::cpu {

/// Cores that this process may run on, without the slow ones of a machine that has two kinds.
/// At least 1.
uint32_t performant_cores();

}  // namespace executorch::cpu
