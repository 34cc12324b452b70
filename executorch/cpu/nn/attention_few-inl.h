/// Attention of a few queries per key head (decoding): vectors run along dim, and each key and
/// value is read once.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ATTENTION_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_ATTENTION_FEW_INL_H_
#undef EXECUTORCH_CPU_NN_ATTENTION_FEW_INL_H_
#else
#define EXECUTORCH_CPU_NN_ATTENTION_FEW_INL_H_
#endif
// clang-format on

#include <executorch/cpu/loop_reads.h>
#include <executorch/cpu/nn/attention_rows-inl.h>
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The most rows (queries times heads per key head) for which this is used: too few to fill
/// vectors.
constexpr int64_t kFewRows = 6;

/// The queries of one key head, at most kFewRows rows. A row is a query of one of the query heads
/// that share the key head.
template <class T, class K>
class FewRowsTask {
 public:
  /// `buffer` has ScratchSize(a) floats. `together` heads are computed together, block by block.
  FewRowsTask(const Attention& a, int64_t b, int64_t kv_head, int64_t together, float* buffer)
      : a_(a), b_(b), kv_head_(kv_head), group_(a.heads / a.kv_heads), together_(together) {
    q_row_ = RoundUp(a.dim, kLanes);
    o_row_ = RoundUp(a.value_dim, kLanes);
    q_ = buffer;
    o_ = q_ + kFewRows * q_row_;
  }
  static Size ScratchSize(const Attention& a) {
    return (Size(RoundUp(a.dim, kLanes)) + RoundUp(a.value_dim, kLanes)) * kFewRows;
  }

