/// The two products of attention by matrix registers, where the machine has them
/// (gemm/split_kernels.h): keys times queries, and transposed values times probabilities.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_SPLIT_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_SPLIT_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_SPLIT_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_SPLIT_INL_H_
#endif
// clang-format on

#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/nn/attention_tiles-inl.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Multiplies tiles of queries by a block of keys and values, all split into parts of bfloat16. The
/// functions that multiply return false if a sum is not finite, because infinities and NaNs have no
/// parts; the caller then multiplies the floats. K is the type of keys and values.
template <class K>
class SplitProducts {
 public:
  /// Whether the machine has these registers, and splitting costs less than they save: a block is
  /// split once for all tiles, of which there must be several.
  static bool Pays(const Attention& a) {
    constexpr int64_t kLeastQueries = 4 * kMaxVectors * kLanes, kLeast = 32;
    return kLanes == gemm::kBlockWidth && RowKernels().multiply_by_floats != nullptr &&
           a.queries >= kLeastQueries && a.keys >= kLeast && a.dim >= kLeast &&
           a.value_dim >= kLeast;
  }
  /// The floats that hold the parts of a tile's queries; 0 unless splitting pays.
  static Size QuerySize(const Attention& a) {
    if (!Pays(a)) return 0;
    return Size(gemm::ceil_div(a.dim, gemm::kBlockDepth)) * kMaxVectors * kPanelFloats;
  }
  /// The floats that everything else takes; 0 unless splitting pays.
  static Size ScratchSize(const Attention& a) {
    if (!Pays(a)) return 0;
    const Size tiles = ValueTiles(a);
    const Size blocks_of_rows =
        Size(gemm::ceil_div(a.dim, gemm::kBlockDepth)) * kKeyTiles + tiles * kKeyBlocks;
    return blocks_of_rows * kRowFloats + kMaxVectors * kKeyBlocks * kPanelFloats +
           tiles * gemm::kBlockWidth * (kKeys + kMaxVectors * kLanes);
  }

  /// `buffer` has ScratchSize(a) floats on a cache line's boundary.
  SplitProducts(const Attention& a, float* buffer)
      : dim_(a.dim),
        value_dim_(a.value_dim),
        dim_blocks_(gemm::ceil_div(a.dim, gemm::kBlockDepth)),
        value_tiles_(ValueTiles(a)) {
    const auto take = [&buffer](int64_t n) {
      float* const result = buffer;
      buffer += n;
      return result;
    };
    keys_ = Bytes(take(kKeyTiles * dim_blocks_ * kRowFloats));
    values_ = Bytes(take(value_tiles_ * kKeyBlocks * kRowFloats));
    probabilities_ = Bytes(take(kMaxVectors * kKeyBlocks * kPanelFloats));
    transposed_ = take(value_tiles_ * gemm::kBlockWidth * kKeys);
    sums_ = take(value_tiles_ * gemm::kBlockWidth * kMaxVectors * kLanes);
  }

  /// Splits a tile's queries. Its `q_parts` has QuerySize() floats.
  void SplitQueries(const Tile& tile) const {
    SplitPanel(tile.q, dim_, tile.vectors, Bytes(tile.q_parts));
  }

  /// Splits n keys and values, the first rows of the copies in `block`. These have kKeys rows of
  /// whole vectors.
  void SplitBlock(const Block& block, int64_t n) {
    SplitRows(block.k, block.k_row, n, dim_, kKeyTiles, keys_);
    Transpose(block.v, block.v_row, kKeys, block.v_row, transposed_, kKeys);
    SplitRows(transposed_, kKeys, value_dim_, n, value_tiles_, values_);
    n_blocks_ = gemm::ceil_div(n, gemm::kBlockDepth);
  }

  /// s[j, i] = dot product of key j and query i, for the first n keys of the block. Scores of later
  /// keys are undefined.
  bool Scores(const Tile& tile, int64_t n, float* s) const {
    Multiply(keys_, EvenTiles(n), Bytes(tile.q_parts), tile.vectors, dim_blocks_, s);
    return Kernels().are_finite(s, n, tile.width());
  }

