/// Attention without the matrix of scores in memory.
///
/// Vectors run along queries. A tile of queries is transposed once (q^T, [dim][queries]), so that
/// both products are outer products over elements of k and v where they lie:
///   s^T[j, :] = sum_d k[j, d] * q^T[d, :]        o^T[c, :] += sum_j v[j, c] * p^T[j, :]
/// and the running maximum and sum of a query are a lane: no operation crosses lanes. Scores carry
/// a factor log2(e), so that probabilities are powers of 2.
///
/// A task is kGroup queries of one head; it goes over the keys in blocks of kKeys that it brings
/// into a dense float copy once for all its tiles. A few queries per key head (decoding) go another
/// way, with vectors along dim, that reads each key and value once.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/attention.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
/// A tile of kMaxVectors x kTileRows sums fills the registers: 24 of 32, or 12 of 16.
constexpr int64_t kMaxVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;
constexpr int64_t kTileRows = 6;
/// Probabilities of a block of keys, 64 queries wide, take half of a first-level cache.
constexpr int64_t kKeys = 96;
/// Queries that share one copy of a block of keys.
constexpr int64_t kGroup = 256;
constexpr int64_t kCausalGroup = 128;
/// Rows (queries times heads of one key head) that are too few to fill vectors.
constexpr int64_t kFewRows = 6;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;

constexpr int64_t RoundUp(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// dst[0..n) = src[0..n) as float.
template <class T>
HWY_INLINE void CopyRow(const T* HWY_RESTRICT src, int64_t n, float* HWY_RESTRICT dst) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(LoadFloats(d, src + i), d, dst + i);
  const size_t rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, src + i, rest), d, dst + i, rest);
}

template <class T>
HWY_INLINE void StoreRow(const float* HWY_RESTRICT src, int64_t n, T* HWY_RESTRICT dst) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreFloats(hn::LoadU(d, src + i), d, dst + i);
  const size_t rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFloatsN(LoadFloatsN(d, src + i, rest), d, dst + i, rest);
}

/// What a mask holds for some rows of queries and a block of keys.
enum class Seen : uint8_t { All, None, Some };

/// Row i of the mask at dst + i * kKeys, as numbers to add.
class MaskBlock {
 public:
  MaskBlock(const Attention& a, int64_t b, int64_t h) : a_(a) {
    offset_ = b * a.mask_batch_stride + h * a.mask_head_stride;
  }

  /// Reads `rows` x `n` elements from (row, key); fewer rows are read where all are one.
  Seen read(int64_t row, int64_t rows, int64_t key, int64_t n, float* HWY_RESTRICT dst) {
    if (a_.mask_kind == Attention::Mask::None) return Seen::All;
    one_row = a_.mask_row_stride == 0;
    bool all = true, none = true;
    for (int64_t i = 0; i < (one_row ? 1 : rows); ++i) {
      const int64_t at = offset_ + (row + i) * a_.mask_row_stride + key * a_.mask_col_stride;
      float* to = dst + i * kKeys;
      switch (a_.mask_kind) {
        case Attention::Mask::F32:
          Row(static_cast<const float*>(a_.mask) + at, n, to, all, none);
          break;
        case Attention::Mask::F16:
          Row(static_cast<const F16*>(a_.mask) + at, n, to, all, none);
          break;
        case Attention::Mask::BF16:
          Row(static_cast<const BF16*>(a_.mask) + at, n, to, all, none);
          break;
        default:
          BoolRow(static_cast<const uint8_t*>(a_.mask) + at, n, to, all, none);
      }
    }
    return all ? Seen::All : none ? Seen::None : Seen::Some;
  }

  bool one_row = false;