  void begin() {
    for (int64_t r = 0; r < n_rows(); ++r) {
      float* q = q_ + r * q_row_;
      std::fill_n(q, q_row_, 0.0f);
      CopyRow(At<const T>(a_.q.data, a_.q.batch_stride, a_.q.head_stride, a_.q.row_stride, r),
              a_.dim, q);
      for (int64_t p = 0; p < a_.dim; ++p) q[p] *= a_.scale * kLog2E;
      std::fill_n(o_ + r * o_row_, o_row_, 0.0f);
      max_[r] = -kInfinity;
      sum_[r] = 0;
    }
  }
  /// Adds the block of keys from `key` on to the results. Each key is read from memory once.
  void visit(int64_t key) {
    const int64_t n = std::min(kKeys, a_.keys - key);
    HWY_ALIGN float p[kFewRows][kKeys + kLanes];
    Block blocks[kFewRows];
    int64_t n_blocks = 0;
    for (int64_t r = 0; r < n_rows(); ++r) {
      const int64_t visible = VisibleKeys(r, key, n, p[n_blocks]);
      if (visible > 0) blocks[n_blocks] = {r, p[n_blocks], visible, 0}, ++n_blocks;
    }
    Together(blocks, n_blocks, [&](auto rows, const Block* some, bool first) HWY_ATTR {
      Scores<decltype(rows)::value>(some, key, n, first);
    });
    for (int64_t x = 0; x < n_blocks; ++x) Softmax(blocks[x], n);
    Together(blocks, n_blocks, [&](auto rows, const Block* some, bool first) HWY_ATTR {
      Accumulate<decltype(rows)::value>(some, key, n, first);
    });
  }
  void end() {
    const Floats d;
    for (int64_t r = 0; r < n_rows(); ++r) {
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
  int64_t n_rows() const { return group_ * a_.queries; }

  template <class U, class P>
  U* At(P data, int64_t batch, int64_t head, int64_t row, int64_t r) const {
    const int64_t h = kv_head_ * group_ + r / a_.queries;
    return static_cast<U*>(data) + b_ * batch + h * head + r % a_.queries * row;
  }

  /// A row and a block of keys. p first holds the mask, to which the scores are added, and then
  /// their probabilities.
  struct Block {
    int64_t row;
    float* p;
    int64_t visible;  // keys
    float alpha;      // the factor that rescales the row's sums so far
  };
  static constexpr int64_t kTogether = 4;  // keys whose scores are summed side by side
  /// The most rows that each loaded element of a key or value is multiplied by.
  static constexpr int kMostTogether = ET_VECTOR_REGISTERS == 32 ? 4 : 3;
  static constexpr auto kSize = static_cast<int64_t>(sizeof(K));
  // Bytes between a row and the one prefetched with it: several pages, because the addresses of
  // pages of 4 KiB take long to translate.
  static constexpr int64_t kAhead = 32 << 10;

  const K* RowsOf(const AttentionRows& rows) const {
    return static_cast<const K*>(rows.data) + b_ * rows.batch_stride + kv_head_ * rows.head_stride;
  }

  /// Prefetches columns [c, c + n) of one row after another into L2, as L1 is full of data in use.
  /// The rows are those needed some time after row j, of this head or of the next one; where heads
  /// are computed together, they are rows of the next block.
  class Prefetch {
   public:
    HWY_INLINE Prefetch(const FewRowsTask& task, const AttentionRows& rows, int64_t j, int64_t c,
                        int64_t n)
        : row_stride_(rows.row_stride), n_(n) {
      const int64_t bytes = std::max<int64_t>(rows.row_stride, 1) * kSize, keys = task.a_.keys;
      const int64_t ahead = task.together_ > 1 ? kKeys : std::max<int64_t>(kAhead / bytes, 1);
      j += std::min(ahead, keys);  // fewer than there are
      const K* const head = task.RowsOf(rows) + c;
      next_head_ = head + task.together_ * rows.head_stride;
      left_ = keys - j;
      at_ = left_ > 0 ? head + j * row_stride_ : next_head_ - left_ * row_stride_;
    }
    HWY_INLINE void next() {
      for (int64_t p = 0; p < n_; p += kLine / kSize) __builtin_prefetch(at_ + p, 0, 2);
      at_ = --left_ == 0 ? next_head_ : at_ + row_stride_;
    }

   private:
    const K *at_, *next_head_;
    int64_t left_;  // rows of this head
    const int64_t row_stride_, n_;
  };

  /// Calls f(count, first block, whether these are the first blocks) for as many of the n blocks at
  /// once as registers hold, because keys and values are converted again in each call.
  template <class F>
  static void Together(const Block* blocks, int64_t n, const F& f) {
    const int64_t parts = (n + kMostTogether - 1) / kMostTogether;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t x = n * part / parts;
      switch (n * (part + 1) / parts - x) {
        case 1:
          f(std::integral_constant<int, 1>(), blocks + x, x == 0);
          break;
        case 2:
          f(std::integral_constant<int, 2>(), blocks + x, x == 0);
          break;
        case 3:
          f(std::integral_constant<int, 3>(), blocks + x, x == 0);
          break;
        default:
          f(std::integral_constant<int, kMostTogether>(), blocks + x, x == 0);
      }
    }
  }

  /// Returns how many of n keys row r sees, and writes the numbers that the mask adds to its scores
  /// to p.
  int64_t VisibleKeys(int64_t r, int64_t key, int64_t n, float* p) const {
    const int64_t h = kv_head_ * group_ + r / a_.queries, i = r % a_.queries;
    const int64_t visible = a_.causal ? std::min(n, i + a_.causal_offset + 1 - key) : n;
    if (visible <= 0) return 0;
    const Seen seen = MaskBlock(a_, b_, h).read(i, 1, key, visible, p);
    if (seen == Seen::None) return 0;
    std::fill(p + (seen == Seen::All ? 0 : visible), p + n, 0.0f);
    return visible;
  }

  /// p[j] += dot product of the row's query and key j.
  template <int kRows>
  void Scores(const Block* blocks, int64_t key, int64_t n, bool first) const {
    const Floats d;
    const hn::CappedTag<float, kTogether> d_scores;
    const int64_t stride = a_.k.row_stride;
    const K* k = RowsOf(a_.k) + key * stride;
    Prefetch ahead(*this, a_.k, key, 0, a_.dim);
    const float* q[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) q[i] = q_ + blocks[i].row * q_row_;
    for (int64_t j = 0; j < n; j += kTogether, k += kTogether * stride) {
      const K* row[kTogether];
      hn::Vec<Floats> sums[kRows][kTogether];
#pragma GCC unroll 4
      for (int64_t x = 0; x < kTogether; ++x) {
        row[x] = k + std::min(x, n - 1 - j) * stride;
        if (first) ahead.next();
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) sums[i][x] = hn::Zero(d);
      }
      const auto add = [&](int64_t at, const auto& load) HWY_ATTR {
#pragma GCC unroll 4
        for (int64_t x = 0; x < kTogether; ++x) {
          const auto y = load(row[x] + at);
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i) {
            sums[i][x] = hn::MulAdd(y, hn::LoadU(d, q[i] + at), sums[i][x]);
          }
        }
      };
      int64_t at = 0;
      for (; at + kLanes <= a_.dim; at += kLanes) {
        add(at, [&](const K* from) HWY_ATTR { return LoadFloats(d, from); });
      }
      if (const auto rest = static_cast<size_t>(a_.dim - at); rest > 0) {
        add(at, [&](const K* from) HWY_ATTR { return LoadFloatsN(d, from, rest); });
      }
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        // This may write behind the last key, where there is room for a vector; Softmax()
        // overwrites it.
        float* const p = blocks[i].p + j;
        hn::StoreU(hn::Add(hn::LoadU(d_scores, p), SumsOfLanes(d, sums[i])), d_scores, p);
      }
    }
  }

  void Softmax(Block& block, int64_t n) {
    const Floats d;
    const int64_t r = block.row;
    float* const p = block.p;
    std::fill(p + block.visible, p + RoundUp(n, kLanes), -kInfinity);
    auto most = hn::Set(d, max_[r]);
    for (int64_t j = 0; j < n; j += kLanes) {
      const auto x = hn::LoadU(d, p + j);
      most = hn::IfThenElse(hn::Gt(x, most), x, most);  // a NaN is passed over
    }
    const float max = hn::GetLane(hn::MaxOfLanes(d, most));
    const float reference = max == -kInfinity ? 0.0f : max;
    auto total = hn::Zero(d);
    for (int64_t j = 0; j < n; j += kLanes) {
      const auto x = Exp2OfNegative(d, hn::Sub(hn::LoadU(d, p + j), hn::Set(d, reference)));
      hn::StoreU(x, d, p + j);
      total = hn::Add(total, x);
    }
    block.alpha = hn::GetLane(Exp2OfNegative(d, hn::Set(d, max_[r] - reference)));
    max_[r] = max;
    sum_[r] = sum_[r] * block.alpha + hn::GetLane(hn::SumOfLanes(d, total));
  }

  /// o = alpha o + sum_j p[j] v[j]
  template <int kRows>
  void Accumulate(const Block* blocks, int64_t key, int64_t n, bool first) {
    const Floats d;
    int64_t c = 0;
    const auto whole = [&](const K* from) HWY_ATTR { return LoadFloats(d, from); };
    const auto columns = [&](auto vectors) HWY_ATTR {
      constexpr int kVectors = decltype(vectors)::value;
      for (; c + kVectors * kLanes <= a_.value_dim; c += kVectors * kLanes) {
        AccumulateColumns<kRows, kVectors>(blocks, key, n, first, c, whole);
      }
    };
    constexpr int kWidest = kRows == 1 ? 8 : 4;
    columns(std::integral_constant<int, kWidest>());
    columns(std::integral_constant<int, kWidest / 2>());
    columns(std::integral_constant<int, 1>());
    if (const auto rest = static_cast<size_t>(a_.value_dim - c); rest > 0) {
      AccumulateColumns<kRows, 1>(blocks, key, n, first, c, [&](const K* from) HWY_ATTR {
        return LoadFloatsN(d, from, rest);
      });
    }
  }

  template <int kRows, int kVectors, class Load>
  HWY_INLINE void AccumulateColumns(const Block* blocks, int64_t key, int64_t n, bool first,
                                    int64_t c, const Load& load) {
    const Floats d;
    float* o[kRows];
    hn::Vec<Floats> sums[kRows][kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      o[i] = o_ + blocks[i].row * o_row_ + c;
#pragma GCC unroll 8
      for (int x = 0; x < kVectors; ++x) {
        sums[i][x] = hn::Mul(hn::LoadU(d, o[i] + x * kLanes), hn::Set(d, blocks[i].alpha));
      }
    }
    const K* v = RowsOf(a_.v) + key * a_.v.row_stride + c;
    Prefetch ahead(*this, a_.v, key, c, kVectors * kLanes);
    for (int64_t j = 0; j < n; ++j, v += a_.v.row_stride) {
      if (first) ahead.next();
#pragma GCC unroll 8
      for (int x = 0; x < kVectors; ++x) {
        const auto y = load(v + x * kLanes);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          sums[i][x] = hn::MulAdd(y, hn::Set(d, blocks[i].p[j]), sums[i][x]);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int x = 0; x < kVectors; ++x) hn::StoreU(sums[i][x], d, o[i] + x * kLanes);
    }
  }

  const Attention& a_;
  int64_t b_, kv_head_, group_, together_;
  int64_t q_row_, o_row_;
  float *q_, *o_;
  float max_[kFewRows], sum_[kFewRows];
};

