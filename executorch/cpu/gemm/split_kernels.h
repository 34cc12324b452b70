/// Products of floats by matrix registers that multiply bfloat16 (x86's AMX).
///
/// A float is the sum of three bfloat16 numbers: the float rounded to bfloat16, what is left of it
/// rounded, and the rest; their significands of 8 bits hold all 24 of the float's. Of the nine
/// products of two floats' parts the six largest are added up, in float. The others are below 2^-26
/// of the product, a quarter of the error that rounding it to float would make: sums have the
/// accuracy of those of multiply-adds, at twice their speed or more. Parts below 2^-126 are zero.
/// Infinities and NaNs have no parts: a result that is not finite is computed by multiply-adds.
#pragma once

#include <executorch/cpu/gemm/float_kernels.h>

#include <cstdint>

namespace executorch::cpu::gemm {

/// Parts lie in blocks: kBlockDepth elements along k of up to kBlockWidth rows of A, or of kBlockWidth
/// columns of B. A block is three times 16 lines of 64 bytes, one for each part. A line is of one
/// row of A, its elements in the order 0, 16, 1, 17, ...; or of elements r and r + 16 of each column.
constexpr int64_t kBlockDepth = 32, kBlockWidth = 16, kSplitParts = 3;
constexpr int64_t kPartBytes = 1024, kBlockBytes = kSplitParts * kPartBytes;
/// Tiles of rows of A that are multiplied in one call.
constexpr int64_t kMostSplitTiles = 4;

/// The next panel of B, which is split while the current one is multiplied.
struct PanelSplit {
  const float* from = nullptr;  // [k, vectors * kBlockWidth], rows `ld` apart
  int64_t ld = 0, k = 0, vectors = 0;
  uint8_t* to = nullptr;  // blocks of the first columns along k, then those of the next ones
  int64_t done = 0;       // lines of the blocks of one vector
  int64_t rate = 0;       // lines for each step of a product

  int64_t blocks() const { return (k + kBlockDepth - 1) / kBlockDepth; }
  int64_t lines() const { return blocks() * kBlockWidth; }
};

/// Tiles of rows of A times a panel of B.
struct SplitTile {
  const uint8_t* a;       // the blocks of the first tile along k, then those of the next one
  int64_t tiles, height;  // 2 or 4; rows of each, at most kBlockWidth
  const uint8_t* b;
  int64_t vectors;  // of kBlockWidth columns
  int64_t blocks;   // along k
  float* sums;      // [tiles * height, vectors * kBlockWidth]
  PanelSplit* next;

  /// Calls for lines of `next` that the product makes.
  int64_t steps() const { return 2 * blocks * (vectors / 2 * (tiles / 2) + vectors % 2); }
};

/// All null, unless the machine has such registers.
struct SplitKernels {
  /// Splits rows of A, k elements each, into the blocks of a tile of `height` rows; those beyond `rows`
  /// are zero.
  void (*split_rows)(const float* a, int64_t lda, int64_t rows, int64_t k, int64_t height,
                     uint8_t* to) = nullptr;
  /// What is left to be split of a panel.
  void (*split_rest)(PanelSplit&) = nullptr;
  void (*multiply)(const SplitTile&) = nullptr;
  /// Whether the first `rows` rows of the sums are finite.
  bool (*are_finite)(const float* sums, int64_t rows, int64_t width) = nullptr;
  /// Finishes and stores sums[rows, width] as a tile does its own: what `t` says of k, A and B is
  /// not read.
  void (*store)(const Tile<float>& t, const float* sums, int64_t rows, int64_t width) = nullptr;
};

}  // namespace executorch::cpu::gemm
