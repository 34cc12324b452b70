/// The properties of the machine that the engine's choices depend on. Results do not depend on
/// them: whatever decides the order of a sum is a constant of the set of microkernels.
#pragma once

#include <cstdint>

/// The number of vector registers of the instruction set that a file is being compiled for. The
/// file must include hwy/highway.h.
#define ET_VECTOR_REGISTERS \
  (HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64) ? 32 : 16)

/// Whether a masked load or store of 4-byte elements touches no memory outside of its mask.
/// Highway's own macro answers for elements of all sizes at once.
#define ET_MASKED_FLOATS (!HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2)

namespace executorch::cpu {

/// All sizes are in bytes. Except for l3, the size of a cache is the share of one core: the cache's
/// size divided by the number of usable cores that share it. Where the system does not tell a size,
/// the default below, typical of current machines, remains.
struct Machine {
  /// Cores that this process may run on, >= 1. The slow cores of a machine with two kinds of cores
  /// are not counted.
  uint32_t cores = 1;
  int64_t l1 = 32 << 10;  // data
  /// Addresses that are a multiple of this distance apart map to the same set of the L1 data cache.
  int64_t l1_set_stride = 4 << 10;
  int64_t l2 = 1 << 20;
  int64_t l3 = 32 << 20;  // of all cores together
};

/// The machine that this process runs on. The system is asked on the first call only.
const Machine& machine();

}  // namespace executorch::cpu
