/// The weights of a linear layer as torchao packs them for its kernels of 8-bit activations, in
/// their form for every machine:
///
///   16 int32   6712, 1, bits, 0, 0, 8, 16, 2, and zeros: no zero points, no bias, blocks of 8 rows
///   then for each 8 rows (missing ones are zeros), for each group of their columns:
///     for each 16 columns: columns 0..7 of row 0, of row 1 ..., columns 8..15 of row 0 ...
///       8 bits: signed bytes; 4 bits: 8 more than the number, and of each 32 numbers number i in
///       the low bits of byte i and number i + 16 in its high bits, i < 16
///     8 floats, a scale of each row; 8 int32, the sums of each row's integers
#pragma once

#include <executorch/cpu/size.h>

#include <cstdint>

namespace torch::executor::native::internal {

struct PackedLinear {
  static constexpr int64_t kRows = 8;
  static constexpr int64_t kColumns = 16;
  static constexpr int64_t kHeaderBytes = 64;

  int64_t n = 0, k = 0;    // rows, columns
  int64_t group_size = 0;  // a multiple of kColumns that divides k
  int64_t bits = 0;        // 4 or 8

  /// What one layer takes, header and all.
  executorch::cpu::Size bytes() const;
  /// Whether `data` begins with the header of such weights.
  bool begins(const uint8_t* data) const;
  /// to[i * k + p] = w[first + i, p], i < n_rows, rounded up to blocks of kRows, p < k.
  /// `first` is a multiple of kRows, first + n_rows <= n. Data of any alignment.
  void unpack(const uint8_t* data, int64_t first, int64_t n_rows, float* to) const;

 private:
  int64_t group_bytes() const { return kRows * (group_size * bits / 8 + 8); }
};

}  // namespace torch::executor::native::internal
