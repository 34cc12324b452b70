/// Multiplies a tile of queries by a block of keys and values. The lanes of a vector are queries;
/// see attention-inl.h.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_TILES_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_TILES_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_TILES_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/attention_rows-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A tile of kMaxVectors x kTileRows sums fills the registers: 24 of 32, or 12 of 16.
constexpr int64_t kMaxVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;
constexpr int64_t kTileRows = 6;

/// c[r, :] = sum_p b[r, p] a[p, :] for kRows rows of b; `a` and `c` are kVectors vectors wide.
template <int64_t kRows, int64_t kVectors>
HWY_INLINE void ScoreTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t b_row,
                          int64_t n, float* HWY_RESTRICT c) {
  const Floats d;
  constexpr int64_t kWidth = kVectors * kLanes;
  hn::Vec<Floats> sum[kRows][kVectors];
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < n; ++p) {
    hn::Vec<Floats> x[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, a + p * kWidth + v * kLanes);
    for (int64_t r = 0; r < kRows; ++r) {
      const auto y = hn::Set(d, b[r * b_row + p]);
      for (int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(y, x[v], sum[r][v]);
      Use(y);
    }
    for (int64_t v = 0; v < kVectors; ++v) Use(x[v]);
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * kWidth + v * kLanes);
  }
}

/// c[r, :] = alpha[:] c[r, :] + sum_p b[p, r] a[p, :] for kRows columns of b.
template <int64_t kRows, int64_t kVectors>
HWY_INLINE void ValueTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t b_row,
                          int64_t n, const float* HWY_RESTRICT alpha, float* HWY_RESTRICT c) {
  const Floats d;
  constexpr int64_t kWidth = kVectors * kLanes;
  hn::Vec<Floats> sum[kRows][kVectors];
  for (int64_t v = 0; v < kVectors; ++v) {
    const auto factor = hn::LoadU(d, alpha + v * kLanes);
    for (int64_t r = 0; r < kRows; ++r) {
      sum[r][v] = hn::Mul(hn::LoadU(d, c + r * kWidth + v * kLanes), factor);
    }
  }
  for (int64_t p = 0; p < n; ++p) {
    hn::Vec<Floats> x[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, a + p * kWidth + v * kLanes);
    for (int64_t r = 0; r < kRows; ++r) {
      const auto y = hn::Set(d, b[p * b_row + r]);
      for (int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(y, x[v], sum[r][v]);
      Use(y);
    }
    for (int64_t v = 0; v < kVectors; ++v) Use(x[v]);
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * kWidth + v * kLanes);
  }
}

/// A tile's share of a block of keys: n keys, dense copies of k and v.
struct Block {
  const float* k;
  const float* v;
  int64_t k_row, v_row;
  int64_t dim, value_dim;  // value_dim is even: v is padded
};

/// Replaces scores by probabilities, updates maxima and sums, and writes the factors that rescale
/// the tile's earlier results to alpha.
template <int64_t kVectors>
HWY_NOINLINE void Probabilities(float* HWY_RESTRICT s, int64_t n, float* HWY_RESTRICT max,
                                float* HWY_RESTRICT sum, float* HWY_RESTRICT alpha) {
  const Floats d;
  constexpr int64_t kWidth = kVectors * kLanes;
  hn::Vec<Floats> m[kVectors], total[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) m[v] = hn::LoadU(d, max + v * kLanes);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t v = 0; v < kVectors; ++v) {
      m[v] = hn::Max(m[v], hn::LoadU(d, s + j * kWidth + v * kLanes));
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) {
    const auto before = hn::LoadU(d, max + v * kLanes);
    hn::StoreU(m[v], d, max + v * kLanes);
    // If all keys were hidden so far, the maximum is -infinity; any other number serves in its
    // place.
    m[v] = hn::IfThenZeroElse(hn::Eq(m[v], hn::Set(d, -kInfinity)), m[v]);
    const auto factor = Exp2OfNegative(d, hn::Sub(before, m[v]));
    hn::StoreU(factor, d, alpha + v * kLanes);
    total[v] = hn::Mul(factor, hn::LoadU(d, sum + v * kLanes));
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t v = 0; v < kVectors; ++v) {
      float* at = s + j * kWidth + v * kLanes;
      const auto p = Exp2OfNegative(d, hn::Sub(hn::LoadU(d, at), m[v]));
      hn::StoreU(p, d, at);
      total[v] = hn::Add(total[v], p);
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, sum + v * kLanes);
}