  /// o[c, i] = alpha[i] o[c, i] + sum_j v[j, c] p[j, i] over the first n keys of the block. `p` has
  /// room for kKeys rows; rows from the n-th on are overwritten.
  bool Update(const Tile& tile, int64_t n, const float* alpha, float* p) const {
    const int64_t width = tile.width();
    std::fill(p + n * width, p + n_blocks_ * gemm::kBlockDepth * width, 0.0f);
    SplitPanel(p, n_blocks_ * gemm::kBlockDepth, tile.vectors, probabilities_);
    Multiply(values_, value_tiles_, probabilities_, tile.vectors, n_blocks_, sums_);
    if (!Kernels().are_finite(sums_, value_dim_, width)) return false;
    const Floats d;
    for (int64_t at = 0; at < value_dim_ * width; at += width) {
      for (int64_t i = 0; i < width; i += kLanes) {
        float* const o = tile.o + at + i;
        const auto sum = hn::LoadU(d, sums_ + at + i);
        hn::StoreU(hn::MulAdd(hn::LoadU(d, o), hn::LoadU(d, alpha + i), sum), d, o);
      }
    }
    return true;
  }

 private:
  /// Keys and values are rows. Those of 16 bits are the sums of two parts; queries and
  /// probabilities, the columns of panels, are floats.
  static constexpr int kRowParts = sizeof(K) == sizeof(float) ? 3 : 2;
  static constexpr int64_t kPartFloats = gemm::kPartBytes / static_cast<int64_t>(sizeof(float));
  /// The floats that a block's parts take.
  static constexpr int64_t kRowFloats = kRowParts * kPartFloats;
  static constexpr int64_t kPanelFloats = gemm::kParts<float> * kPartFloats;
  /// The tiles of a block of keys as rows, and the blocks along k of its values' columns.
  static constexpr int64_t kKeyTiles = kKeys / gemm::kBlockWidth;
  static constexpr int64_t kKeyBlocks = kKeys / gemm::kBlockDepth;
  static_assert(kKeys % gemm::kBlockDepth == 0 && kKeyTiles % 2 == 0);

  static const gemm::SplitKernels& Kernels() { return gemm::kernels().split[gemm::kParts<float>]; }
  static const gemm::SplitKernels& RowKernels() { return gemm::kernels().split[kRowParts]; }
  static uint8_t* Bytes(float* parts) { return reinterpret_cast<uint8_t*>(parts); }
  /// The tiles of so many rows. They are multiplied two at a time.
  static int64_t EvenTiles(int64_t rows) {
    return gemm::round_up(gemm::ceil_div(rows, gemm::kBlockWidth), 2);
  }
  static int64_t ValueTiles(const Attention& a) { return EvenTiles(a.value_dim); }

  static void SplitPanel(const float* from, int64_t k, int64_t vectors, uint8_t* to) {
    gemm::PanelSplit panel{from, false, vectors * gemm::kBlockWidth, k, vectors, to};
    Kernels().split_rest(panel);
  }
  static void SplitRows(const float* from, int64_t ld, int64_t rows, int64_t k, int64_t tiles,
                        uint8_t* to) {
    const int64_t tile_bytes = gemm::ceil_div(k, gemm::kBlockDepth) * kRowParts * gemm::kPartBytes;
    for (int64_t t = 0; t < tiles; ++t, from += gemm::kBlockWidth * ld, to += tile_bytes) {
      const int64_t n = std::clamp<int64_t>(rows - t * gemm::kBlockWidth, 0, gemm::kBlockWidth);
      RowKernels().split_rows(from, false, ld, n, k, gemm::kBlockWidth, to);
    }
  }
  static void Multiply(const uint8_t* a, int64_t tiles, const uint8_t* b, int64_t vectors,
                       int64_t blocks, float* sums) {
    gemm::PanelSplit none;
    RowKernels().multiply_by_floats({a, tiles, gemm::kBlockWidth, b, vectors, blocks, sums, &none});
  }

  const int64_t dim_, value_dim_, dim_blocks_, value_tiles_;
  int64_t n_blocks_ = 0;  // of the values that are split, along the keys
  uint8_t *keys_, *values_, *probabilities_;
  float* transposed_;  // [value_dim][kKeys]
  float* sums_;        // [value_dim][width]
};

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
