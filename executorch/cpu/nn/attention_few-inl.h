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

#include <executorch/cpu/nn/attention_rows-inl.h>
#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows (queries times heads of one key head) that are too few to fill vectors.
constexpr int64_t kFewRows = 6;

/// The queries of one key head, at most kFewRows rows: query i of the head's g-th query head.
template <class T, class K>
class FewRowsTask {
 public:
  /// `buffer` has ScratchSize(a) floats.
  FewRowsTask(const Attention& a, int64_t b, int64_t kv_head, float* buffer)
      : a_(a), b_(b), kv_head_(kv_head), group_(a.heads / a.kv_heads) {
    q_row_ = RoundUp(a.dim, kLanes);
    o_row_ = RoundUp(a.value_dim, kLanes);
    q_ = buffer;
    o_ = q_ + kFewRows * q_row_;
  }
  static Size ScratchSize(const Attention& a) {
    return (Size(RoundUp(a.dim, kLanes)) + RoundUp(a.value_dim, kLanes)) * kFewRows;
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

  /// Brings what is needed some rows later, to the second-level cache: the first is full of what is
  /// in use.
  static HWY_INLINE void Prefetch(const K* row, int64_t n) {
    for (int64_t p = 0; p < n; p += kLine / static_cast<int64_t>(sizeof(K))) {
      __builtin_prefetch(row + p, 0, 2);
    }
  }
  static constexpr int64_t kAhead = 16;

  float Dot(const K* HWY_RESTRICT k, const float* HWY_RESTRICT q) const {
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

    const K* k = static_cast<const K*>(a_.k.data) + b_ * a_.k.batch_stride +
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

    const K* v = static_cast<const K*>(a_.v.data) + b_ * a_.v.batch_stride +
                 kv_head_ * a_.v.head_stride + key * a_.v.row_stride;
    Accumulate(v, s, n, alpha, r == 0, o_ + r * o_row_);
  }

  /// o = alpha o + sum_j p[j] v[j]
  void Accumulate(const K* HWY_RESTRICT v, const float* HWY_RESTRICT p, int64_t n, float alpha,
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
        const K* row = v + j * a_.v.row_stride + c;
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

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
