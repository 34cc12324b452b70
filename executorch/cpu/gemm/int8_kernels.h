/// Integer rows of the table of microkernels, and what belongs to them.
///
/// A dot-product instruction multiplies a quad, four neighbouring bytes along k, and adds the
/// products to a 32-bit sum; without one, pairs of 16-bit numbers take its place. Three kinds of
/// microkernel use that:
///   tiles      rows of A, unpacked (shifted or widened to 16 bits, see below), times a packed panel
///              of B: `columns` columns whose quads are interleaved, so that a vector of sums holds
///              one row of the result
///   dots       few rows of A times rows of B, both contiguous along k: a vector of k at a time,
///              whose lanes are summed at the end
///   depthwise  a quad holds one channel's bytes of four rows of an image
/// Where the instruction multiplies unsigned with signed bytes, A is shifted by `offset` and the
/// sums are too large by `offset` times the sum of B's column; finish() subtracts that.
#pragma once

#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/microkernels.h>

#include <cstdint>

namespace executorch::cpu::int8 {

constexpr int64_t kUnit = 32;  // elements of k; divides every group
using gemm::kMostRows;
constexpr int kMostColumns = 32, kDotRows = 4, kDotColumns = 4, kMostFewRows = 12;
/// Whole panels whose sums are finished at once, at most.
constexpr int64_t kFewColumns = 2 * kMostColumns;

/// Registers that hold matrices (AMX), as one thread has them now: rows of A that fill them, and quads
/// behind a segment's whole registers. A thread that multiplies tiles keeps one of these meanwhile.
struct MatrixRegisters {
  int64_t rows = 0, rest = 0;
  void (*release)() = nullptr;  // gives them back; null before the first tile

  MatrixRegisters() = default;
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;
  ~MatrixRegisters() {
    if (release != nullptr) release();
  }
};

/// `height` rows of A times a panel: sums[i * columns + j], int32, or scaled floats where weights
/// are quantized in groups. A row consists of segments of 4 * quads bytes; segment s begins
/// segments[s] bytes after the row does; so many elements if A is `prepared` (Operand).
struct Tile {
  const int8_t* a;
  int64_t lda;
  const int64_t* segments;
  int64_t n_segments, quads;
  const uint8_t* panel;  // [segment, quad, column, 4]
  const float* scales;   // [group, column]
  const float*
      units;  // [column] if weights may be fixed-point numbers, and are unless units[0] is 0
  int64_t group_quads;
  void* sums;
  bool prepared;
  MatrixRegisters* registers;  // of the thread; any other set has no use for it
};

/// How rows of A become what microkernels read. For tiles they are shifted by tile_offset, or widened
/// to 16 bits where pairs are multiplied; for dots they are in the order of the elements in B, padded
/// with zeros.
struct Operand {
  int tile_offset;
  int64_t tile_element;  // bytes of a prepared element
  /// Prepares the first n elements of a row for tiles, with `flip` applied by exclusive or; `to` may
  /// be `a` where elements stay bytes. Null where tiles take rows as they are. Tiles of bytes do it
  /// themselves, for each panel, unless it is done before (Tile::prepared); tiles of nibbles do not.
  void (*prepare_tile)(const int8_t* a, uint8_t flip, int64_t n, uint8_t* to);
  int offset;     // that prepare() adds
  int64_t block;  // elements of k: rows are padded to a multiple
  int64_t bytes;  // of a prepared block
  /// `flip` is applied to every byte of `a` by exclusive or.
  void (*prepare)(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to);

  int64_t row_bytes(int64_t k) const { return (k + block - 1) / block * bytes; }
};

/// Up to kDotRows rows of A times n of B: sums[i * ld_sums + j], int32, or scaled floats where
/// weights are quantized in groups.
struct Dots {
  const uint8_t* a;
  int64_t lda;  // bytes
  int64_t m, n, k;
  const uint8_t* b;
  int64_t ldb;         // bytes
  const BF16* scales;  // [column, group]
  int64_t groups, group_units;
  void* sums;
  int64_t ld_sums;
};

/// Four rows of an image: `n` pieces of them, `bytes` each, `step` bytes apart. Null stands for a
/// row of `padding`. Nothing is read from `end` on; bytes have `flip` applied by exclusive or.
struct FourRows {
  const int8_t* row[4];
  int64_t n, bytes, step;
  const int8_t* end;
  int8_t padding;
  uint8_t flip;
};

/// How sums become bytes:
///   clamp(round((sum + start) * factor) + zero_point, low, high)
/// What a NaN becomes is `low`. For unsigned bytes all three are 128 less, and the highest bit of
/// every byte is flipped in the end.
struct ByteFormat {
  int16_t zero_point;
  int8_t low, high;
  uint8_t flip;

  /// Of the product's results.
  explicit ByteFormat(const Int8Gemm& gemm);
};
struct alignas(64) ByteColumns {
  int32_t start[kMostColumns];
  float factor[kMostColumns];