 private:
  template <class T>
  void Row(const T* HWY_RESTRICT src, int64_t n, float* HWY_RESTRICT dst, bool& all, bool& none) {
    const Floats d;
    T strided[kKeys];
    if (a_.mask_col_stride != 1) {
      for (int64_t j = 0; j < n; ++j) strided[j] = src[j * a_.mask_col_stride];
      src = strided;
    }
    const auto zero = hn::Zero(d), lowest = hn::Set(d, -kInfinity);
    const auto log2e = hn::Set(d, kLog2E), finite = hn::Set(d, -std::numeric_limits<float>::max());
    for (int64_t j = 0; j < n; j += kLanes) {
      const size_t m = static_cast<size_t>(std::min(kLanes, n - j));
      const auto v =
          m == static_cast<size_t>(kLanes) ? LoadFloats(d, src + j) : LoadFloatsN(d, src + j, m);
      const auto here = hn::FirstN(d, m);
      const auto hidden = hn::Eq(v, lowest);
      all = all && hn::AllFalse(d, hn::And(here, hn::Ne(v, zero)));
      none = none && hn::AllFalse(d, hn::AndNot(hidden, here));
      // The lowest finite number hides a key as well, but not from a row of its kind.
      const auto scaled = KeepNaN(v, hn::Max(hn::Mul(v, log2e), finite));
      hn::StoreU(hn::IfThenElse(hidden, lowest, scaled), d, dst + j);
    }
  }

  void BoolRow(const uint8_t* src, int64_t n, float* HWY_RESTRICT dst, bool& all, bool& none) {
    for (int64_t j = 0; j < n; ++j) {
      const bool visible = src[j * a_.mask_col_stride] != 0;
      all = all && visible;
      none = none && !visible;
      dst[j] = visible ? 0.0f : -kInfinity;
    }
  }

  const Attention& a_;
  int64_t offset_;
};

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
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], d, c + r * kWidth + v * kLanes);
    }
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
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], d, c + r * kWidth + v * kLanes);
    }
  }
}

/// A tile's share of a block of keys: n keys, dense copies of k and v.
struct Block {
  const float* k;
  const float* v;
  int64_t k_row, v_row;
  int64_t dim, value_dim;  // value_dim is even: v is padded
};

