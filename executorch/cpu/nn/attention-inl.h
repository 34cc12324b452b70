/// Attention without the matrix of scores in memory.
///
/// The lanes of a vector are queries. A tile of queries is transposed once (q^T, [dim][queries]),
/// so that both products are sums of outer products, and k and v need not be transposed:
///   s^T[j, :] = sum_d k[j, d] * q^T[d, :]        o^T[c, :] += sum_j v[j, c] * p^T[j, :]
/// The running maximum and sum of a query are lanes as well, so no operation crosses lanes. Scores
/// carry a factor log2(e), so that probabilities are powers of 2.
///
/// A task computes a group of queries of one head. It visits the keys in blocks of kKeys and copies
/// each block once, as dense floats, for all its tiles. Where the machine has matrix registers and
/// there are several tiles, these multiply (attention_split-inl.h). If there are few queries per
/// key head (decoding), attention_few-inl.h is used instead: its vectors run along dim, and it reads
/// each key and value once.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_INL_H_
#endif
// clang-format on

#include <executorch/cpu/machine.h>
#include <executorch/cpu/nn/attention_few-inl.h>
#include <executorch/cpu/nn/attention_split-inl.h>
#include <executorch/cpu/nn/attention_tiles-inl.h>
#include <executorch/cpu/prefetch.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <limits>
#include <optional>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The least and the most queries that share one copy of a block of keys.
constexpr int64_t kLeastGroup = 128, kMostGroup = 1024;

/// The number of queries of a task, a multiple of the tile's. It is so large that keys, which come
/// from memory, are copied rarely, but the queries and their results stay in the L2 cache, and
/// there are tasks enough for all threads.
template <class K>
int64_t GroupSize(const Attention& a) {
  const Size parts = SplitProducts<K>::QuerySize(a) / (kMaxVectors * kLanes);
  const Size kept = (Size(a.dim) + a.value_dim + 2 + parts) * 4;  // bytes of a query
  const auto threads = static_cast<int64_t>(loop_threads());
  const int64_t tasks = threads == 1 ? 1 : 4 * threads, heads = a.batch * a.heads;
  const int64_t groups = (tasks + heads - 1) / heads;
  const int64_t even = (a.queries + groups - 1) / groups;
  const int64_t most = std::min(machine().l2 / 4 / kept.value_or(machine().l2), kMostGroup);
  return RoundUp(std::max(std::min(even, most), kLeastGroup), kMaxVectors * kLanes);
}

template <class T, class K>
class HeadTask {
 public:
  /// `buffer` has ScratchSize(a, group) floats.
  HeadTask(const Attention& a, int64_t b, int64_t h, int64_t group, float* buffer)
      : a_(a),
        q_(Rows<T>(a.q, b, h)),
        k_(Rows<K>(a.k, b, h / (a.heads / a.kv_heads))),
        v_(Rows<K>(a.v, b, h / (a.heads / a.kv_heads))),
        out_(static_cast<T*>(a.out) + b * a.out_batch_stride + h * a.out_head_stride),
        mask_(a, b, h),
        k_row_(RoundUp(a.dim, kLanes)),
        v_row_(RoundUp(a.value_dim, kLanes)) {
    Divide(group, buffer);
  }

  static Size ScratchSize(const Attention& a, int64_t group) {
    const Size k_row = RoundUp(a.dim, kLanes), v_row = RoundUp(a.value_dim, kLanes);
    const Size per_tile = (k_row + v_row + 2) * kMaxWidth + SplitProducts<K>::QuerySize(a);
    return (k_row + v_row + kMaxWidth) * kKeys + max(max(k_row, v_row), kKeys) * kMaxWidth +
           kMaxWidth * kKeys + per_tile * (group / kMaxWidth) + SplitProducts<K>::ScratchSize(a);
  }