  ByteColumns() = default;
  /// Columns [j0, j0 + n) of the product, whose sums are too large by `offset` times those of B.
  ByteColumns(const Int8Gemm& gemm, int offset, int64_t j0, int64_t n);
};
/// Where a tile's bytes go: `n` columns of rows `ld` apart.
struct ByteResults {
  ByteFormat format;
  const ByteColumns* columns;
  uint8_t* to;
  int64_t ld, n;
};

/// Bytes of `n` places whose quads are `step` apart: vector_bytes channels at each,
///   to[i * ld + c] from the sum over q of the product of quads[i * step + offsets[q]] and
///   weights[q], the first `bytes` of them, `last_bytes` of the last place.
/// Channels are in the order in which interleave() leaves them, in four vectors: those of quads
/// `plane` bytes apart, those of weights, starts and factors one after the other.
struct DepthwiseTile {
  const uint8_t* quads;
  int64_t plane, n, step;
  const int64_t* offsets;
  int64_t n_quads;
  const uint8_t* weights;
  const int32_t* starts;
  const float* factors;
  ByteFormat format;
  uint8_t* to;
  int64_t ld, bytes, last_bytes;
};

/// Which byte of a whole vector the i-th quad of the v-th of four vectors is of.
inline int64_t interleaved(int64_t v, int64_t i) {
  return i / 4 * 16 + 4 * v + i % 4;
}

inline bool gives_bytes(const Int8Gemm& gemm) {
  return gemm.out == Int8Gemm::Out::Int8 || gemm.out == Int8Gemm::Out::UInt8;
}

/// What is known of columns, where results are floats: memory for whole panels, which are the
/// product's own arrays where these have as many columns.
struct alignas(64) Columns {
  const float *scale, *bias, *group_sums;
  const int32_t* sums;

  /// Columns [j0, j0 + n) of the product: whole panels, each `width` wide, or a part of one.
  Columns(const Int8Gemm& gemm, int64_t j0, int64_t n, int64_t width);
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

 private:
  float scale_[kMostColumns], bias_[kMostColumns], group_sums_[kMostColumns];
  int32_t sums_[kMostColumns];
};

/// Rows [i0, i0 + ni) and columns [j0, j0 + nj) of C from their sums.
struct Results {
  const Int8Gemm* gemm;
  const Columns* columns;
  int offset;
  int64_t i0, ni, j0, nj;
  const int32_t* sums;  // of groups float; rows `ld` apart, memory for whole panels
  int64_t ld;
};

enum Form { kBytes, kNibbles, kGroups };
/// What tests and benchmarks run.
struct WeightForm {
  const char* name;
  bool nibbles;
  int64_t group_size;
};
constexpr WeightForm kWeightForms[] = {{"int8", false, 0},
                                       {"int4", true, 0},
                                       {"int4_groups", true, 32},
                                       {"int4_groups_128", true, 128}};

/// What the functions of a row take (microkernels.h). pack_columns() is told the bytes of a column,
/// not its elements, and writes whole vectors.
struct Types {
  using Stored = uint8_t;
  using Packed = uint8_t;
  using Operand = int8::Operand;
  using Tile = int8::Tile;
  using Few = Dots;
  using Results = int8::Results;
  static constexpr int kWidths = 1;
};
using Row = gemm::Microkernels<Types>;

struct Kernels {
  Row rows[3];     // by Form
  int few_rows;    // for which dots are faster than packing panels for tiles
  int rows_in_l1;  // of tiles whose panel stays in the L1 cache beside them, at most
  int64_t vector_bytes;
  /// scales[group, column]
  void (*pack_scales)(const BF16* from, int64_t groups, int64_t n, float* to);
  /// Where tiles multiply groups as fixed-point numbers of 16 bits, units[column] each, else null: makes
  /// of packed scales the factors of weights, and the units; or stores 0 as units[0] where scales of a
  /// column are too far apart for that.
  void (*fix_scales)(float* scales, int64_t groups, float* units);
  /// Packs the bytes of columns that begin at quad `first` of `quads` as such numbers: panel[half, quad,
  /// plane, column, 4], each half of half the columns; the first plane has the high bytes, the second
  /// the low ones, unsigned.
  void (*pack_fixed)(const uint8_t* b, int64_t ldb, int64_t bytes, int64_t n, int64_t quads,
                     int64_t first, int64_t group_quads, const float* factors, uint8_t* panel);
  /// Tiles of bytes whose results are bytes; sums are memory for them.
  void (*byte_tile[kMostRows + 1])(const Tile&, const ByteResults&);
  /// Bytes from the sums of `rows` rows, `ld` apart.
  void (*finish_bytes)(const int32_t* sums, int64_t ld, int64_t rows, const ByteResults&);
  /// Quads of the first piece from `to` on, of the others to_step behind those before: their four
  /// vectors `plane` bytes apart. Whole vectors are written.
  void (*interleave)(const FourRows&, uint8_t* to, int64_t to_step, int64_t plane);
  void (*depthwise)(const DepthwiseTile&);
  int depthwise_offset;
};

}  // namespace executorch::cpu::int8
