/// The integer rows of the table of microkernels, and the arguments of their functions.
///
/// A dot-product instruction multiplies two quads, each of four neighbouring bytes along k, and
/// adds the four products to a 32-bit sum. Instruction sets without one multiply pairs of 16-bit
/// numbers instead. There are three kinds of microkernel:
///   tiles      rows of A, unpacked (shifted or widened to 16 bits, see below), times a packed panel
///              of B: `columns` columns whose quads are interleaved, so that a vector of sums holds
///              one row of the result
///   dots       few rows of A times rows of B, both contiguous along k: a vector of k at a time,
///              whose lanes are summed at the end
///   depthwise  convolutions of one channel per group; a quad holds one channel's bytes of four
///              rows of an image
/// Where the instruction multiplies unsigned by signed bytes, `offset` is added to the elements of
/// A. The sums are then too large by `offset` times the sum of B's column; finish() subtracts that.
#pragma once

#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/microkernels.h>

#include <cstdint>

namespace executorch::cpu::int8 {

/// The elements of a subgroup. Every group of weights that share a scale is a whole number of
/// subgroups along k.
constexpr int64_t kSubgroup = 32;
using gemm::kMostRows;
constexpr int kMostColumns = 32, kDotRows = 4, kDotColumns = 4, kMostDotRowsOfAnySet = 12;
/// The most columns, in whole panels, whose sums are finished at once.
constexpr int64_t kFewColumns = 2 * kMostColumns;

/// The current configuration of one thread's tile registers (AMX): the number of rows of A, and the
/// number of quads of a segment that are left over from whole registers. A thread keeps one of
/// these objects while it multiplies tiles.
struct MatrixRegisters {
  int64_t rows = 0, rest = 0;
  void (*release)() = nullptr;  // releases the registers; null until they are configured

  MatrixRegisters() = default;
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;
  ~MatrixRegisters() {
    if (release != nullptr) release();
  }
};

/// Multiplies `height` rows of A by a panel and stores sums[i * columns + j]: int32, or scaled
/// floats if weights are quantized in groups. A row of A consists of segments of 4 * quads
/// elements; segment s begins segments[s] elements after the row. An element is a byte, unless
/// `prepared` (Operand::tile_element).
struct Tile {
  const int8_t* a;
  int64_t lda;
  const int64_t* segments;
  int64_t n_segments, quads;
  const uint8_t* panel;  // [segment, quad, column, 4]
  const float* scales;   // [group, column]
  /// [column], the scales of fixed-point weights (Kernels::fix_scales). Weights are not fixed-point
  /// numbers if this is null or column_scales[0] is 0.
  const float* column_scales;
  int64_t group_quads;
  void* sums;
  bool prepared;
  MatrixRegisters* registers;  // the thread's; used by kernels for AMX only
};

/// How rows of A are converted to the form that microkernels read. For tiles, tile_offset is added
/// to their elements, or they are widened to 16 bits where pairs are multiplied. For dots, they are
/// brought into the order that the elements of B have in a vector, and padded with zeros.
struct Operand {
  int tile_offset;
  int64_t tile_element;  // bytes of a prepared element
  /// Prepares the first n elements of a row for tiles, after an exclusive or of each byte with
  /// `flip`. `to` may be `a` if elements stay bytes. Null if tiles take rows as they are. Tiles of
  /// bytes prepare rows themselves, again for each panel, unless Tile::prepared says that it is
  /// done. Tiles of nibbles take prepared rows only.
  void (*prepare_tile)(const int8_t* a, uint8_t flip, int64_t n, uint8_t* to);
  int offset;     // what prepare() adds to each element
  int64_t block;  // elements; prepare() pads rows to a multiple of it
  int64_t bytes;  // the size of a prepared block
  /// Prepares a row of k elements for dots, after an exclusive or of each byte with `flip`. Writes
  /// row_bytes(k) bytes.
  void (*prepare)(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to);

  int64_t row_bytes(int64_t k) const { return (k + block - 1) / block * bytes; }
};

/// Multiplies up to kDotRows rows of A by n rows of B and stores sums[i * ld_sums + j]: int32, or
/// scaled floats if weights are quantized in groups.
struct Dots {
  const uint8_t* a;
  int64_t lda;  // bytes
  int64_t m, n, k;
  const uint8_t* b;
  int64_t ldb;                      // bytes
  const BF16* scales;               // [column, group]
  int64_t groups, group_subgroups;  // groups of a column; subgroups of a group
  void* sums;
  int64_t ld_sums;
};

/// `n` pieces of four rows of an image; pieces have `bytes` bytes and begin `step` bytes apart. A
/// null pointer stands for a row of `padding`. No byte at or behind `end` is read. Each byte is
/// exclusive- ored with `flip`.
struct FourRows {
  const int8_t* row[4];
  int64_t n, bytes, step;
  const int8_t* end;
  int8_t padding;
  uint8_t flip;
};

/// How 32-bit sums are requantized to bytes:
///   clamp(round((sum + start) * factor) + zero_point, low, high)
/// A NaN becomes `low`. For unsigned bytes zero_point, low and high are 128 less than their true
/// values, and the highest bit of every byte is flipped at the end (`flip`).
struct ByteFormat {
  int16_t zero_point;
  int8_t low, high;
  uint8_t flip;

  /// The format of the results of `gemm`.
  explicit ByteFormat(const Int8Gemm& gemm);
};
/// How the sums of each column are requantized to bytes: `start` and `factor` of ByteFormat's
/// formula.
struct alignas(64) ColumnRequantization {
  int32_t start[kMostColumns];
  float factor[kMostColumns];

