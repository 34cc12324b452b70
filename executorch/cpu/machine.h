/// The machine, as far as the engine's choices depend on it. Results do not: what decides the order
/// of a sum is a constant of the set of microkernels.
#pragma once

#include <cstdint>

/// Vector registers of the instruction set that a file is being compiled for; the file includes
/// hwy/highway.h.
#define ET_VECTOR_REGISTERS \
  (HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64) ? 32 : 16)

/// Whether a masked load or store of 4-byte elements touches those of the mask only. Highway's answer
/// is for elements of all sizes.
#define ET_MASKED_FLOATS (!HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2)

namespace executorch::cpu {

/// Sizes are bytes, those of a cache the share of one core: its size over the number of usable
/// cores that share it. Where the system does not say, they are those of a usual machine.
struct Machine {
  /// That this process may run on, without the slow ones of a machine that has two kinds; >= 1.
  uint32_t cores = 1;
  int64_t l1 = 32 << 10;  // data
  /// Addresses so far apart share a set of the first-level cache.
  int64_t l1_set_stride = 4 << 10;
  int64_t l2 = 1 << 20;
  int64_t l3 = 32 << 20;  // of all cores together
};

/// Asked once.
const Machine& machine();

}  // namespace executorch::cpu
