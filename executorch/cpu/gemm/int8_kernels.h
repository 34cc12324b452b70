/// The inner loops of Int8Gemm, one set per instruction set, chosen at run time.
///
/// Both operands are rows along k, so that a sum is a dot product of what lies in memory: nothing
/// is packed but a block of A, whose bytes get 128 added (the multiply-add of bytes on x86 takes
/// one unsigned operand; the epilogue subtracts 128 * sums[j]), zeros up to a multiple of kBlock,
/// and for nibbles an order in which each 128 elements are the 64 even ones, then the 64 odd ones,
/// as the low and the high bits of 64 bytes of B are.
#pragma once

#include <executorch/cpu/gemm/int8.h>

#include <cstdint>

namespace executorch::cpu::int8 {

constexpr int64_t kBlock = 128;
constexpr int kRows = 4, kColumns = 4;

/// A tile of at most kRows x kColumns sums: [i * ld_sums + j].
struct Tile {
  const uint8_t* a;  // packed
  int64_t lda;
  const uint8_t* b;
  int64_t ldb;
  int64_t k;
  void* sums;  // int32, or float where there are groups
  int64_t ld_sums;
  /// Groups: the scales of column 0, the next column's `groups` behind; and for each kBlock of k
  /// the group of each of its 16 eighths, counted from that of the first.
  const BF16* scales;
  int64_t group_size, groups;
  const int32_t* group_of;
};
using TileFunction = void (*)(const Tile&);

struct Kernels {
  /// [rows - 1][columns - 1]
  TileFunction bytes[kRows][kColumns], nibbles[kRows][kColumns], groups[kRows][kColumns];
};
const Kernels& kernels();
/// Without instructions that not every machine has.
const Kernels& portable_kernels();

}  // namespace executorch::cpu::int8