/// Scores to probabilities in place; rescales the tile's sums. alpha: what the sums so far are
/// worth now.
template <int64_t kVectors>
HWY_INLINE void Probabilities(float* HWY_RESTRICT s, int64_t n, float* HWY_RESTRICT max,
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
    // Where all was hidden so far, any reference serves but -infinity.
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

/// Queries of one tile and what is known of their result so far.
struct Tile {
  float* q;                      // [dim][width], scaled
  float* o;                      // [padded value_dim][width]
  float* max;                    // [width]
  float* sum;                    // [width]
  int64_t first = 0, count = 0;  // queries
  int64_t vectors = 1;
  int64_t width() const { return vectors * kLanes; }
};

/// Calls f with a constant: the number of vectors of a tile.
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

template <int64_t kVectors>
HWY_NOINLINE void Scores(const Tile& tile, const Block& block, int64_t n, float* HWY_RESTRICT s) {
  for (int64_t j = 0; j < n; j += kTileRows) {
    ScoreTile<kTileRows, kVectors>(tile.q, block.k + j * block.k_row, block.k_row, block.dim,
                                   s + j * kVectors * kLanes);
  }
}

template <int64_t kVectors>
HWY_NOINLINE void Update(const Tile& tile, const Block& block, int64_t n, float* HWY_RESTRICT s) {
  constexpr int64_t kWidth = kVectors * kLanes;
  HWY_ALIGN float alpha[kWidth];
  Probabilities<kVectors>(s, n, tile.max, tile.sum, alpha);
  int64_t c = 0;
  for (; c + kTileRows <= block.value_dim; c += kTileRows) {
    ValueTile<kTileRows, kVectors>(s, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
  }
  if (c + 4 <= block.value_dim) {
    ValueTile<4, kVectors>(s, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
    c += 4;
  }
  if (c < block.value_dim) {
    ValueTile<2, kVectors>(s, block.v + c, block.v_row, n, alpha, tile.o + c * kWidth);
  }
}

/// dst[c][r] = src[r][c] for r < rows, c < columns, both multiples of what TransposeColumns does.
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

template <class T>
class HeadTask {
 public:
  HeadTask(const Attention& a, int64_t b, int64_t h)
      : a_(a),
        q_(Rows(a.q, b, h)),
        k_(Rows(a.k, b, h / (a.heads / a.kv_heads))),
        v_(Rows(a.v, b, h / (a.heads / a.kv_heads))),
        out_(static_cast<T*>(a.out) + b * a.out_batch_stride + h * a.out_head_stride),
        mask_(a, b, h) {}

  /// Queries [first, first + count), count <= kGroup.
  void run(int64_t first, int64_t count) {
    Reserve();
    LoadQueries(first, count);
    const int64_t keys =
        a_.causal ? std::clamp(first + count + a_.causal_offset, int64_t{0}, a_.keys) : a_.keys;
    for (int64_t key = 0; key < keys; key += kKeys) {
      const int64_t n = std::min(kKeys, keys - key);
      copied_ = false;
      for (int64_t t = 0; t < n_tiles_; ++t) Visit(tiles_[t], key, n);
    }
    for (int64_t t = 0; t < n_tiles_; ++t) Finish(tiles_[t]);
  }

 private:
  static constexpr int64_t kMaxWidth = kMaxVectors * kLanes;
  static constexpr int64_t kMaxTiles = (kGroup + kMaxWidth - 1) / kMaxWidth;

  static const T* Rows(const AttentionRows& rows, int64_t b, int64_t h) {
    return static_cast<const T*>(rows.data) + b * rows.batch_stride + h * rows.head_stride;
  }

  void Reserve() {
    static thread_local Workspace workspace;
    k_row_ = RoundUp(a_.dim, kLanes);
    v_row_ = RoundUp(a_.value_dim, kLanes);
    const int64_t wide = std::max(k_row_, v_row_);
    const int64_t per_tile = kMaxWidth * (k_row_ + v_row_ + 2);
    float* at = workspace.floats(static_cast<size_t>(kKeys * (k_row_ + v_row_ + kMaxWidth) +
                                                     kMaxWidth * std::max(wide, kKeys) +
                                                     kMaxWidth * kKeys + kMaxTiles * per_tile));
    const auto take = [&at](int64_t n) {
      float* result = at;
      at += n;
      return result;
    };
    k_copy_ = take(kKeys * k_row_);
    v_copy_ = take(kKeys * v_row_);
    s_ = take(kKeys * kMaxWidth);
    rows_ = take(kMaxWidth * std::max(wide, kKeys));
    columns_ = take(kMaxWidth * kKeys);
    for (Tile& tile : tiles_) {
      tile.q = take(kMaxWidth * k_row_);
      tile.o = take(kMaxWidth * v_row_);
      tile.max = take(kMaxWidth);
      tile.sum = take(kMaxWidth);
    }
  }

  void LoadQueries(int64_t first, int64_t count) {
    const Floats d;
    const auto scale = hn::Set(d, a_.scale * kLog2E);
    n_tiles_ = 0;
    for (int64_t i = 0; i < count;) {
      Tile& tile = tiles_[n_tiles_++];
      tile.first = first + i;
      tile.count = std::min(kMaxWidth, count - i);
      tile.vectors = tile.count <= kLanes ? 1 : tile.count <= 2 * kLanes ? 2 : kMaxVectors;
      const int64_t width = tile.width();
      for (int64_t r = 0; r < width; ++r) {
        float* row = rows_ + r * k_row_;
        std::fill_n(row, k_row_, 0.0f);
        if (r < tile.count) CopyRow(q_ + (tile.first + r) * a_.q.row_stride, a_.dim, row);
      }
      Transpose(rows_, k_row_, width, k_row_, tile.q, width);
      for (int64_t p = 0; p < a_.dim * width; p += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(d, tile.q + p), scale), d, tile.q + p);
      }
      std::fill_n(tile.o, width * v_row_, 0.0f);
      std::fill_n(tile.max, width, -kInfinity);
      std::fill_n(tile.sum, width, 0.0f);
      i += tile.count;
    }
  }

  /// Dense copies of n keys and values; keys are padded to whole tiles, values to an even dim.
  void CopyBlock(int64_t key, int64_t n) {
    if (copied_) return;
    copied_ = true;
    for (int64_t j = 0; j < n; ++j) {
      CopyRow(k_ + (key + j) * a_.k.row_stride, a_.dim, k_copy_ + j * k_row_);
      float* v = v_copy_ + j * v_row_;
      CopyRow(v_ + (key + j) * a_.v.row_stride, a_.value_dim, v);
      if (a_.value_dim % 2 != 0) v[a_.value_dim] = 0;
    }
    std::fill(k_copy_ + n * k_row_, k_copy_ + RoundUp(n, kTileRows) * k_row_, 0.0f);
  }

  void Visit(const Tile& tile, int64_t key, int64_t n) {
    const int64_t offset = tile.first + a_.causal_offset - key;
    if (a_.causal) n = std::min(n, offset + tile.count);
    if (n <= 0) return;
    const Seen seen = mask_.read(tile.first, tile.count, key, n, rows_);
    if (seen == Seen::None) return;
    CopyBlock(key, block_keys(key));
    const Block block = {k_copy_, v_copy_, k_row_, v_row_, a_.dim, RoundUp(a_.value_dim, 2)};
    const int64_t width = tile.width();
    WithVectors(tile.vectors, [&](auto vectors) HWY_ATTR {
      Scores<decltype(vectors)::value>(tile, block, n, s_);
      if (seen == Seen::Some) AddMask(rows_, mask_.one_row, width, n, columns_, s_);
      if (a_.causal) HideFuture(offset, width, n, s_);
      Update<decltype(vectors)::value>(tile, block, n, s_);
    });
  }
  int64_t block_keys(int64_t key) const { return std::min(kKeys, a_.keys - key); }

  void Finish(const Tile& tile) {
    const Floats d;
    const int64_t width = tile.width();
    const auto none = hn::Set(d, a_.safe ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    for (int64_t i = 0; i < width; i += kLanes) {
      const auto sum = hn::LoadU(d, tile.sum + i);
      const auto share = hn::Div(hn::Set(d, 1.0f), sum);
      const auto factor = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), none, share);
      for (int64_t c = 0; c < a_.value_dim; ++c) {
        float* at = tile.o + c * width + i;
        hn::StoreU(hn::Mul(hn::LoadU(d, at), factor), d, at);
      }
    }
    Transpose(tile.o, width, v_row_, width, rows_, v_row_);
    for (int64_t r = 0; r < tile.count; ++r) {
      StoreRow(rows_ + r * v_row_, a_.value_dim, out_ + (tile.first + r) * a_.out_row_stride);
    }
  }

  const Attention& a_;
  const T *q_, *k_, *v_;
  T* out_;
  MaskBlock mask_;
  int64_t k_row_ = 0, v_row_ = 0;  // of the copies, in floats
  float *k_copy_ = nullptr, *v_copy_ = nullptr;
  float* s_ = nullptr;        // [kKeys][width] scores, then probabilities
  float* rows_ = nullptr;     // queries, results or the mask by rows
  float* columns_ = nullptr;  // the mask by columns
  Tile tiles_[kMaxTiles];
  int64_t n_tiles_ = 0;
  bool copied_ = false;
};

