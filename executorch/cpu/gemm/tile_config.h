/// The configuration of the tile registers of x86's AMX.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

/// The rows of each register and the bytes of a row, laid out as the processor reads it
/// (LDTILECFG). Every register must have a shape, used or not.
struct alignas(64) TileConfig {
  uint8_t palette = 1, first_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {};

  /// To be called before _tile_loadconfig(): GCC assumes that it reads only 8 bytes.
  void keep() const {
#if defined(__GNUC__)
    asm volatile("" : : "r"(this) : "memory");
#endif
  }
};

}  // namespace executorch::cpu::gemm