  ColumnRequantization() = default;
  /// For columns [j0, j0 + n) of the product, whose sums are too large by `offset` times the sums
  /// of B's columns; `start` corrects that.
  ColumnRequantization(const Int8Gemm& gemm, int offset, int64_t j0, int64_t n);
};
/// The destination of a tile's bytes: `n` columns of rows that are `ld` bytes apart.
struct ByteResults {
  ByteFormat format;
  const ColumnRequantization* columns;
  uint8_t* to;
  int64_t ld, n;
};

/// Computes `n` output pixels of a depthwise convolution in up to vector_bytes channels:
///   to[i * ld + c] = byte of sum over q of quads[i * step + offsets[q]] * weights[q]
/// The first `bytes` channels of each pixel are stored, `last_bytes` of the last pixel.
/// Channels have the order in which interleave() leaves them, in four vectors. The four vectors of
/// quads are `plane` bytes apart; those of weights, starts and factors follow one another.
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

/// The index of the channel, among those of a vector of bytes, whose quad is the i-th of the v-th
/// of the four vectors that interleave() writes.
inline int64_t interleaved(int64_t v, int64_t i) {
  return i / 4 * 16 + 4 * v + i % 4;
}

inline bool gives_bytes(const Int8Gemm& gemm) {
  return gemm.out == Int8Gemm::Out::Int8 || gemm.out == Int8Gemm::Out::UInt8;
}

/// How sums are dequantized to floats, column by column: the scale, the bias and, to correct zero
/// points, the sum of each column of B. The pointers can be read for whole panels. They point to
/// the product's own arrays where these have enough columns, otherwise to copies.
struct alignas(64) ColumnDequantization {
  const float *scale, *bias, *group_sums;
  const int32_t* sums;

  /// For columns [j0, j0 + n) of the product: whole panels of `width` columns, or a part of one
  /// panel.
  ColumnDequantization(const Int8Gemm& gemm, int64_t j0, int64_t n, int64_t width);
  ColumnDequantization(const ColumnDequantization&) = delete;
  ColumnDequantization& operator=(const ColumnDequantization&) = delete;

 private:
  float scale_[kMostColumns], bias_[kMostColumns], group_sums_[kMostColumns];
  int32_t sums_[kMostColumns];
};

/// Rows [i0, i0 + ni) and columns [j0, j0 + nj) of C from their sums.
struct Results {
  const Int8Gemm* gemm;
  const ColumnDequantization* columns;
  int offset;
  int64_t i0, ni, j0, nj;
  const int32_t* sums;  // floats for weights in groups; rows `ld` apart, readable in whole panels
  int64_t ld;
};

enum Form { kBytes, kNibbles, kGroups };
/// The forms of weights that tests and benchmarks run.
struct WeightForm {
  const char* name;
  bool nibbles;
  int64_t group_size;
};
constexpr WeightForm kWeightForms[] = {{"int8", false, 0},
                                       {"int4", true, 0},
                                       {"int4_groups", true, 32},
                                       {"int4_groups_128", true, 128}};

/// The types of the arguments of a row's functions (microkernels.h). The k that pack_columns()
/// takes is the number of bytes of a column, not of its elements; it writes whole vectors.
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
  Row rows[3];        // by Form
  int most_dot_rows;  // the most rows of A for which dots are faster than packing panels for tiles
  int rows_in_l1;     // the most rows of a tile whose panel is to stay in L1 beside it
  int least_block_rows;  // the least rows of A that repay packing each panel for them
  int64_t vector_bytes;
  /// Converts the scales of n columns, with `groups` scales each, to to[group, column].
  void (*pack_scales)(const BF16* from, int64_t groups, int64_t n, float* to);
  /// Null unless tiles can multiply weights in groups as 16-bit fixed-point numbers, in multiples
  /// of column_scales[column]. Replaces packed scales by the integer factors of weights and stores
  /// the column scales. If the scales of some column are too far apart for that, stores 0 as
  /// column_scales[0] and leaves the scales.
  void (*fix_scales)(float* scales, int64_t groups, float* column_scales);
  /// Packs `bytes` bytes of each of n columns as such fixed-point numbers, beginning at quad
  /// `first` of `quads`: panel[half, quad, plane, column, 4]. Each half has half of the columns.
  /// Plane 0 holds the high bytes, plane 1 the low bytes, which are unsigned.
  void (*pack_fixed)(const uint8_t* b, int64_t ldb, int64_t bytes, int64_t n, int64_t quads,
                     int64_t first, int64_t group_quads, const float* factors, uint8_t* panel);
  /// byte_tile[height] is the tile of int8 weights with results in bytes. Tile::sums is memory that
  /// it may use.
  void (*byte_tile[kMostRows + 1])(const Tile&, const ByteResults&);
  /// Requantizes the sums of `rows` rows, `ld` elements apart, to bytes.
  void (*finish_bytes)(const int32_t* sums, int64_t ld, int64_t rows, const ByteResults&);
  /// Interleaves four rows to quads. Piece i is written at to + i * to_step: four vectors, `plane`
  /// bytes apart, for each vector of channels. Whole vectors are written.
  void (*interleave)(const FourRows&, uint8_t* to, int64_t to_step, int64_t plane);
  void (*depthwise)(const DepthwiseTile&);
  int depthwise_offset;
};

}  // namespace executorch::cpu::int8