  /// Computes queries [first, first + count); count is at most the size of a group.
  void run(int64_t first, int64_t count) {
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
  static constexpr auto kSize = static_cast<int64_t>(sizeof(K));
  static constexpr int64_t kMaxTiles = RoundUp(kMostGroup, kMaxWidth) / kMaxWidth;

  template <class U>
  static const U* Rows(const AttentionRows& rows, int64_t b, int64_t h) {
    return static_cast<const U*>(rows.data) + b * rows.batch_stride + h * rows.head_stride;
  }

  void Divide(int64_t group, float* at) {
    const int64_t wide = std::max(k_row_, v_row_);
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
    if (SplitProducts<K>::Pays(a_)) {
      split_.emplace(a_, take(SplitProducts<K>::ScratchSize(a_).value()));
    }
    const int64_t query_parts = SplitProducts<K>::QuerySize(a_).value();
    for (int64_t t = 0; t < group / kMaxWidth; ++t) {
      Tile& tile = tiles_[t];
      tile.q_parts = take(query_parts);
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
      if (split_) split_->SplitQueries(tile);
      std::fill_n(tile.o, width * v_row_, 0.0f);
      std::fill_n(tile.max, width, -kInfinity);
      std::fill_n(tile.sum, width, 0.0f);
      i += tile.count;
    }
  }

  /// Copies n keys and values as dense floats, and prefetches those of the next block. Keys are
  /// padded to whole tiles, values to an even dim.
  void CopyBlock(int64_t key, int64_t n) {
    if (copied_) return;
    copied_ = true;
    for (int64_t j = 0; j < n; ++j) {
      if (const int64_t next = key + kKeys + j; next < a_.keys) {
        prefetch<2>(k_ + next * a_.k.row_stride, a_.dim * kSize);
        prefetch<2>(v_ + next * a_.v.row_stride, a_.value_dim * kSize);
      }
      CopyRow(k_ + (key + j) * a_.k.row_stride, a_.dim, k_copy_ + j * k_row_);
      float* v = v_copy_ + j * v_row_;
      CopyRow(v_ + (key + j) * a_.v.row_stride, a_.value_dim, v);
      if (a_.value_dim % 2 != 0) v[a_.value_dim] = 0;
    }
    std::fill(k_copy_ + n * k_row_, k_copy_ + RoundUp(n, kTileRows) * k_row_, 0.0f);
    if (split_) split_->SplitBlock(block(), n);
  }
  Block block() const {
    return {k_copy_, v_copy_, k_row_, v_row_, a_.dim, RoundUp(a_.value_dim, 2)};
  }

  void Visit(const Tile& tile, int64_t key, int64_t n) {
    const int64_t offset = tile.first + a_.causal_offset - key;
    if (a_.causal) n = std::min(n, offset + tile.count);
    if (n <= 0) return;
    const Seen seen = mask_.read(tile.first, tile.count, key, n, rows_);
    if (seen == Seen::None) return;
    CopyBlock(key, block_keys(key));
    const int64_t width = tile.width();
    WithVectors(tile.vectors, [&](auto vectors) HWY_ATTR {
      constexpr int64_t kVectors = decltype(vectors)::value;
      HWY_ALIGN float alpha[kVectors * kLanes];
      if (!split_ || !split_->Scores(tile, n, s_)) Scores<kVectors>(tile, block(), n, s_);
      if (seen == Seen::Some) AddMask(rows_, mask_.one_row, width, n, columns_, s_);
      if (a_.causal) HideFuture(offset, width, n, s_);
      Probabilities<kVectors>(s_, n, tile.max, tile.sum, alpha);
      if (!split_ || !split_->Update(tile, n, alpha, s_)) {
        Update<kVectors>(tile, block(), n, alpha, s_);
      }
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
  const T* q_;
  const K *k_, *v_;
  T* out_;
  MaskBlock mask_;
  const int64_t k_row_, v_row_;  // of the copies, in floats
  float *k_copy_ = nullptr, *v_copy_ = nullptr;
  float* s_ = nullptr;        // [kKeys][width] scores, then probabilities
  float* rows_ = nullptr;     // queries, results or the mask by rows
  float* columns_ = nullptr;  // the mask by columns
  Tile tiles_[kMaxTiles];
  std::optional<SplitProducts<K>> split_;
  int64_t n_tiles_ = 0;
  bool copied_ = false;
};

template <class T, class K>
bool RunAs(const Attention& a, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  if (a.queries * (a.heads / a.kv_heads) <= kFewRows) {
    const int64_t n = a.batch * a.kv_heads;
    const int64_t most = HeadsTogether(a);
    const ThreadScratch<float> buffers(scratch, FewRowsTask<T, K>::ScratchSize(a) * most,
                                       n == 1 ? 1 : loop_threads());
    if (!buffers) return false;
    const auto threads = static_cast<int64_t>(loop_threads());
    const int64_t grain = std::min(most, (n + threads - 1) / threads);
    AnnounceKeys<K>(a, grain);
    buffers.parallel_for(n, grain, [&](int64_t begin, int64_t end, float* buffer) {
      RunFewRows<T, K>(a, begin, end, most, buffer);
    });
    return true;
  }
  const int64_t size = GroupSize<K>(a);
  const int64_t groups = (a.queries + size - 1) / size;
  // If attention is causal, late queries see more keys: a task is a pair of an early and a late
  // group.
  const int64_t grain = a.causal && groups > 1 ? 2 : 1;
  const int64_t n = a.batch * a.heads * groups;
  const ThreadScratch<float> buffers(scratch, HeadTask<T, K>::ScratchSize(a, size),
                                     n <= grain ? 1 : loop_threads());
  if (!buffers) return false;
  buffers.parallel_for(n, grain, [&](int64_t begin, int64_t end, float* buffer) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / groups, at = i % groups;
      const int64_t first = (at % 2 == 0 ? at / 2 : groups - 1 - at / 2) * size;
      HeadTask<T, K>(a, head / a.heads, head % a.heads, size, buffer)
          .run(first, std::min(size, a.queries - first));
    }
  });
  return true;
}

bool RunAttention(const Attention& a, Scratch& scratch) {
  if (a.kept.has_value() && *a.kept != a.type) {
    return with_type(*a.kept, [&](auto k) { return RunAs<float, decltype(k)>(a, scratch); });
  }
  return with_type(a.type, [&](auto t) { return RunAs<decltype(t), decltype(t)>(a, scratch); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
