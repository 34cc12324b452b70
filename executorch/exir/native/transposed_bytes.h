#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace executorch::exir {

/// A matrix [rows, cols], row by row, whose memory holds its transpose: bytes that are computed
/// where they are asked for, so that a weight can be stored transposed without a second copy.
class TransposedBytes {
 public:
  /// `base` holds [cols, rows] elements of `element_bytes` each; it is kept alive.
  /// Throws ValueError unless its size is the product of the three.
  TransposedBytes(nanobind::object base, uint64_t rows, uint64_t cols, uint64_t element_bytes);

  uint64_t size() const { return rows_ * cols_ * element_bytes_; }
  uint64_t rows() const { return rows_; }
  nanobind::object base() const { return base_; }

  /// Bytes [at, at + n) of the result; at + n <= size(). Touches no Python object.
  void read(uint64_t at, uint64_t n, uint8_t* out) const;

 private:
  void read_rows(uint64_t first, uint64_t n_rows, uint8_t* out) const;

  nanobind::object base_;
  const uint8_t* data_;
  uint64_t rows_;
  uint64_t cols_;
  uint64_t element_bytes_;
};

/// Binds the class, with the buffer protocol: a view of it holds a transposed copy.
void bind_transposed_bytes(nanobind::module_& m);

}  // namespace executorch::exir