/// The most heads that are computed together where the heads of a row are contiguous. Memory is
/// then read row by row, rather than once from beginning to end for each head.
constexpr int64_t kHeadsTogether = 8, kMostDimTogether = 1024;

inline int64_t HeadsTogether(const Attention& a) {
  const auto side_by_side = [&](const AttentionRows& rows) {
    return rows.head_stride > 0 && rows.head_stride < rows.row_stride;
  };
  const bool small = a.dim <= kMostDimTogether && a.value_dim <= kMostDimTogether;
  return small && side_by_side(a.k) && side_by_side(a.v) ? std::min(kHeadsTogether, a.kv_heads) : 1;
}

/// Announces that the next loop, of `grain` heads a range, reads the keys.
template <class K>
void AnnounceKeys(const Attention& a, int64_t grain) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(K));
  const Size bytes = Size(a.keys) * a.kv_heads * a.dim * kSize;
  if (a.batch != 1 || bytes.value_or(0) < kLeastReads) return;
  const AttentionRows& k = a.k;
  will_read({k.data, k.head_stride * kSize, a.keys, grain * a.dim * kSize, k.row_stride * kSize});
}

/// Computes key heads [begin, end) of all batch entries, at most `most` together. `buffer` has
/// `most` times FewRowsTask::ScratchSize(a) floats.
template <class T, class K>
void RunFewRows(const Attention& a, int64_t begin, int64_t end, int64_t most, float* buffer) {
  using Task = FewRowsTask<T, K>;
  const int64_t size = Task::ScratchSize(a).value();
  std::optional<Task> tasks[kHeadsTogether];
  while (begin < end) {
    const int64_t b = begin / a.kv_heads, head = begin % a.kv_heads;
    const int64_t n = std::min({most, end - begin, a.kv_heads - head});
    for (int64_t i = 0; i < n; ++i) tasks[i].emplace(a, b, head + i, n, buffer + i * size).begin();
    for (int64_t key = 0; key < a.keys; key += kKeys) {
      for (int64_t i = 0; i < n; ++i) tasks[i]->visit(key);
    }
    for (int64_t i = 0; i < n; ++i) tasks[i]->end();
    begin += n;
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
