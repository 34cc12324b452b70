#include <executorch/cpu/nn/bilinear.h>

#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/bilinear.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/vectors-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;

/// The rows of x that the last rows of y were made of, resampled.
struct Rows {
  float* padded;  // a row of x, behind which its last element is repeated
  float* row[2];
  int64_t number[2];  // of a row in all of x; -1 if there is none
};

/// The elements that a row is padded with: vectors are read from each column on, and from the next.
constexpr int64_t kPadding = kLanes + 1;

/// y[j] = w0[j] * x[first_column[j]] + w1[j] * x[first_column[j] + 1]. Where columns are close
/// enough, both are taken from vectors that begin at the first of them.
void ResampleRow(const Bilinear& a, const float* HWY_RESTRICT x, float* HWY_RESTRICT y) {
  const Floats d;
  const Ints di;
  int64_t j = 0;
  for (; j + kLanes <= a.out_w; j += kLanes) {
    const int32_t* const columns = a.first_column + j;
    const int32_t begin = columns[0];
    V first, second;
    if (columns[kLanes - 1] - begin < static_cast<int32_t>(kLanes)) {
      const auto at = hn::IndicesFromVec(d, hn::Sub(hn::LoadU(di, columns), hn::Set(di, begin)));
      first = hn::TableLookupLanes(hn::LoadU(d, x + begin), at);
      second = hn::TableLookupLanes(hn::LoadU(d, x + begin + 1), at);
    } else {
      HWY_ALIGN float some[2][static_cast<size_t>(kLanes)];
      for (int64_t l = 0; l < kLanes; ++l) {
        some[0][l] = x[columns[l]];
        some[1][l] = x[columns[l] + 1];
      }
      first = hn::Load(d, some[0]);
      second = hn::Load(d, some[1]);
    }
    const V sum =
        hn::MulAdd(first, hn::LoadU(d, a.w0 + j), hn::Mul(second, hn::LoadU(d, a.w1 + j)));
    hn::StoreU(sum, d, y + j);
  }
  for (; j < a.out_w; ++j) {
    y[j] = a.w0[j] * x[a.first_column[j]] + a.w1[j] * x[a.first_column[j] + 1];
  }
}

/// Row r of plane p, resampled, which replaces the row that is not `kept`.
const float* RowOf(const Bilinear& a, int64_t p, int64_t r, int64_t rows, const float* kept,
                   Rows& made) {
  const int64_t number = p * rows + r;
  for (int i = 0; i < 2; ++i) {
    if (made.number[i] == number) return made.row[i];
  }
  const int i = made.row[0] == kept ? 1 : 0;
  const float* const from = a.x + p * a.x_plane + r * a.x_row;
  memcpy(made.padded, from, static_cast<size_t>(a.in_w) * sizeof(float));
  std::fill_n(made.padded + a.in_w, kPadding, from[a.in_w - 1]);
  ResampleRow(a, made.padded, made.row[i]);
  made.number[i] = number;
  return made.row[i];
}

/// Rows [begin, end) of all planes. The upper row of one is often the lower row of the one before.
void ResampleRows(const Bilinear& a, int64_t begin, int64_t end, bool past, float* buffer) {
  const Floats d;
  const int64_t rows = a.second_row[a.out_h - 1] + 1;
  const int64_t width = (a.out_w + kLanes - 1) / kLanes * kLanes;
  Rows made = {buffer + 2 * width, {buffer, buffer + width}, {-1, -1}};
  for (int64_t at = begin; at < end; ++at) {
    const int64_t p = at / a.out_h, i = at % a.out_h;
    const float* const upper = RowOf(a, p, a.first_row[i], rows, nullptr, made);
    const float* const other = RowOf(a, p, a.second_row[i], rows, upper, made);
    const V v0 = hn::Set(d, a.v0[i]), v1 = hn::Set(d, a.v1[i]);
    Produce(a.y + p * a.y_plane + i * a.y_row, a.out_w, past, upper,
            [&](int64_t j, const auto& lanes) HWY_ATTR {
              return hn::MulAdd(lanes.load(upper + j), v0, hn::Mul(lanes.load(other + j), v1));
            });
  }
  if (past) end_stream();
}

bool RunBilinear(const Bilinear& a, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const ThreadScratch<float> rows(scratch, Size(a.out_w) * 2 + a.in_w + (2 * kLanes + kPadding));
  if (!rows) return false;
  const int64_t bytes = a.planes * a.out_h * a.out_w * static_cast<int64_t>(sizeof(float));
  const bool past = overflows_caches(2 * bytes);
  constexpr int64_t kGrain = 16384;
  rows.parallel_for(a.planes * a.out_h, std::max<int64_t>(kGrain / a.out_w, 1),
                    [&](int64_t begin, int64_t end, float* buffer)
                        HWY_ATTR { ResampleRows(a, begin, end, past, buffer); });
  return true;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunBilinear);

bool Bilinear::run(Scratch& scratch) const {
  if (!is_countable(planes, out_h, out_w)) return false;
  return HWY_DYNAMIC_DISPATCH(RunBilinear)(*this, scratch);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