/// The queries of one key head, at most kFewRows rows: query i of the head's g-th query head.
template <class T>
class FewRowsTask {
 public:
  FewRowsTask(const Attention& a, int64_t b, int64_t kv_head)
      : a_(a), b_(b), kv_head_(kv_head), group_(a.heads / a.kv_heads) {
    static thread_local Workspace workspace;
    q_row_ = RoundUp(a.dim, kLanes);
    o_row_ = RoundUp(a.value_dim, kLanes);
    q_ = workspace.floats(static_cast<size_t>(kFewRows * (q_row_ + o_row_)));
    o_ = q_ + kFewRows * q_row_;
  }

  void run() {
    const Floats d;
    const int64_t rows = group_ * a_.queries;
    for (int64_t r = 0; r < rows; ++r) {
      float* q = q_ + r * q_row_;
      std::fill_n(q, q_row_, 0.0f);
      CopyRow(At<const T>(a_.q.data, a_.q.batch_stride, a_.q.head_stride, a_.q.row_stride, r),
              a_.dim, q);
      for (int64_t p = 0; p < a_.dim; ++p) q[p] *= a_.scale * kLog2E;
      std::fill_n(o_ + r * o_row_, o_row_, 0.0f);
      max_[r] = -kInfinity;
      sum_[r] = 0;
    }
    for (int64_t key = 0; key < a_.keys; key += kKeys) {
      const int64_t n = std::min(kKeys, a_.keys - key);
      for (int64_t r = 0; r < rows; ++r) Visit(r, key, n);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const float none = a_.safe ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      const auto factor = hn::Set(d, sum_[r] == 0 ? none : 1 / sum_[r]);
      float* o = o_ + r * o_row_;
      for (int64_t c = 0; c < o_row_; c += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(d, o + c), factor), d, o + c);
      }
      StoreRow(o, a_.value_dim,
               At<T>(a_.out, a_.out_batch_stride, a_.out_head_stride, a_.out_row_stride, r));
    }
  }

 private:
  template <class U, class P>
  U* At(P data, int64_t batch, int64_t head, int64_t row, int64_t r) const {
    const int64_t h = kv_head_ * group_ + r / a_.queries;
    return static_cast<U*>(data) + b_ * batch + h * head + r % a_.queries * row;
  }

  /// Brings what is needed some rows later.
  static HWY_INLINE void Prefetch(const T* row, int64_t n) {
    for (int64_t p = 0; p < n; p += 64 / static_cast<int64_t>(sizeof(T))) hwy::Prefetch(row + p);
  }
  static constexpr int64_t kAhead = 16;

  float Dot(const T* HWY_RESTRICT k, const float* HWY_RESTRICT q) const {
    const Floats d;
    auto s0 = hn::Zero(d), s1 = s0;
    int64_t p = 0;
    for (; p + 2 * kLanes <= a_.dim; p += 2 * kLanes) {
      s0 = hn::MulAdd(LoadFloats(d, k + p), hn::LoadU(d, q + p), s0);
      s1 = hn::MulAdd(LoadFloats(d, k + p + kLanes), hn::LoadU(d, q + p + kLanes), s1);
    }
    for (; p < a_.dim; p += kLanes) {
      const size_t m = static_cast<size_t>(std::min(kLanes, a_.dim - p));
      s0 = hn::MulAdd(LoadFloatsN(d, k + p, m), hn::LoadU(d, q + p), s0);
    }
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  }

  void Visit(int64_t r, int64_t key, int64_t n) {
    const Floats d;
    const int64_t h = kv_head_ * group_ + r / a_.queries, i = r % a_.queries;
    if (a_.causal) n = std::min(n, i + a_.causal_offset + 1 - key);
    if (n <= 0) return;
    HWY_ALIGN float s[kKeys + kLanes], mask[kKeys + kLanes];
    const Seen seen = MaskBlock(a_, b_, h).read(i, 1, key, n, mask);
    if (seen == Seen::None) return;

    const T* k = static_cast<const T*>(a_.k.data) + b_ * a_.k.batch_stride +
                 kv_head_ * a_.k.head_stride + key * a_.k.row_stride;
    for (int64_t j = 0; j < n; ++j) {
      if (r == 0) Prefetch(k + (j + kAhead) * a_.k.row_stride, a_.dim);
      s[j] = Dot(k + j * a_.k.row_stride, q_ + r * q_row_);
      if (seen == Seen::Some) s[j] += mask[j];
    }
    float max = max_[r];
    for (int64_t j = 0; j < n; ++j) max = s[j] > max ? s[j] : max;
    const float reference = max == -kInfinity ? 0.0f : max;
    for (int64_t j = n; j < RoundUp(n, kLanes); ++j) s[j] = -kInfinity;
    auto total = hn::Zero(d);
    for (int64_t j = 0; j < n; j += kLanes) {
      const auto p = Exp2OfNegative(d, hn::Sub(hn::LoadU(d, s + j), hn::Set(d, reference)));
      hn::StoreU(p, d, s + j);
      total = hn::Add(total, p);
    }
    const float alpha = hn::GetLane(Exp2OfNegative(d, hn::Set(d, max_[r] - reference)));
    max_[r] = max;
    sum_[r] = sum_[r] * alpha + hn::GetLane(hn::SumOfLanes(d, total));

    const T* v = static_cast<const T*>(a_.v.data) + b_ * a_.v.batch_stride +
                 kv_head_ * a_.v.head_stride + key * a_.v.row_stride;
    Accumulate(v, s, n, alpha, r == 0, o_ + r * o_row_);
  }

  /// o = alpha o + sum_j p[j] v[j]
  void Accumulate(const T* HWY_RESTRICT v, const float* HWY_RESTRICT p, int64_t n, float alpha,
                  bool first, float* HWY_RESTRICT o) const {
    const Floats d;
    constexpr int64_t kWide = 4 * kLanes;
    int64_t c = 0;
    for (; c + kWide <= a_.value_dim; c += kWide) {
      hn::Vec<Floats> sum[4];
      for (int64_t x = 0; x < 4; ++x) {
        sum[x] = hn::Mul(hn::LoadU(d, o + c + x * kLanes), hn::Set(d, alpha));
      }
      for (int64_t j = 0; j < n; ++j) {
        const T* row = v + j * a_.v.row_stride + c;
        if (first) Prefetch(row + kAhead * a_.v.row_stride, kWide);
        for (int64_t x = 0; x < 4; ++x) {
          sum[x] = hn::MulAdd(LoadFloats(d, row + x * kLanes), hn::Set(d, p[j]), sum[x]);
        }
      }
      for (int64_t x = 0; x < 4; ++x) hn::StoreU(sum[x], d, o + c + x * kLanes);
    }
    for (; c < a_.value_dim; c += kLanes) {
      const size_t m = static_cast<size_t>(std::min(kLanes, a_.value_dim - c));
      auto sum = hn::Mul(hn::LoadU(d, o + c), hn::Set(d, alpha));
      for (int64_t j = 0; j < n; ++j) {
        sum = hn::MulAdd(LoadFloatsN(d, v + j * a_.v.row_stride + c, m), hn::Set(d, p[j]), sum);
      }
      hn::StoreU(sum, d, o + c);
    }
  }

  const Attention& a_;
  int64_t b_, kv_head_, group_;
  int64_t q_row_, o_row_;
  float *q_, *o_;
  float max_[kFewRows], sum_[kFewRows];
};

template <class T>
void RunAs(const Attention& a) {
  if (a.queries * (a.heads / a.kv_heads) <= kFewRows) {
    parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        FewRowsTask<T>(a, i / a.kv_heads, i % a.kv_heads).run();
      }
    });
    return;
  }
  const int64_t size = a.causal ? kCausalGroup : kGroup;
  const int64_t groups = (a.queries + size - 1) / size;
  // Late queries see more where the future is hidden: pairs of an early and a late group.
  const int64_t grain = a.causal ? 2 : 1;
  parallel_for(a.batch * a.heads * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / groups, at = i % groups;
      const int64_t first = (at % 2 == 0 ? at / 2 : groups - 1 - at / 2) * size;
      HeadTask<T>(a, head / a.heads, head % a.heads).run(first, std::min(size, a.queries - first));
    }
  });
}

void RunAttention(const Attention& a) {
  if (a.batch * a.heads * a.queries == 0) return;
  with_type(a.type, [&](auto t) { RunAs<decltype(t)>(a); });
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