/// The queries of one tile, and their results so far.
struct Tile {
  float* q;                      // [dim][width], scaled
  float* q_parts;                // the same, split (attention_split-inl.h)
  float* o;                      // [padded value_dim][width]
  float* max;                    // [width]
  float* sum;                    // [width]
  int64_t first = 0, count = 0;  // queries
  int64_t vectors = 1;
  int64_t width() const { return vectors * kLanes; }
};

/// Calls f with the number of vectors of a tile as a compile-time constant.
template <class F>
HWY_INLINE void WithVectors(int64_t vectors, const F& f) {
  if (vectors == 1) {
    f(std::integral_constant<int64_t, 1>());
  } else if (vectors == 2) {
    f(std::integral_constant<int64_t, 2>());
  } else {
    f(std::integral_constant<int64_t, kMaxVectors>());
  }
}

/// s[j, :] = dot products of key j and the tile's queries, for n keys, rounded up to whole tiles.
template <int64_t kVectors>
HWY_NOINLINE void Scores(const Tile& tile, const Block& block, int64_t n, float* HWY_RESTRICT s) {
  for (int64_t j = 0; j < n; j += kTileRows) {
    ScoreTile<kTileRows, kVectors>(tile.q, block.k + j * block.k_row, block.k_row, block.dim,
                                   s + j * kVectors * kLanes);
  }
}

/// o[c, :] = alpha[:] o[c, :] + sum_j v[j, c] p[j, :] over n keys.
template <int64_t kVectors>
HWY_NOINLINE void Update(const Tile& tile, const Block& block, int64_t n,
                         const float* HWY_RESTRICT alpha, const float* HWY_RESTRICT p) {
  constexpr int64_t kWidth = kVectors * kLanes;
  int64_t c = 0;
  for (; c + kTileRows <= block.value_dim; c += kTileRows) {
    ValueTile<kTileRows, kVectors>(p, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
  }
  if (c + 4 <= block.value_dim) {
    ValueTile<4, kVectors>(p, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
    c += 4;
  }
  if (c < block.value_dim) {
    ValueTile<2, kVectors>(p, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
  }
}

/// dst[c][r] = src[r][c] for r < rows, c < columns, which are multiples of TransposeColumns()'
/// sizes.
inline void Transpose(const float* src, int64_t src_row, int64_t rows, int64_t columns, float* dst,
                      int64_t dst_row) {
  const Floats d;
  constexpr int64_t kStep = static_cast<int64_t>(kTransposedColumns<Floats>);
  for (int64_t r = 0; r < rows; r += kLanes) {
    for (int64_t c = 0; c < columns; c += kStep) {
      TransposeColumns(d, src + r * src_row + c, src_row, dst + c * dst_row + r, dst_row);
    }
  }
}

/// s[j][i] += mask[i][j]; `scratch` has room for kKeys x width.
inline void AddMask(const float* mask, bool one_row, int64_t width, int64_t n,
                    float* HWY_RESTRICT scratch, float* HWY_RESTRICT s) {
  const Floats d;
  if (!one_row) Transpose(mask, kKeys, width, RoundUp(n, 4), scratch, width);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < width; i += kLanes) {
      const auto m = one_row ? hn::Set(d, mask[j]) : hn::LoadU(d, scratch + j * width + i);
      float* at = s + j * width + i;
      hn::StoreU(hn::Add(hn::LoadU(d, at), m), d, at);
    }
  }
}

/// Hides key j of the tile's query i where j > i + offset; `offset` counts from the tile's first
/// query and the block's first key.
inline void HideFuture(int64_t offset, int64_t width, int64_t n, float* HWY_RESTRICT s) {
  const Floats d;
  const auto hidden = hn::Set(d, -kInfinity);
  for (int64_t j = std::max<int64_t>(offset + 1, 0); j < n; ++j) {
    const auto first_visible = hn::Set(d, static_cast<float>(j - offset));
    for (int64_t i = 0; i < width; i += kLanes) {
      float* at = s + j * width + i;
      const auto past = hn::Lt(hn::Iota(d, static_cast<float>(i)), first_visible);
      hn::StoreU(hn::IfThenElse(past, hidden, hn::LoadU(d, at)), d, at);
    }
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
